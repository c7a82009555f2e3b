//! Several gateways before the array of a cell: which load is behind which.
//!
//! The promised volume is behind the first gateway. The other volume's clients are behind all others, and
//! each of these has a part of the load. So no gateway that could hold the other volume back sees a promised
//! request.

use std::num::NonZeroU32;

use weir_engine::Control;
use weir_model::Span;

use super::load::Load;
use super::setting::{Law, Setting, Told};

/// Gateways before one array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gateways {
    /// How many.
    pub number: NonZeroU32,
    /// How long a message takes from one to another, by way of a controller.
    pub apart: Span,
}

impl Gateways {
    /// One gateway.
    pub const ONE: Self = Self { number: NonZeroU32::MIN, apart: Span::ZERO };

    /// The most gateways that a cell is judged with.
    pub const MOST: u32 = 8;

    /// The laws that can be judged with so many gateways. Of those that work over several gateways, Maestro's
    /// needs a controller with a total.
    pub(super) const fn laws(self) -> &'static [Law] {
        if self.are_several() { &[Law::Promise] } else { &Law::ALL }
    }

    pub(super) const fn are_several(self) -> bool {
        self.number.get() > 1
    }

    /// How each gateway is set up under a law.
    pub(super) fn setting(self, law: Law, told: Told) -> Setting {
        let mut setting = law.setting(told);
        if self.are_several() && setting.engine.control == Control::Promise {
            setting.engine.control = Control::SharedPromise;
        }
        setting
    }

    /// The gateways that clients of the other volume are behind, each with its part of the load.
    pub(super) fn parts(self, other: &Load) -> Vec<(usize, Load)> {
        if !self.are_several() {
            return vec![(0, other.clone())];
        }
        let of = self.number.get() - 1;
        (0..of).filter_map(|place| Some((place as usize + 1, other.part(place, of)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use weir_sim::Arrivals;

    use super::super::Loads;
    use super::*;

    fn several(number: u32) -> Gateways {
        let number = NonZeroU32::new(number).expect("above zero");
        Gateways { number, apart: Span::from_millis(1) }
    }

    #[test]
    fn behind_four_gateways_threads_are_divided_among_three() {
        let loads = Loads::made_up_and(&[]);
        let threads = |load: &Load| {
            let phases = load.phases(Span::from_secs(1));
            match phases[0].workload.as_ref().expect("it asks").arrivals {
                Arrivals::Closed { threads, .. } => threads,
                Arrivals::Poisson(_) | Arrivals::Constant(_) => panic!("it is open"),
            }
        };
        let flood = loads.load("write-flood").expect("it is made up");
        let parts: Vec<_> =
            several(4).parts(&flood).iter().map(|(gateway, load)| (*gateway, threads(load))).collect();
        assert_eq!(parts.iter().map(|(gateway, _)| *gateway).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(parts.iter().map(|(_, threads)| threads).sum::<u32>(), threads(&flood));
        assert_eq!(several(2).parts(&flood).len(), 1);
    }

    #[test]
    fn behind_four_gateways_a_recording_is_dealt_request_by_request() {
        let loads = Loads::made_up_and(&["recorded"]);
        let whole = loads.load("recorded").expect("it is recorded");
        let lasting = Span::from_millis(10);
        let times = |load: &Load| {
            load.trace(0.0, lasting).expect("it is recorded").map(|request| request.at).collect::<Vec<_>>()
        };
        let mut dealt: Vec<_> = several(4).parts(&whole).iter().flat_map(|(_, load)| times(load)).collect();
        dealt.sort_unstable();
        assert_eq!(dealt, times(&whole));
    }
}
