//! The rules of the scheduler, one by one. `tests/` compares all of them together with an oracle.

use std::num::NonZeroU32;

use weir_model::{Bandwidth, IoKind, Iops, Span};

use super::*;
use crate::Covered;

const DB: VolumeId = VolumeId(0);
const BACKUP: VolumeId = VolumeId(1);

const fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

/// A scheduler with two volumes: DB is due after 10 ms, BACKUP after 10 s.
struct Pool {
    edf: Edf,
    slots: u32,
}

impl Pool {
    fn new(depth: u32) -> Self {
        let mut edf = Edf::new(QueueDepth::new(depth), TimeShare::PERCENT);
        edf.set_volume(at(0), DB, &VolumeKnobs::with_target(ms(10)));
        edf.set_volume(at(0), BACKUP, &VolumeKnobs::with_target(Span::from_secs(10)));
        Self { edf, slots: 0 }
    }

    fn submit(&mut self, now: Instant, volume: VolumeId, kind: IoKind) -> IoId {
        let id = IoId { slot: self.slots, generation: 0 };
        self.slots += 1;
        self.edf.submit(now, Io { id, volume, kind, offset: 0, length: 4096, arrived: now });
        id
    }

    fn read(&mut self, now: Instant, volume: VolumeId) -> IoId {
        self.submit(now, volume, IoKind::Read)
    }

    fn issued(&mut self, now: Instant) -> Option<IoId> {
        match self.edf.poll_dispatch(now) {
            Dispatch::Issue(io) => Some(io.id),
            _ => None,
        }
    }

    /// BACKUP's requests are background from now on.
    fn with_background(mut self) -> Self {
        self.edf.set_volume(at(0), BACKUP, &VolumeKnobs::BACKGROUND);
        self
    }

    fn allow(&mut self, now: Instant, most: u32, share: TimeShare, least: Span) {
        self.edf.set_background(now, BackgroundKnobs { most, share, least });
    }

    fn complete(&mut self, now: Instant, volume: VolumeId, id: IoId) {
        self.edf.on_complete(now, &Completion { id, volume, ok: true });
    }
}

fn rate(iops: f64) -> VolumeKnobs {
    VolumeKnobs { max_iops: Iops::new(iops), ..VolumeKnobs::with_target(ms(10)) }
}

fn concurrency(bound: u32) -> VolumeKnobs {
    VolumeKnobs { concurrency: NonZeroU32::new(bound), ..VolumeKnobs::with_target(ms(10)) }
}

#[test]
fn the_volume_whose_oldest_request_is_due_first_goes_first() {
    let mut pool = Pool::new(10);
    let backup = pool.read(at(0), BACKUP);
    let (one, two) = (pool.read(at(1_000), DB), pool.read(at(1_000), DB));
    let order: Vec<IoId> = std::iter::from_fn(|| pool.issued(at(1_000))).collect();
    assert_eq!(order, [one, two, backup]);
}

#[test]
fn equal_deadlines_go_by_volume_number() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), BACKUP, &VolumeKnobs::with_target(ms(10)));
    let (backup, db) = (pool.read(at(0), BACKUP), pool.read(at(0), DB));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(db), Some(backup)]);
}

#[test]
fn nothing_is_issued_beyond_the_depth_until_something_is_past_due() {
    let mut pool = Pool::new(1);
    let first = pool.read(at(0), BACKUP);
    let second = pool.read(at(0), DB);
    assert_eq!(pool.issued(at(0)), Some(second));
    let third = pool.read(at(1_000), DB);
    assert_eq!(pool.edf.poll_dispatch(at(1_000)), Dispatch::AtDepth { recheck: Some(at(11_000)) });
    assert_eq!(pool.edf.poll_dispatch(at(10_999)), Dispatch::AtDepth { recheck: Some(at(11_000)) });
    assert_eq!(pool.issued(at(11_000)), Some(third));
    assert_eq!(pool.issued(at(11_000)), None);
    assert_eq!(pool.issued(at(10_000_000)), Some(first));
}

