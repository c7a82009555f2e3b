//! Everything that the program prints goes through this file, so that nobody who does not read it can end it.
//!
//! `println!` and `eprintln!` panic if the line cannot be written, and a panic of weir ends it with SIGABRT.
//! So a full disk behind standard error would end a server at its first message. Clippy refuses both macros
//! in this crate.
//!
//! What a verb was asked for goes to [`out`], whose errors end the verb: the operator does not have the
//! answer. A message beside the work, such as that a server has started, is dropped if it cannot be written,
//! or if nobody reads what stands before it. The write would wait for ever, and the work with it.
//!
//! `O_NONBLOCK` would hold for everybody who has the same pipe, such as the shell. So a message is written
//! only after the kernel has said that there is room.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long a message waits for somebody who reads what stands before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a pipe takes at once if it has any room: `PIPE_BUF`, in `man 7 pipe`.
const AT_ONCE: usize = 4096;

/// Prints a line on standard output, beside the work.
pub(crate) fn on_stdout(line: impl Display) {
    beside(io::stdout(), || io::stdout().lock(), format!("{line}\n").as_bytes(), PATIENCE);
}

/// Prints a line on standard error.
pub(crate) fn on_stderr(line: impl Display) {
    beside(io::stderr(), || io::stderr().lock(), format!("{line}\n").as_bytes(), PATIENCE);
}

/// Writes to standard error what has room there now. Says whether that was everything.
pub(crate) fn at_once(text: &[u8]) -> bool {
    beside(io::stderr(), || io::stderr().lock(), text, Duration::ZERO)
}

/// Writes as long as there is room within this time for each piece. Says whether everything had room.
fn beside<L: Write + AsFd>(to: impl AsFd, lock: impl Fn() -> L, text: &[u8], patience: Duration) -> bool {
    text.chunks(AT_ONCE).all(|piece| {
        // Nobody waits with the lock: another thread may have a line for which it must not wait at all.
        let mut locked = Some(()).filter(|()| has_room(&to, patience)).map(|()| lock());
        let locked = locked.as_mut().filter(|locked| has_room(locked, Duration::ZERO));
        // A message that cannot be written has nowhere to go.
        locked.map(|locked| locked.write_all(piece).and_then(|()| locked.flush())).is_some()
    })
}

/// Whether a write would not wait, because there is room or because it would fail.
fn has_room(to: &impl AsFd, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    loop {
        match poll(&mut [PollFd::new(to, PollFlags::OUT)], within.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return ready != Ok(0),
        }
    }
}

/// Standard output, for what a verb was asked for.
pub(crate) fn out() -> Out {
    Out
}

/// Standard output. Its errors say that it is standard output which cannot be written.
pub(crate) struct Out;

impl Write for Out {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        io::stdout().write(buf).map_err(unwritten)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(unwritten)
    }
}

/// Why standard output cannot be written.
#[derive(Debug)]
struct Unwritten(io::Error);

impl Display for Unwritten {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "standard output cannot be written: {}", self.0)
    }
}

impl Error for Unwritten {}

/// The error of a write to standard output.
pub(crate) fn unwritten(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), Unwritten(error))
}

/// Whether the error is that nobody reads standard output any more, as after `weir … | head`. There is
/// nothing to tell then.
pub(crate) fn is_unread(error: &anyhow::Error) -> bool {
    let is_unread = |error: &io::Error| {
        error.kind() == ErrorKind::BrokenPipe && error.get_ref().is_some_and(|inner| inner.is::<Unwritten>())
    };
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(is_unread)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use anyhow::Context;

    use super::*;

    #[test]
    fn what_nobody_reads_is_written_as_far_as_there_is_room_and_holds_nobody_up() {
        let (mut reader, writer) = io::pipe().expect("every system has pipes");
        let say = |text: &[u8]| {
            beside(&writer, || writer.try_clone().expect("a descriptor is left"), text, Duration::ZERO)
        };
        let line = [&[b'x'; 99][..], b"\n"].concat();
        let written = (0..).take_while(|_| say(&line)).count();
        assert!(written > 100, "{written} lines");
        assert!(!say(&line), "it is still full");
        let mut read = vec![0; AT_ONCE];
        reader.read_exact(&mut read).expect("it is there");
        assert!(say(&line), "there is room again");
        assert!(!say(&vec![b'x'; 1 << 20]), "not for so much");
        drop(reader);
        assert!(say(&line), "the error of the write tells, and nobody waits");
    }

    #[test]
    fn only_standard_output_that_nobody_reads_is_nothing_to_tell() {
        let broken = || io::Error::from(ErrorKind::BrokenPipe);
        let unread = Err::<(), _>(unwritten(broken())).context("the table").unwrap_err();
        assert!(is_unread(&unread));
        assert!(!is_unread(&broken().into()), "a connection to a server");
        let full = unwritten(io::Error::from(ErrorKind::StorageFull)).into();
        assert!(!is_unread(&full));
        assert!(full.to_string().starts_with("standard output cannot be written: "), "{full}");
    }
}
