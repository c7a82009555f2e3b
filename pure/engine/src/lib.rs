//! One pool's state machine: its volumes, its scheduler, its sensors, its control loop and its timers.
//!
//! [`Engine`] decides everything about a request and does nothing to it: it knows no socket, no device and no
//! clock. A gateway drives it with real disks, and a simulation with simulated ones. Both get the same
//! decisions for the same [`Input`], so a recorded problem of the field is a unit test.
//!
//! # The methods
//!
//! - `handle_*`: what happened in the world. The life of a request is [`Engine::handle_submit`], the answer
//!   [`Dispatch::Issue`] of `poll_dispatch`, [`Engine::handle_complete`], [`Engine::handle_reply`]. While it
//!   is queued, [`Engine::handle_abort`] ends it. [`Engine::handle_timeout`] says that the time of
//!   `poll_timeout` has come.
//! - `poll_*`: what to do. **After every `handle_*` and `set_*`**, or a batch of them at one instant, drain
//!   in this order:
//!   1. [`Engine::poll_dispatch`] until it is not `Issue`: give each request to the device.
//!   2. [`Engine::poll_release`] until `None`, if a completion said that its reply is to be held: hand it
//!      over.
//!   3. [`Engine::poll_event`] until `None`: metrics, tables, logs. Events that a driver does not take pile
//!      up.
//!   4. [`Engine::poll_timeout`]: set the one timer. Any later call may change the answer.
//!
//!   Of a pool under [`Control::SharedPromise`], each [`Event::Stands`] goes to the other gateways of the
//!   array. What they say comes in by [`Engine::handle_standing`], put together by [`Standings`].
//! - `add_*`, `set_*`, `remove_*`: configuration, at any time, with requests queued and at the device.
//! - The rest reads the state and changes nothing.
//!
//! Each method that changes the engine makes an [`Input`]; one private method applies it. An engine of
//! [`Engine::with_recorder`] tells a [`Recorder`] of each input and of what it decided. A [`Replay`] applies
//! the recorded inputs again, and compares.
//!
//! **Time.** `now` is the first argument of each method that depends on it, and never goes back. One reading
//! of the clock may serve a whole batch. A driver may call `handle_timeout` late: what was missed runs once.
//!
//! # A driver
//!
//! This one has a device that finishes everything 100 us after it was given it:
//!
//! ```
//! use std::collections::VecDeque;
//! use weir_engine::{Dispatch, Engine, EngineConfig, Request, VolumeConfig};
//! use weir_model::{Instant, IoKind, Span};
//!
//! let (mut now, mut device) = (Instant::ORIGIN, VecDeque::new());
//! let mut engine = Engine::new(now, EngineConfig::default());
//! let volume = engine.add_volume(now, VolumeConfig::default());
//! engine.handle_submit(now, Request { volume, kind: IoKind::Read, offset: 0, length: 4096 });
//! while engine.outstanding(volume) > 0 {
//!     while let Dispatch::Issue(io) = engine.poll_dispatch(now) {
//!         device.push_back((now + Span::from_micros(100), io.id));
//!     }
//!     while let Some(event) = engine.poll_event() { /* count it */ }
//!     let completion = device.front().map(|(at, _)| *at);
//!     now = now.max(completion.into_iter().chain(engine.poll_timeout()).min().expect("one of them"));
//!     while let Some((_, id)) = device.pop_front_if(|(at, _)| *at <= now) {
//!         engine.handle_complete(now, id, true);
//!         engine.handle_reply(now, id); // once the reply is in the socket's hands
//!     }
//!     engine.handle_timeout(now);
//! }
//! ```

mod charging;
mod config;
mod engine;
mod event;
mod input;
mod loops;
mod occupancy;
mod promise_sensor;
mod recording;
mod replay;
mod requests;
mod sensors;
mod slo_window;
mod tally;
mod tick;
mod time_spent;
mod time_split;
mod usage;
mod volume;
mod writing;

pub use config::{Control, EngineConfig, Grants, LeasedConfig, MaestroConfig, PidConfig, VolumeConfig};
pub use engine::{Engine, EngineSnapshot, LoweredRates};
pub use event::{Event, GrantedBy, WindowReport, WindowTraffic};
pub use input::{Answer, Input, Outcome, Request};
pub use loops::Throttle;
pub use recording::{Entry, Recorder};
pub use replay::{Deviation, How, Replay};
pub use time_spent::{Band, Charged, Hold, TimeSpent, Whom};
pub use time_split::TimeSplit;
pub use weir_control::{
    Because, Completed, Completion, Completions, Constant, DepthFeedbackConfig, Grant, OneSidedPidConfig,
    PortObservation, Reasoning, Shortfall, Standing, Standings, Strain, TotalConcurrency,
};
pub use weir_sched::{BackgroundKnobs, Covered, Dispatch, RateGate};