#[test]
fn a_request_without_a_promise_goes_after_every_one_with_a_promise() {
    let mut pool = Pool::new(10).with_background();
    let backup = pool.read(at(0), BACKUP);
    let promised = [0, 1].map(|_| pool.read(at(60_000_000), DB));
    let order: Vec<_> = std::iter::from_fn(|| pool.issued(at(60_000_000))).collect();
    assert_eq!(order, [promised[0], promised[1], backup]);
}

#[test]
fn a_background_request_passes_the_depth_gate_only_while_none_is_at_the_device_and_by_its_share() {
    let mut pool = Pool::new(1).with_background();
    let promised = [0, 1].map(|_| pool.read(at(0), DB));
    let waiting = [0, 1, 2].map(|_| pool.read(at(0), BACKUP));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(promised[0]), Some(waiting[0])]);
    let only_the_promise = Dispatch::AtDepth { recheck: Some(at(10_000)) };
    assert_eq!(pool.edf.poll_dispatch(at(0)), only_the_promise, "one is at the device");
    pool.complete(at(4_000), BACKUP, waiting[0]);
    assert_eq!(pool.edf.poll_dispatch(at(4_000)), only_the_promise, "it is the share's turn only later");
    assert_eq!(pool.issued(at(10_000)), Some(promised[1]));
    // The request took 4 ms, a hundredth of the 400 ms after its dispatch.
    assert_eq!(pool.edf.poll_dispatch(at(399_999)), Dispatch::AtDepth { recheck: Some(at(400_000)) });
    assert_eq!(pool.issued(at(400_000)), Some(waiting[1]));
    assert_eq!(pool.edf.poll_dispatch(at(900_000)), Dispatch::AtDepth { recheck: None });
}

#[test]
fn a_background_volume_that_keeps_the_device_full_by_itself_does_not_pass_the_gate() {
    let mut pool = Pool::new(1).with_background();
    let waiting = [0, 1].map(|_| pool.read(at(0), BACKUP));
    assert_eq!(pool.issued(at(0)), Some(waiting[0]));
    assert_eq!(pool.edf.poll_dispatch(at(60_000_000)), Dispatch::AtDepth { recheck: None });
    pool.complete(at(60_000_000), BACKUP, waiting[0]);
    assert_eq!(pool.issued(at(60_000_000)), Some(waiting[1]));
}

#[test]
fn with_a_share_of_zero_no_background_request_ever_passes_the_depth_gate() {
    let mut pool = Pool::new(1).with_background();
    pool.allow(at(0), u32::MAX, TimeShare::ZERO, Span::ZERO);
    let promised = pool.read(at(0), DB);
    let waiting = pool.read(at(0), BACKUP);
    assert_eq!(pool.issued(at(0)), Some(promised));
    assert_eq!(pool.edf.poll_dispatch(at(3_600_000_000)), Dispatch::AtDepth { recheck: None });
    pool.complete(at(3_600_000_000), DB, promised);
    assert_eq!(pool.issued(at(3_600_000_000)), Some(waiting));
}

#[test]
fn no_more_background_requests_are_at_the_device_than_their_bound_and_promised_ones_do_not_count() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 2, TimeShare::PERCENT, Span::ZERO);
    let promised = [0, 1, 2].map(|_| pool.read(at(0), DB));
    let waiting = [0, 1, 2].map(|_| pool.read(at(0), BACKUP));
    let order: Vec<_> = std::iter::from_fn(|| pool.issued(at(0))).collect();
    assert_eq!(order, [promised[0], promised[1], promised[2], waiting[0], waiting[1]]);
    assert_eq!(pool.edf.poll_dispatch(at(60_000_000)), Dispatch::AtDepth { recheck: None });
    pool.complete(at(60_000_000), BACKUP, waiting[0]);
    assert_eq!(pool.issued(at(60_000_000)), Some(waiting[2]));
}

