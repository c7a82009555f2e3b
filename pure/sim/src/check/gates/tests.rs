//! Which requests may be issued and which may wait. Each breach is caught.

use weir_model::Iops;

use super::*;

const VOLUME: VolumeId = VolumeId(0);
const BACKGROUND: VolumeId = VolumeId(1);
const DEADLINE: Span = Span::from_millis(100);

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A pool of one volume with these limits, at a depth of two.
struct Pool {
    ledger: Ledger,
    gates: Gates,
}

impl Pool {
    fn new(limits: &VolumeConfig) -> Self {
        let (depth, total) = (Some(QueueDepth::new(2)), NonZeroU32::new(8));
        let mut gates = Gates::new(depth, total, TimeShare::PERCENT, true);
        gates.add(Some(DEADLINE), limits);
        Self { ledger: Ledger::default(), gates }
    }

    /// A pool with a second volume, which has no promise.
    fn with_background() -> Self {
        let mut pool = Self::new(&VolumeConfig::default());
        pool.gates.add(None, &VolumeConfig::default());
        pool
    }

    fn submit(&mut self, now: Instant, slot: u32) -> Io {
        self.submit_to(now, VOLUME, slot)
    }

    fn submit_to(&mut self, now: Instant, volume: VolumeId, slot: u32) -> Io {
        let id = IoId { slot, generation: 0 };
        let io = Io { id, volume, kind: IoKind::Write, offset: 0, length: 4096, arrived: now };
        self.ledger.on_submit(&io).unwrap();
        self.gates.on_submit(&io);
        io
    }

    fn issue(&mut self, now: Instant, io: &Io) -> Verified {
        self.ledger.on_issue(now, io)?;
        self.gates.on_issue(now, io, &self.ledger)
    }
}

#[test]
fn where_deadlines_are_others_than_these_only_limits_are_checked() {
    let mut pool = Pool::new(&VolumeConfig { concurrency: NonZeroU32::new(3), ..VolumeConfig::default() });
    pool.gates.knows_deadlines = false;
    let waiting: Vec<Io> = (0..4).map(|slot| pool.submit(ms(0), slot)).collect();
    for io in &waiting[..3] {
        assert_eq!(pool.issue(ms(1), io), Ok(()), "beyond the depth of 2");
    }
    assert!(matches!(*pool.issue(ms(1), &waiting[3]).unwrap_err(), Breach::ConcurrencyExceeded { .. }));
    assert_eq!(pool.gates.at_rest(ms(999)), Ok(()), "though the last is due");
}

#[test]
fn a_request_that_is_not_due_and_exceeds_the_depth_is_caught() {
    let mut pool = Pool::new(&VolumeConfig::default());
    let waiting: Vec<Io> = (0..3).map(|slot| pool.submit(ms(0), slot)).collect();
    assert_eq!(pool.issue(ms(1), &waiting[0]), Ok(()));
    assert_eq!(pool.issue(ms(1), &waiting[1]), Ok(()));
    let exceeded = pool.issue(ms(99), &waiting[2]).unwrap_err();
    let (depth, due) = (QueueDepth::new(2), ms(100));
    assert_eq!(*exceeded, Breach::DepthExceeded { volume: VOLUME, in_flight: 2, depth, due });
}

#[test]
fn a_request_that_is_due_may_exceed_the_depth() {
    let mut pool = Pool::new(&VolumeConfig::default());
    let waiting: Vec<Io> = (0..3).map(|slot| pool.submit(ms(0), slot)).collect();
    for io in &waiting {
        assert_eq!(pool.issue(ms(100), io), Ok(()));
    }
}

#[test]
fn a_background_request_that_goes_before_a_promise_is_caught() {
    let mut pool = Pool::with_background();
    pool.submit(ms(0), 0);
    let background = pool.submit_to(ms(0), BACKGROUND, 1);
    let passed = pool.issue(ms(50), &background).unwrap_err();
    assert_eq!(*passed, Breach::PromisePassed { volume: BACKGROUND, promised: VOLUME });
}

