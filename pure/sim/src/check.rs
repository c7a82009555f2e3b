//! The checkers: they watch, in every run, what must hold in every run.
//!
//! People believe a simulation. A mistake in it, or in the engine that it runs, would end as a wrong figure
//! in a report. So the checkers stand between the driver and the engine, and keep books of their own. They
//! stop the run at the first event that does not agree with their books, because nobody would read a log
//! line.
//!
//! 1. **Each request is answered exactly once**, and reported exactly once, with the times that were seen
//!    from outside the engine ([`ledger`]).
//! 2. **The depth is never exceeded** ([`gates`]), with two exceptions. A volume passes it while its oldest
//!    waiting request is due. One background request at a time passes it, within the background share of the
//!    array's time. If a law gives every volume a bound, no volume issues above its own, and the sum of all
//!    bounds is within the total. If a law gives background requests a bound and a pace, none is issued above
//!    these either, except within the background share.
//! 3. **No request waits beyond its bound** ([`gates`]). After each instant, no request waits that is due,
//!    unless its own volume's concurrency or rate holds it back. Façade §3 gives that bound: a request past
//!    its deadline passes the depth gate. A request of a volume with a target is due after its arrival plus
//!    the target, less twice the volume's mean time at the device. The checker works that out for itself
//!    ([`account`]).
//!
//!    A request without such a deadline is *background*. It goes before no promised request that could go. It
//!    does not wait while the depth has room and the background's bound lets one more go, or while the
//!    background share is due. If no depth is bounded, no promised request is held back, and it may wait only
//!    for its own volume's limits.
//!
//!    Depth, background and waits are not checked where an experiment leaves out completions of Façade's law
//!    that set deadlines.
//! 4. **The SLO windows are right**: a second computation, from the requests themselves, gives the same
//!    counts, mean, target and verdict. A window is closed when its verdict is certain, and not before
//!    ([`account`], [`windows`], [`served`]).
//! 5. **No reply is held** for longer than the one-sided PID may hold it, and without that law none is held
//!    at all.
//! 6. **The parts of a request's time add up to its latency**, and are those that were seen from outside.
//!    What requests waited for their turn is charged to the nanosecond, and they never wait for nothing
//!    ([`split`]).
//! 7. **Time only goes forward, and does go forward** ([`clock`]).
//!
//! **Not checked**: the order in which volumes are served before anything is due, because schedulers differ
//! in it; and how well a law controls, which is a question for experiments.

mod account;
mod clock;
mod gates;
mod ledger;
mod served;
mod split;
mod violation;
mod windows;

use std::num::NonZeroU32;

use weir_engine::{
    Completion, Control, EngineConfig, Event, MaestroConfig, TimeSpent, TimeSplit, TotalConcurrency,
    VolumeConfig,
};
use weir_model::{Instant, Io, IoId, QueueDepth, Span, VolumeId};

pub use violation::{Breach, Violation};

use account::Account;
use clock::Clock;
use gates::Gates;
use ledger::Ledger;

/// The verdict of a checker. Boxed, so that it is small: it is passed several times for each request, and is
/// nearly always `Ok`.
type Verified = Result<(), Box<Breach>>;

/// All checkers of a run.
#[derive(Debug)]
pub(crate) struct Checkers {
    config: EngineConfig,
    clock: Clock,
    ledger: Ledger,
    gates: Gates,
    /// By volume; `None` once it is removed.
    accounts: Vec<Option<Account>>,
    /// By volume: whether it ever had a limit of its own.
    limited: Vec<bool>,
}

impl Checkers {
    /// The checkers of a run that begins now, with this depth.
    pub(crate) fn new(now: Instant, config: EngineConfig, depth: Option<QueueDepth>) -> Self {
        Self {
            config,
            clock: Clock::new(now),
            ledger: Ledger::default(),
            gates: Gates::new(depth, total(&config), config.background_share, knows_deadlines(&config)),
            accounts: Vec::new(),
            limited: Vec::new(),
        }
    }

