//! The agent: it hands what the sensors see to the part that decides, and what follows to the kernel.
//!
//! A turn comes every 100 ms. Each turn reads the counters of devices, and the delays follow from these. Once
//! a second, a turn also sends the surveyor to look at the host, and the next turn hears from it who is to be
//! delayed. Once a second, a turn looks at what the kernel holds, so that a change by somebody else is
//! repaired. In between, the agent relies on what it has changed itself: to list a thousand elements ten
//! times a second would cost more than everything else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;
use weir_model::{Instant, Span};
use weir_status::{InterfaceOutOfReach, ThrottleStatus};
use weir_throttle::{
    CannotTune, Command, Present, Settings, SettingsError, Throttle, Tuning, TuningProgress, Wanted, plan,
};

use crate::actuator::{Actuator, ActuatorError};
use crate::guard::Guard;
use crate::history::History;
use crate::lookout::Lookout;
use crate::report;
use crate::sensors::{BlockSensor, Remark, Roots, Surveyor};

/// How often the agent surveys the host, looks at the kernel, and renews its elements.
const SURVEY: Span = Span::from_secs(1);
/// A survey that is older says too little about who writes, so nothing is delayed then.
const STALE: Span = Span::from_secs(5);

/// Why an agent cannot start, or cannot go on.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The settings cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The kernel does not let it see the host.
    #[error("{0}")]
    Sensors(Remark),
    /// The kernel does not let it delay packets.
    #[error("{0}")]
    Actuator(ActuatorError),
    /// Nobody would remove the delays if the agent hung.
    #[error(
        "the guard cannot be started, a second process of this program that removes the delays if the agent \
         hangs: {0}; is the program still where it was when the agent started?"
    )]
    Guard(io::Error),
    /// Something of the agent's may still be there.
    #[error("{refused}; {guard}: something may be left, which `weir throttle remove` removes")]
    Left {
        /// Why the agent could not remove it.
        refused: ActuatorError,
        /// Why the guard could not.
        guard: io::Error,
    },
    /// No step of the delay can be recorded.
    #[error(transparent)]
    Tuning(#[from] CannotTune),
    /// The system has no thread left.
    #[error("a thread for looking at the host: {0}")]
    Thread(io::Error),
}

/// The agent, on the thread that calls its turns.
pub struct Agent {
    throttle: Throttle,
    ceiling: Span,
    lookout: Lookout,
    /// When the last survey came.
    surveyed: Instant,
    /// When the last turn was.
    turned: Instant,
    /// Whether the last survey is too old.
    stale: bool,
    /// Whether a device has vanished since the surveyor was sent.
    vanished: bool,
    blocks: BlockSensor,
    /// None in a dry run.
    hands: Option<Hands>,
    /// When the surveyor was sent the last time, and the kernel was looked at.
    looked: Option<Instant>,
    history: History,
    /// What is odd about the host and was said already.
    remarked: BTreeSet<String>,
}

/// What changes the kernel, and what guards that.
struct Hands {
    actuator: Actuator,
    guard: Guard,
    /// How another guard is started if this one ends.
    program: fn() -> io::Result<process::Command>,
    present: Present,
    /// The wanted state that the kernel had after the last plan.
    reached: Option<Wanted>,
    /// The interfaces that cannot have a root queue of the agent's, and why. Each is said once.
    lacking: BTreeMap<String, String>,
    /// The last failure, which is said once, too.
    failed: Option<String>,
}