#[test]
fn background_requests_that_pass_the_depth_beyond_their_share_are_caught() {
    let mut pool = Pool::with_background();
    let promised: Vec<Io> = (0..2).map(|slot| pool.submit(ms(0), slot)).collect();
    promised.iter().for_each(|io| pool.issue(ms(0), io).unwrap());
    let waiting: Vec<Io> = (2..5).map(|slot| pool.submit_to(ms(0), BACKGROUND, slot)).collect();
    assert_eq!(pool.issue(ms(10), &waiting[0]), Ok(()));
    let exceeded = |in_flight| Box::new(Breach::ShareExceeded { volume: BACKGROUND, in_flight });
    assert_eq!(pool.gates.check_background(ms(1_000), &waiting[1]), Err(exceeded(3)), "one is there");
    pool.gates.on_answer(ms(15), BACKGROUND, waiting[0].id);
    assert_eq!(pool.gates.check_background(ms(509), &waiting[1]), Err(exceeded(2)));
    assert_eq!(pool.gates.check_background(ms(510), &waiting[1]), Ok(()));
}

#[test]
fn a_background_request_that_waits_while_the_depth_has_room_or_its_share_is_due_is_caught() {
    let mut pool = Pool::with_background();
    let promised: Vec<Io> = (0..2).map(|slot| pool.submit(ms(0), slot)).collect();
    let waiting: Vec<Io> = (2..4).map(|slot| pool.submit_to(ms(0), BACKGROUND, slot)).collect();
    let starved = Err(Box::new(Breach::Starved { volume: BACKGROUND, due: ms(0) }));
    pool.issue(ms(0), &promised[0]).unwrap();
    assert_eq!(pool.gates.at_rest(ms(0)), starved, "there is room for one more");
    pool.issue(ms(0), &promised[1]).unwrap();
    assert_eq!(pool.gates.at_rest(ms(0)), starved, "nothing has used the share yet");
    pool.issue(ms(0), &waiting[0]).unwrap();
    assert_eq!(pool.gates.at_rest(ms(900)), Ok(()));
    pool.gates.on_answer(ms(900), BACKGROUND, waiting[0].id);
    assert_eq!(pool.gates.at_rest(ms(89_999)), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(90_000)), starved);
}

/// Background volumes may have so many requests at the array, each of which counts as so many milliseconds.
fn bound(most: u32, least: u64) -> BackgroundKnobs {
    BackgroundKnobs { most, share: TimeShare::PERCENT, least: Span::from_millis(least) }
}

/// One background request is at the array, and three wait.
fn with_one_at_the_array(knobs: BackgroundKnobs) -> (Pool, [Io; 3]) {
    let mut pool = Pool::with_background();
    pool.gates.set_depth(None);
    pool.gates.set_background(ms(0), knobs);
    let first = pool.submit_to(ms(0), BACKGROUND, 0);
    assert_eq!(pool.issue(ms(0), &first), Ok(()));
    let waiting = [1, 2, 3].map(|slot| pool.submit_to(ms(0), BACKGROUND, slot));
    (pool, waiting)
}

#[test]
fn background_requests_beyond_their_bound_are_caught_and_one_that_waits_within_it_too() {
    let (mut pool, waiting) = with_one_at_the_array(bound(2, 0));
    let starved = Err(Box::new(Breach::Starved { volume: BACKGROUND, due: ms(0) }));
    assert_eq!(pool.gates.at_rest(ms(1)), starved, "one more may go");
    assert_eq!(pool.issue(ms(1), &waiting[0]), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(900)), Ok(()));
    let exceeded = Box::new(Breach::ShareExceeded { volume: BACKGROUND, in_flight: 2 });
    assert_eq!(pool.gates.check_background(ms(900), &waiting[1]), Err(exceeded));
    pool.gates.set_due_after(BACKGROUND, Some(Span::ZERO));
    assert_eq!(pool.issue(ms(900), &waiting[1]), Ok(()), "the bound is not for promised volumes");
}

