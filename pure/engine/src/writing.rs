//! A sensor for how much a volume writes, and the judgement whether that makes it a heavy writer.

/// The sensor.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Writing {
    /// Bytes since the volume was judged last.
    bytes: u64,
    is_heavy: bool,
}

impl Writing {
    /// A write, or a range of zeroes, was answered with success.
    pub(crate) fn on_answer(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Judges the volume by what it wrote since it was judged last. `most`: what it may have written and be
    /// no heavy writer, in bytes times nanoseconds a second. `stays`: it remains one if it wrote at all, or
    /// `waits` for replies.
    pub(crate) fn judge(&mut self, most: u128, stays: bool, waits: bool) {
        let bytes = std::mem::take(&mut self.bytes);
        let writes = bytes > 0 || waits;
        self.is_heavy = u128::from(bytes) * 1_000_000_000 > most || (self.is_heavy && stays && writes);
    }

    /// Whether the volume is a heavy writer.
    pub(crate) const fn is_heavy(self) -> bool {
        self.is_heavy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes over a second.
    const MOST: u128 = 1_000 * 1_000_000_000;

    #[test]
    fn a_volume_that_writes_above_the_limit_is_a_heavy_writer_from_the_next_judgement_on() {
        let mut writing = Writing::default();
        writing.on_answer(1_000);
        writing.judge(MOST, false, false);
        assert!(!writing.is_heavy(), "the limit itself is allowed");
        writing.on_answer(600);
        writing.on_answer(401);
        assert!(!writing.is_heavy(), "not judged yet");
        writing.judge(MOST, false, false);
        assert!(writing.is_heavy());
        writing.judge(MOST, false, false);
        assert!(!writing.is_heavy());
    }

    #[test]
    fn a_heavy_writer_that_is_delayed_stays_one_until_it_stops_writing() {
        let mut writing = Writing::default();
        writing.on_answer(2_000);
        writing.judge(MOST, true, false);
        writing.on_answer(1);
        writing.judge(MOST, true, false);
        assert!(writing.is_heavy(), "the delay made it slow");
        writing.judge(MOST, true, true);
        assert!(writing.is_heavy(), "all of its replies are held");
        writing.judge(MOST, true, false);
        assert!(!writing.is_heavy());
        writing.on_answer(1);
        writing.judge(MOST, true, false);
        assert!(!writing.is_heavy(), "and nobody becomes one by little");
    }
}
