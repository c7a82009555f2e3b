//! The bench of a real kernel: it sets a scenario up on a [`Bed`], and samples what happens there.
//!
//! A bed is kept for the next run as long as that needs the same one.

mod curve;
mod timeline;

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::Context;
use weir_clock::Clock;
use weir_lab::delay::{Bench, Direction, InitiatorSpec, Measured, Scenario, ThrottleSpec};

use crate::bed::{Bed, Framework, Host, Shape};
use crate::clients::Kind;
use crate::needs;
use crate::scale::{SCALE, scaled};
use crate::slow_motion::SlowMotion;
use crate::stop::Stop;

/// A bench on this machine, which must be one that may be messed with.
#[derive(Debug)]
pub struct RealBench {
    framework: Framework,
    /// The program that is started as an agent.
    weir: PathBuf,
    kernel: String,
    clock: Clock,
    stop: Stop,
    bed: Mutex<Option<Bed>>,
}

/// An initiator that takes part in a run.
struct Party<'s> {
    spec: &'s InitiatorSpec,
    host: Host,
}

impl RealBench {
    /// A bench with this sort of target, whose runs end when `stop` is set. Nothing is changed yet.
    ///
    /// # Errors
    /// If this machine lacks something, or the user is not root.
    pub fn new(framework: Framework, weir: PathBuf, stop: Stop) -> anyhow::Result<Self> {
        needs::check(framework)?;
        let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
        Ok(Self { framework, weir, kernel, clock: Clock::new(), stop, bed: Mutex::new(None) })
    }

    /// Takes the bed away.
    ///
    /// # Errors
    /// If something of it is left.
    pub fn finish(self) -> anyhow::Result<()> {
        match self.bed.into_inner() {
            Ok(Some(bed)) => bed.undo(),
            _ => Ok(()),
        }
    }

    fn shape(&self, scenario: &Scenario) -> Shape {
        let hosts = (0..).zip(&scenario.initiator).map(|(number, (name, spec))| Host {
            number,
            name: name.clone(),
            group: spec.group.clone(),
            r2t: spec.r2t,
        });
        Shape { framework: self.framework, service: scenario.disk.service_time.0, hosts: hosts.collect() }
    }
}

impl Bench for RealBench {
    fn name(&self) -> String {
        let target = match self.framework {
            Framework::Lio => "LIO",
            Framework::Tgt => "tgt",
        };
        format!("Linux {}, {target}; {SCALE}", self.kernel)
    }

    fn is_real(&self) -> bool {
        true
    }

    fn measure(&self, scenario: &Scenario, run: &str, _seed: u64) -> anyhow::Result<Measured> {
        let pace = SlowMotion::of(scenario);
        let scenario = &pace.slowed(scaled(scenario));
        self.stop.check()?;
        let shape = self.shape(scenario);
        let mut place = self.bed.lock().expect("no thread panics with it");
        if place.as_ref().is_none_or(|bed| bed.shape != shape) {
            place.take().map_or(Ok(()), Bed::undo)?;
            *place = Some(Bed::make(shape).context("the test bed")?);
        }
        let bed = place.as_ref().context("it was made above")?;
        let host = |name: &str| bed.shape.hosts.iter().find(|host| host.name == name).cloned();
        let parties = scenario.initiators(run).into_iter();
        let parties: Option<Vec<_>> =
            parties.map(|(name, spec)| Some(Party { spec, host: host(name)? })).collect();
        let parties = parties.context("each initiator has a host")?;
        let spec = scenario.run.get(run).with_context(|| format!("there is no run {run}"))?;
        let measured = match &spec.throttle {
            ThrottleSpec::Curve(curve) => {
                curve::measure(&self.clock, &self.stop, self.framework, &parties, curve)
            }
            throttle => {
                let duration = spec.duration.context("a run without jobs has a duration")?.0;
                let Self { framework, weir, clock, stop, .. } = self;
                let stage = timeline::Stage { clock, stop, framework: *framework, weir, pace };
                stage.measure(&parties, throttle, duration)
            }
        };
        Ok(pace.sped_up(measured?))
    }
}

fn kind(spec: &InitiatorSpec) -> Kind {
    match spec.direction {
        Direction::Read => Kind::Read,
        Direction::Write => Kind::Write,
    }
}
