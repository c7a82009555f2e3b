//! The findings of the checkers.

use thiserror::Error;
use weir_control::Grant;
use weir_engine::{Event, TimeSplit, WindowReport, WindowTraffic};
use weir_model::{Instant, IoId, QueueDepth, Span, VolumeId};

/// A rule that must hold in every run was broken. The seed and the scenario repeat it.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("seed {seed}, {} after the start: {what}", at.since(Instant::ORIGIN))]
pub struct Violation {
    /// The seed of the run.
    pub seed: u64,
    /// When, in simulated time.
    pub at: Instant,
    /// What was found.
    pub what: Box<Breach>,
}

/// The rule that was broken.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Breach {
    /// A transfer did what no transfer may.
    #[error("transfer {transfer} {why}")]
    WrongTransfer {
        /// The transfer.
        transfer: u64,
        /// What it did.
        why: &'static str,
    },
    /// All nodes are idle, and a transfer waits for one of them.
    #[error("a transfer waits although all nodes are up and have been idle for long")]
    TransferWaits,
    /// An event happened to a request that cannot happen to it now.
    #[error("request {slot} was {happened}, but it {found}", slot = id.slot)]
    OutOfTurn {
        /// The request.
        id: IoId,
        /// The event.
        happened: &'static str,
        /// The state of the request.
        found: &'static str,
    },
    /// The engine's report of a request differs from what was seen from outside.
    #[error("the engine reported {reported:?}, but what was seen is {seen:?}")]
    Report {
        /// The event.
        reported: Event,
        /// The event that it should have reported; `None`: there was nothing left to report.
        seen: Option<Event>,
    },
    /// A request was answered or aborted, and the engine did not report it.
    #[error("the engine did not report {seen:?}")]
    Unreported {
        /// The event that it should have reported.
        seen: Event,
    },
    /// The engine and the books differ on how many requests are outstanding.
    #[error("{volume:?} has {engine} requests outstanding by the engine, but {counted} were counted")]
    Lost {
        /// The volume.
        volume: VolumeId,
        /// How many there are, according to the engine.
        engine: u32,
        /// How many were submitted and neither answered nor aborted.
        counted: u32,
    },
    /// A request that was not due was issued above the depth.
    #[error(
        "{volume:?} issued a request that is due only at {due:?}, with {in_flight} at the array at a depth of {depth}"
    )]
    DepthExceeded {
        /// The volume.
        volume: VolumeId,
        /// How many requests were at the array before.
        in_flight: u32,
        /// How many the law allowed.
        depth: QueueDepth,
        /// When the volume's oldest waiting request was due.
        due: Instant,
    },
    /// A background request was issued above the depth, or above the bound of background requests, before
    /// the background share allowed one.
    #[error(
        "{volume:?}, which has no promise, issued a request above the depth or the background's bound, with \
         {in_flight} at the array"
    )]
    ShareExceeded {
        /// The volume.
        volume: VolumeId,
        /// How many requests were at the array before.
        in_flight: u32,
    },
    /// More requests of promised volumes were issued than their bound allows.
    #[error(
        "a request of {volume:?} was issued, though {most} of promised volumes were at the array already"
    )]
    PromisedExceeded {
        /// The volume whose request was issued.
        volume: VolumeId,
        /// The bound.
        most: QueueDepth,
    },
    /// A background request was issued while a waiting promised request could have gone.
    #[error("a request of {volume:?}, which has no promise, went before one of {promised:?}, which has one")]
    PromisePassed {
        /// The volume whose request was issued.
        volume: VolumeId,
        /// The volume whose request waited.
        promised: VolumeId,
    },
    /// The depth that was reported is not the one in force.
    #[error("a depth of {reported} was reported, but {in_force:?} is in force")]
    DepthMisreported {
        /// The depth of the event.
        reported: QueueDepth,
        /// The depth that the engine states as in force.
        in_force: Option<QueueDepth>,
    },
    /// A volume issued more requests at a time than its own bound.
    #[error("{volume:?} has {in_flight} requests at the array, with a bound of {bound}")]
    ConcurrencyExceeded {
        /// The volume.
        volume: VolumeId,
        /// How many it has at the array.
        in_flight: u32,
        /// How many it may have.
        bound: u32,
    },
    /// The bounds of all volumes are more than the total, in sum.
    #[error("the bounds of all volumes are {bounds} requests in sum, of a total of {total}")]
    TotalExceeded {
        /// Their sum.
        bounds: u32,
        /// The total.
        total: u32,
    },
    /// A request that is due still waits, and no limit of its volume holds it back.
    #[error("a request of {volume:?} that was due at {due:?} still waits")]
    Starved {
        /// The volume.
        volume: VolumeId,
        /// When it was due.
        due: Instant,
    },
    /// An SLO window of a volume that does not exist.
    #[error("an SLO window of {volume:?}, which is gone")]
    WindowOfNobody {
        /// The volume.
        volume: VolumeId,
    },
    /// A window differs from the second computation.
    #[error("an SLO window of {volume:?} was reported as {reported:?}, but computed as {computed:?}")]
    Window {
        /// The volume.
        volume: VolumeId,
        /// The window, according to the engine.
        reported: WindowReport,
        /// The window according to the checker.
        computed: WindowReport,
    },
    /// The traffic of a window differs from the second computation.
    #[error("the traffic of {volume:?} in an SLO window was reported as {reported:?}, but is {computed:?}")]
    Traffic {
        /// The volume.
        volume: VolumeId,
        /// The traffic, according to the engine.
        reported: WindowTraffic,
        /// The traffic according to the checker.
        computed: WindowTraffic,
    },
    /// A window was closed too early, or too late.
    #[error("an SLO window of {volume:?} {why}")]
    WindowTiming {
        /// The volume.
        volume: VolumeId,
        /// What is wrong.
        why: &'static str,
    },
    /// A window ended at the wrong time.
    #[error("an SLO window of {volume:?} ended after {lasted} instead of {length}")]
    WindowLength {
        /// The volume.
        volume: VolumeId,
        /// How long it was.
        lasted: Span,
        /// How long it should have been.
        length: Span,
    },
    /// The parts of a request's time are not those that were seen from outside, or do not add up.
    #[error("the time of request {slot} of {volume:?} was split into {split:?}, but what was seen is {seen:?}", slot = id.slot)]
    TimeSplit {
        /// Its volume.
        volume: VolumeId,
        /// The request.
        id: IoId,
        /// The parts, according to the engine; `None`: it named another request.
        split: Option<TimeSplit>,
        /// What was seen: the time in the queue, at the array, and of the reply.
        seen: [Span; 3],
    },
    /// A request was said to wait for a limit of its volume, which never had one.
    #[error("request {slot} of {volume:?} was said to wait {own_limit} for a limit of its volume, which has none", slot = id.slot)]
    LimitOfNobody {
        /// Its volume.
        volume: VolumeId,
        /// The request.
        id: IoId,
        /// For how long, according to the engine.
        own_limit: Span,
    },
    /// A request waited, and nothing held it back.
    #[error("requests of {volume:?} waited {waited} for nothing")]
    WaitedForNothing {
        /// Its volume.
        volume: VolumeId,
        /// For how long, in sum.
        waited: Span,
    },
    /// The charges for waiting are not what was waited.
    #[error("requests of {volume:?} waited {waited} for their turn, and {charged} was charged")]
    Charged {
        /// Its volume.
        volume: VolumeId,
        /// For how long they waited, in sum.
        waited: Span,
        /// What was charged for that.
        charged: Span,
    },
    /// A reply was held for longer than the law may hold it.
    #[error("a reply to {volume:?} was held for {held}, of at most {most}")]
    HeldTooLong {
        /// The volume.
        volume: VolumeId,
        /// How long it was held.
        held: Span,
        /// The longest delay that the law may set; zero without such a law.
        most: Span,
    },
    /// The run's next event lies in the past.
    #[error("time went back, to {to:?}")]
    TimeWentBack {
        /// The instant of that event.
        to: Instant,
    },
    /// The driver took too many turns at one instant.
    #[error("time stands still: {steps} turns of the driver at one instant")]
    TimeStoodStill {
        /// How many turns.
        steps: u64,
    },
    /// A rule was broken at one gateway of a cluster.
    #[error("gateway {gateway}: {what}")]
    AtGateway {
        /// The gateway.
        gateway: usize,
        /// The rule that was broken there.
        what: Box<Self>,
    },
    /// The bounds of a volume at all gateways are more than its limits.
    #[error("volume {volume}: {bounds:?} in sum over all gateways, of limits of {limits:?}")]
    LimitExceeded {
        /// Its name.
        volume: String,
        /// Their sum.
        bounds: [u64; 3],
        /// The limits: requests at a time, thousandths of a request a second, bytes a second.
        limits: [u64; 3],
    },
    /// More requests are at the array than its total, and requests from before the last cut must be done by
    /// now.
    #[error(
        "{at_array} requests are at the array, of a total of {total}, and what was there at the last cut is done"
    )]
    ArrayOverfull {
        /// How many requests are there.
        at_array: u32,
        /// How many may be there.
        total: u32,
    },
    /// A gateway's lease is over, and it has more in force than it may have without one.
    #[error("volume {volume}: {in_force:?} is in force though the lease is over, of {promised:?}")]
    LeaseOutlived {
        /// The volume's name.
        volume: String,
        /// What the engine lets it do.
        in_force: Grant,
        /// The most that it may let it do.
        promised: Grant,
    },
    /// A gateway has been alone for long, and its whole fallback is not in force.
    #[error(
        "volume {volume}: {in_force:?} is in force though the gateway was long alone, instead of {fallback:?}"
    )]
    NotFallenBack {
        /// The volume's name.
        volume: String,
        /// What the engine lets it do.
        in_force: Grant,
        /// What it should let it do.
        fallback: Grant,
    },
    /// A volume with outstanding requests got no answer for too long.
    #[error(
        "gateway {gateway}: volume {volume} has had {outstanding} requests since {since:?}, and none was answered"
    )]
    GatewayStarved {
        /// The gateway.
        gateway: usize,
        /// The volume's name.
        volume: String,
        /// How many requests are outstanding.
        outstanding: u32,
        /// Since when, in true time.
        since: Instant,
    },
    /// A gateway has no grants, though no fault is left.
    #[error("gateway {gateway} has no grants, though nothing was wrong since {since:?}")]
    LeftAlone {
        /// The gateway.
        gateway: usize,
        /// Since when, in true time.
        since: Instant,
    },
    /// Packets to an initiator before an iSCSI target are delayed, and must not be so.
    #[error("packets to initiator {initiator} are delayed by {delay}, {why}")]
    WronglyDelayed {
        /// The initiator.
        initiator: usize,
        /// The delay.
        delay: Span,
        /// What is wrong with it.
        why: &'static str,
    },
}