#[test]
fn after_a_pause_as_many_background_requests_go_as_the_bound_and_then_one_each_pace() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 4, TimeShare::ZERO, ms(8));
    // The device answers each at once, as a cache does.
    let mut next = |now: Instant| {
        let waiting = pool.read(now, BACKUP);
        let answer = pool.edf.poll_dispatch(now);
        match answer {
            Dispatch::Issue(io) => pool.complete(now, BACKUP, io.id),
            _ => assert!(pool.edf.abort(now, waiting).is_some()),
        }
        answer
    };
    for pause in [0, 1_000_000] {
        for _ in 0..4 {
            assert!(matches!(next(at(pause)), Dispatch::Issue(_)));
        }
        for micros in [2_000, 4_000] {
            let opens = at(pause + micros);
            assert_eq!(next(opens - Span::from_nanos(1)), Dispatch::AtDepth { recheck: Some(opens) });
            assert!(matches!(next(opens), Dispatch::Issue(_)));
        }
    }
}

#[test]
fn at_a_bound_of_zero_background_requests_go_one_at_a_time_for_their_share() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 0, TimeShare::PERCENT, ms(2));
    let waiting = [0, 1, 2].map(|_| pool.read(at(0), BACKUP));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(waiting[0]), None]);
    pool.complete(at(4_000), BACKUP, waiting[0]);
    assert_eq!(pool.edf.poll_dispatch(at(4_000)), Dispatch::AtDepth { recheck: Some(at(400_000)) });
    assert_eq!(pool.issued(at(400_000)), Some(waiting[1]));
    // A cache takes this one at once, and it counts as 2 ms.
    pool.complete(at(400_000), BACKUP, waiting[1]);
    assert_eq!(pool.edf.poll_dispatch(at(400_000)), Dispatch::AtDepth { recheck: Some(at(600_000)) });
    assert_eq!(pool.issued(at(600_000)), Some(waiting[2]));
}

#[test]
fn a_new_share_counts_from_the_last_request_that_took_the_lane() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 0, TimeShare::PERCENT, Span::ZERO);
    let waiting = [0, 1, 2].map(|_| pool.read(at(0), BACKUP));
    assert_eq!(pool.issued(at(0)), Some(waiting[0]));
    pool.complete(at(4_000), BACKUP, waiting[0]);
    pool.allow(at(5_000), 0, TimeShare::MAX, Span::ZERO);
    assert_eq!(pool.edf.poll_dispatch(at(5_000)), Dispatch::AtDepth { recheck: Some(at(8_000)) });
    assert_eq!(pool.issued(at(8_000)), Some(waiting[1]));
    pool.complete(at(9_000), BACKUP, waiting[1]);
    pool.allow(at(9_000), 0, TimeShare::ZERO, Span::ZERO);
    assert_eq!(pool.edf.poll_dispatch(at(60_000_000)), Dispatch::AtDepth { recheck: None });
    pool.allow(at(60_000_000), 0, TimeShare::PERCENT, Span::ZERO);
    assert_eq!(pool.issued(at(60_000_000)), Some(waiting[2]));
}

#[test]
fn a_higher_bound_lets_what_waits_go_at_once_and_under_a_lower_one_the_excess_stays() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 1, TimeShare::ZERO, Span::from_secs(100));
    let waiting = [0, 1, 2, 3].map(|_| pool.read(at(0), BACKUP));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(waiting[0]), None]);
    pool.complete(at(1), BACKUP, waiting[0]);
    assert_eq!(pool.edf.poll_dispatch(at(1)), Dispatch::AtDepth { recheck: Some(at(100_000_000)) });
    pool.allow(at(1), 2, TimeShare::ZERO, Span::ZERO);
    let order: Vec<_> = std::iter::from_fn(|| pool.issued(at(1))).collect();
    assert_eq!(order, [waiting[1], waiting[2]]);
    pool.allow(at(2), 1, TimeShare::ZERO, Span::ZERO);
    pool.complete(at(3), BACKUP, waiting[1]);
    assert_eq!(pool.issued(at(3)), None);
    pool.complete(at(4), BACKUP, waiting[2]);
    assert_eq!(pool.issued(at(4)), Some(waiting[3]));
}