#[test]
fn background_requests_ahead_of_their_pace_are_caught_and_one_that_waits_for_longer_too() {
    let (mut pool, waiting) = with_one_at_the_array(bound(2, 10));
    assert_eq!(pool.issue(ms(0), &waiting[0]), Ok(()), "both may go at once");
    pool.gates.on_answer(ms(0), BACKGROUND, waiting[0].id);
    let exceeded = Box::new(Breach::ShareExceeded { volume: BACKGROUND, in_flight: 1 });
    assert_eq!(pool.gates.at_rest(ms(4)), Ok(()));
    assert_eq!(pool.gates.check_background(ms(4), &waiting[1]), Err(exceeded));
    assert!(pool.gates.at_rest(ms(5)).is_err(), "it waits for nothing");
    assert_eq!(pool.issue(ms(5), &waiting[1]), Ok(()));
}

#[test]
fn a_background_request_may_wait_for_a_turn_but_not_while_the_array_is_idle_for_long() {
    let (mut pool, waiting) = with_one_at_the_array(bound(2, 0));
    pool.gates.set_quantum(Some(Span::from_millis(150)));
    assert_eq!(pool.gates.at_rest(ms(1)), Ok(()), "the one at the array may have its quantum");
    pool.gates.on_answer(ms(140), BACKGROUND, IoId { slot: 0, generation: 0 });
    assert_eq!(pool.gates.at_rest(ms(140)), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(142)), Ok(()), "its client needs a moment");
    let starved = Err(Box::new(Breach::Starved { volume: BACKGROUND, due: ms(0) }));
    assert_eq!(pool.gates.at_rest(ms(143)), starved);
    assert_eq!(pool.issue(ms(143), &waiting[0]), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(143)), Ok(()));
    pool.gates.set_quantum(None);
    assert_eq!(pool.gates.at_rest(ms(143)), starved, "without turns by time nobody waits");
}

#[test]
fn a_promised_request_that_waits_for_a_turn_is_caught() {
    let (mut pool, _) = with_one_at_the_array(bound(2, 0));
    pool.gates.set_quantum(Some(Span::from_millis(150)));
    pool.submit(ms(1), 9);
    assert!(pool.gates.at_rest(ms(101)).is_err());
}

#[test]
fn at_a_bound_of_zero_background_requests_beyond_their_share_are_caught() {
    let (mut pool, waiting) = with_one_at_the_array(bound(0, 10));
    pool.gates.on_answer(ms(1), BACKGROUND, IoId { slot: 0, generation: 0 });
    let exceeded = Box::new(Breach::ShareExceeded { volume: BACKGROUND, in_flight: 0 });
    assert_eq!(pool.gates.check_background(ms(999), &waiting[0]), Err(exceeded), "it counts as 10 ms");
    assert!(pool.gates.at_rest(ms(1_000)).is_err());
    assert_eq!(pool.issue(ms(1_000), &waiting[0]), Ok(()));
}

#[test]
fn a_volume_that_exceeds_its_own_bound_is_caught() {
    let mut pool = Pool::new(&VolumeConfig { concurrency: NonZeroU32::new(1), ..VolumeConfig::default() });
    let waiting: Vec<Io> = (0..2).map(|slot| pool.submit(ms(0), slot)).collect();
    assert_eq!(pool.issue(ms(200), &waiting[0]), Ok(()));
    let exceeded = pool.issue(ms(200), &waiting[1]).unwrap_err();
    assert_eq!(*exceeded, Breach::ConcurrencyExceeded { volume: VOLUME, in_flight: 2, bound: 1 });
}

#[test]
fn a_depth_that_is_reported_wrongly_is_caught() {
    let pool = Pool::new(&VolumeConfig::default());
    assert_eq!(pool.gates.check_depth(QueueDepth::new(2)), Ok(()));
    assert!(pool.gates.check_depth(QueueDepth::new(3)).is_err());
}

#[test]
fn a_request_that_waits_past_its_deadline_is_caught() {
    let mut pool = Pool::new(&VolumeConfig::default());
    let first = pool.submit(ms(0), 0);
    pool.submit(ms(50), 1);
    assert_eq!(pool.gates.at_rest(ms(99)), Ok(()));
    let starved = pool.gates.at_rest(ms(100)).unwrap_err();
    assert_eq!(*starved, Breach::Starved { volume: VOLUME, due: ms(100) });
    assert_eq!(pool.issue(ms(100), &first), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(149)), Ok(()));
    assert!(pool.gates.at_rest(ms(150)).is_err());
}

