//! By how much a bound moves in a step: that of background volumes, and that of promised ones.
//!
//! Steps are factors, because the right bound is a fraction of a request for one device, and hundreds for
//! another.

use super::PERIOD;
use super::strain::{AIM, Strain};

/// The most that one cut leaves of a bound, and the least. Half: latency is at most in proportion.
pub(super) const CUT: (f64, f64) = (0.5, 0.95);
/// Periods from one cut to the next, at least. 200 ms: what strain of late is measured over.
pub(super) const SETTLES: f64 = 4.0;
/// Seconds after which a bound that nobody reaches is no bound any more.
pub(super) const UNFELT: f64 = 5.0;
/// How fast a bound is taken back while one window in some hundred would be missed, a second.
const BACK: f64 = 0.3;
/// How fast it grows at and above where the last trouble began, a second, if there is room for twice as much.
const SLOW: f64 = 0.03;
/// After so many seconds without trouble it grows twice as fast, then three times, and so on.
const CALM: f64 = 20.0;

/// The part of a bound that a cut leaves while a window is about to be missed.
pub(super) fn cut(strain: Strain) -> f64 {
    (AIM / strain.lately).clamp(CUT.0, CUT.1)
}

/// How fast a bound is taken back if one window in some hundred has this strain, above 1; a second.
pub(super) fn back(likely: f64) -> f64 {
    BACK * (likely - 1.0).min(1.0)
}

/// How fast a bound grows after so many periods without a cut, if there is this room, 0 to 1; a second.
pub(super) fn slow(room: f64, settled: f64) -> f64 {
    SLOW * room * (1.0 + settled * PERIOD.as_secs_f64() / CALM)
}
