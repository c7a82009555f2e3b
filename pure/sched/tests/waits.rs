//! What requests wait for: each knob is the one that is told, and every nanosecond counts once.

use std::num::NonZeroU32;

use weir_model::{Completion, Instant, Io, IoId, IoKind, Iops, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::{BackgroundKnobs, Dispatch, Edf, Knob, PassThrough, Scheduler, VolumeKnobs, VolumeWaits};

const ONE: VolumeId = VolumeId(0);
const OTHER: VolumeId = VolumeId(1);

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + ms(millis)
}

/// A scheduler with two volumes, and the requests that it has issued.
struct Scene {
    scheduler: Box<dyn Scheduler>,
    slots: u32,
    /// By volume: how many requests it has sent.
    ends: [u32; 2],
    issued: Vec<Io>,
}

impl Scene {
    fn new(scheduler: impl Scheduler + 'static, knobs: VolumeKnobs) -> Self {
        let mut scheduler: Box<dyn Scheduler> = Box::new(scheduler);
        [ONE, OTHER].iter().for_each(|volume| scheduler.set_volume(at(0), *volume, &knobs));
        Self { scheduler, slots: 0, ends: [0; 2], issued: Vec::new() }
    }

    /// Submits requests that go in order, and dispatches what may go.
    fn submit(&mut self, now: Instant, volume: VolumeId, requests: u32) {
        self.queue(now, volume, requests);
        self.dispatch(now);
    }

    fn queue(&mut self, now: Instant, volume: VolumeId, requests: u32) {
        for _ in 0..requests {
            let (id, length) = (IoId { slot: self.slots, generation: 0 }, 4096);
            let offset = u64::from(self.ends[volume.0 as usize]) * 4096;
            self.ends[volume.0 as usize] += 1;
            self.scheduler.submit(now, Io { id, volume, kind: IoKind::Read, offset, length, arrived: now });
            self.slots += 1;
        }
    }

    fn dispatch(&mut self, now: Instant) {
        while let Dispatch::Issue(io) = self.scheduler.poll_dispatch(now) {
            self.issued.push(io);
        }
    }

    fn finish(&mut self, now: Instant) {
        let Io { id, volume, .. } = self.issued.remove(0);
        self.scheduler.on_complete(now, &Completion { id, volume, ok: true });
        self.dispatch(now);
    }

    fn waits(&mut self, now: Instant, volume: VolumeId) -> VolumeWaits {
        let mut waits = Vec::new();
        self.scheduler.take_waits(now, &mut waits);
        waits.into_iter().find(|waits| waits.volume == volume).unwrap_or(VolumeWaits::none(volume))
    }
}

fn edf(depth: u32) -> Edf {
    Edf::new(QueueDepth::new(depth), TimeShare::PERCENT)
}

/// Only this was waited for, for so long.
fn only(waits: &VolumeWaits, knob: Knob, time: Span) {
    for known in Knob::ALL {
        let expected = if known == knob { time } else { Span::ZERO };
        assert_eq!(waits.waited_for(known), expected, "{known:?} of {waits:?}");
    }
}

#[test]
fn a_full_device_is_the_depth_and_two_that_wait_count_twice() {
    let mut scene = Scene::new(edf(1), VolumeKnobs::BACKGROUND);
    scene.submit(at(0), ONE, 1);
    scene.submit(at(1), OTHER, 2);
    let waits = scene.waits(at(5), OTHER);
    only(&waits, Knob::Depth, ms(8));
    assert_eq!((waits.own_while_shut, waits.issued), (Span::ZERO, 0));
    scene.finish(at(7));
    let waits = scene.waits(at(10), OTHER);
    // Two waited up to 7 ms, and then one behind the other.
    only(&waits, Knob::Depth, ms(2 * 2 + 3));
    assert_eq!((waits.own_while_shut, waits.at_device, waits.issued), (ms(3), ms(3), 1));
    assert_eq!(scene.waits(at(10), ONE), VolumeWaits::none(ONE), "it has nothing any more");
}