    /// The next volume, by number, was added.
    pub(crate) fn on_volume_added(&mut self, now: Instant, config: &VolumeConfig) {
        let account = Account::new(now, config, &self.config.control);
        let due_after = account.due_after(&self.config);
        self.accounts.push(Some(account));
        self.limited.push(has_limit(config));
        match self.config.control {
            Control::None => self.gates.add(due_after, &VolumeConfig::default()),
            Control::Facade(_)
            | Control::Maestro(_)
            | Control::Leased(_)
            | Control::Promise
            | Control::SharedPromise
            | Control::Pid(_) => {
                self.gates.add(due_after, config);
            }
        }
    }

    /// A volume has this configuration from now on.
    pub(crate) fn on_volume_changed(&mut self, now: Instant, volume: VolumeId, config: &VolumeConfig) {
        let control = self.config.control;
        self.note_limit(volume, has_limit(config));
        if let Some(account) = self.account(volume) {
            account.set_promise(now, config, &control);
        }
        if self.config.control != Control::None {
            self.gates.set_limits(now, volume, config);
        }
    }

    /// A volume is gone.
    pub(crate) fn on_volume_removed(&mut self, volume: VolumeId) {
        if let Some(account) = self.accounts.get_mut(volume.0 as usize) {
            *account = None;
        }
        self.gates.on_removed(volume);
    }

    /// The driver's next turn is at `now`.
    pub(crate) fn on_time(&mut self, now: Instant) -> Verified {
        self.clock.on_time(now)
    }

    /// The engine has taken a request.
    pub(crate) fn on_submit(&mut self, io: &Io) -> Verified {
        self.ledger.on_submit(io)?;
        self.gates.on_submit(io);
        if let Some(account) = self.account(io.volume) {
            account.on_arrival(io);
        }
        Ok(())
    }

    /// The engine has issued a request.
    pub(crate) fn on_issue(&mut self, now: Instant, io: &Io) -> Verified {
        self.ledger.on_issue(now, io)?;
        self.gates.on_issue(now, io, &self.ledger)
    }

    /// The array has answered the request with this `tag`. Call this before the engine is told.
    pub(crate) fn on_answer(&mut self, now: Instant, tag: u32, ok: bool) -> Verified {
        let (volume, id) = self.ledger.on_answer(now, tag, ok)?;
        self.gates.on_answer(now, volume, id);
        Ok(())
    }

    /// The reply to the request with this `tag` is handed over. Call this before the engine is told.
    pub(crate) fn on_reply(&mut self, now: Instant, tag: u32) -> Verified {
        let (volume, held) = self.ledger.on_reply(now, tag)?;
        self.check_held(volume, held)
    }

    /// The engine has taken the reply, and says where the time of its request went.
    pub(crate) fn on_split(&self, reported: Option<(IoId, TimeSplit)>) -> Verified {
        let Some(replied) = self.ledger.last_replied() else { return Ok(()) };
        let (_, VolumeId(volume), _) = replied;
        let is_limited = self.limited.get(volume as usize).is_some_and(|limited| *limited);
        split::check_split(replied, reported, is_limited)
    }

    /// What the engine remembers of a volume.
    pub(crate) fn on_spent(volume: VolumeId, spent: &TimeSpent) -> Verified {
        split::check_charges(volume, spent)
    }

    /// The engine has aborted a queued request.
    pub(crate) fn on_abort(&mut self, id: IoId) -> Verified {
        let volume = self.ledger.on_abort(id)?;
        self.gates.on_abort(volume, &self.ledger);
        Ok(())
    }

    /// The engine's depth after it was told that time has passed.
    pub(crate) fn on_depth(&mut self, depth: Option<QueueDepth>) {
        self.gates.set_depth(depth);
    }

