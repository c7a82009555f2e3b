//! An agent, `weir throttle`, as a process; and what it says over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use weir_lab::delay::{Members, PidSpec, Sample};
use weir_model::{Instant, Span};
use weir_status::{DelayInterval, ResourceStatus, ThrottleStatus};

use crate::bed::Host;
use crate::clients::Kind;
use crate::slow_motion::SlowMotion;

/// Where every agent tells its state unless its file says otherwise.
const ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 9811);
/// The configuration file of an agent, while it starts.
const FILE: &str = "/run/weirbed.toml";
/// What it says.
const LOG: &str = "/run/weirbed.log";
/// How long after one state the agent tells the next.
const PERIOD: Span = Span::from_millis(900);
/// How much earlier than a sample an interval may seem to end that belongs to it.
const LATE: Span = Span::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

/// An agent that runs. It is stopped as by an administrator when this goes.
#[derive(Debug)]
pub(crate) struct Guarded {
    process: Child,
}

impl Guarded {
    /// Starts the agent of a run. `kinds` says what each host does.
    pub(crate) fn of(
        weir: &Path,
        pid: &PidSpec,
        pace: SlowMotion,
        hosts: &[Host],
        kinds: impl Iterator<Item = Kind>,
    ) -> anyhow::Result<Self> {
        let (threshold, ceiling) = (pid.threshold.0, pid.ceiling.0);
        let mut text = format!(
            "[throttle]\nthreshold = \"{threshold}\"\nceiling = \"{ceiling}\"\nsetpoint_share = {:?}\n",
            pid.setpoint
        );
        text += &pace.settings();
        let (mut forced, mut exempt) = (Vec::new(), Vec::new());
        for (host, kind) in hosts.iter().zip(kinds) {
            match (pid.members, kind) {
                (Members::Found, _) => {}
                (Members::Named, Kind::Write) => forced.push(host.initiator()),
                (Members::Named, Kind::Read) | (Members::Nobody, _) => exempt.push(host.initiator()),
            }
        }
        for (key, names) in [("forced", &forced), ("exempt", &exempt)] {
            if !names.is_empty() {
                let _ = writeln!(text, "{key} = {names:?}"); // a String takes everything
            }
        }
        if pid.members == Members::Named {
            let groups: BTreeSet<_> = hosts.iter().map(Host::group_name).collect();
            for group in groups {
                let _ = writeln!(text, "[resource.{group}]\nthreshold = \"{threshold}\"");
            }
        }
        let file = Path::new(FILE);
        fs::write(file, text).context(FILE)?;
        let started = Self::start(weir, &[FILE]);
        fs::remove_file(file).context(FILE)?;
        started
    }

    /// Starts this program again as an agent, and waits until it tells its state.
    fn start(weir: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut agent = Command::new(weir);
        let process = agent.arg("throttle").args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let log = File::create(LOG).context(LOG)?;
        let process = process.stderr(log).spawn().context("weir throttle")?;
        let mut guarded = Self { process };
        guarded.wait_until("it does not tell its state", |_| true)?;
        Ok(guarded)
    }

    /// Waits until it guards a resource with this many initiators.
    pub(crate) fn wait_for(&mut self, initiators: usize) -> anyhow::Result<()> {
        self.wait_until("it does not see all initiators", |status| {
            guarded(status).is_some_and(|resource| resource.initiators.len() == initiators)
        })
    }

    fn wait_until(&mut self, otherwise: &str, holds: impl Fn(&ThrottleStatus) -> bool) -> anyhow::Result<()> {
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            if let Some(status) = self.process.try_wait()? {
                bail!("weir throttle: {status}: {}", fs::read_to_string(LOG)?.trim());
            }
            if self.status().is_ok_and(|status| holds(&status)) {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        bail!("weir throttle: {otherwise}")
    }

    /// The state, at most a second old.
    pub(crate) fn status(&self) -> anyhow::Result<ThrottleStatus> {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::from(ADDRESS), PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        let (head, body) = said.split_once("\r\n\r\n").context("the agent says no HTTP")?;
        ensure!(
            head.starts_with("HTTP/1.1 200"),
            "the agent says: {}",
            head.lines().next().unwrap_or_default()
        );
        serde_json::from_str(body).context("the agent's state")
    }

    /// Stops it, as an administrator would.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if self.process.try_wait()?.is_none() {
            kill_process(Pid::from_child(&self.process), Signal::TERM)?;
            let status = self.process.wait()?;
            ensure!(status.success(), "weir throttle: {status}");
        }
        Ok(())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            let _ = writeln!(io::stderr(), "weir: {error:#}"); // which may be gone, too
        }
    }
}

/// The resource that matters: the one that most initiators use.
fn guarded(status: &ThrottleStatus) -> Option<&ResourceStatus> {
    status.resources.iter().max_by_key(|resource| resource.initiators.len())
}

/// What an agent said of its intervals. It tells them once a second, ten at a time, and each with its age. So
/// the instant at which it told them must be known: it is asked at each sample until it says something new.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    next: Option<Instant>,
    last: Option<ThrottleStatus>,
    intervals: BTreeMap<Instant, DelayInterval>,
    members: BTreeMap<Instant, Vec<String>>,
}

impl Watch {
    /// Asks the agent if it may have something to say.
    pub(crate) fn turn(&mut self, now: Instant, agent: &Guarded) -> anyhow::Result<()> {
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        let status = agent.status()?;
        if self.last.as_ref() == Some(&status) {
            return Ok(());
        }
        if let (Some(_), Some(resource)) = (&self.last, guarded(&status)) {
            let known = self.intervals.last_key_value().map(|(at, _)| *at);
            for interval in &resource.intervals {
                let at = now - Span::from_millis(interval.age_ms);
                if known.is_none_or(|known| at > known + LATE) {
                    self.intervals.insert(at, *interval);
                }
            }
            let members = resource.initiators.iter().filter(|initiator| initiator.standing.is_member());
            self.members.insert(now, members.map(|initiator| initiator.name.clone()).collect());
            self.next = Some(now + PERIOD);
        }
        self.last = Some(status);
        Ok(())
    }

    /// Adds to a sample what the agent said of that time.
    pub(crate) fn tell(&self, at: Instant, places: &BTreeMap<String, usize>, sample: &mut Sample) {
        if let Some((_, interval)) = self.intervals.range(..=at + LATE).next_back() {
            sample.ewma_us = interval.wait_us;
            sample.threshold_us = interval.threshold_us;
            sample.delay_us = interval.delay_us;
        }
        let members = self.members.range(..=at + LATE).next_back().map(|(_, members)| members.as_slice());
        let members = members.unwrap_or_default().iter();
        sample.members = members.filter_map(|name| places.get(name).copied()).collect();
    }
}
