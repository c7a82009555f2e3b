//! The request scheduler of one pool: which request goes to the device next, and when.
//!
//! A scheduler decides and does nothing else. It has no timer, thread, lock or callback. The driver tells it
//! what happened, and asks what to do ([`Scheduler::poll_dispatch`]). Every answer that is not a request says
//! why not, and until when ([`Dispatch`]). Many published schedulers answer "try again in a millisecond"
//! instead. That costs a wake-up when there is nothing to do, and a millisecond when there is.
//!
//! - [`Edf`]: three gates (rate, concurrency, depth) and earliest deadline first, the scheduler of Façade §3.
//!   Requests without a promise go behind the others, within a bound of their own or with a stated share of
//!   the device's time.
//! - [`PassThrough`]: first come, first served, no gates. It runs a pool without control, and is the baseline
//!   of comparisons.
//!
//! Both pass the conformance suite of `weir-testkit`. Every other scheduler must, too.

mod device_time;
mod dispatch;
mod edf;
mod heap;
mod knobs;
mod pass_through;
mod rate_gate;
mod slot_chains;
mod waiting;
mod waits;

pub use dispatch::Dispatch;
pub use edf::Edf;
pub use knobs::{BackgroundKnobs, Covered, VolumeKnobs};
pub use pass_through::PassThrough;
pub use rate_gate::RateGate;
pub use slot_chains::{Chain, SlotChains};
pub use waits::{Knob, VolumeWaits};

use weir_model::{Completion, Instant, Io, IoId, QueueDepth, Span, VolumeId};

/// Decides which of the requests that wait in a pool the device gets next.
///
/// `now` never goes back from one call to the next. Requests are known by their [`IoId`]. Its slots are
/// dense, and no two requests that wait or are at the device at the same time share one.
pub trait Scheduler: std::fmt::Debug {
    /// Takes in a request.
    ///
    /// # Panics
    /// If its volume was not added, or its slot is taken by a request that waits.
    fn submit(&mut self, now: Instant, io: Io);

    /// What to do now. Call it again after each [`Dispatch::Issue`], until it says something else.
    fn poll_dispatch(&mut self, now: Instant) -> Dispatch;

    /// The device has finished a request that was issued or adopted.
    ///
    /// # Panics
    /// If nothing of that volume is at the device.
    fn on_complete(&mut self, now: Instant, done: &Completion);

    /// Takes out a request that still waits; `None` if it does not.
    fn abort(&mut self, now: Instant, id: IoId) -> Option<Io>;

    /// Sets the bound on the number of requests at the device. If more are there already, they stay until
    /// they are finished.
    fn set_depth(&mut self, now: Instant, depth: QueueDepth);

    /// Sets what background volumes may have of the device. If more of their requests are there already, they
    /// stay until they are finished.
    fn set_background(&mut self, now: Instant, knobs: BackgroundKnobs);

    /// Sets how many requests of promised volumes may be at the device, all of them together. The most urgent
    /// go first; none passes this bound, however late it is. If more are there already, they stay until they
    /// are finished.
    fn set_promised(&mut self, now: Instant, most: QueueDepth);

    /// Lets background volumes take turns by the device's time, and gives a volume whose requests go in order
    /// the device for itself for so long. `None` or zero: they take turns by requests.
    fn set_quantum(&mut self, now: Instant, quantum: Option<Span>);

    /// Adds a volume, or changes its knobs. Its waiting requests are ordered anew at once.
    fn set_volume(&mut self, now: Instant, volume: VolumeId, knobs: &VolumeKnobs);

    /// Forgets a volume.
    ///
    /// # Panics
    /// If it is unknown, or has requests that wait or are at the device.
    fn remove_volume(&mut self, now: Instant, volume: VolumeId);

    /// Takes out every request that waits, in the order in which they were submitted: to hand them to another
    /// scheduler.
    fn take_queued(&mut self, now: Instant) -> Vec<Io>;

    /// A request that another scheduler issued before this one took over is still at the device.
    ///
    /// # Panics
    /// If its volume was not added.
    fn adopt_in_flight(&mut self, now: Instant, volume: VolumeId);

    /// For how long, up to now, the own limits of a volume have held its waiting requests back, in all: its
    /// rate and its concurrency. What this advances from a request's submission to its dispatch is the part
    /// of its wait that is due to these limits. A scheduler without such limits says zero.
    fn limited(&self, _now: Instant, _volume: VolumeId) -> Span {
        Span::ZERO
    }

    /// Adds to `into` what the requests of each volume waited for, and what the volumes had of the device,
    /// since the last call. A volume that had no request is left out. A scheduler at which nothing waits
    /// adds nothing.
    fn take_waits(&mut self, _now: Instant, _into: &mut Vec<VolumeWaits>) {}

    /// How many requests wait, and how many are at the device.
    fn snapshot(&self) -> SchedSnapshot;
}

/// How many requests a scheduler holds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SchedSnapshot {
    /// Requests that wait.
    pub queued: u32,
    /// Requests at the device.
    pub in_flight: u32,
    /// Of these, requests of background volumes. Without deadlines, all are.
    pub background: u32,
}
