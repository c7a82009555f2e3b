//! Progress messages on standard error, so that a run of ten minutes is not ten minutes of silence.

use std::time::{Duration, Instant};

/// How far a run has come.
#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    done: u32,
    total: u32,
}

impl Progress {
    /// The progress of a run of `total` measurements, which begins now.
    pub(super) fn new(total: u32) -> Self {
        Self { started: Instant::now(), done: 0, total }
    }

    /// Reports that `what` is done, which took `measurements` of the total.
    pub(super) fn advance(&mut self, measurements: u32, what: &str) {
        self.done += measurements;
        let left = time_left(self.started.elapsed(), self.done, self.total);
        eprintln!("[{:>3}/{}, {left} left] {what}", self.done, self.total);
    }
}

/// The time left, if the rest goes on at the same speed.
fn time_left(elapsed: Duration, done: u32, total: u32) -> String {
    let seconds = (elapsed / done.max(1) * total.saturating_sub(done)).as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        assert_eq!(time_left(Duration::from_secs(30), 10, 50), "2:00");
        assert_eq!(time_left(Duration::from_secs(7), 1, 2), "0:07");
        assert_eq!(time_left(Duration::from_secs(7), 2, 2), "0:00");
    }
}