impl Agent {
    /// Looks at the host, takes the agent's place in the kernel, and starts a guard by running `program`. A
    /// dry run (`None`) changes nothing.
    ///
    /// # Errors
    /// If it cannot work here. Then nothing has changed.
    pub fn start(
        now: Instant,
        settings: Settings,
        roots: Roots,
        program: Option<fn() -> io::Result<process::Command>>,
    ) -> Result<Self, AgentError> {
        // The sensors keep two descriptors for each device, and one for each session.
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }); // fewer cost time only
        let (ceiling, packets) = (settings.law.ceiling, settings.packets);
        let throttle = Throttle::new(settings)?;
        let blocks = BlockSensor::new(roots.sys.clone());
        let mut surveyor = Surveyor::new(roots).map_err(AgentError::Sensors)?;
        surveyor.look(now);
        let interfaces = surveyor.survey().interfaces.values().cloned().collect();
        let lookout = Lookout::start(surveyor).map_err(AgentError::Thread)?;
        let actuator = Actuator::open().map_err(AgentError::Actuator)?.delaying(packets);
        let hands = match program {
            Some(program) => Some(Hands::new(actuator, program, &interfaces, ceiling)?),
            None => {
                say_refusals(actuator, &interfaces);
                None
            }
        };
        Ok(Self {
            throttle,
            ceiling,
            lookout,
            surveyed: now,
            turned: now,
            stale: false,
            vanished: false,
            blocks,
            hands,
            looked: None,
            history: History::default(),
            remarked: BTreeSet::new(),
        })
    }

    /// Whether the agent only says what it would do.
    pub fn is_dry_run(&self) -> bool {
        self.hands.is_none()
    }

    /// One turn. Says whether there is news of the host.
    ///
    /// # Errors
    /// If nothing guards the agent any more, and no new guard can be started.
    pub fn turn(&mut self, now: Instant) -> Result<bool, AgentError> {
        let has_news = self.sense(now)?;
        let looks = self.is_due(now);
        self.act(now, looks);
        Ok(has_news || looks)
    }

    /// One turn in which a recording, and not the law, decides the delay of a resource.
    ///
    /// # Errors
    /// As [`Self::turn`], and if nothing can be recorded.
    pub fn turn_of_tuning(
        &mut self,
        now: Instant,
        tuning: &mut Tuning,
    ) -> Result<TuningProgress, AgentError> {
        self.sense(now)?;
        let progress = tuning.handle_interval(now, &mut self.throttle)?;
        let looks = self.is_due(now);
        self.act(now, looks);
        Ok(progress)
    }

    /// Tells the guard that the agent is alive, and takes in what the sensors see. Says whether a survey has
    /// come.
    fn sense(&mut self, now: Instant) -> Result<bool, AgentError> {
        if let Some(hands) = &mut self.hands {
            hands.beat()?;
        }
        let has_news = self.take_survey(now);
        self.read_counters(now);
        self.history.record(now, &self.throttle);
        Ok(has_news)
    }

    /// Whether it is time to look at the host and at the kernel. If so, the surveyor goes.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.looked.is_none_or(|at| now.saturating_since(at) >= SURVEY);
        if is_due {
            self.looked = Some(now);
            if self.lookout.send(now, self.vanished) {
                self.vanished = false;
            }
        }
        is_due
    }

    /// Does what leads to the wanted state, after a look at the kernel if that is due.
    fn act(&mut self, now: Instant, looks: bool) {
        self.judge_survey(now);
        self.turned = now;
        if self.stale {
            self.throttle.delay_nobody(now);
        }
        if let Some(hands) = &mut self.hands {
            if looks {
                hands.look(&mut self.throttle);
            }
            hands.converge(self.throttle.wanted(), looks);
            self.throttle.set_lacking(hands.lacking.keys().cloned().collect());
        }
        while let Some(notice) = self.throttle.poll_notice() {
            tracing::info!(listener = "iscsi", "{notice}");
        }
    }

    /// Puts other settings in force. Delays and members stay as far as the new settings allow. The ceiling
    /// and the packets have to be the same, because the queues and the rules follow from them.
    ///
    /// # Errors
    /// If the settings cannot be. Then nothing has changed.
    pub fn change(&mut self, settings: Settings) -> Result<(), AgentError> {
        Ok(self.throttle.set_settings(settings)?)
    }

    /// The state of everything.
    pub fn status(&self, now: Instant) -> ThrottleStatus {
        let mut status =
            report::status(now, self.is_dry_run(), self.ceiling, &self.throttle.report(), &self.history);
        let lacking = self.hands.iter().flat_map(|hands| &hands.lacking);
        let lacking = lacking
            .map(|(interface, why)| InterfaceOutOfReach { interface: interface.clone(), why: why.clone() });
        status.interfaces_out_of_reach = lacking.collect();
        status
    }

    /// Removes everything that the agent changed, and ends the guard.
    ///
    /// # Errors
    /// If the kernel refuses, and the guard could not remove it either.
    pub fn stop(mut self) -> Result<(), AgentError> {
        self.let_go()
    }

    fn let_go(&mut self) -> Result<(), AgentError> {
        let Some(Hands { actuator, guard, .. }) = self.hands.take() else { return Ok(()) };
        let_go(actuator, guard)
    }

    /// Takes over what the surveyor has found, if it is back. Says whether it is.
    fn take_survey(&mut self, now: Instant) -> bool {
        let Some(surveyor) = self.lookout.poll() else { return false };
        self.surveyed = now;
        self.throttle.handle_survey(now, surveyor.survey());
        let remarks: BTreeSet<_> = surveyor.remarks().iter().map(Remark::to_string).collect();
        for remark in remarks.difference(&self.remarked) {
            tracing::warn!(listener = "iscsi", "{remark}");
        }
        self.remarked = remarks;
        true
    }

    /// Finds out whether the last survey is too old. It is said once why, and once that it no longer is.
    fn judge_survey(&mut self, now: Instant) {
        let is_stale = now.saturating_since(self.surveyed) >= STALE;
        if is_stale && !self.stale {
            let why = why_stale(now.saturating_since(self.turned));
            tracing::warn!(listener = "iscsi", "{why}: nothing is delayed until the targets were looked at");
        } else if self.stale && !is_stale {
            tracing::info!(
                listener = "iscsi",
                "the host's targets were looked at: delays are in force again"
            );
        }
        self.stale = is_stale;
    }

    fn read_counters(&mut self, now: Instant) {
        let devices: BTreeSet<_> = self.throttle.devices_to_read().collect();
        let reading = self.blocks.read(&devices);
        self.vanished |= !reading.vanished.is_empty();
        for remark in reading.remarks {
            if self.remarked.insert(remark.to_string()) {
                tracing::warn!(listener = "iscsi", "{remark}");
            }
        }
        self.throttle.handle_counters(now, &reading.counters);
    }
}

