//! The loop of promises. It gives the law what the volumes got, and puts in force what background volumes may
//! do.
//!
//! A request of a promised volume after a silence waits for no period: what background volumes may do changes
//! before the next dispatch.

use weir_control::{Allowance, Law, PromiseObservation, Promises, Shortfall, Standing};
use weir_model::{Instant, QueueDepth, Span, TimeShare, VolumeId};
use weir_sched::BackgroundKnobs;

use super::Pool;
use crate::event::Event;
use crate::tick::Tick;
use crate::time_spent::Key;

/// The loop.
#[derive(Debug)]
pub(crate) struct PromiseLoop {
    law: Promises,
    pub(super) tick: Tick,
    /// The share of the device's time that background volumes get in any case.
    least: TimeShare,
    /// What is in force.
    knobs: BackgroundKnobs,
    /// The promise that is out of reach, as it was last said.
    shortfall: Option<Shortfall<VolumeId>>,
    quantum: Option<Span>,
    /// How many requests of promised volumes may be at the device; `None`: any number.
    pub(super) in_order: Option<QueueDepth>,
    /// The most requests of background volumes at the device in this period.
    peak: u32,
    /// Kept from period to period, so that no period allocates.
    seen: PromiseObservation,
}

impl PromiseLoop {
    pub(super) fn new(now: Instant, law: Promises, least: TimeShare) -> Self {
        Self {
            law,
            tick: Tick::new(now, Promises::PERIOD),
            least,
            knobs: BackgroundKnobs::open(least),
            shortfall: None,
            quantum: None,
            in_order: None,
            peak: 0,
            seen: PromiseObservation::default(),
        }
    }

    /// Which volumes are promised something now.
    pub(super) fn on_volumes_changed(&mut self, now: Instant, pool: &mut Pool<'_>) {
        for (id, volume) in pool.volumes.iter_mut() {
            let promise = volume.promise();
            if volume.set_promise(promise) {
                pool.scheduler.set_volume(now, id, &volume.knobs());
            }
        }
    }

    /// A request came.
    pub(crate) fn on_arrival(&mut self, now: Instant, id: VolumeId, pool: &mut Pool<'_>) {
        let volume = pool.volumes.get(id);
        if volume.is_promised() {
            self.law.on_request(now, volume.serial());
            self.bound_promised(now, pool);
            self.put_in_force(now, self.law.allowance(now), pool);
            self.tell_others(pool);
        }
    }

    /// How the promises of all other gateways stand.
    pub(crate) fn hear(&mut self, now: Instant, standing: Standing, pool: &mut Pool<'_>) {
        let at_device = pool.scheduler.snapshot().background;
        self.law.hear(now, standing, at_device, self.peak.max(at_device));
        self.put_in_force(now, self.law.allowance(now), pool);
    }

    /// What the other gateways have to know goes to them.
    fn tell_others(&mut self, pool: &mut Pool<'_>) {
        pool.events.extend(self.law.poll_news().map(Event::Stands));
    }

    /// A background request goes to the device, where so many of them are then.
    pub(crate) fn on_issue(&mut self, at_device: u32) {
        self.peak = self.peak.max(at_device);
    }

    /// Whose promise background volumes are held back for; `None`: nobody's.
    pub(super) fn on_behalf_of(&self) -> Option<Key> {
        self.law.worst().map(|worst| worst.serial.map_or(Key::OtherGateway, Key::Volume))
    }

    /// What background volumes may do.
    pub(super) const fn knobs(&self) -> BackgroundKnobs {
        self.knobs
    }

