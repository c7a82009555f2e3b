//! Lives a recording through once more, and compares.
//!
//! A recording comes from a file, which may be damaged or made up. What an engine would take for its driver's
//! mistake, and stop at, is therefore looked for before it is told, and is a [`Deviation`] like any other.

use std::fmt;

use thiserror::Error;
use weir_model::{Instant, IoId, Span};

use super::{Answer, Entry};
use crate::config::{Control, EngineConfig};
use crate::engine::Engine;
use crate::requests::Stage;

/// An engine that is told what another was told.
#[derive(Default, Debug)]
pub struct Replay {
    engine: Option<Engine>,
    entries: u64,
    now: Instant,
}

/// Where a recording and the engine part.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("entry {entry}, {} ns after the origin of the clock: {what}", at.as_nanos())]
pub struct Deviation {
    /// Which entry, counted from one.
    pub entry: u64,
    /// Its time.
    pub at: Instant,
    /// How they part.
    pub what: Box<How>,
}

/// How a recording and the engine part.
#[derive(Clone, PartialEq, Debug)]
pub enum How {
    /// The engine decided otherwise than recorded.
    Decided {
        /// What the recording says; `None`: nothing more.
        recorded: Option<Entry>,
        /// What the engine did now; `None`: nothing.
        replayed: Option<Entry>,
    },
    /// The entry could not happen where it stands: the recording is damaged, or was not written by an engine.
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

    /// Tells the engine what it was told then, and compares what it makes of it.
    ///
    /// # Errors
    /// If it decides otherwise, or the entry cannot be. Nothing after that means anything.
    pub fn step(&mut self, now: Instant, recorded: &Entry) -> Result<(), Deviation> {
        self.entries += 1;
        let impossible = |why| Box::new(How::Impossible { recorded: recorded.clone(), why });
        if now < self.now {
            return Err(self.deviation(impossible("time goes back")));
        }
        self.now = now;
        let outcome = match (&mut self.engine, recorded) {
            (None, Entry::Made { config, .. }) => match broken(config) {
                Some(why) => Err(impossible(why)),
                None => {
                    let engine = self.engine.insert(Engine::new(now, *config));
                    compare(recorded, Some(Entry::Made { config: *config, timeout: engine.poll_timeout() }))
                }
            },
            (None, _) => Err(impossible("it is not the making of an engine")),
            (Some(engine), Entry::Reported(_)) => compare(recorded, engine.poll_event().map(Entry::Reported)),
            (Some(engine), _) => match (engine.poll_event(), refusal(engine, recorded)) {
                (Some(event), _) => compare(recorded, Some(Entry::Reported(event))),
                (None, Some(why)) => Err(impossible(why)),
                (None, None) => compare(recorded, Some(tell(engine, now, recorded))),
            },
        };
        outcome.map_err(|how| self.deviation(how))
    }

    /// The recording is at its end: nothing is left that the engine reports beyond it. Returns the number of
    /// entries. Not to be asked of a recording that was cut off, which may lack the last events.
    ///
    /// # Errors
    /// If something is left.
    pub fn finish(mut self) -> Result<u64, Deviation> {
        match self.engine.as_mut().and_then(Engine::poll_event) {
            None => Ok(self.entries),
            Some(event) => {
                let replayed = Some(Entry::Reported(event));
                Err(self.deviation(Box::new(How::Decided { recorded: None, replayed })))
            }
        }
    }

    /// How many entries it was told.
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

/// Tells the engine what the entry says; the entry that it would write now.
fn tell(engine: &mut Engine, now: Instant, recorded: &Entry) -> Entry {
    match recorded {
        Entry::Made { .. } | Entry::Reported(_) => unreachable!("taken care of before"),
        Entry::ConfigSet { config, .. } => {
            engine.set_config(now, *config);
            Entry::ConfigSet { config: *config, timeout: engine.poll_timeout() }
        }
        Entry::VolumeAdded { config, .. } => {
            Entry::VolumeAdded { config: config.clone(), id: engine.add_volume(now, config.clone()) }
        }
        Entry::VolumeSet { id, config } => {
            engine.set_volume(now, *id, config.clone());
            recorded.clone()
        }
        Entry::VolumeRemoved { id } => {
            engine.remove_volume(now, *id);
            recorded.clone()
        }
        Entry::Granted { grants, .. } => {
            engine.handle_grants(now, grants.clone());
            Entry::Granted { grants: grants.clone(), timeout: engine.poll_timeout() }
        }
        Entry::FallbackSet { volumes } => {
            engine.set_fallback(now, volumes.clone());
            recorded.clone()
        }
        Entry::Submitted { request, .. } => {
            Entry::Submitted { request: *request, id: engine.handle_submit(now, *request) }
        }
        Entry::Dispatched(_) => Entry::Dispatched(Answer::from(engine.poll_dispatch(now))),
        Entry::Completed { id, ok } => {
            engine.handle_complete(now, *id, *ok);
            recorded.clone()
        }
        Entry::Replied { id } => {
            engine.handle_reply(now, *id);
            recorded.clone()
        }
        Entry::Aborted { id, .. } => Entry::Aborted { id: *id, gone: engine.handle_abort(now, *id) },
        Entry::TimedOut { .. } => {
            engine.handle_timeout(now);
            Entry::TimedOut { timeout: engine.poll_timeout() }
        }
    }
}

/// Why the engine must not be told this, if so.
fn refusal(engine: &mut Engine, entry: &Entry) -> Option<&'static str> {
    let mut stage = |id: IoId| engine.stage(id);
    match entry {
        Entry::Made { .. } => Some("the engine was made before"),
        Entry::ConfigSet { config, .. } => broken(config),
        Entry::Completed { id, .. } if !matches!(stage(*id), Some(Stage::AtDevice { .. })) => {
            Some("the request is not at the device")
        }
        Entry::Replied { id } if !matches!(stage(*id), Some(Stage::Done { .. })) => {
            Some("the device has not finished the request")
        }
        Entry::VolumeSet { id, .. } | Entry::VolumeRemoved { id } if !engine.has_volume(*id) => {
            Some("there is no such volume")
        }
        Entry::Submitted { request, .. } if !engine.has_volume(request.volume) => {
            Some("there is no such volume")
        }
        Entry::VolumeAdded { config, .. } if !config.port_of.is_none_or(|of| engine.has_first_port(of)) => {
            Some("there is no such volume to be a port of")
        }
        Entry::Granted { .. } | Entry::FallbackSet { .. } if !engine.is_leased() => {
            Some("the pool is not leased")
        }
        Entry::VolumeRemoved { id } if engine.outstanding(*id) > 0 => {
            Some("the volume has requests outstanding")
        }
        _ => None,
    }
}

/// What is wrong with a configuration, if anything is: the panics of [`Engine::new`].
fn broken(config: &EngineConfig) -> Option<&'static str> {
    let (period, growth) = match config.control {
        Control::None => (Span::MAX, 1.0),
        Control::Facade(law) => (law.period, law.growth),
        Control::Maestro(law) => (law.interval, 1.0),
        Control::Leased(leased) => (leased.interval, 1.0),
    };
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
