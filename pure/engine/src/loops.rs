//! What an engine does when time has passed: the control loop and the end of SLO windows.

mod array;
mod delay;
mod depth;
mod leased;
mod promise;

use std::collections::VecDeque;
use std::num::NonZeroU32;

use weir_control::{Completion, Promises};
use weir_model::{Instant, IoId, QueueDepth, TimeShare, VolumeId};
use weir_sched::{BackgroundKnobs, Edf, PassThrough, Scheduler};

use crate::config::{Control, EngineConfig};
use crate::event::Event;
use crate::occupancy::Occupancy;
use crate::requests::RequestTable;
use crate::time_spent::Key;
use crate::volume::{Volume, VolumeTable};

pub use delay::Throttle;

pub(crate) use array::ArrayLoop;
pub(crate) use delay::DelayLoop;
pub(crate) use depth::DepthLoop;
pub(crate) use leased::LeasedLoop;
pub(crate) use promise::PromiseLoop;

/// The control loop of a pool: sensors, law, knobs, once each period.
#[derive(Debug)]
pub(crate) enum ControlLoop {
    /// There is no law.
    None,
    /// The loop of Façade: it decides the depth of the device's queue.
    Depth(DepthLoop),
    /// The loop of Maestro: it decides every volume's bound.
    Array(Box<ArrayLoop>),
    /// Every volume's bound, which a controller grants.
    Leased(Box<LeasedLoop>),
    /// The loop of promises: it decides what background volumes may have of the device.
    Promise(Box<PromiseLoop>),
    /// The loop of the one-sided PID: it decides for how long replies are held.
    Delay(Box<DelayLoop>),
}

/// What a loop reads and turns.
pub(crate) struct Pool<'a> {
    pub(crate) volumes: &'a mut VolumeTable,
    pub(crate) requests: &'a RequestTable,
    pub(crate) occupancy: &'a mut Occupancy,
    pub(crate) scheduler: &'a mut dyn Scheduler,
    pub(crate) events: &'a mut VecDeque<Event>,
    /// The requests whose replies are held no longer.
    pub(crate) released: &'a mut VecDeque<IoId>,
}

impl ControlLoop {
    /// The loop that a law needs, and the scheduler whose knobs it turns.
    pub(crate) fn new(now: Instant, config: &EngineConfig) -> (Self, Box<dyn Scheduler + Send>) {
        let &EngineConfig { control, background_share: background, completions, .. } = config;
        let edf = |depth| Box::new(Edf::new(depth, background));
        match control {
            Control::None => (Self::None, Box::new(PassThrough::new())),
            Control::Facade(law) => {
                let control = DepthLoop::new(now, law, completions);
                let lane = if completions.has(Completion::Lane) { background } else { TimeShare::ZERO };
                let scheduler = Box::new(Edf::new(control.depth(), lane));
                (Self::Depth(control), scheduler)
            }
            Control::Maestro(config) => {
                (Self::Array(Box::new(ArrayLoop::new(now, config, completions))), edf(QueueDepth::MAX))
            }
            Control::Leased(config) => {
                (Self::Leased(Box::new(LeasedLoop::new(now, config))), edf(QueueDepth::MAX))
            }
            Control::Promise | Control::SharedPromise => {
                let law =
                    if control == Control::Promise { Promises::default() } else { Promises::among_others() };
                (Self::Promise(Box::new(PromiseLoop::new(now, law, background))), edf(QueueDepth::MAX))
            }
            Control::Pid(config) => {
                (Self::Delay(Box::new(DelayLoop::new(now, config))), edf(QueueDepth::MAX))
            }
        }
    }