#[test]
fn a_shorter_least_time_ends_a_wait_for_a_longer_one() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 1, TimeShare::ZERO, Span::MAX);
    let waiting = [0, 1].map(|_| pool.read(at(0), BACKUP));
    assert_eq!(pool.issued(at(0)), Some(waiting[0]));
    pool.complete(at(0), BACKUP, waiting[0]);
    pool.allow(at(10_000), 1, TimeShare::ZERO, ms(5));
    assert_eq!(pool.edf.poll_dispatch(at(10_000)), Dispatch::AtDepth { recheck: Some(at(15_000)) });
    assert_eq!(pool.issued(at(15_000)), Some(waiting[1]));
}

#[test]
fn a_volume_that_gets_or_loses_a_promise_takes_its_requests_at_the_device_along() {
    let mut pool = Pool::new(10).with_background();
    pool.allow(at(0), 1, TimeShare::ZERO, Span::ZERO);
    let (db, backup) = (pool.read(at(0), DB), pool.read(at(0), BACKUP));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(db), Some(backup)]);
    let waiting = [DB, BACKUP].map(|volume| pool.read(at(0), volume));
    pool.edf.set_volume(at(0), DB, &VolumeKnobs::BACKGROUND);
    assert_eq!(pool.edf.snapshot().background, 2);
    assert_eq!(pool.issued(at(0)), None, "two of them are at the device");
    pool.edf.set_volume(at(0), BACKUP, &VolumeKnobs::with_target(ms(10)));
    assert_eq!(pool.issued(at(0)), Some(waiting[1]), "it is promised now");
    assert_eq!(pool.issued(at(0)), None, "the other is background now");
    pool.complete(at(1), DB, db);
    assert_eq!(pool.issued(at(1)), Some(waiting[0]));
}

#[test]
fn background_volumes_go_in_turn_however_much_one_of_them_has_waiting() {
    const LOG: VolumeId = VolumeId(2);
    let mut pool = Pool::new(1).with_background();
    pool.edf.set_volume(at(0), LOG, &VolumeKnobs::BACKGROUND);
    let flood: Vec<IoId> = (0..100).map(|_| pool.read(at(0), BACKUP)).collect();
    assert_eq!(pool.issued(at(0)), Some(flood[0]));
    let few = [0, 1].map(|_| pool.read(at(1_000), LOG));
    let expected = [(LOG, few[0]), (BACKUP, flood[1]), (LOG, few[1]), (BACKUP, flood[2]), (BACKUP, flood[3])];
    let mut busy = (BACKUP, flood[0]);
    for next in expected {
        pool.complete(at(2_000), busy.0, busy.1);
        assert_eq!(pool.issued(at(2_000)), Some(next.1));
        busy = next;
    }
}

#[test]
fn a_volume_that_loses_its_promise_waits_behind_the_others_and_gets_it_back_at_once() {
    let mut pool = Pool::new(1);
    let busy = pool.read(at(0), BACKUP);
    assert_eq!(pool.issued(at(0)), Some(busy));
    let waiting = pool.read(at(0), DB);
    pool.edf.set_volume(at(0), DB, &VolumeKnobs::BACKGROUND);
    assert_eq!(pool.issued(at(0)), Some(waiting), "by the lane");
    let (late, backup) = (pool.read(at(1_000), DB), pool.read(at(2_000), BACKUP));
    pool.edf.set_volume(at(2_000), DB, &VolumeKnobs::with_target(ms(10)));
    assert_eq!(pool.issued(at(11_000)), Some(late), "it is past due");
    pool.complete(at(11_000), DB, waiting);
    pool.complete(at(11_000), DB, late);
    pool.complete(at(11_000), BACKUP, busy);
    assert_eq!(pool.issued(at(11_000)), Some(backup));
}

