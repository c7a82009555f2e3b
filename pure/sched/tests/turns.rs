//! What background volumes get while they take turns by the device's time. The device is a disk in virtual
//! time: a request that begins where the last one ended takes a fraction of what all others take. Clients ask
//! again as soon as they are answered, or after a moment.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_model::{
    Completion, Instant, Io, IoId, IoKind, Iops, Priority, QueueDepth, Span, TimeShare, VolumeId,
};
use weir_sched::{BackgroundKnobs, Dispatch, Edf, Scheduler, VolumeKnobs};

const QUANTUM: Span = Span::from_millis(150);
const SEEK: Span = Span::from_millis(6);
const TRANSFER: Span = Span::from_micros(700);
const LENGTH: u32 = 64 << 10;
const RUN: Span = Span::from_secs(60);

/// A volume's clients.
#[derive(Clone, Copy, Debug)]
struct Load {
    threads: u32,
    in_order: bool,
    priority: f64,
    /// How long a thread takes to ask again.
    thinks: Span,
}

const fn scan(threads: u32) -> Load {
    Load { threads, in_order: true, priority: 1.0, thinks: Span::ZERO }
}

const fn random(threads: u32) -> Load {
    Load { in_order: false, ..scan(threads) }
}

/// What a volume got.
#[derive(Clone, Copy, Default, Debug)]
struct Got {
    answered: u32,
    /// For how long the disk worked on its requests.
    worked: Span,
    longest_wait: Span,
}

impl Got {
    fn rate(&self) -> f64 {
        f64::from(self.answered) / RUN.as_secs_f64()
    }
}

struct Pool {
    edf: Edf,
    now: Instant,
    loads: Vec<Load>,
    got: Vec<Got>,
    draw: u64,
    /// Where each volume goes on.
    ends: Vec<u64>,
    /// Requests to come, by slot.
    to_come: BTreeMap<(Instant, u32), VolumeId>,
    /// Requests at the disk, in the order in which they came there; the first is worked on.
    queue: Vec<Io>,
    done: Option<Instant>,
    /// Where the head is: the volume, and the byte.
    head: (VolumeId, u64),
    /// Since when the disk has nothing to do, while somebody waits.
    idle_since: Option<Instant>,
    longest_idle: Span,
}

impl Pool {
    fn new(loads: &[Load], most: u32) -> Self {
        let mut edf = Edf::new(QueueDepth::MAX, TimeShare::PERCENT);
        edf.set_background(
            Instant::ORIGIN,
            BackgroundKnobs { most, ..BackgroundKnobs::open(TimeShare::PERCENT) },
        );
        edf.set_quantum(Instant::ORIGIN, Some(QUANTUM));
        let mut to_come = BTreeMap::new();
        for (load, id) in loads.iter().zip(0..) {
            let priority = Priority::new(load.priority).unwrap();
            let knobs = VolumeKnobs { priority, ..VolumeKnobs::BACKGROUND };
            edf.set_volume(Instant::ORIGIN, VolumeId(id), &knobs);
            for _ in 0..load.threads {
                let slot = u32::try_from(to_come.len()).unwrap();
                to_come.insert((Instant::ORIGIN, slot), VolumeId(id));
            }
        }
        Self {
            edf,
            now: Instant::ORIGIN,
            loads: loads.to_vec(),
            got: vec![Got::default(); loads.len()],
            draw: 1,
            ends: vec![0; loads.len()],
            to_come,
            queue: Vec::new(),
            done: None,
            head: (VolumeId(0), 0),
            idle_since: None,
            longest_idle: Span::ZERO,
        }
    }

    fn come(&mut self, slot: u32, volume: VolumeId) {
        let place = volume.0 as usize;
        let offset = if self.loads[place].in_order {
            self.ends[place]
        } else {
            self.draw =
                self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.draw >> 33 << 16
        };
        self.ends[place] = offset + u64::from(LENGTH);
        let id = IoId { slot, generation: 0 };
        let io = Io { id, volume, kind: IoKind::Read, offset, length: LENGTH, arrived: self.now };
        self.edf.submit(self.now, io);
    }

