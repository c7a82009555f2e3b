//! What an engine reports: the one source of every metric, table, log line and figure.

use serde::{Deserialize, Serialize};
use weir_control::{Grant, Reasoning, Shortfall, Standing};
use weir_model::{IoKind, Offered, QueueDepth, Span, Verdict, VolumeId};
use weir_sched::{BackgroundKnobs, Covered};

/// Something that happened in a pool.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A request was answered.
    Finished {
        /// Its volume.
        volume: VolumeId,
        /// What it did.
        kind: IoKind,
        /// Its number of bytes.
        length: u32,
        /// Whether the device did what was asked.
        ok: bool,
        /// From its submission until it was issued.
        queued: Span,
        /// From then until the device had finished it.
        device: Span,
        /// From its submission until its reply was handed over. An SLO speaks of this latency.
        total: Span,
    },
    /// A client took a request back while it was queued.
    Aborted {
        /// Its volume.
        volume: VolumeId,
        /// What it would have done.
        kind: IoKind,
    },
    /// A control period has ended.
    Controlled {
        /// The depth for the next period.
        depth: QueueDepth,
        /// The highest number of requests at the device in the period that ended.
        peak: u32,
    },
    /// What a volume may do has changed.
    Granted {
        /// The volume.
        volume: VolumeId,
        /// What it may do from now on.
        grant: Grant,
        /// Where the decision comes from.
        by: GrantedBy,
    },
    /// Maestro's law has decided about a volume and its ports.
    Allocated {
        /// The volume.
        volume: VolumeId,
        /// How the law came to its decision.
        reasoning: Reasoning,
    },
    /// The verdict about an SLO window of a volume is certain. That may be later than the window's end. The
    /// windows of a volume are closed in their order, and each begins where the one before ended.
    WindowClosed {
        /// The volume.
        volume: VolumeId,
        /// What became of the requests that came in the window.
        window: WindowReport,
    },
    /// The one-sided PID has decided.
    Throttled {
        /// For how long replies to heavy writers are held from now on.
        delay: Span,
        /// How long reads wait at the device, smoothed.
        wait: Span,
    },
    /// A period of the law of promises has ended.
    Weighed {
        /// The promised volume that is closest to missing its promise; `None`: no promised volume is there,
        /// or one behind another gateway is closer.
        worst: Option<VolumeId>,
        /// How close it is, here or behind another gateway: 1 is at the limit. 0 if no promised volume is
        /// there.
        strain: f64,
        /// Nothing was heard of the other gateways for two seconds: background volumes keep the bound that
        /// they have.
        others_are_lost: bool,
    },
    /// What background volumes may have of the device has changed, under the law of promises.
    Allowed(BackgroundKnobs),
    /// An SLO window of a volume has ended, and the next has begun. Its verdict follows.
    WindowEnded {
        /// The volume.
        volume: VolumeId,
        /// What came and went while the window was running.
        traffic: WindowTraffic,
    },
    /// Under the law of promises: the promise that is missed though nobody is left to be held back has
    /// changed; `None`: all are within reach.
    OutOfReach(Option<Shortfall<VolumeId>>),
    /// Under [`Control::SharedPromise`](crate::Control::SharedPromise): this is how the promises of this
    /// gateway stand. The others have to know it at once.
    Stands(Standing),
    /// Under the law of promises, background volumes take turns by other rules than before.
    TakingTurns {
        /// How long a volume whose requests go in order has the device for itself, while turns go by the
        /// device's time; `None`: they go by requests.
        quantum: Option<Span>,
    },
    /// Under the law of promises: how many requests of promised volumes may be at the device, all of them
    /// together. The others wait, and the most urgent goes first. `None`: any number.
    InOrder(Option<QueueDepth>),
    /// Under the law of promises: so much of the promised rate of a volume goes before all background
    /// requests. What it asks for beyond that is background.
    Covered {
        /// The volume.
        volume: VolumeId,
        /// The rates.
        covered: Covered,
    },
}

/// Where the bound of a volume comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum GrantedBy {
    /// The law of this pool.
    Law,
    /// The controller, for the time of a lease.
    Controller,
    /// There is no lease: a fixed part of the total holds.
    Fallback,
}

/// The requests that came in one SLO window of one volume, and how they were judged. A percentile may need
/// several windows, which are then judged as one. All numbers are of reads and writes; other requests have no
/// SLO.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowReport {
    /// What arrived in the window, and the length of the window.
    pub offered: Offered,
    /// How many of these requests have been answered with success.
    pub completed: u64,
    /// The mean of how long they have taken, without those that failed. One without an answer counts with its
    /// age.
    pub mean_latency: Option<Span>,
    /// The promised latency. Of an SLO, by the rate in the window *before* and the mix in this one (Façade
    /// §3).
    pub target: Option<Span>,
    /// Whether the promise was kept.
    pub verdict: Verdict,
}

/// What came and went while an SLO window of a volume was running. All numbers are of reads and writes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowTraffic {
    /// What arrived, and the length of the window.
    pub offered: Offered,
    /// How many requests were answered with success, whenever they came.
    pub answered: u64,
    /// The mean latency of those.
    pub mean_latency: Option<Span>,
}