#[test]
fn a_past_due_request_passes_neither_its_rate_nor_its_concurrency() {
    let mut pool = Pool::new(1);
    pool.edf.set_volume(at(0), DB, &concurrency(1));
    let first = pool.read(at(0), DB);
    pool.read(at(0), DB);
    assert_eq!(pool.issued(at(0)), Some(first));
    assert_eq!(pool.edf.poll_dispatch(at(60_000_000)), Dispatch::AtDepth { recheck: None });

    let mut pool = Pool::new(1);
    pool.edf.set_volume(at(0), DB, &rate(1.0));
    pool.read(at(0), DB);
    pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    assert_eq!(pool.edf.poll_dispatch(at(500_000)), Dispatch::WaitUntil(at(995_000)));
}

#[test]
fn a_volume_at_its_bound_leaves_the_device_to_others() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), DB, &concurrency(1));
    let (first, second, backup) = (pool.read(at(0), DB), pool.read(at(0), DB), pool.read(at(0), BACKUP));
    assert_eq!(
        [pool.issued(at(0)), pool.issued(at(0)), pool.issued(at(0))],
        [Some(first), Some(backup), None]
    );
    pool.complete(at(5), DB, first);
    assert_eq!(pool.issued(at(5)), Some(second));
}

#[test]
fn a_flush_leaves_before_its_volumes_data_and_past_its_bandwidth() {
    let mut pool = Pool::new(10);
    let knobs = VolumeKnobs { max_bandwidth: Bandwidth::new(4096), ..VolumeKnobs::with_target(ms(10)) };
    pool.edf.set_volume(at(0), DB, &knobs);
    let (one, _two) = (pool.read(at(0), DB), pool.read(at(0), DB));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(one), None]);
    let flush = pool.submit(at(10), DB, IoKind::Flush);
    assert_eq!(pool.issued(at(10)), Some(flush));
    assert_eq!(pool.edf.poll_dispatch(at(10)), Dispatch::WaitUntil(at(995_000)));
}

#[test]
fn a_flush_counts_as_a_request_and_the_rate_of_requests_holds_it() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), DB, &rate(1.0));
    let flushes = [0, 1].map(|_| pool.submit(at(0), DB, IoKind::Flush));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(flushes[0]), None]);
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::WaitUntil(at(995_000)));
    assert_eq!(pool.issued(at(995_000)), Some(flushes[1]));
}

#[test]
fn a_flood_of_flushes_takes_no_more_than_every_other_request_of_its_volume() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), DB, &rate(1.0));
    let data = [0, 1].map(|_| pool.read(at(0), DB));
    let flushes = [0, 1, 2].map(|_| pool.submit(at(0), DB, IoKind::Flush));
    let order: Vec<_> = (0..5).map(|second| pool.issued(at(second * 1_000_000)).unwrap()).collect();
    assert_eq!(order, [flushes[0], data[0], flushes[1], data[1], flushes[2]]);
}

#[test]
fn a_flush_obeys_concurrency_and_depth() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), DB, &concurrency(1));
    pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    pool.submit(at(0), DB, IoKind::Flush);
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::AtDepth { recheck: None });

    let mut pool = Pool::new(1);
    pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    pool.submit(at(0), DB, IoKind::Flush);
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::AtDepth { recheck: Some(at(10_000)) });
}

#[test]
fn flushes_that_overtake_data_leave_at_its_deadline_so_that_they_cannot_starve_it() {
    let mut pool = Pool::new(1);
    let busy = pool.read(at(0), DB);
    assert_eq!(pool.issued(at(0)), Some(busy));
    let data = pool.read(at(1_000), DB);
    let flush = pool.submit(at(9_000), DB, IoKind::Flush);
    assert_eq!([pool.issued(at(11_000)), pool.issued(at(11_000))], [Some(flush), Some(data)]);
}

#[test]
fn a_flush_gains_no_urgency_from_data_that_the_rate_gate_holds() {
    let mut pool = Pool::new(1);
    let knobs = VolumeKnobs { max_bandwidth: Bandwidth::new(4096), ..VolumeKnobs::with_target(ms(10)) };
    pool.edf.set_volume(at(0), DB, &knobs);
    pool.read(at(0), DB);
    pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    pool.submit(at(500_000), DB, IoKind::Flush);
    assert_eq!(pool.edf.poll_dispatch(at(500_000)), Dispatch::AtDepth { recheck: Some(at(510_000)) });
}