#[test]
fn a_new_deadline_holds_for_what_waits() {
    let mut pool = Pool::new(&VolumeConfig::default());
    pool.submit(ms(0), 0);
    pool.gates.set_due_after(VOLUME, Some(Span::from_millis(10)));
    assert!(pool.gates.at_rest(ms(10)).is_err());
}

#[test]
fn a_limit_holds_a_volume_back_until_it_has_paid_and_no_longer() {
    let mut pool = Pool::new(&VolumeConfig { max_iops: Iops::new(2.0), ..VolumeConfig::default() });
    let first = pool.submit(ms(0), 0);
    assert_eq!(pool.issue(ms(0), &first), Ok(()));
    pool.submit(ms(0), 1);
    assert_eq!(pool.gates.at_rest(ms(499)), Ok(()));
    assert!(pool.gates.at_rest(ms(501)).is_err());
}

#[test]
fn a_volume_at_its_bound_is_not_starved() {
    let mut pool = Pool::new(&VolumeConfig { concurrency: NonZeroU32::new(1), ..VolumeConfig::default() });
    let first = pool.submit(ms(0), 0);
    pool.submit(ms(0), 1);
    assert_eq!(pool.issue(ms(0), &first), Ok(()));
    assert_eq!(pool.gates.at_rest(ms(5_000)), Ok(()));
    pool.gates.on_answer(ms(5_000), VOLUME, first.id);
    assert!(pool.gates.at_rest(ms(5_000)).is_err());
}

const fn grant(concurrency: u32) -> Grant {
    let concurrency = NonZeroU32::new(concurrency).expect("above zero");
    Grant { concurrency, max_iops: None, max_bandwidth: None }
}

#[test]
fn more_at_the_array_than_the_law_granted_is_caught_and_what_was_there_before_may_drain() {
    let mut pool = Pool::new(&VolumeConfig::default());
    let waiting: Vec<Io> = (0..3).map(|slot| pool.submit(ms(0), slot)).collect();
    assert_eq!(pool.issue(ms(100), &waiting[0]), Ok(()));
    assert_eq!(pool.issue(ms(100), &waiting[1]), Ok(()));
    pool.gates.set_grant(ms(100), VOLUME, grant(1));
    assert_eq!(pool.gates.at_rest(ms(100)), Ok(()));
    let exceeded = pool.issue(ms(100), &waiting[2]).unwrap_err();
    assert_eq!(*exceeded, Breach::ConcurrencyExceeded { volume: VOLUME, in_flight: 3, bound: 1 });
}

#[test]
fn bounds_that_are_more_in_sum_than_the_total_are_caught() {
    let mut pool = Pool::new(&VolumeConfig::default());
    pool.gates.set_grant(ms(0), VOLUME, grant(9));
    let exceeded = pool.gates.at_rest(ms(0)).unwrap_err();
    assert_eq!(*exceeded, Breach::TotalExceeded { bounds: 9, total: 8 });
}

#[test]
fn promised_requests_beyond_their_bound_are_caught_and_one_that_waits_within_it_too() {
    let mut pool = Pool::with_background();
    pool.gates.set_depth(None);
    pool.gates.set_promised(Some(QueueDepth::new(1)));
    let promised: Vec<Io> = (0..2).map(|slot| pool.submit_to(ms(0), VOLUME, slot)).collect();
    let waiting = pool.submit_to(ms(0), BACKGROUND, 2);
    assert!(pool.gates.at_rest(ms(100_000)).is_err(), "one may go");
    assert_eq!(pool.issue(ms(100_000), &promised[0]), Ok(()));
    pool.gates.set_background(ms(100_000), bound(0, 0));
    assert_eq!(pool.issue(ms(100_000), &waiting), Ok(()), "the lane");
    assert_eq!(pool.gates.at_rest(ms(100_000)), Ok(()));
    let exceeded = Breach::PromisedExceeded { volume: VOLUME, most: QueueDepth::new(1) };
    assert_eq!(*pool.issue(ms(100_000), &promised[1]).unwrap_err(), exceeded);
}