    /// The engine reports an event.
    pub(crate) fn on_event(&mut self, now: Instant, event: &Event) -> Verified {
        match *event {
            Event::Finished { volume, kind, length, ok, device, total, .. } => {
                let id = self.ledger.on_report(event)?;
                if let Some(account) = self.account(volume) {
                    let bytes = ok.then_some(length);
                    account.on_answer(now, id, bytes, kind.direction().map(|_| device), total);
                }
                Ok(())
            }
            Event::Aborted { volume, .. } => {
                let id = self.ledger.on_report(event)?;
                if let Some(account) = self.account(volume) {
                    account.on_abort(now, id);
                }
                Ok(())
            }
            Event::Controlled { depth, .. } => {
                self.on_control_tick();
                self.gates.check_depth(depth)
            }
            Event::Granted { volume, grant, .. } => {
                self.note_limit(volume, true);
                self.gates.set_grant(now, volume, grant);
                Ok(())
            }
            Event::Allowed(knobs) => {
                self.gates.set_background(now, knobs);
                Ok(())
            }
            Event::InOrder(most) => {
                self.gates.set_promised(most);
                Ok(())
            }
            Event::Covered { volume, covered } => {
                self.gates.set_covered(now, volume, covered);
                Ok(())
            }
            Event::TakingTurns { quantum } => {
                self.gates.set_quantum(quantum);
                Ok(())
            }
            Event::Weighed { .. } => {
                self.on_control_tick();
                Ok(())
            }
            Event::Allocated { .. } | Event::Throttled { .. } | Event::OutOfReach(_) | Event::Stands(_) => {
                Ok(())
            }
            Event::WindowEnded { volume, traffic } => {
                let oldest = self.ledger.oldest_transfer(volume);
                let length = self.config.slo_window;
                self.windowed(volume)?.end_window(now, length, volume, oldest, &traffic)
            }
            Event::WindowClosed { volume, window } => {
                self.windowed(volume)?.close_window(now, volume, &window)
            }
        }
    }

    /// The driver has done everything of this instant, and has taken every event.
    pub(crate) fn at_rest(&mut self, now: Instant) -> Verified {
        self.ledger.at_rest()?;
        for (account, volume) in self.accounts.iter().zip(0..) {
            account.as_ref().map_or(Ok(()), |account| account.at_rest(now, VolumeId(volume)))?;
        }
        self.gates.at_rest(now)
    }

    /// The run is over. `outstanding` is how many requests each remaining volume has, according to the
    /// engine.
    pub(crate) fn at_end(
        &self,
        now: Instant,
        outstanding: impl Iterator<Item = (VolumeId, u32)>,
    ) -> Verified {
        if let Some((volume, held)) = self.ledger.longest_held(now) {
            self.check_held(volume, held)?;
        }
        outstanding.into_iter().try_for_each(|(volume, engine)| self.ledger.at_end(volume, engine))
    }

    /// A control period has ended: computes the targets that hold until the next tick.
    fn on_control_tick(&mut self) {
        for (account, volume) in self.accounts.iter_mut().zip(0..) {
            if let Some(account) = account {
                account.on_control_tick();
                self.gates.set_due_after(VolumeId(volume), account.due_after(&self.config));
            }
        }
    }

    fn note_limit(&mut self, volume: VolumeId, is_limited: bool) {
        if let Some(limited) = self.limited.get_mut(volume.0 as usize) {
            *limited |= is_limited;
        }
    }

    /// Checks for how long a reply was held.
    fn check_held(&self, volume: VolumeId, held: Span) -> Verified {
        let most = if let Control::Pid(pid) = self.config.control { pid.law.ceiling } else { Span::ZERO };
        if held <= most { Ok(()) } else { Err(Box::new(Breach::HeldTooLong { volume, held, most })) }
    }

    /// The volume of a window.
    fn windowed(&mut self, volume: VolumeId) -> Result<&mut Account, Box<Breach>> {
        self.account(volume).ok_or_else(|| Box::new(Breach::WindowOfNobody { volume }))
    }

    fn account(&mut self, volume: VolumeId) -> Option<&mut Account> {
        self.accounts.get_mut(volume.0 as usize)?.as_mut()
    }
}

/// Whether a volume has a limit of its own.
const fn has_limit(config: &VolumeConfig) -> bool {
    config.concurrency.is_some() || config.max_iops.is_some() || config.max_bandwidth.is_some()
}

/// Whether the law sets the deadlines that the checkers compute. An experiment may leave out completions of
/// Façade's law that set them.
fn knows_deadlines(config: &EngineConfig) -> bool {
    let of_deadlines =
        [Completion::DeviceShare, Completion::SloWindow, Completion::CountingNoise, Completion::Lane];
    !matches!(config.control, Control::Facade(_))
        || of_deadlines.into_iter().all(|one| config.completions.has(one))
}

/// The most that the bounds of all volumes may be in sum, if that is fixed.
fn total(config: &EngineConfig) -> Option<NonZeroU32> {
    match config.control {
        Control::Maestro(MaestroConfig { total: TotalConcurrency::Fixed(total), .. }) => {
            config.completions.has(Completion::WithinTotal).then_some(total)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
