//! The effect of an attack on a good client of another volume in the same pool: the client's p99 with the
//! attack, as a ratio to its p99 without, in one run and against one server.
//!
//! Each round of an attack has a server of its own. The client first works alone, then beside the attack. It
//! connects anew for that, so that an attack shows that keeps new clients out. A client that fails, or does
//! not end in time, is a figure and no error: on a server without protection, that is the result.

mod attacks;
mod controller;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::bed::TestBed;
use super::clients::{Running, read_weir_load};
use super::cores::End;
use super::effort::Effort;
use super::progress::Progress;
use super::report::{Bar, Figure, Row, Unit};
use super::servers::Server;
use super::statistics::median;

/// The most that the p99 may grow.
const MOST_RATIO: Bar = Bar::AtMost(3.0);

/// What must hold before anything can be said about an attack.
const SERVED_ALONE: &str = "without an attack the client is served";

/// The time until an attack is under way.
const ONSET: Duration = Duration::from_millis(1500);

/// If a client takes this much longer than it was told to, it has got no answer to some request.
const PATIENCE: Duration = Duration::from_secs(10);

/// One volume for a good client, and three for attackers. One of these three has a low rate limit, so that
/// its requests queue.
const POOL: &str = r#"[pool.p]
[volume.good]
pool = "p"
backend = "memory"
size = "64MiB"
slo = [{ up_to = "5000iops", read = "5ms", write = "5ms" }]
[volume.other]
pool = "p"
backend = "memory"
size = "64MiB"
[volume.capped]
pool = "p"
backend = "memory"
size = "64MiB"
max_iops = "100iops"
"#;

/// An attack, by its name for `--only`.
pub(super) struct Attack {
    pub(super) name: &'static str,
    on: Victim,
}

/// The process that is attacked.
#[derive(Clone, Copy)]
enum Victim {
    /// The gateway. The attack runs until it is told to stop.
    Gateway(fn(&Front, &AtomicBool)),
    /// The controller of the gateway.
    Controller,
}

/// All of them.
pub(super) const ATTACKS: [Attack; 6] = [
    Attack { name: "hostile-unfinished-writes", on: Victim::Gateway(attacks::unfinished_writes) },
    Attack { name: "hostile-mass-close", on: Victim::Gateway(attacks::mass_close) },
    Attack { name: "hostile-silent-connections", on: Victim::Gateway(attacks::silent_connections) },
    Attack { name: "hostile-http", on: Victim::Gateway(attacks::http) },
    Attack { name: "hostile-refused-connections", on: Victim::Gateway(attacks::refused_connections) },
    Attack { name: "hostile-controller", on: Victim::Controller },
];

/// The server's addresses.
struct Front {
    socket: PathBuf,
    metrics: SocketAddr,
}

/// One round: the client's p99, or `None` if the client failed.
struct Round {
    alone_us: f64,
    beside_us: Option<f64>,
    /// How often the gateway lost its controller, if the attack was on that.
    controller_lost: Option<u32>,
}

/// The number of measurements of an attack.
pub(super) fn measurements(effort: Effort) -> u32 {
    2 * effort.rounds
}

/// Measures an attack.
///
/// # Errors
/// If the server does not start, or the client fails without the attack.
pub(super) fn measure(
    bed: &TestBed,
    attack: &Attack,
    effort: Effort,
    progress: &mut Progress,
) -> anyhow::Result<Vec<Row>> {
    raise_descriptors()?;
    let measure_once: Box<dyn Fn() -> anyhow::Result<Round>> = match attack.on {
        Victim::Gateway(go_on) => Box::new(move || measure_once(bed, go_on, effort.seconds)),
        Victim::Controller => {
            let attacker = controller::build_attacker()?;
            Box::new(move || controller::measure_once(bed, &attacker, effort.seconds))
        }
    };
    let mut rounds = Vec::new();
    for number in 1..=effort.rounds {
        let round = measure_once()?;
        let said = match round.beside_us {
            Some(us) => format!("p99 {us:.0} us, alone {:.0} us", round.alone_us),
            None => format!("the client failed; alone its p99 is {:.0} us", round.alone_us),
        };
        progress.advance(2, &format!("{}, round {number}: {said}", attack.name));
        rounds.push(round);
    }
    Ok(rows(attack.name, &rounds))
}

