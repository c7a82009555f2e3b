//! How many windows of a volume were met, missed, or not judged.

use serde::{Deserialize, Serialize};

/// How the windows of a volume were judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WindowCounters {
    /// Windows in which requests came that took at most the target on average.
    pub met: u64,
    /// Windows in which requests came that took longer on average, or in which nothing came while a request
    /// waited longer than the target.
    pub missed: u64,
    /// Windows without a target, because the volume had offered more than its SLO covers.
    pub out_of_contract: u64,
    /// Windows with nothing to judge.
    pub idle: u64,
}

impl WindowCounters {
    /// The share of the windows with a promise in which it was kept; `None` if there were none.
    #[allow(clippy::cast_precision_loss)]
    pub fn attainment(&self) -> Option<f64> {
        let judged = self.met + self.missed;
        (judged > 0).then(|| self.met as f64 / judged as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attainment_counts_only_windows_with_a_promise() {
        let windows = WindowCounters { met: 9, missed: 1, out_of_contract: 5, idle: 5 };
        assert_eq!(windows.attainment(), Some(0.9));
        assert_eq!(WindowCounters::default().attainment(), None);
    }
}