    /// Ends a period that is over: reads the sensors, and turns the knobs.
    pub(super) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if !self.tick.serve(now) {
            return;
        }
        pool.volumes.iter_mut().for_each(|(_, volume)| volume.note_contract());
        self.on_volumes_changed(now, pool);
        self.seen.volumes.clear();
        let requests = pool.requests;
        let seen = pool.volumes.iter_mut().map(|(_, volume)| volume.observe_promise(now, requests));
        self.seen.volumes.extend(seen);
        let at_device = pool.scheduler.snapshot().background;
        self.seen.background_at_device = at_device;
        self.seen.background_peak = std::mem::replace(&mut self.peak, at_device).max(at_device);
        let allowance = self.law.step(now, &self.seen);
        pool.events.push_back(self.weighed(now, pool));
        self.say_shortfall(pool);
        self.tell_others(pool);
        self.put_in_force(now, allowance, pool);
        self.cover_rates(now, pool);
        self.put_in_order(now, pool);
    }

    fn weighed(&self, now: Instant, pool: &Pool<'_>) -> Event {
        let worst = self.law.worst();
        Event::Weighed {
            worst: worst.and_then(|worst| volume_of(worst.serial?, pool)),
            strain: worst.map_or(0.0, |worst| worst.strain),
            others_are_lost: self.law.has_lost_others(now),
        }
    }

    /// Says which promise is out of reach, if that has changed.
    fn say_shortfall(&mut self, pool: &mut Pool<'_>) {
        let shortfall = self.law.shortfall();
        let shortfall = shortfall.and_then(|it| it.with_volumes(|serial| volume_of(serial, pool)));
        let is_news = match (&shortfall, &self.shortfall) {
            (Some(now), Some(before)) => now.is_other_than(before),
            (now, before) => now.is_some() != before.is_some(),
        };
        if is_news {
            self.shortfall = shortfall;
            pool.events.push_back(Event::OutOfReach(shortfall));
        }
    }

    fn put_in_force(&mut self, now: Instant, allowance: Allowance, pool: &mut Pool<'_>) {
        let knobs = match allowance {
            Allowance::Free => BackgroundKnobs::open(self.least),
            Allowance::Requests { most, cost } => BackgroundKnobs { most, share: self.least, least: cost },
            Allowance::Share { share, cost } => {
                let share = TimeShare::new(share).unwrap_or(self.least).max(self.least);
                BackgroundKnobs { most: 0, share, least: cost }
            }
        };
        if knobs.is_other_than(&self.knobs) {
            self.knobs = knobs;
            pool.scheduler.set_background(now, knobs);
            pool.events.push_back(Event::Allowed(knobs));
        }
        // One request at a time is no quantum.
        let quantum = self.law.quantum().filter(|_| knobs.most > 0);
        if quantum != self.quantum {
            self.quantum = quantum;
            pool.scheduler.set_quantum(now, quantum);
            pool.events.push_back(Event::TakingTurns { quantum });
        }
    }

    /// Puts promised volumes in order, if the law asks for that.
    fn put_in_order(&mut self, now: Instant, pool: &mut Pool<'_>) {
        if self.law.in_order().is_some() {
            let mut dues = self.law.dues().peekable();
            for (id, volume) in pool.volumes.iter_mut() {
                let Some((_, due)) = dues.next_if(|(serial, _)| *serial == volume.serial()) else { continue };
                if volume.set_due(due) {
                    pool.scheduler.set_volume(now, id, &volume.knobs());
                }
            }
        }
        self.bound_promised(now, pool);
    }

    /// Lets no more requests of promised volumes to the device than the law says.
    fn bound_promised(&mut self, now: Instant, pool: &mut Pool<'_>) {
        let most = self.law.in_order().map(QueueDepth::new);
        if most != self.in_order {
            self.in_order = most;
            pool.scheduler.set_promised(now, most.unwrap_or(QueueDepth::MAX));
            pool.events.push_back(Event::InOrder(most));
        }
    }

    /// Has as much of promised rates go before all others as the law says.
    fn cover_rates(&self, now: Instant, pool: &mut Pool<'_>) {
        let mut all = self.law.covered().peekable();
        for (id, volume) in pool.volumes.iter_mut() {
            let Some((_, times)) = all.next_if(|(serial, _)| *serial == volume.serial()) else { continue };
            volume.cover(times);
            if let Some(covered) = volume.take_news_of_covered() {
                pool.scheduler.set_volume(now, id, &volume.knobs());
                pool.events.push_back(Event::Covered { volume: id, covered });
            }
        }
    }
}

/// The volume with this serial number; `None` if it is gone.
fn volume_of(serial: u64, pool: &Pool<'_>) -> Option<VolumeId> {
    pool.volumes.with_serial(serial)
}
