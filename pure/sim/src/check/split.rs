//! Checks where the engine says that the time of requests went.
//!
//! For each request, the parts are held against the times that were seen from outside: what it waited in the
//! queue is exactly what its volume's limits and its turn took, and all parts add up to its latency. For each
//! volume, what was charged for waiting is held against what was waited. In simulated time a driver is never
//! late, so every nanosecond in the queue must have a gate that was shut.

use weir_engine::{Charged, Hold, TimeSpent, TimeSplit};
use weir_model::{IoId, Span, VolumeId};

use super::{Breach, Verified};

/// A request was answered. `reported` is what the engine says of it, and `seen` its times in the queue, at
/// the array, and of the reply. `is_limited`: whether its volume ever had a limit of its own.
pub(super) fn check_split(
    (id, volume, seen): (IoId, VolumeId, [Span; 3]),
    reported: Option<(IoId, TimeSplit)>,
    is_limited: bool,
) -> Verified {
    let split = reported.filter(|(of, _)| *of == id).map(|(_, split)| split);
    let parts = split.map(|it| [it.own_limit + it.turn, it.device, it.held + it.reply]);
    if parts != Some(seen) {
        return Err(Box::new(Breach::TimeSplit { volume, id, split, seen }));
    }
    let own_limit = split.map_or(Span::ZERO, |split| split.own_limit);
    if !own_limit.is_zero() && !is_limited {
        return Err(Box::new(Breach::LimitOfNobody { volume, id, own_limit }));
    }
    Ok(())
}

/// The run is over, and this is what the engine remembers of a volume.
pub(super) fn check_charges(volume: VolumeId, spent: &TimeSpent) -> Verified {
    let held = |of: fn(Hold) -> bool| {
        let held = Hold::ALL.iter().zip(spent.holds).filter(|(hold, _)| of(**hold));
        held.map(|(_, time)| time).fold(Span::ZERO, |sum, time| sum + time)
    };
    let idly = held(|hold| hold == Hold::Driver);
    if !idly.is_zero() {
        return Err(Box::new(Breach::WaitedForNothing { volume, waited: idly }));
    }
    let waited = held(|hold| !hold.is_own_limit());
    let charged = spent.waited_for.iter().fold(Span::ZERO, |sum, Charged { time, .. }| sum + *time);
    if waited == charged { Ok(()) } else { Err(Box::new(Breach::Charged { volume, waited, charged })) }
}

#[cfg(test)]
mod tests {
    use weir_model::Instant;

    use super::*;

    const VOLUME: VolumeId = VolumeId(1);
    const ID: IoId = IoId { slot: 3, generation: 7 };

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    const SPLIT: TimeSplit =
        TimeSplit { own_limit: ms(4), turn: ms(5), device: ms(2), held: ms(1), reply: Span::ZERO };

    fn breach(reported: Option<(IoId, TimeSplit)>, is_limited: bool) -> Option<Breach> {
        check_split((ID, VOLUME, [ms(9), ms(2), ms(1)]), reported, is_limited).err().map(|breach| *breach)
    }

    #[test]
    fn parts_that_add_up_pass_and_a_nanosecond_more_or_less_does_not() {
        assert_eq!(breach(Some((ID, SPLIT)), true), None);
        let more = TimeSplit { turn: ms(5) + Span::from_nanos(1), ..SPLIT };
        assert!(matches!(breach(Some((ID, more)), true), Some(Breach::TimeSplit { .. })));
        let moved = TimeSplit { turn: ms(4), device: ms(3), ..SPLIT };
        assert!(matches!(breach(Some((ID, moved)), true), Some(Breach::TimeSplit { .. })));
        let other = IoId { generation: 8, ..ID };
        assert!(matches!(breach(Some((other, SPLIT)), true), Some(Breach::TimeSplit { split: None, .. })));
    }

    #[test]
    fn a_volume_without_limits_does_not_wait_for_one() {
        assert!(matches!(breach(Some((ID, SPLIT)), false), Some(Breach::LimitOfNobody { .. })));
    }

    #[test]
    fn what_is_waited_has_to_be_charged_and_to_have_a_cause() {
        let check = |spent: &TimeSpent| check_charges(VOLUME, spent).err().map(|breach| *breach);
        let mut spent = TimeSpent::none(Instant::ORIGIN);
        spent.holds[0] = ms(7); // an own limit is charged to nobody
        assert_eq!(check(&spent), None);
        spent.holds[4] = ms(3);
        assert!(matches!(check(&spent), Some(Breach::Charged { .. })));
        let whom = weir_engine::Whom::Volume(VOLUME);
        spent.waited_for = vec![Charged { whom, time: ms(3), requests: 1 }];
        assert_eq!(check(&spent), None);
        spent.holds[Hold::ALL.len() - 1] = ms(1);
        assert!(matches!(check(&spent), Some(Breach::WaitedForNothing { .. })));
    }
}