/// An agent that cannot go on may be dropped anywhere. Its guard would end the process before that has said
/// why.
impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.let_go(); // the reason to stop is the one to tell
    }
}

/// Why there is no survey, by the time since the last turn: an agent that was stopped has asked nobody.
fn why_stale(without_turn: Span) -> String {
    if without_turn >= SURVEY {
        format!("the agent stood still for {without_turn}")
    } else {
        format!("the host's targets have not answered for {STALE}")
    }
}

/// Says why a start that is no dry run would fail.
fn say_refusals(mut actuator: Actuator, interfaces: &BTreeSet<String>) {
    for refusal in actuator.refusals(interfaces) {
        // No peer: once, at the start.
        tracing::warn!("without --dry-run, the start would fail: {refusal}");
    }
}

/// Removes everything of the agent's, and ends the guard, which removes what the agent cannot.
fn let_go(mut actuator: Actuator, guard: Guard) -> Result<(), AgentError> {
    let removed = if actuator.has_left() { actuator.remove() } else { Ok(()) };
    let has_left = actuator.has_left();
    drop(actuator); // it would keep the guard's out
    if !has_left {
        guard.release();
        return removed.map_err(AgentError::Actuator);
    }
    let handed_over = guard.hand_over();
    match (removed, handed_over) {
        (Err(refused), Err(guard)) => Err(AgentError::Left { refused, guard }),
        (Err(refused), Ok(())) => {
            tracing::warn!(listener = "iscsi", "{refused}: the guard has removed it instead");
            Ok(())
        }
        (Ok(()), _) => Ok(()),
    }
}

impl Hands {
    fn new(
        mut actuator: Actuator,
        program: fn() -> io::Result<process::Command>,
        interfaces: &BTreeSet<String>,
        ceiling: Span,
    ) -> Result<Self, AgentError> {
        // The guard comes first: from the first change on, somebody undoes it.
        let guard = program().and_then(Guard::start).map_err(AgentError::Guard)?;
        let refusal = actuator.refusals(interfaces).into_iter().next();
        match refusal.map_or_else(|| actuator.install(interfaces, ceiling), Err) {
            Ok(_) => {
                let (present, lacking) = (Present::default(), BTreeMap::new());
                Ok(Self { actuator, guard, program, present, reached: None, lacking, failed: None })
            }
            Err(error) => {
                let _ = let_go(actuator, guard); // the first error is the one to tell
                Err(AgentError::Actuator(error))
            }
        }
    }

