//! What may be issued and what may wait, and that each breach is caught.

use weir_model::Iops;

use super::*;

const VOLUME: VolumeId = VolumeId(0);
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
        let mut gates = Gates::new(Some(QueueDepth::new(2)), NonZeroU32::new(8));
        gates.add(DEADLINE, limits);
        Self { ledger: Ledger::default(), gates }
    }

    fn submit(&mut self, now: Instant, slot: u32) -> Io {
        let id = IoId { slot, generation: 0 };
        let io = Io { id, volume: VOLUME, kind: IoKind::Write, offset: 0, length: 4096, arrived: now };
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
    pool.gates.set_due_after(VOLUME, Span::from_millis(10));
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
    pool.gates.on_answer(VOLUME);
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
