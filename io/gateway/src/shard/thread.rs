//! Starts a shard's thread and its tasks.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};
use weir_backend::{OpenError, Reactor};
use weir_clock::{Alarm, Clock};

use super::turn::renew_quotas;
use super::{Command, Shard};
use crate::loss::Estate;
use crate::spec::Limits;

/// A running shard. Its thread ends when the handle is dropped.
pub(crate) struct ShardHandle {
    /// Unbounded, but the commands in it are bounded: connections by their permits, all others by the
    /// operator.
    commands: UnboundedSender<Command>,
    thread: Option<JoinHandle<()>>,
}

/// Why a shard cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The system gave no thread, timer or runtime.
    #[error("cannot start a thread for pools: {0}")]
    System(#[from] io::Error),
    /// The system gave no io_uring.
    #[error(transparent)]
    Ring(#[from] OpenError),
}

impl ShardHandle {
    /// Starts a shard on a thread of this name; returns when the shard is ready for commands.
    pub(crate) fn start(
        name: String,
        clock: Clock,
        limits: Limits,
        budget: u64,
        estate: Estate,
    ) -> Result<Self, ShardError> {
        let (commands, received) = unbounded_channel();
        let (ready, started) = mpsc::channel();
        let set_up = move || set_up(clock, limits, budget, estate);
        let thread = Builder::new().name(name).spawn(move || run(set_up, received, &ready))?;
        match started.recv() {
            Ok(Ok(())) => Ok(Self { commands, thread: Some(thread) }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the thread ended before it was ready").into()),
        }
    }

    /// Another way to send commands; a command that is sent after the handle is dropped gets no answer.
    pub(crate) fn sender(&self) -> UnboundedSender<Command> {
        self.commands.clone()
    }

    /// Makes the handle's drop not wait for the thread.
    pub(crate) fn leave_behind(&mut self) {
        self.thread = None;
    }

    /// Sends a command. The shard carries out commands in the order of sending.
    pub(crate) fn send(&self, command: Command) {
        // A shard ends only with its handle, or by a panic, which aborts the process.
        let _ = self.commands.send(command);
    }
}

impl Drop for ShardHandle {
    fn drop(&mut self) {
        self.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    set_up: impl FnOnce() -> Result<Shard, ShardError>,
    commands: UnboundedReceiver<Command>,
    ready: &mpsc::Sender<Result<(), ShardError>>,
) {
    let runtime = match runtime::Builder::new_current_thread().enable_io().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(ready.send(Err(error.into()))),
    };
    LocalSet::new().block_on(&runtime, async {
        let shard = match set_up() {
            Ok(shard) => Rc::new(RefCell::new(shard)),
            Err(error) => return drop(ready.send(Err(error))),
        };
        let _ = ready.send(Ok(()));
        serve(shard, commands).await;
    });
}

/// Runs the tasks of a shard until it is told to stop.
async fn serve(shard: Rc<RefCell<Shard>>, commands: UnboundedReceiver<Command>) {
    let driven = Rc::clone(&shard);
    let driver = spawn_local(std::future::poll_fn(move |cx| driven.borrow_mut().poll_turn(cx)));
    let renewer = spawn_local(renew_quotas(Rc::clone(&shard)));
    carry_out(&shard, commands).await;
    driver.abort();
    renewer.abort();
}

fn set_up(clock: Clock, limits: Limits, budget: u64, estate: Estate) -> Result<Shard, ShardError> {
    Ok(Shard::new(clock, Alarm::new(clock)?, Reactor::new()?, &limits, budget, estate))
}

/// Carries out commands until it is told to stop.
async fn carry_out(shard: &Rc<RefCell<Shard>>, mut commands: UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        if matches!(command, Command::Stop) {
            return;
        }
        let connected = shard.borrow_mut().handle_command(command);
        if let Some(id) = connected {
            let shard = Rc::clone(shard);
            spawn_local(std::future::poll_fn(move |cx| shard.borrow_mut().poll_connection(cx, id)));
        }
    }
}

#[cfg(test)]
mod tests;