    /// When the loop runs next; `None`: never.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Depth(control) => Some(control.tick.due()),
            Self::Array(control) => Some(control.tick.due()),
            Self::Leased(control) => Some(control.due()),
            Self::Promise(control) => Some(control.tick.due()),
            Self::Delay(control) => Some(control.due()),
        }
    }

    /// Runs the loop, if it is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant, pool: &mut Pool<'_>) {
        match self {
            Self::None => {}
            Self::Depth(control) => control.handle_timeout(now, pool),
            Self::Array(control) => control.handle_timeout(now, pool),
            Self::Leased(control) => control.handle_timeout(now, pool),
            Self::Promise(control) => control.handle_timeout(now, pool),
            Self::Delay(control) => control.handle_timeout(now, pool),
        }
    }

    /// A volume came, or this loop has replaced another.
    pub(crate) fn on_volumes_changed(&mut self, now: Instant, pool: &mut Pool<'_>) {
        match self {
            Self::None | Self::Depth(_) | Self::Delay(_) => {}
            Self::Promise(control) => control.on_volumes_changed(now, pool),
            Self::Array(control) => control.on_volumes_changed(now, pool),
            Self::Leased(control) => control.on_volumes_changed(now, pool),
        }
    }

    /// Whether the loop shares out concurrency, and needs to know what each volume uses.
    pub(crate) const fn shares_concurrency(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Leased(_))
    }

    /// How many requests all volumes may have at the device, if the loop decides that.
    pub(crate) fn total(&self) -> Option<NonZeroU32> {
        if let Self::Array(control) = self { Some(control.total()) } else { None }
    }

    /// Until when a controller's grants hold.
    pub(crate) fn granted_until(&self) -> Option<Instant> {
        if let Self::Leased(control) = self { control.until() } else { None }
    }

    /// The loop of a leased pool.
    ///
    /// # Panics
    /// If the pool is not leased.
    pub(crate) fn leased(&mut self) -> &mut LeasedLoop {
        if let Self::Leased(control) = self { control } else { panic!("the pool is not leased") }
    }

    /// Whose promise background volumes are held back for, if the law of promises does that.
    pub(crate) fn on_behalf_of(&self) -> Option<Key> {
        if let Self::Promise(control) = self { control.on_behalf_of() } else { None }
    }

    /// What background volumes may have of the device, if the law of promises says so.
    pub(crate) const fn allowance(&self) -> Option<BackgroundKnobs> {
        if let Self::Promise(control) = self { Some(control.knobs()) } else { None }
    }

    /// How many requests of promised volumes may be at the device, if the law of promises says so.
    pub(crate) const fn in_order(&self) -> Option<QueueDepth> {
        if let Self::Promise(control) = self { control.in_order } else { None }
    }

    /// The loop of promises.
    ///
    /// # Panics
    /// If another law rules.
    pub(crate) fn promise(&mut self) -> &mut PromiseLoop {
        if let Self::Promise(control) = self { control } else { panic!("another law rules") }
    }

    /// Whether the pool is leased.
    pub(crate) const fn is_leased(&self) -> bool {
        matches!(self, Self::Leased(_))
    }

    /// What the loop of the one-sided PID measures and decides.
    pub(crate) fn throttle(&self) -> Option<Throttle> {
        if let Self::Delay(control) = self { Some(control.at_a_glance()) } else { None }
    }

    /// The bound on the depth of the device's queue, if that is its knob.
    pub(crate) fn depth(&self) -> Option<QueueDepth> {
        if let Self::Depth(control) = self { Some(control.depth()) } else { None }
    }
}

/// Ends the SLO window of every volume.
pub(crate) fn end_windows(
    now: Instant,
    volumes: &mut VolumeTable,
    requests: &RequestTable,
    events: &mut VecDeque<Event>,
) {
    for (id, volume) in volumes.iter_mut() {
        events.push_back(Event::WindowEnded { volume: id, traffic: volume.end_window(now, requests) });
        events.extend(close_windows(now, id, volume));
    }
}

/// Closes the SLO windows of a volume whose verdict is certain.
pub(crate) fn close_windows(now: Instant, id: VolumeId, volume: &mut Volume) -> impl Iterator<Item = Event> {
    let closed = std::iter::from_fn(move || volume.close_window(now));
    closed.map(move |window| Event::WindowClosed { volume: id, window })
}
