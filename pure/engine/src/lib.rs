//! One pool's state machine: its volumes, its scheduler, its sensors, its control loop and its timers.
//!
//! [`Engine`] decides everything about a request but does nothing to it: it knows no socket, no device and no
//! clock. A gateway drives it with real disks, a simulation with made-up ones; both see the same decisions
//! for the same input, so that a recorded field problem is a unit test.
//!
//! # The methods
//!
//! - `handle_*`: what happened in the world. The life of a request is [`Engine::handle_submit`], an answer
//!   [`Dispatch::Issue`] of `poll_dispatch`, [`Engine::handle_complete`], [`Engine::handle_reply`];
//!   or, while it is queued, [`Engine::handle_abort`]. [`Engine::handle_timeout`] says that the time of
//!   `poll_timeout` has come.
//! - `poll_*`: what to do. **After every `handle_*` and `set_*`**, or a batch of them at one instant, drain
//!   in this order:
//!   1. [`Engine::poll_dispatch`] until it is not `Issue`: give each request to the device;
//!   2. [`Engine::poll_event`] until `None`: metrics, tables, logs. Events that nobody takes pile up;
//!   3. [`Engine::poll_timeout`]: set the one timer; its answer is good until the next call of anything.
//! - `add_*`, `set_*`, `remove_*`: configuration, at any time, with requests queued and at the device.
//! - The rest reads the state and changes nothing.
//!
//! [`Engine::with_recorder`] makes one that tells a [`Recorder`] of all of this, and [`Replay`] lives it
//! through again.
//!
//! **Time.** `now` is the first argument of everything that can depend on it, and never goes back. One
//! reading of the clock may serve a whole batch. To call `handle_timeout` late is allowed: what was missed
//! runs once.
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

mod config;
mod engine;
mod event;
mod loops;
mod occupancy;
mod recording;
mod requests;
mod sensors;
mod slo_window;
mod tick;
mod usage;
mod volume;

pub use config::{Control, EngineConfig, Grants, LeasedConfig, MaestroConfig, VolumeConfig};
pub use engine::{Engine, EngineSnapshot, Request};
pub use event::{Event, GrantedBy, WindowReport};
pub use recording::{Answer, Deviation, Entry, How, Recorder, Replay};
pub use weir_control::{DepthFeedbackConfig, Grant, PortObservation, Reasoning, TotalConcurrency};
pub use weir_sched::Dispatch;
