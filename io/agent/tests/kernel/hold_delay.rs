//! An agent that does one thing: it delays one connection until its standard input ends, or it is killed.
//! `hold-delay INTERFACE MILLISECONDS LOCAL PEER` says `ready` when the delay is in force. With the argument
//! `guard` it is its own guard; with `start` it starts an agent on this host, and says why that failed;
//! with `hand-over INTERFACE` it leaves a queue to its guard, as an agent does that cannot remove it.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::os::fd::AsFd;
use std::process::Command as Program;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};
use weir_agent::actuator::Actuator;
use weir_agent::agent::Agent;
use weir_agent::guard::{self, Guard};
use weir_agent::sensors::Roots;
use weir_clock::Clock;
use weir_model::Span;
use weir_throttle::{Command, Connection, LeafId, Settings};

/// The time between two turns.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The number of turns after which the connection is renewed.
const RENEW: u64 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [guard, agent] if guard == "guard" => {
            let ending = guard::run(io::stdin().as_fd(), agent.parse()?)?;
            eprintln!("guard: {ending:?}");
            Ok(())
        }
        [start] if start == "start" => start_agent(),
        [word, interface] if word == "hand-over" => hand_over(interface),
        [interface, millis, local, peer] => {
            let connection = Connection { local: local.parse()?, peer: peer.parse()? };
            hold(interface, Span::from_millis(millis.parse()?), connection)
        }
        _ => Err("usage: hold-delay INTERFACE MILLISECONDS LOCAL PEER".into()),
    }
}

fn start_agent() -> Result<(), Box<dyn Error>> {
    let settings = Settings::new(Span::from_millis(15));
    let started = Agent::start(Clock::new().now(), settings, Roots::default(), Some(guard));
    if started.is_err() {
        // A guard that has not ended with the failure takes it for a death, and kills.
        while wait(WaitOptions::empty()).is_ok() {}
    }
    Ok(started?.stop()?)
}

fn hand_over(interface: &str) -> Result<(), Box<dyn Error>> {
    let guard = Guard::start(guard()?)?;
    let mut actuator = Actuator::open()?;
    actuator.install(&BTreeSet::from([interface.to_owned()]), Span::from_millis(10))?;
    drop(actuator); // its table goes with its socket, and its queues stay
    Ok(guard.hand_over()?)
}

fn guard() -> io::Result<Program> {
    let mut program = Program::new(std::env::current_exe()?);
    program.arg("guard");
    Ok(program)
}

fn hold(interface: &str, delay: Span, connection: Connection) -> Result<(), Box<dyn Error>> {
    let (interface, leaf) = (interface.to_owned(), LeafId(1));
    let enter = [Command::Enter { leaf, connections: BTreeSet::from([connection]) }];
    let mut actuator = Actuator::open()?;
    let mut guard = Guard::start(guard()?)?;
    let held = actuator.install(&BTreeSet::from([interface.clone()]), delay).and_then(|_| {
        actuator.apply(&[Command::AddLeaf { interface, leaf, delay }, Command::Classify(true)])?;
        actuator.apply(&enter)
    });
    if let Err(error) = held {
        guard.release();
        return Err(error.to_string().into());
    }
    println!("ready");
    let stdin = io::stdin();
    for turn in 1.. {
        if poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&TURN))? > 0 {
            break;
        }
        guard.beat()?;
        if turn % RENEW == 0 {
            actuator.apply(&enter)?;
        }
    }
    actuator.remove()?;
    guard.release();
    Ok(())
}
