//! A second judgement of promised rates: how long a volume waited, and what it got.

use weir_model::{Instant, Span, Target, Verdict};

/// What a volume was served in the window that is running.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// When something last happened to the volume.
    at: Instant,
    /// How long it had no request.
    free: Span,
    /// How long it had some.
    waited: Span,
    requests: u64,
    bytes: u64,
}

impl Served {
    pub(super) const fn new(now: Instant) -> Self {
        Self { at: now, free: Span::ZERO, waited: Span::ZERO, requests: 0, bytes: 0 }
    }

    /// Until now, so many requests were outstanding.
    pub(super) fn on_time(&mut self, now: Instant, outstanding: u32) {
        let of = if outstanding == 0 { &mut self.free } else { &mut self.waited };
        *of += now.since(self.at);
        self.at = now;
    }

    /// A request of so many bytes was answered with success.
    pub(super) fn on_answer(&mut self, bytes: u32) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
    }

    /// Ends a window of this length; `None`: it has to be longer.
    pub(super) fn verdict(&mut self, length: Span, target: Target) -> Option<Verdict> {
        let Self { at, waited, requests, bytes, .. } = *self;
        let (got, rate) = match target {
            Target::Rate(rate) => (requests, rate.get()),
            #[allow(clippy::cast_precision_loss)] // as in the engine
            Target::Throughput(rate) => (bytes, rate.get() as f64),
            Target::Latency(_) | Target::Percentile(..) => return Some(Verdict::Idle),
        };
        let promised = rate * length.as_secs_f64();
        if matches!(target, Target::Rate(_)) && promised < 20.0 && waited > Span::ZERO {
            return None;
        }
        *self = Self::new(at);
        let is_idle = u128::from(waited.as_nanos()) * 20 < u128::from(length.as_nanos()) * 19;
        #[allow(clippy::cast_precision_loss)] // as in the engine
        let is_met = got as f64 >= promised.floor();
        Some(match (is_idle, is_met) {
            (true, _) => Verdict::Idle,
            (false, true) => Verdict::Met,
            (false, false) => Verdict::Missed,
        })
    }
}

#[cfg(test)]
mod tests {
    use weir_model::{Bandwidth, Iops};

    use super::*;

    /// 30 answers of 1,000 bytes in a second, in which nothing waited for so many milliseconds.
    fn served(free: u64) -> Served {
        let mut served = Served::new(Instant::ORIGIN);
        served.on_time(Instant::ORIGIN + Span::from_millis(free), 0);
        (0..30).for_each(|_| served.on_answer(1_000));
        served.on_time(Instant::ORIGIN + Span::from_secs(1), 1);
        served
    }

    #[test]
    fn a_rate_is_held_against_what_was_answered_if_something_waited() {
        let verdict = |free, target| served(free).verdict(Span::from_secs(1), target);
        let rate = |iops| Target::Rate(Iops::new(iops).unwrap());
        assert_eq!(verdict(50, rate(30.5)), Some(Verdict::Met));
        assert_eq!(verdict(50, rate(31.0)), Some(Verdict::Missed));
        assert_eq!(verdict(51, rate(31.0)), Some(Verdict::Idle));
        assert_eq!(verdict(0, rate(19.0)), None, "19 answers are too few");
        assert_eq!(verdict(1_000, rate(19.0)), Some(Verdict::Idle), "nothing was asked for");
        let bytes = |bytes| Target::Throughput(Bandwidth::new(bytes).unwrap());
        assert_eq!(verdict(0, bytes(30_000)), Some(Verdict::Met));
        assert_eq!(verdict(0, bytes(30_001)), Some(Verdict::Missed));
    }
}
