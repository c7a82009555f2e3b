//! What a volume has used of a rate limit and not yet paid for.

use weir_model::Instant;

/// By how much this computation in floating point may differ from the engine's: far less than any breach that
/// it looks for.
const ROUNDING_NANOS: f64 = 1_000.0;

/// The instant at which everything that was issued is paid for, at a limit's rate. Without a limit, nothing
/// costs anything.
#[derive(Default, Debug)]
pub(super) struct Debt {
    /// Nanoseconds for each unit; zero without a limit.
    cost: f64,
    /// In nanoseconds after the origin.
    paid_at: f64,
}

impl Debt {
    /// Sets the limit, in units a second. A debt stays a debt of as many units.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Option<f64>) {
        let cost = rate.map_or(0.0, |rate| 1e9 / rate);
        let owed = (self.paid_at - nanos(now)).max(0.0);
        let rescaled = if self.cost > 0.0 { owed * (cost / self.cost) } else { 0.0 };
        *self = Self { cost, paid_at: nanos(now) + rescaled };
    }

    pub(super) fn charge(&mut self, now: Instant, units: u32) {
        self.paid_at = self.paid_at.max(nanos(now)) + self.cost * f64::from(units);
    }

    pub(super) fn is_paid(&self, now: Instant) -> bool {
        nanos(now) > self.paid_at + ROUNDING_NANOS || self.cost == 0.0
    }
}

#[allow(clippy::cast_precision_loss)] // exact for 104 days
const fn nanos(at: Instant) -> f64 {
    at.as_nanos() as f64
}