    /// Tells the guard that the agent is alive; if the guard has ended, starts another.
    fn beat(&mut self) -> Result<(), AgentError> {
        let Err(error) = self.guard.beat() else { return Ok(()) };
        if error.kind() == io::ErrorKind::WouldBlock {
            return Ok(()); // it has enough beats to read
        }
        tracing::warn!(listener = "iscsi", "the guard has ended ({error}): another one is started");
        let next = (self.program)().and_then(Guard::start).map_err(AgentError::Guard)?;
        std::mem::replace(&mut self.guard, next).reap();
        Ok(())
    }

    fn look(&mut self, throttle: &mut Throttle) {
        match self.actuator.look() {
            Ok(present) => {
                for interface in self.present.interfaces.keys() {
                    if !present.interfaces.contains_key(interface) {
                        let what = if self.actuator.has_interface(interface) {
                            "somebody has taken the agent's root queue away"
                        } else {
                            "the interface is gone"
                        };
                        tracing::warn!(listener = "iscsi", "{interface}: {what}");
                    }
                }
                self.present = present;
                throttle.handle_present(&self.present);
            }
            Err(error) => self.say(&error),
        }
    }

    /// Does what leads to the wanted state. `anew`: the kernel was looked at.
    fn converge(&mut self, wanted: &Wanted, anew: bool) {
        if !anew && self.reached.as_ref() == Some(wanted) {
            return;
        }
        self.add_roots(&wanted.interfaces, anew);
        let mut possible = Cow::Borrowed(wanted);
        if !self.lacking.is_empty() {
            possible.to_mut().interfaces.retain(|interface| !self.lacking.contains_key(interface));
        }
        let commands = plan(&self.present, &possible);
        match self.actuator.apply(&commands) {
            // What has lost its root queue since the last look is said at the next one.
            Ok(_) => {
                commands.iter().for_each(|command| self.present.assume(command));
                self.reached = Some(wanted.clone());
                self.failed = None;
            }
            Err(error) => {
                // The next survey looks at what the kernel holds, and the plan goes on from there.
                self.reached = None;
                self.say(&error);
            }
        }
    }

    /// Gives interfaces their root queues, each by itself: one that cannot have its own must not keep the
    /// delays from the others. A refused one is tried again after each look at the kernel.
    fn add_roots(&mut self, wanted: &BTreeSet<String>, anew: bool) {
        let before = std::mem::take(&mut self.lacking);
        for interface in wanted {
            if self.present.interfaces.contains_key(interface) {
                continue;
            }
            if let Some(why) = before.get(interface).filter(|_| !anew) {
                self.lacking.insert(interface.clone(), why.clone());
                continue;
            }
            let command = Command::AddRoot { interface: interface.clone() };
            let why = match self.actuator.apply(std::slice::from_ref(&command)) {
                Ok(absent) if absent.is_empty() => {
                    tracing::info!(listener = "iscsi", "{interface}: it has the agent's root queue now");
                    self.present.assume(&command);
                    continue;
                }
                Ok(_) => format!("{interface}: there is no such interface"),
                Err(error) => error.to_string(),
            };
            if before.get(interface) != Some(&why) {
                tracing::warn!(listener = "iscsi", "{why}; nothing is delayed on {interface}");
            }
            self.lacking.insert(interface.clone(), why);
        }
    }

    fn say(&mut self, error: &ActuatorError) {
        let said = error.to_string();
        if self.failed.as_ref() != Some(&said) {
            tracing::error!(listener = "iscsi", "{said}");
            self.failed = Some(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_stood_still_does_not_blame_the_targets() {
        assert_eq!(why_stale(Span::from_secs(7)), "the agent stood still for 7s");
        assert_eq!(why_stale(Span::from_millis(120)), "the host's targets have not answered for 5s");
    }
}
