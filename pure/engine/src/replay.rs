//! Applies the inputs of a recording to another engine, and compares what it decides.
//!
//! A recording comes from a file, which may be damaged or made up. An engine panics at an input that its
//! driver must not give it. So the replay looks for such an input first ([`refusal`]), and reports it as a
//! [`Deviation`].

use std::fmt;

use thiserror::Error;
use weir_model::{Instant, IoId, Span};
use weir_sched::Dispatch;

use crate::config::{Control, EngineConfig};
use crate::engine::Engine;
use crate::input::Input;
use crate::recording::Entry;
use crate::requests::Stage;

/// An engine that gets the inputs of another.
#[derive(Default, Debug)]
pub struct Replay {
    engine: Option<Engine>,
    entries: u64,
    now: Instant,
}

/// Where a recording and the engine differ.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("entry {entry}, {} ns after the origin of the clock: {what}", at.as_nanos())]
pub struct Deviation {
    /// The number of the entry, counted from one.
    pub entry: u64,
    /// Its time.
    pub at: Instant,
    /// How they differ.
    pub what: Box<How>,
}

/// How a recording and the engine differ.
#[derive(Clone, PartialEq, Debug)]
pub enum How {
    /// The engine decided otherwise than recorded.
    Decided {
        /// What the recording says; `None`: nothing more.
        recorded: Option<Entry>,
        /// What the engine did now; `None`: nothing.
        replayed: Option<Entry>,
    },
    /// The entry cannot stand here: the recording is damaged, or no engine wrote it.
    Impossible {
        /// What the recording says.
        recorded: Entry,
        /// Why not.
        why: &'static str,
    },
}

impl Replay {
    /// Before the first entry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the engine what it was told then, and compares what it decides now.
    ///
    /// # Errors
    /// If the engine decides otherwise, or the entry cannot stand here. The entries after that mean nothing.
    pub fn step(&mut self, now: Instant, recorded: &Entry) -> Result<(), Deviation> {
        self.entries += 1;
        let impossible = |why| Err(Box::new(How::Impossible { recorded: recorded.clone(), why }));
        if now < self.now {
            return impossible("time goes back").map_err(|how| self.deviation(how));
        }
        self.now = now;
        let event = self.engine.as_mut().and_then(Engine::poll_event).map(Entry::Reported);
        let compared = match (&mut self.engine, recorded) {
            (None, Entry::Made { config, .. }) => match broken(config) {
                Some(why) => impossible(why),
                None => {
                    let engine = self.engine.insert(Engine::new(now, *config));
                    compare(recorded, Some(Entry::Made { config: *config, timeout: engine.poll_timeout() }))
                }
            },
            (None, _) => impossible("it is not the making of an engine"),
            (Some(_), Entry::Reported(_)) => compare(recorded, event),
            (Some(_), _) if event.is_some() => compare(recorded, event),
            (Some(_), Entry::Made { .. }) => impossible("the engine was made before"),
            (Some(engine), Entry::Applied { input, .. }) => match refusal(engine, input) {
                Some(why) => impossible(why),
                None => {
                    let outcome = engine.apply(now, input.clone(), &mut Dispatch::Idle);
                    // The recording has the replies; that they may go says only the driver anything.
                    while engine.poll_release().is_some() {}
                    compare(recorded, Some(Entry::Applied { input: input.clone(), outcome }))
                }
            },
        };
        compared.map_err(|how| self.deviation(how))
    }

    /// Ends the replay: the engine must have no event left that the recording lacks. Returns the number of
    /// entries. Do not call it for a recording that was cut off, which may lack the last events.
    ///
    /// # Errors
    /// If the engine has an event left.
    pub fn finish(mut self) -> Result<u64, Deviation> {
        match self.engine.as_mut().and_then(Engine::poll_event) {
            None => Ok(self.entries),
            Some(event) => {
                let replayed = Some(Entry::Reported(event));
                Err(self.deviation(Box::new(How::Decided { recorded: None, replayed })))
            }
        }
    }

    /// How many entries were replayed.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The time of the last entry.
    pub const fn now(&self) -> Instant {
        self.now
    }

    fn deviation(&self, what: Box<How>) -> Deviation {
        Deviation { entry: self.entries, at: self.now, what }
    }
}

fn compare(recorded: &Entry, replayed: Option<Entry>) -> Result<(), Box<How>> {
    if replayed.as_ref() == Some(recorded) {
        return Ok(());
    }
    Err(Box::new(How::Decided { recorded: Some(recorded.clone()), replayed }))
}

/// Why the engine must not get this input, if it must not.
fn refusal(engine: &mut Engine, input: &Input) -> Option<&'static str> {
    let mut stage = |id: IoId| engine.stage(id);
    match input {
        Input::SetConfig(config) => broken(config),
        Input::Complete { id, .. } if !matches!(stage(*id), Some(Stage::AtDevice { .. })) => {
            Some("the request is not at the device")
        }
        Input::Reply { id } if !matches!(stage(*id), Some(Stage::Done { .. })) => {
            Some("the device has not finished the request")
        }
        Input::SetVolume { id, .. } | Input::RemoveVolume { id } if !engine.has_volume(*id) => {
            Some("there is no such volume")
        }
        Input::Submit(request) if !engine.has_volume(request.volume) => Some("there is no such volume"),
        Input::AddVolume(config) if !config.port_of.is_none_or(|of| engine.has_first_port(of)) => {
            Some("there is no such volume to be a port of")
        }
        Input::Grants(_) | Input::SetFallback(_) if !engine.is_leased() => Some("the pool is not leased"),
        Input::RemoveVolume { id } if engine.outstanding(*id) > 0 => {
            Some("the volume has requests outstanding")
        }
        _ => None,
    }
}

/// What is wrong with a configuration, if [`Engine::new`] would panic at it.
fn broken(config: &EngineConfig) -> Option<&'static str> {
    let (period, growth) = match config.control {
        Control::None | Control::Promise | Control::SharedPromise | Control::Pid(_) => (Span::MAX, 1.0),
        Control::Facade(law) => (law.period, law.growth),
        Control::Maestro(law) => (law.interval, 1.0),
        Control::Leased(leased) => (leased.interval, 1.0),
    };
    if let Control::Pid(pid) = config.control
        && pid.law.check().is_err()
    {
        return Some("the one-sided PID cannot work with its configuration");
    }
    if config.slo_window.is_zero() || period.is_zero() {
        Some("a period or the SLO window has no length")
    } else if !(growth.is_finite() && growth > 0.0) {
        Some("the growth of the law is not above zero")
    } else {
        None
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |entry: &Option<Entry>| entry.as_ref().map_or("nothing".to_owned(), |e| format!("{e:?}"));
        match self {
            Self::Decided { recorded, replayed } => {
                write!(f, "recorded {}, decided now {}", say(recorded), say(replayed))
            }
            Self::Impossible { recorded, why } => write!(f, "recorded {recorded:?}, but {why}"),
        }
    }
}