#[test]
fn a_new_target_orders_what_waits_at_once() {
    let mut pool = Pool::new(10);
    let (backup, db) = (pool.read(at(0), BACKUP), pool.read(at(0), DB));
    pool.edf.set_volume(at(0), BACKUP, &VolumeKnobs::with_target(ms(1)));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(backup), Some(db)]);
}

#[test]
fn a_rate_that_is_lifted_lets_what_waits_go_at_once() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), DB, &rate(1.0));
    pool.read(at(0), DB);
    let second = pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    assert_eq!(pool.issued(at(1)), None);
    pool.edf.set_volume(at(1), DB, &VolumeKnobs::with_target(ms(10)));
    assert_eq!(pool.issued(at(1)), Some(second));
}

#[test]
fn a_request_larger_than_the_bandwidths_burst_passes() {
    let mut pool = Pool::new(10);
    let knobs = VolumeKnobs { max_bandwidth: Bandwidth::new(1_024), ..VolumeKnobs::with_target(ms(10)) };
    pool.edf.set_volume(at(0), DB, &knobs);
    pool.read(at(0), DB);
    pool.read(at(0), DB);
    assert!(pool.issued(at(0)).is_some());
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::WaitUntil(at(3_995_000)));
}

#[test]
fn an_abort_of_the_first_request_makes_the_second_the_first() {
    let mut pool = Pool::new(1);
    let (first, second) = (pool.read(at(0), DB), pool.read(at(2_000), DB));
    let busy = pool.submit(at(2_000), BACKUP, IoKind::Read);
    assert!(pool.edf.abort(at(2_000), first).is_some());
    assert_eq!(pool.edf.abort(at(2_000), first), None);
    assert_eq!(pool.issued(at(2_000)), Some(second));
    assert_eq!(pool.edf.abort(at(2_000), second), None, "it is at the device");
    assert!(pool.edf.abort(at(2_000), busy).is_some());
    assert_eq!(pool.edf.poll_dispatch(at(2_000)), Dispatch::Idle);
}

#[test]
fn an_old_id_of_a_slot_aborts_nothing() {
    let mut pool = Pool::new(1);
    let id = pool.read(at(0), DB);
    assert_eq!(pool.edf.abort(at(0), IoId { generation: 7, ..id }), None);
    assert_eq!(pool.edf.snapshot().queued, 1);
}

#[test]
fn what_another_scheduler_has_issued_counts_for_depth_and_concurrency() {
    let mut pool = Pool::new(1);
    pool.edf.adopt_in_flight(at(0), BACKUP);
    let read = pool.read(at(0), DB);
    assert_eq!(pool.issued(at(0)), None);
    pool.complete(at(1), BACKUP, IoId { slot: 99, generation: 0 });
    assert_eq!(pool.issued(at(1)), Some(read));
}

#[test]
#[should_panic(expected = "still has requests")]
fn a_volume_with_requests_cannot_be_removed() {
    let mut pool = Pool::new(1);
    pool.read(at(0), DB);
    pool.edf.remove_volume(at(0), DB);
}

#[test]
#[should_panic(expected = "nothing at the device")]
fn a_completion_of_nothing_is_a_mistake() {
    let mut pool = Pool::new(1);
    pool.complete(at(0), DB, IoId { slot: 0, generation: 0 });
}

const OTHER: VolumeId = VolumeId(2);

/// BACKUP and OTHER are background and take turns by time, one request at a time. BACKUP has 64 requests that
/// wait, in order, and OTHER has none.
fn with_a_scan() -> Pool {
    let mut pool = Pool::new(10).with_background();
    pool.edf.set_volume(at(0), OTHER, &VolumeKnobs::BACKGROUND);
    pool.allow(at(0), 1, TimeShare::PERCENT, Span::ZERO);
    pool.edf.set_quantum(at(0), Some(ms(150)));
    for nth in 0..64_u64 {
        let id = IoId { slot: pool.slots, generation: 0 };
        pool.slots += 1;
        let (kind, offset) = (IoKind::Read, nth * 4096);
        pool.edf.submit(at(0), Io { id, volume: BACKUP, kind, offset, length: 4096, arrived: at(0) });
    }
    pool
}

