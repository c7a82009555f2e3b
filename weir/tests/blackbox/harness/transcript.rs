//! The output of a process, line by line. Tests wait for lines, and the message of a failure shows them.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use super::PATIENCE;

/// The lines of one stream so far.
#[derive(Clone, Default)]
pub(crate) struct Transcript(Arc<Shared>);

#[derive(Default)]
struct Shared {
    said: Mutex<Said>,
    more: Condvar,
}

#[derive(Default)]
struct Said {
    lines: Vec<String>,
    ended: bool,
}

impl Transcript {
    /// Reads `stream` to its end, in the background.
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Self {
        let transcript = Self::default();
        let writer = transcript.clone();
        thread::spawn(move || {
            let mut lines = BufReader::new(stream).split(b'\n');
            while let Some(Ok(line)) = lines.next() {
                writer.change(|said| said.lines.push(String::from_utf8_lossy(&line).into_owned()));
            }
            writer.change(|said| said.ended = true);
        });
        transcript
    }

    /// Waits until a line from number `from` on contains `text`, and returns the line. `None` if the stream
    /// ends first.
    ///
    /// # Panics
    /// If it takes too long.
    pub(crate) fn wait_for(&self, from: usize, text: &str) -> Option<String> {
        let found = |said: &Said| said.lines.iter().skip(from).find(|line| line.contains(text)).cloned();
        let said = self.wait(text, |said| said.ended || found(said).is_some());
        found(&said)
    }

    /// Waits until there are `lines` lines, or the end.
    ///
    /// # Panics
    /// If it takes too long.
    pub(crate) fn wait_for_lines(&self, lines: usize) {
        drop(self.wait("more lines", |said| said.ended || said.lines.len() >= lines));
    }

    /// Waits for the end of the stream, and returns all of it.
    ///
    /// # Panics
    /// If it takes too long.
    pub(crate) fn to_end(&self) -> String {
        drop(self.wait("its end", |said| said.ended));
        self.text()
    }

    /// The text so far.
    pub(crate) fn text(&self) -> String {
        self.0.said.lock().unwrap().lines.join("\n")
    }

    /// The number of lines so far.
    pub(crate) fn length(&self) -> usize {
        self.0.said.lock().unwrap().lines.len()
    }

    fn wait(&self, what: &str, done: impl Fn(&Said) -> bool) -> MutexGuard<'_, Said> {
        let said = self.0.said.lock().unwrap();
        let (said, waited) = self.0.more.wait_timeout_while(said, PATIENCE, |said| !done(said)).unwrap();
        if waited.timed_out() {
            drop(said); // so that it can still be shown
            panic!("waited in vain for {what:?} in:\n{}", self.text());
        }
        said
    }

    fn change(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.0.said.lock().unwrap());
        self.0.more.notify_all();
    }
}