fn rows(name: &str, rounds: &[Round]) -> Vec<Row> {
    let beside = |round: &Round| round.beside_us.unwrap_or(f64::INFINITY);
    let over = |unit, of: &dyn Fn(&Round) -> f64| Figure { value: median(rounds.iter().map(of)), unit };
    let row = |what: &str, weir, bar| Row::alone(name.to_owned(), what.to_owned(), weir, bar);
    let p99 =
        row("p99 of a good client; other: without the attack", over(Unit::Micros, &beside), Some(MOST_RATIO));
    let count = |value: u32| Figure { value: value.into(), unit: Unit::Count };
    let failed = rounds.iter().map(|round| u32::from(round.beside_us.is_none())).sum();
    let mut rows = vec![
        Row {
            other: Some(over(Unit::Micros, &|round| round.alone_us)),
            compared: Some(over(Unit::Ratio, &|round| beside(round) / round.alone_us)),
            ..p99
        },
        row("runs in which a request of it failed", count(failed), Some(Bar::AtMost(0.0))),
    ];
    if let Some(lost) = rounds.iter().map(|round| round.controller_lost).sum() {
        rows.push(row("times that its gateway lost the controller", count(lost), Some(Bar::AtMost(0.0))));
    }
    rows
}

fn measure_once(bed: &TestBed, go_on: fn(&Front, &AtomicBool), seconds: u32) -> anyhow::Result<Round> {
    let server = Server::weir_with(bed, "hostile", POOL, "good")?;
    let alone_us = good_client(bed, &server, seconds)?.context(SERVED_ALONE)?;
    let front = Front {
        socket: server.socket().context("a server on a unix socket")?.to_owned(),
        metrics: server.metrics().context("weir with a status")?,
    };
    let siege = Siege::begin(front, go_on);
    thread::sleep(ONSET);
    let beside_us = good_client(bed, &server, seconds)?;
    drop(siege);
    Ok(Round { alone_us, beside_us, controller_lost: None })
}

/// The p99 of a paced client in microseconds; `None` if one of its requests fails, or is not answered in
/// time.
fn good_client(bed: &TestBed, server: &Server, seconds: u32) -> anyhow::Result<Option<f64>> {
    let mut command = bed.cores().command(End::Client, bed.weir());
    command.args(["load", &server.uri(), "--json", "--rate=500iops", "--reads=70", "--warm-up=300ms"]);
    command.arg(format!("--duration={seconds}s"));
    let output =
        Running::start(&mut command)?.finish_within(Duration::from_secs(seconds.into()) + PATIENCE)?;
    let report = output.and_then(|output| read_weir_load(&output).ok());
    Ok(report.map(|report| report.p99_us))
}

/// An attack that goes on until it is dropped.
struct Siege {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Siege {
    fn begin(front: Front, go_on: fn(&Front, &AtomicBool)) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        Self { stop, thread: Some(thread::spawn(move || go_on(&front, &stopped))) }
    }
}

impl Drop for Siege {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // an attacker that failed has shown nothing less
        }
    }
}

/// Raises the limit on descriptors as far as this process may.
fn raise_descriptors() -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("the limit on open files")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(alone_us: f64, beside_us: Option<f64>) -> Round {
        Round { alone_us, beside_us, controller_lost: None }
    }

    #[test]
    fn the_median_of_the_ratios_is_held_against_the_bar() {
        let rounds = [round(100.0, Some(150.0)), round(100.0, Some(900.0)), round(50.0, Some(100.0))];
        let rows = rows("hostile-x", &rounds);
        assert_eq!(rows[0].compared.map(|figure| figure.value), Some(2.0));
        assert_eq!((rows[0].met(), rows[1].met()), (Some(true), Some(true)));
    }

    #[test]
    fn a_client_that_failed_meets_no_bar() {
        let rows = rows("hostile-x", &[round(100.0, None)]);
        assert_eq!((rows[0].met(), rows[1].met()), (Some(false), Some(false)));
    }
    #[test]
    fn one_lost_controller_in_all_rounds_is_too_many() {
        let lost = |count| Round { controller_lost: Some(count), ..round(100.0, Some(100.0)) };
        let met = |rounds: &[Round]| rows("hostile-x", rounds)[2].met();
        assert_eq!(met(&[lost(0), lost(0), lost(0)]), Some(true));
        assert_eq!(met(&[lost(0), lost(1), lost(0)]), Some(false));
    }
}