#[test]
fn the_own_rate_and_the_own_bound_are_told_apart_from_the_rest() {
    let capped = VolumeKnobs { max_iops: Iops::new(100.0), ..VolumeKnobs::BACKGROUND };
    let mut scene = Scene::new(edf(8), capped);
    scene.submit(at(0), ONE, 3);
    assert_eq!(scene.scheduler.limited(at(4), ONE), ms(4), "it goes on while it waits");
    // A request every 10 ms, less the burst of 5 ms.
    scene.dispatch(at(5));
    let waits = scene.waits(at(9), ONE);
    only(&waits, Knob::Rate, ms(2 * 5 + 4));
    let bounded = VolumeKnobs { concurrency: NonZeroU32::new(1), ..VolumeKnobs::BACKGROUND };
    let mut scene = Scene::new(edf(8), bounded);
    scene.submit(at(0), ONE, 2);
    scene.finish(at(6));
    only(&scene.waits(at(9), ONE), Knob::Concurrency, ms(6));
    assert_eq!(scene.scheduler.limited(at(9), ONE), ms(6));
}

#[test]
fn promised_volumes_in_order_wait_for_promised_requests_only() {
    let mut scene = Scene::new(edf(100), VolumeKnobs::with_target(ms(100)));
    scene.scheduler.set_volume(at(0), OTHER, &VolumeKnobs::BACKGROUND);
    scene.scheduler.set_promised(at(0), QueueDepth::new(1));
    scene.submit(at(0), OTHER, 3);
    scene.submit(at(0), ONE, 2);
    let waits = scene.waits(at(4), ONE);
    only(&waits, Knob::PromisedBound, ms(4));
    assert_eq!(waits.own_at_promised, ms(4), "its own request is the only promised one there");
    scene.submit(at(4), OTHER, 1);
    let waits = scene.waits(at(8), OTHER);
    assert_eq!((waits.promised_share, waits.issued), (0, 1));
}

#[test]
fn background_volumes_wait_for_their_bound_and_its_pace() {
    let mut scene = Scene::new(edf(100), VolumeKnobs::BACKGROUND);
    let knobs = BackgroundKnobs { most: 1, share: TimeShare::ZERO, least: ms(10) };
    scene.scheduler.set_background(at(0), knobs);
    scene.submit(at(0), ONE, 1);
    scene.submit(at(0), OTHER, 1);
    scene.finish(at(3));
    // The bound is free since 3 ms, and its pace lets the next one go at 10.
    scene.dispatch(at(10));
    only(&scene.waits(at(12), OTHER), Knob::BackgroundBound, ms(10));
}

#[test]
fn while_a_volume_in_order_has_the_device_for_itself_the_others_wait_for_a_turn() {
    let mut scene = Scene::new(edf(100), VolumeKnobs::BACKGROUND);
    let knobs = BackgroundKnobs { most: 50, ..BackgroundKnobs::open(TimeShare::PERCENT) };
    scene.scheduler.set_background(at(0), knobs);
    scene.scheduler.set_quantum(at(0), Some(ms(150)));
    // 64 requests in order, finished at once: from now on the volume is known to go in order.
    scene.submit(at(0), ONE, 64);
    while !scene.issued.is_empty() {
        scene.finish(at(1));
    }
    // The other one has more of the device's time.
    scene.submit(at(1), OTHER, 1);
    scene.finish(at(9));
    scene.waits(at(9), OTHER);
    scene.queue(at(9), OTHER, 1);
    scene.queue(at(9), ONE, 4);
    scene.dispatch(at(9));
    assert!(scene.issued.iter().all(|io| io.volume == ONE), "it has the device for itself");
    only(&scene.waits(at(13), OTHER), Knob::Turn, ms(4));
}

#[test]
fn without_gates_requests_wait_for_nothing_but_the_driver() {
    let mut scene = Scene::new(PassThrough::new(), VolumeKnobs::BACKGROUND);
    scene.submit(at(0), ONE, 3);
    scene.submit(at(0), OTHER, 1);
    scene.finish(at(4));
    let waits = scene.waits(at(6), ONE);
    only(&waits, Knob::Driver, Span::ZERO);
    // Three of four requests for 4 ms, and two of three for 2 ms.
    assert_eq!((waits.at_device, waits.issued), (ms(3 * 4 + 2 * 2), 3));
    let part = waits.own_at_device.as_nanos() / 1_000;
    assert_eq!(part, (3 * 3 * 1_000) + (2 * 2 * 2_000 / 3));
}

#[test]
fn a_driver_whose_time_goes_back_costs_a_sum_and_not_the_process() {
    let mut scene = Scene::new(edf(1), VolumeKnobs::BACKGROUND);
    scene.submit(at(5), ONE, 1);
    scene.submit(at(3), OTHER, 1);
    scene.finish(at(8));
    only(&scene.waits(at(8), OTHER), Knob::Depth, ms(3));
}
