//! The dead man's handle: a second process that removes all delays if the agent does not say in time that it
//! is alive.
//!
//! The kernel already ends the delays of an agent that was killed or hangs (see [`crate::actuator`]). The
//! guard also removes the queues, and ends an agent that hangs. It is a process of its own because a signal
//! such as SIGKILL or SIGSTOP hits all threads of the agent.
//!
//! The agent writes a byte into a pipe with each turn of its loop. The end of the pipe, or silence, makes the
//! guard kill the agent and clean up. A service manager must not kill the guard together with the agent: for
//! systemd, `KillMode=mixed` and an `ExecStopPost=` that removes what is left do both.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};

use crate::actuator::{Actuator, ActuatorError};

/// How long the agent may be silent, in all.
pub const SILENCE: Duration = Duration::from_secs(3);
/// The silence is counted in parts, each by a wait of the guard's own. On a machine that stood still or gives
/// processes no turn for seconds, the guard waits as long as the agent does, and that counts as one part.
const PARTS: u32 = 6;
/// How long the kernel may take to end a process.
const LONGEST_DEATH: Duration = Duration::from_secs(1);
/// How long a guard may take to end when it is released, and to remove what it is handed over: packets wait
/// in leaves for at most 2.5 s.
const RELEASED_WITHIN: Duration = Duration::from_secs(2);
const CLEANED_UP_WITHIN: Duration = Duration::from_secs(5);
/// How often the removal is tried, and the time in between.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// What the agent writes: that it is alive, and that nothing is left to clean up.
const BEAT: u8 = b'.';
const RELEASE: u8 = b'q';
/// What the agent writes if it cannot clean up, and still has something to say.
const HAND_OVER: u8 = b'r';

/// Why a guard has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The agent had cleaned up, and released it.
    Released,
    /// The agent could not clean up, and asked for it. All delays are removed.
    HandedOver,
    /// The agent ended without a word. All delays are removed.
    AgentEnded,
    /// The agent was silent, and was killed. All delays are removed.
    AgentSilent,
}

/// The agent's end of a guard.
pub struct Guard {
    process: Child,
    pipe: ChildStdin,
}

impl Guard {
    /// Starts a guard: a program that calls [`run`] with its standard input and its last argument, which is
    /// the number of this process. A terminal's signals to the agent do not reach it.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(mut program: Command) -> io::Result<Self> {
        program.arg(std::process::id().to_string());
        let mut process = program.stdin(Stdio::piped()).process_group(0).spawn()?;
        let pipe = process.stdin.take().ok_or(Errno::PIPE)?;
        // A guard that reads nothing must not make the agent hang.
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { process, pipe })
    }

    /// Says that the agent is alive. To be called several times a second.
    ///
    /// # Errors
    /// If the guard has ended or does not read. Then nothing guards the agent.
    pub fn beat(&mut self) -> io::Result<()> {
        self.pipe.write_all(&[BEAT])
    }

    /// Ends the guard. To be called when everything is removed. If a guard is dropped instead, it takes that
    /// for the death of the agent, and kills this process. A guard that does not end by itself within 2 s,
    /// for instance because somebody has stopped it, is killed: it has nothing left to do.
    pub fn release(mut self) {
        if self.pipe.write_all(&[RELEASE]).is_err() || self.wait(RELEASED_WITHIN).is_none() {
            self.reap();
        }
    }

    /// Has the guard remove what is left, and waits for that. To be called when the agent's own actuator is
    /// closed, which would keep the guard's out.
    ///
    /// # Errors
    /// If the guard had ended before, or has failed, or is not ready within 5 s. Then it is killed, and what
    /// was left may still be there.
    pub fn hand_over(mut self) -> io::Result<()> {
        let ended = self.pipe.write_all(&[HAND_OVER]).map(|()| self.wait(CLEANED_UP_WITHIN));
        match ended {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(Some(status)) => Err(io::Error::other(format!("the guard has failed: {status}"))),
            Ok(None) => {
                self.reap();
                let said = format!("the guard has not answered for {CLEANED_UP_WITHIN:?}, and was killed");
                Err(io::Error::new(io::ErrorKind::TimedOut, said))
            }
            Err(error) => {
                self.reap();
                Err(io::Error::new(error.kind(), format!("the guard had ended: {error}")))
            }
        }
    }

    /// Ends the process, if it has not ended yet, so that nothing of it stays. A process that is stopped
    /// can be killed, too.
    pub(crate) fn reap(mut self) {
        let _ = self.process.kill(); // it may have ended
        let _ = self.wait(LONGEST_DEATH);
    }

    /// How the process has ended, if it does within this time.
    fn wait(&mut self, within: Duration) -> Option<ExitStatus> {
        if let Ok(process) = pidfd_open(Pid::from_child(&self.process), PidfdFlags::empty()) {
            is_ready(process.as_fd(), within);
        }
        self.process.try_wait().ok().flatten()
    }
}

