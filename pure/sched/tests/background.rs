//! What volumes without a promise get while promised work could keep the device full for ever. Loads are
//! random, the device has some servers, and each run is half an hour in virtual time.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_model::{Completion, Instant, Io, IoId, IoKind, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{Dispatch, Edf, Scheduler, VolumeKnobs};

/// How many volumes have a promise: volumes 0 and 1. The others have none.
const PROMISED: u32 = 2;
const VOLUMES: u32 = 5;
/// The length of a run. At the least share, a request of the longest service gets its turn every 100 s.
const RUN: Span = Span::from_secs(1_800);

/// Draws service times from a millisecond to a second, with a small generator of its own.
#[derive(Clone, Copy, Debug)]
struct Draw(u64);

impl Draw {
    fn service(&mut self) -> Span {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = self.0 >> 33;
        let longest = if bits.is_multiple_of(16) { 1_000_000 } else { 20_000 };
        Span::from_micros(1_000 + bits % longest)
    }
}

/// A device for which requests of each volume always wait.
struct Pool {
    edf: Edf,
    depth: usize,
    now: Instant,
    draw: Draw,
    /// The requests at the device, by the instant at which they will be finished.
    at_device: BTreeMap<(Instant, u32), (Io, Instant)>,
    next_slot: u32,
    free: Vec<u32>,
    /// By volume: how long its requests were at the device, how many were issued, and the longest time
    /// between two issues.
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    used: Span,
    longest: Span,
    issued: u32,
    last: Instant,
    longest_wait: Span,
}

impl Pool {
    fn new(depth: u32, share: TimeShare, due: [u64; PROMISED as usize], seed: u64) -> Self {
        let mut edf = Edf::new(QueueDepth::new(depth), share);
        for volume in 0..VOLUMES {
            let due = due.get(volume as usize).map(|millis| Span::from_millis(*millis));
            let knobs = VolumeKnobs { due_after: due, ..VolumeKnobs::BACKGROUND };
            edf.set_volume(Instant::ORIGIN, VolumeId(volume), &knobs);
        }
        let seen = vec![Seen::default(); VOLUMES as usize];
        let (at_device, free) = (BTreeMap::new(), Vec::new());
        let depth = depth as usize;
        let mut pool =
            Self { edf, depth, now: Instant::ORIGIN, draw: Draw(seed), at_device, next_slot: 0, free, seen };
        // One request more than the depth, so that after each dispatch a request of each promised volume
        // still waits.
        (0..=depth).for_each(|_| (0..VOLUMES).for_each(|volume| pool.submit(VolumeId(volume))));
        pool
    }

    fn submit(&mut self, volume: VolumeId) {
        let slot = self.free.pop().unwrap_or(self.next_slot);
        self.next_slot = self.next_slot.max(slot + 1);
        let id = IoId { slot, generation: 0 };
        let io = Io { id, volume, kind: IoKind::Read, offset: 0, length: 4096, arrived: self.now };
        self.edf.submit(self.now, io);
    }

    /// Dispatches and checks. Returns the instant at which to look again if no completion comes before.
    fn dispatch(&mut self) -> Option<Instant> {
        loop {
            let was_full = self.at_device.len() >= self.depth;
            match self.edf.poll_dispatch(self.now) {
                Dispatch::Issue(io) => {
                    let is_background = io.volume.0 >= PROMISED;
                    assert!(!is_background || was_full, "{io:?} went before a promise");
                    let none_there = self.at_device.values().all(|(other, _)| other.volume.0 < PROMISED);
                    assert!(!is_background || none_there, "two background requests at a full device");
                    let done = self.now + self.draw.service();
                    self.at_device.insert((done, io.id.slot), (io, self.now));
                    let seen = &mut self.seen[io.volume.0 as usize];
                    seen.issued += 1;
                    seen.longest_wait = seen.longest_wait.max(self.now.since(seen.last));
                    seen.last = self.now;
                }
                Dispatch::AtDepth { recheck } => return recheck,
                nothing => unreachable!("the device is full and there is work, but {nothing:?}"),
            }
        }
    }

    fn run(mut self) -> Vec<Seen> {
        while self.now < Instant::ORIGIN + RUN {
            let recheck = self.dispatch().unwrap_or(Instant::FAR_FUTURE);
            let ((done, slot), _) = self.at_device.first_key_value().expect("the device is full");
            let (done, slot) = (*done, *slot);
            if recheck < done {
                assert!(recheck > self.now);
                self.now = recheck;
                continue;
            }
            self.now = done;
            let (io, since) = self.at_device.remove(&(done, slot)).expect("it was the first");
            self.edf.on_complete(self.now, &Completion { id: io.id, volume: io.volume, ok: true });
            self.free.push(slot);
            let seen = &mut self.seen[io.volume.0 as usize];
            seen.used += done.since(since);
            seen.longest = seen.longest.max(done.since(since));
            self.submit(io.volume);
        }
        self.seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn the_background_gets_its_share_of_a_full_device_each_volume_in_turn_and_no_more(
        depth in 1u32..12,
        millionths in 10_000u32..=500_000,
        due in prop::array::uniform2(1u64..60_000),
        seed: u64,
    ) {
        let share = TimeShare::from_millionths(millionths).unwrap();
        let seen = Pool::new(depth, share, due, seed).run();
        let background = &seen[PROMISED as usize..];
        let used = background.iter().map(|seen| seen.used.as_secs_f64()).sum::<f64>();
        let longest = background.iter().map(|seen| seen.longest).max().unwrap();
        let share = f64::from(millionths) / 1e6;
        prop_assert!(used <= share * RUN.as_secs_f64() + longest.as_secs_f64(), "{used} s: {background:?}");
        prop_assert!(used >= 0.9 * share * RUN.as_secs_f64() - longest.as_secs_f64(), "{used} s: {background:?}");
        let issued = || background.iter().map(|seen| seen.issued);
        prop_assert!(issued().max().unwrap() - issued().min().unwrap() <= 1, "not in turn: {background:?}");
        // Each volume's turn comes after one request of each of the others, at the latest.
        let turns = f64::from(VOLUMES - PROMISED);
        let wait = background.iter().map(|seen| seen.longest_wait.as_secs_f64()).fold(0.0, f64::max);
        prop_assert!(wait <= turns * longest.as_secs_f64() / share + 1.0, "{wait} s: {background:?}");
    }

    #[test]
    fn with_a_share_of_zero_a_promise_that_fills_the_device_is_never_preceded(
        depth in 1u32..12,
        due in prop::array::uniform2(1u64..60_000),
        seed: u64,
    ) {
        let seen = Pool::new(depth, TimeShare::ZERO, due, seed).run();
        prop_assert!(seen[PROMISED as usize..].iter().all(|seen| seen.issued == 0), "{seen:?}");
    }
}