    /// Dispatches what may go. Returns when to look again.
    fn dispatch(&mut self) -> Option<Instant> {
        loop {
            match self.edf.poll_dispatch(self.now) {
                Dispatch::Issue(io) => {
                    let got = &mut self.got[io.volume.0 as usize];
                    got.longest_wait = got.longest_wait.max(self.now.since(io.arrived));
                    self.queue.push(io);
                }
                Dispatch::WaitUntil(at) => return Some(at),
                Dispatch::AtDepth { recheck } => return recheck,
                Dispatch::Idle => return None,
            }
        }
    }

    /// Begins to work on the next request, if there is one.
    fn work(&mut self) {
        if let Some(next) = self.queue.first().filter(|_| self.done.is_none()) {
            let took = if self.head == (next.volume, next.offset) { TRANSFER } else { SEEK };
            self.head = (next.volume, next.offset + u64::from(next.length));
            self.got[next.volume.0 as usize].worked =
                Span::from_nanos(self.got[next.volume.0 as usize].worked.as_nanos() + took.as_nanos());
            self.done = Some(self.now + took);
        }
        let one_waits = self.queue.is_empty() && self.edf.snapshot().queued > 0;
        self.idle_since = one_waits.then(|| self.idle_since.unwrap_or(self.now));
    }

    fn run(mut self) -> (Vec<Got>, Span) {
        self.run_for(RUN);
        (self.got, self.longest_idle)
    }

    /// Runs on, and returns how many requests of each volume were answered in that time.
    fn run_for(&mut self, span: Span) -> Vec<u32> {
        let (end, before) = (self.now + span, self.got.clone());
        while self.now < end {
            while let Some(((_, slot), volume)) = self
                .to_come
                .first_key_value()
                .map(|(key, volume)| (*key, *volume))
                .filter(|((at, _), _)| *at <= self.now)
            {
                self.to_come.pop_first();
                self.come(slot, volume);
            }
            let recheck = self.dispatch();
            self.work();
            let next = self.to_come.first_key_value().map(|((at, _), _)| *at);
            let next = [recheck, self.done, next].into_iter().flatten().min().expect("something happens");
            self.now = next.max(self.now);
            if let Some(since) = self.idle_since {
                self.longest_idle = self.longest_idle.max(self.now.since(since));
            }
            if self.done.is_some_and(|done| done <= self.now) {
                self.done = None;
                let io = self.queue.remove(0);
                self.got[io.volume.0 as usize].answered += 1;
                self.edf.on_complete(self.now, &Completion { id: io.id, volume: io.volume, ok: true });
                let load = self.loads[io.volume.0 as usize];
                self.to_come.insert((self.now + load.thinks, io.id.slot), io.volume);
            }
        }
        self.got.iter().zip(before).map(|(got, before)| got.answered - before.answered).collect()
    }
}

fn got(loads: &[Load], most: u32) -> Vec<Got> {
    Pool::new(loads, most).run().0
}

fn alone(load: Load) -> f64 {
    got(&[load], u32::MAX)[0].rate()
}

#[test]
fn a_scan_beside_random_reads_keeps_nine_tenths_of_what_it_gets_alone_in_half_of_the_time() {
    for (threads, most) in [(4, 16), (4, 8), (1, 1), (64, 16)] {
        let (reads, both) = (random(64), got(&[scan(threads), random(64)], most));
        let parts = [both[0].rate() / alone(scan(threads)), both[1].rate() / alone(reads)];
        assert!(parts.iter().all(|part| *part >= 0.45), "{threads} threads, bound {most}: {parts:?}");
    }
}

#[test]
fn two_scans_and_random_reads_get_a_third_of_the_time_each() {
    let loads = [scan(4), scan(8), random(32)];
    let got = got(&loads, 16);
    for (load, got) in loads.iter().zip(&got) {
        let part = got.rate() / alone(*load);
        assert!((0.3..0.37).contains(&part), "{part}: {got:?}");
    }
}