#[test]
fn others_wait_for_the_quantum_of_a_scan_and_promised_requests_do_not() {
    let mut pool = with_a_scan();
    let other = pool.read(at(0), OTHER);
    let mut order = Vec::new();
    for tenth in 0..17 {
        let now = at(tenth * 10_000);
        let issued = pool.issued(now).expect("one may go");
        let promised = pool.read(now, DB);
        assert_eq!(pool.issued(now), Some(promised));
        pool.complete(at(tenth * 10_000 + 1_000), DB, promised);
        let owner = if issued == other { OTHER } else { BACKUP };
        pool.complete(at((tenth + 1) * 10_000), owner, issued);
        order.push(owner);
    }
    assert_eq!(order, [vec![BACKUP; 15], vec![OTHER], vec![BACKUP]].concat(), "OTHER has nothing more");
}

#[test]
fn a_request_that_hangs_takes_a_quantum_from_a_scan_and_no_more() {
    let mut pool = with_a_scan();
    pool.allow(at(0), 2, TimeShare::PERCENT, Span::ZERO);
    pool.edf.set_volume(
        at(0),
        BACKUP,
        &VolumeKnobs { concurrency: NonZeroU32::new(1), ..VolumeKnobs::BACKGROUND },
    );
    pool.edf.adopt_in_flight(at(0), OTHER);
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::AtDepth { recheck: Some(at(150_000)) });
    assert!(pool.issued(at(150_000)).is_some());
}

#[test]
fn a_scan_that_stops_leaves_the_device_to_others_after_two_milliseconds() {
    let mut pool = with_a_scan();
    let other = pool.read(at(0), OTHER);
    let first = pool.issued(at(0)).expect("the scan has its quantum");
    pool.edf.take_queued(at(0));
    let other = Io { id: other, volume: OTHER, kind: IoKind::Read, offset: 0, length: 4096, arrived: at(0) };
    pool.edf.submit(at(0), other);
    pool.complete(at(1_000), BACKUP, first);
    assert_eq!(pool.edf.poll_dispatch(at(1_000)), Dispatch::AtDepth { recheck: Some(at(3_000)) });
    assert_eq!(pool.issued(at(3_000)), Some(other.id));
}

#[test]
fn without_a_quantum_a_scan_takes_its_turns_by_requests() {
    let mut pool = with_a_scan();
    pool.edf.set_quantum(at(0), None);
    let other = [0, 1].map(|_| pool.read(at(0), OTHER));
    let mut order = Vec::new();
    for _ in 0..4 {
        let issued = pool.issued(at(0)).expect("one may go");
        order.push(other.contains(&issued));
        pool.complete(at(0), if other.contains(&issued) { OTHER } else { BACKUP }, issued);
    }
    assert_eq!(order, [false, true, false, true]);
}

#[test]
fn promised_requests_beyond_their_bound_wait_however_late_they_are_and_the_most_urgent_goes_first() {
    let mut pool = Pool::new(10);
    pool.edf.set_promised(at(0), QueueDepth::new(1));
    let slow = [0, 1].map(|_| pool.read(at(0), BACKUP));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(slow[0]), None]);
    let urgent = pool.read(at(1_000), DB);
    assert_eq!(pool.edf.poll_dispatch(at(100_000_000)), Dispatch::AtDepth { recheck: None }, "all are late");
    pool.complete(at(100_000_000), BACKUP, slow[0]);
    assert_eq!([pool.issued(at(100_000_000)), pool.issued(at(100_000_000))], [Some(urgent), None]);
    pool.edf.set_promised(at(100_000_000), QueueDepth::MAX);
    assert_eq!(pool.issued(at(100_000_000)), Some(slow[1]));
}

