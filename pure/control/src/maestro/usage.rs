//! How much of what it had an application used: the 80 % rule of Maestro §3.2.1.
//!
//! An application that uses less than 80 % of its allocation cannot use more of it: its threads are too few,
//! or wait for one another. It keeps what it uses, divided by 0.8, and no more, so that others can use the
//! rest.
//!
//! **Several ports.** Each port keeps one request for each application, even if nobody comes through it, and
//! demand moves between ports. Taken literally, the paper's rule looks at the sum. An application that comes
//! through one port of four would be found to use a third of the little that it has, and would never get
//! more. So the rule is applied to each port. If one of them felt its bound, the application can use more,
//! there. If none did, it can use what its ports can, in sum. With one port, this is the paper's rule.

use super::observation::{PortObservation, amount};
use crate::completions::{Completion, Completions};

/// The share of a bound from which on it was felt.
pub(crate) const FELT: f64 = 0.8;

/// How an application used what it had.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Usage {
    /// How many requests it can use; `None`: more than it had.
    pub(crate) usable: Option<f64>,
    /// Whether it used so much of what it had that its performance says something about the allocation.
    pub(crate) is_evidence: bool,
}

impl Usage {
    /// The usage that `ports` show, where `bounds` were their bounds in the same order.
    pub(crate) fn of(ports: &[PortObservation], bounds: &[u32], completions: Completions) -> Self {
        let each =
            || ports.iter().map(|port| amount(port.at_device)).zip(bounds.iter().copied().map(f64::from));
        let felt = each().any(|(used, bound)| used >= FELT * bound);
        let usable = each().map(|(used, _)| (used / FELT).max(1.0)).sum();
        let of_one = |(used, bound): (f64, f64)| if ports.len() > 1 && bound <= 1.0 { 1.0 } else { used };
        let used: f64 = each().map(of_one).sum();
        let had: f64 = each().map(|(_, bound)| bound).sum();
        let is_evidence = used >= FELT * had;
        if completions.has(Completion::UsagePerPort) {
            return Self { usable: (!felt).then_some(usable), is_evidence };
        }
        let used: f64 = each().map(|(used, _)| used).sum();
        Self { usable: (used < FELT * had).then_some(used / FELT), is_evidence: used >= FELT * had }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(at_device: &[f64], bounds: &[u32]) -> Usage {
        let port = |at_device: &f64| PortObservation { at_device: *at_device, ..PortObservation::default() };
        Usage::of(&at_device.iter().map(port).collect::<Vec<_>>(), bounds, Completions::ALL)
    }

    #[test]
    fn who_uses_less_than_four_fifths_can_use_a_quarter_more_than_that() {
        assert_eq!(usage(&[4.0], &[10]), Usage { usable: Some(5.0), is_evidence: false });
        assert_eq!(usage(&[8.0], &[10]), Usage { usable: None, is_evidence: true });
    }

    #[test]
    fn a_port_at_its_bound_can_use_more_though_the_others_are_idle() {
        assert_eq!(usage(&[0.0, 2.0, 0.0, 0.0], &[1, 2, 1, 1]), Usage { usable: None, is_evidence: true });
    }

    #[test]
    fn where_no_port_feels_its_bound_what_each_can_use_counts_and_one_request_at_least() {
        let seen = usage(&[0.0, 4.0, 0.0], &[5, 8, 1]);
        assert_eq!(seen, Usage { usable: Some(7.0), is_evidence: false });
    }

    #[test]
    fn a_mean_that_is_no_number_is_nothing() {
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert_eq!(usage(&[wrong], &[4]), Usage { usable: Some(1.0), is_evidence: false });
        }
    }
}
