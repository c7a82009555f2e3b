//! Everything that the program prints goes through this file, so that nobody who does not read it can end it.
//!
//! `println!` and `eprintln!` panic if the line cannot be written, and a panic of weir ends it with SIGABRT.
//! So a full disk behind standard error would end a server at its first message. Clippy refuses both macros
//! in this crate.
//!
//! What a verb was asked for goes to [`out`], whose errors end the verb: the operator does not have the
//! answer. A message beside the work, such as that a server has started, is dropped if it cannot be written.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Write};

/// Prints a line on standard output, beside the work.
pub(crate) fn on_stdout(line: impl Display) {
    let _ = out().write_all(format!("{line}\n").as_bytes());
}

/// Prints a line on standard error.
pub(crate) fn on_stderr(line: impl Display) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
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
    use anyhow::Context;

    use super::*;

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
