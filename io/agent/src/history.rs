//! What was measured and decided at each resource in the last control intervals, for `weir throttle explain`.

use std::collections::{BTreeMap, VecDeque};

use weir_model::{Instant, Span};
use weir_status::DelayInterval;
use weir_throttle::{ResourceId, Throttle};

/// How many intervals are kept: two seconds. The table of an explanation fits on a screen.
const KEPT: usize = 20;

/// The last intervals of each resource.
#[derive(Default, Debug)]
pub(crate) struct History(BTreeMap<ResourceId, VecDeque<Interval>>);

/// One interval.
#[derive(Debug)]
struct Interval {
    ended: Instant,
    wait: Span,
    threshold: Span,
    delay: Span,
}

impl History {
    /// Records the interval that has just ended.
    pub(crate) fn record(&mut self, now: Instant, throttle: &Throttle) {
        let mut kept = BTreeMap::new();
        for guarded in throttle.guarded() {
            let mut intervals = self.0.remove(guarded.id).unwrap_or_default();
            if intervals.len() == KEPT {
                intervals.pop_front();
            }
            let (wait, threshold, delay) = (guarded.wait, guarded.threshold, guarded.delay);
            intervals.push_back(Interval { ended: now, wait, threshold, delay });
            kept.insert(guarded.id.clone(), intervals);
        }
        self.0 = kept;
    }

    /// The intervals of a resource, oldest first.
    pub(crate) fn of(&self, now: Instant, resource: &ResourceId) -> Vec<DelayInterval> {
        let interval = |interval: &Interval| DelayInterval {
            age_ms: now.saturating_since(interval.ended).as_micros() / 1_000,
            wait_us: interval.wait.as_micros(),
            threshold_us: interval.threshold.as_micros(),
            delay_us: interval.delay.as_micros(),
        };
        self.0.get(resource).into_iter().flatten().map(interval).collect()
    }
}