#[test]
fn with_two_volumes_nobody_waits_for_longer_than_two_turns_of_both() {
    for got in got(&[scan(4), random(16)], 16) {
        assert!(got.longest_wait <= QUANTUM.saturating_mul(4), "{got:?}");
    }
}

#[test]
fn the_disk_is_never_left_idle_for_longer_than_two_milliseconds_while_somebody_waits() {
    for thinks in [0, 200, 1_900, 5_000, 50_000].map(Span::from_micros) {
        let loads = [Load { thinks, ..scan(1) }, random(4)];
        let (_, idle) = Pool::new(&loads, u32::MAX).run();
        assert!(idle <= Span::from_millis(2), "{idle:?} with {thinks:?}");
    }
}

#[test]
fn a_scan_whose_client_takes_its_time_does_not_keep_the_others_from_the_disk() {
    let slow = Load { thinks: Span::from_millis(20), ..scan(1) };
    let got = got(&[slow, random(8)], u32::MAX);
    let part = got[1].rate() / alone(random(8));
    assert!(part >= 0.75, "{part}");
    assert!(got[0].rate() >= 0.25 * alone(slow), "{got:?}");
}

#[test]
fn one_thread_at_random_places_does_not_have_the_device_for_itself() {
    // With a bound of 16 and one thread beside it, the scan goes on in what is left.
    let both = got(&[scan(4), random(1)], 16);
    let alone = alone(scan(4));
    assert!(both[0].rate() >= 0.45 * alone, "{both:?}, alone {alone}");
}

#[test]
fn what_a_volume_had_while_turns_went_by_time_does_not_count_when_they_go_by_requests() {
    let second = Span::from_secs(1);
    for millis in (0..600).step_by(50) {
        let mut pool = Pool::new(&[scan(4), random(16)], 1);
        pool.run_for(second + Span::from_millis(millis));
        pool.edf.set_quantum(pool.now, None);
        let got = pool.run_for(second);
        assert!(got[0].abs_diff(got[1]) <= 2, "{got:?} after {millis} ms");
    }
}

#[test]
fn a_volume_whose_cap_is_raised_catches_up_with_no_more_than_a_quantum() {
    let mut pool = Pool::new(&[random(8), random(8)], 1);
    let capped = VolumeKnobs { max_iops: Iops::new(1.0), ..VolumeKnobs::BACKGROUND };
    pool.edf.set_volume(pool.now, VolumeId(1), &capped);
    pool.run_for(RUN);
    pool.edf.set_volume(pool.now, VolumeId(1), &VolumeKnobs::BACKGROUND);
    let got = pool.run_for(Span::from_secs(2));
    assert!(got[1] <= got[0] + 60, "{got:?}: a quantum is 25 requests, and the cap lets some go at once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn backlogged_volumes_get_the_devices_time_by_priority_whatever_their_depths(
        priorities in prop::collection::vec(prop::sample::select(vec![1.0, 2.0, 4.0]), 2..6),
        depths in prop::collection::vec(1u32..64, 6),
        orders in prop::collection::vec(any::<bool>(), 6),
        most in 1u32..3,
    ) {
        // More threads than the bound, so that one of each volume always waits.
        let load = |(nth, priority): (usize, &f64)| Load {
            threads: depths[nth] + most, in_order: orders[nth], priority: *priority, thinks: Span::ZERO,
        };
        let loads: Vec<Load> = priorities.iter().enumerate().map(load).collect();
        let got = got(&loads, most);
        let all: f64 = priorities.iter().sum();
        for (got, priority) in got.iter().zip(&priorities) {
            let part = got.worked.as_secs_f64() / RUN.as_secs_f64() / (priority / all);
            prop_assert!((0.9..1.1).contains(&part), "{part}: {loads:?} {got:?}");
        }
    }
}
