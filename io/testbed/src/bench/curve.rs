//! Jobs under each of several delays, by one initiator.
//!
//! The delays take turns: after one job under each of them comes the second one. If the machine is slower for
//! a while, it is so for all of them.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use weir_clock::Clock;
use weir_lab::delay::{CurveSpec, Job as Done, Measured};
use weir_model::Span;

use super::{Party, kind};
use crate::bed::{Framework, Host};
use crate::clients::Job;
use crate::fixed::FixedDelays;
use crate::gauges;
use crate::stop::Stop;

const PAUSE: Duration = Duration::from_millis(20);
/// How often the kernel is told that the delays still hold.
const RENEW: Span = Span::from_secs(1);

pub(super) fn measure(
    clock: &Clock,
    stop: &Stop,
    framework: Framework,
    parties: &[Party<'_>],
    curve: &CurveSpec,
) -> anyhow::Result<Measured> {
    let Party { spec, host } = parties.first().context("a curve has an initiator")?;
    let hosts: Vec<Host> = vec![host.clone()];
    let ceiling = curve.delays.iter().map(|delay| delay.0).max().unwrap_or_default();
    let mut fixed = FixedDelays::install(&hosts, ceiling)?;
    let (bytes, depth) = (u64::from(spec.request.0.0), spec.threads.get());
    let requests = curve.job.0.0 / bytes;
    let before = gauges::tcp(&hosts)?;
    let mut jobs = Vec::new();
    let mut renewed = clock.now();
    for _ in 0..curve.repeats {
        for delay in &curve.delays {
            fixed.set(0, delay.0)?;
            let mut job = Job::begin(host, framework, kind(spec), depth, bytes, requests)?;
            let took = loop {
                if let Some(took) = job.took()? {
                    break took;
                }
                stop.check()?;
                thread::sleep(PAUSE);
                let now = clock.now();
                if now.saturating_since(renewed) >= RENEW {
                    fixed.renew()?;
                    renewed = now;
                }
            };
            let (delay_us, took_us) = (delay.0.as_micros(), took.as_micros());
            jobs.push(Done { delay_us, bytes: requests * bytes, took_us });
        }
    }
    let tcp = gauges::tcp_since(before, &hosts)?;
    fixed.remove()?;
    Ok(Measured { initiators: vec![host.name.clone()], jobs, tcp, ..Measured::default() })
}