/// The guard itself, for the agent with this process number. It returns when all is done.
///
/// # Errors
/// If it cannot watch the agent, or cannot remove the delays.
pub fn run(heartbeat: BorrowedFd<'_>, agent: u32) -> Result<Ending, ActuatorError> {
    let agent = parent(agent);
    // Opened now, because a host in trouble may have no descriptor left later.
    let mut actuator = Actuator::open()?;
    let ending = watch(heartbeat);
    if ending == Ending::Released {
        return Ok(ending);
    }
    if let Some(agent) = agent.filter(|_| ending != Ending::HandedOver) {
        let _ = pidfd_send_signal(&agent, Signal::KILL); // it may have ended
        is_ready(agent.as_fd(), LONGEST_DEATH);
    }
    clean_up(&mut actuator)?;
    Ok(ending)
}

/// The agent; `None` if it has ended, so that this process has another parent. Nobody else's number can be
/// that of the parent, so no other process can be killed.
fn parent(agent: u32) -> Option<OwnedFd> {
    let agent = Pid::from_raw(i32::try_from(agent).ok()?)?;
    let descriptor = pidfd_open(agent, PidfdFlags::empty()).ok()?;
    (getppid() == Some(agent)).then_some(descriptor)
}

/// Listens until the agent has ended, is silent, or does without the guard.
fn watch(heartbeat: BorrowedFd<'_>) -> Ending {
    let mut silent_parts = 0;
    while silent_parts < PARTS {
        if !is_ready(heartbeat, SILENCE / PARTS) {
            silent_parts += 1;
            continue;
        }
        silent_parts = 0;
        let mut beats = [0; 64];
        match rustix::io::read(heartbeat, &mut beats) {
            Ok(0) => return Ending::AgentEnded,
            Ok(_) if beats.contains(&RELEASE) => return Ending::Released,
            Ok(_) if beats.contains(&HAND_OVER) => return Ending::HandedOver,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Ending::AgentEnded,
        }
    }
    Ending::AgentSilent
}

/// Whether a descriptor becomes readable in time. That of a process does when it ends.
fn is_ready(descriptor: BorrowedFd<'_>, within: Duration) -> bool {
    let within = Timespec::try_from(within).ok();
    loop {
        // A signal to this process says nothing about the descriptor.
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], within.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return matches!(ready, Ok(1..)),
        }
    }
}

/// Removes everything of the agent's. The kernel may still be about to close the sockets of the dead agent.
fn clean_up(actuator: &mut Actuator) -> Result<(), ActuatorError> {
    let mut result = actuator.remove();
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        thread::sleep(PAUSE);
        result = actuator.remove();
    }
    match result {
        // A new agent has begun, and has taken over what was left.
        Err(ActuatorError::OtherAgent { .. }) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rustix::process::kill_process;
    use weir_clock::Clock;
    use weir_model::Span;

    use super::*;

    /// A guard that does nothing. It adds the number of our process to its seconds.
    fn sleeping() -> Guard {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000");
        Guard::start(sleep).expect("every system has it")
    }

    fn process_of(guard: &Guard) -> PathBuf {
        format!("/proc/{}", guard.process.id()).into()
    }

    #[test]
    fn an_agent_notices_that_its_guard_has_ended() {
        let mut guard = Guard::start(Command::new("true")).expect("every system has it");
        // A child that another thread starts has the pipe, too, until it becomes another program.
        while !guard.beat().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            thread::yield_now();
        }
        let process = process_of(&guard);
        guard.reap();
        assert!(!process.exists(), "no zombie is left");
    }

    #[test]
    fn a_guard_that_does_not_read_holds_no_agent_up() {
        let mut guard = sleeping();
        let error = (0..10_000_000).find_map(|_| guard.beat().err()).expect("the pipe is full some time");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        guard.release();
    }

    #[test]
    fn a_guard_that_is_stopped_is_killed_and_what_it_was_to_remove_is_told_of() {
        for hands_over in [false, true] {
            let guard = sleeping();
            kill_process(Pid::from_child(&guard.process), Signal::STOP).expect("it is a child");
            let (process, clock) = (process_of(&guard), Clock::new());
            let begun = clock.now();
            if hands_over {
                let error = guard.hand_over().expect_err("it has removed nothing");
                assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
            } else {
                guard.release();
            }
            assert!(clock.now().since(begun) < Span::from_secs(9), "hands over: {hands_over}");
            assert!(!process.exists(), "hands over: {hands_over}");
        }
    }

    #[test]
    fn a_guard_that_fails_has_not_removed_what_is_left() {
        let mut script = Command::new("sh");
        let guard = Guard::start({
            script.args(["-c", "head -c1; exit 3"]);
            script
        });
        let error = guard.expect("every system has it").hand_over().expect_err("it has failed");
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