#[test]
fn background_requests_have_a_bound_of_their_own_and_do_not_wait_for_that_of_promised_ones() {
    let mut pool = Pool::new(10);
    pool.edf.set_volume(at(0), OTHER, &VolumeKnobs::BACKGROUND);
    pool.edf.set_promised(at(0), QueueDepth::new(1));
    pool.allow(at(0), 2, TimeShare::PERCENT, Span::ZERO);
    let promised = [0, 1].map(|_| pool.read(at(0), DB));
    let background = [0, 1, 2].map(|_| pool.read(at(0), OTHER));
    let issued = [0, 1, 2, 3].map(|_| pool.issued(at(0)));
    assert_eq!(issued, [Some(promised[0]), Some(background[0]), Some(background[1]), None]);
    pool.complete(at(0), DB, promised[0]);
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(promised[1]), None]);
}

/// DB is promised a request in 100 ms, and BACKUP nothing.
fn with_a_promised_rate(depth: u32) -> Pool {
    let mut pool = Pool::new(depth).with_background();
    let covered = Covered { iops: Iops::new(10.0), ..Covered::ALL };
    pool.edf.set_volume(at(0), DB, &VolumeKnobs { covered, ..VolumeKnobs::with_target(Span::ZERO) });
    pool
}

#[test]
fn what_a_promise_covers_goes_first_and_what_is_beyond_takes_turns_with_the_background() {
    let mut pool = with_a_promised_rate(10);
    let backup = [0, 1].map(|_| pool.read(at(0), BACKUP));
    let db = [0, 1, 2, 3].map(|_| pool.read(at(0), DB));
    let order: Vec<IoId> = std::iter::from_fn(|| pool.issued(at(0))).collect();
    let in_turn = [db[2], backup[0], db[3], backup[1]];
    assert_eq!(order[..2], db[..2], "one is covered, and one more may be caught up in 100 ms");
    assert_eq!(order[2..], in_turn);
    assert_eq!(pool.edf.snapshot().background, 4);
}

#[test]
fn a_request_that_is_covered_later_goes_then_and_past_the_bound() {
    let mut pool = with_a_promised_rate(10);
    pool.allow(at(0), 0, TimeShare::ZERO, Span::ZERO);
    let db = [0, 1, 2].map(|_| pool.read(at(0), DB));
    assert_eq!([pool.issued(at(0)), pool.issued(at(0))], [Some(db[0]), Some(db[1])]);
    assert_eq!(pool.edf.poll_dispatch(at(0)), Dispatch::AtDepth { recheck: Some(at(100_000)) });
    assert_eq!(pool.issued(at(99_999)), None);
    assert_eq!(pool.issued(at(100_000)), Some(db[2]));
}

#[test]
fn a_request_that_went_beyond_counts_as_background_until_it_is_finished() {
    let mut pool = with_a_promised_rate(10);
    let db = [0, 1, 2].map(|_| pool.read(at(0), DB));
    while pool.issued(at(0)).is_some() {}
    assert_eq!(pool.edf.snapshot().background, 1);
    pool.complete(at(1), DB, db[0]);
    assert_eq!(pool.edf.snapshot().background, 1);
    pool.complete(at(1), DB, db[2]);
    assert_eq!(pool.edf.snapshot().background, 0);
}

#[test]
fn a_volume_that_loses_its_promise_has_no_request_that_went_beyond_it() {
    let mut pool = with_a_promised_rate(10);
    let db = [0, 1, 2].map(|_| pool.read(at(0), DB));
    while pool.issued(at(0)).is_some() {}
    pool.edf.set_volume(at(0), DB, &VolumeKnobs::BACKGROUND);
    assert_eq!(pool.edf.snapshot().background, 3);
    pool.edf.set_volume(at(0), DB, &VolumeKnobs::with_target(Span::ZERO));
    assert_eq!(pool.edf.snapshot().background, 0, "all of its requests are promised now");
    for id in db {
        pool.complete(at(1), DB, id);
    }
    assert_eq!(pool.edf.snapshot().in_flight, 0);
}
