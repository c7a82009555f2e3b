//! `make bench`, `make bench-qos`, `make bench-ports` and `make bench-postgres`: measure the project's
//! promises about speed, memory and guarantees.
//!
//! Every bar of a server is a ratio: the same client against two servers, in turn, in one run. A single
//! figure of one machine at one time says little about another machine. Criterion measures functions, not
//! programs that talk over sockets. So it measures only the scheduler, Maestro's law and the simulator.
//! `bench/README.md` says what is measured, and how to read the results.

mod agent;
mod bed;
mod cases;
mod certificates;
mod clients;
mod cores;
mod cpu;
mod criterion;
mod decision;
mod effort;
mod handshake;
mod hostile;
mod idle;
mod images;
mod interval;
mod machine;
mod ports;
mod postgres;
mod progress;
mod qos;
mod report;
mod servers;
mod simulator;
mod statistics;
mod status;
mod transfers;
mod versus;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, Parser, Subcommand};

use bed::TestBed;
use cases::Store;
use criterion::Benchmark;
use effort::Effort;
use progress::Progress;
use qos::instead;
use report::{Occasion, Report};

/// The measurements without a server.
const FUNCTIONS: [Benchmark; 4] =
    [decision::BENCHMARK, interval::BENCHMARK, simulator::BENCHMARK, transfers::place::BENCHMARK];

/// Measures what weir promises; see bench/README.md.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Speed and memory, against other servers
    Speed(Arguments),
    /// How well a volume is protected from a neighbour
    Qos(Arguments),
    /// Several gateways before one array, and what happens when a part of them fails; needs root
    Ports(Arguments),
    /// PostgreSQL beside a hog, in a virtual machine; needs root
    Postgres(Arguments),
}

/// How to measure.
#[derive(Args)]
struct Arguments {
    /// How often to measure each pair; medians count [default: 4, for qos 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Seconds that each measurement takes [default: 2, for qos 30]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Only the cases with this text in their name, such as file, tcp or read-4k-d32; results are not kept
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Another build of the program, such as of the commit before: compare only these two
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Measure this program instead of building one, such as the program of another commit
    #[arg(long, value_name = "PROGRAM")]
    weir: Option<PathBuf>,
    /// The directory for the served files, some GiB; they are kept for the next run [default: target/bench]
    #[arg(long)]
    dir: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().measurement {
        Measurement::Speed(arguments) => speed(&arguments),
        Measurement::Qos(arguments) => qos(&arguments),
        Measurement::Ports(arguments) => ports(&arguments),
        Measurement::Postgres(arguments) => postgres(&arguments),
    }
}

/// Speed and memory.
///
/// # Errors
/// If something that is needed is missing or fails. A missed bar is no error.
fn speed(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let effort = arguments.effort(Effort { rounds: 4, seconds: 2 });
    let is_of_builds = arguments.against.is_some();
    let all = if is_of_builds { cases::against_other_build() } else { cases::all() };
    let versus: Vec<_> = all.iter().filter(|case| arguments.wants(&case.name())).cloned().collect();
    let wants = |name: &str| !is_of_builds && arguments.wants(name);
    let (idle, agent) = (wants(idle::NAME), wants(agent::NAME));
    let functions: Vec<_> = FUNCTIONS.iter().filter(|benchmark| wants(benchmark.name)).collect();
    let attacks: Vec<_> = hostile::ATTACKS.iter().filter(|attack| wants(attack.name)).collect();
    let transfers: Vec<_> = transfers::CASES.into_iter().filter(|case| wants(&case.name())).collect();
    let alone = [idle::NAME, agent::NAME].into_iter().chain(FUNCTIONS.iter().map(|benchmark| benchmark.name));
    let alone = alone.chain(hostile::ATTACKS.iter().map(|attack| attack.name));
    let names = all.iter().map(|case| case.name()).chain(alone.map(str::to_owned));
    let names = names.chain(transfers::CASES.iter().map(|case| case.name()));
    let some = !versus.is_empty() || idle || agent || !functions.is_empty() || !attacks.is_empty();
    let some = some || !transfers.is_empty();
    ensure!(some, none_wanted(names));

    let bed =
        TestBed::prepare(arguments.dir.as_deref(), arguments.weir.as_deref(), arguments.against.as_deref())?;
    let occasion = Occasion::read(
        if is_of_builds { "builds" } else { "bench" },
        &["fio", "qemu-nbd", "nbdkit"],
        &bed,
        effort,
    )?;
    for case in versus.iter().filter(|case| case.store == Store::File) {
        servers::write_images(&bed, case.rival)?;
    }
    // The functions come first: meanwhile the disk can recover from writing the files.
    let mut rows = Vec::new();
    for benchmark in functions {
        rows.extend(benchmark.measure(&bed)?);
    }
    if agent {
        rows.extend(agent::measure(&bed)?);
    }
    let pairs: u32 = versus.iter().map(|case| case.rounds(effort.rounds)).sum();
    let others = if idle { idle::measurements(effort) } else { 0 };
    let of_attacks = hostile::measurements(effort) * u32::try_from(attacks.len())?;
    let of_transfers: u32 = transfers.iter().map(|case| case.measurements(effort)).sum();
    let mut progress = Progress::new(2 * pairs + others + of_attacks + of_transfers);
    let mut samples = Vec::new();
    for case in &versus {
        let measured = versus::measure(&bed, case, effort, &mut progress)?;
        rows.extend(measured.rows());
        samples.push(measured);
    }
    if idle {
        rows.extend(idle::measure(&bed, effort, &mut progress)?);
    }
    for attack in attacks {
        rows.extend(hostile::measure(&bed, attack, effort, &mut progress)?);
    }
    for case in transfers {
        rows.extend(case.measure(&bed, effort, &mut progress)?);
    }
    let report = Report::new(occasion, rows, serde_json::to_value(samples)?);
    print!("{}", report.to_text());
    keep(&report, &bed, arguments)
}

/// Quality of the guarantee.
///
/// # Errors
/// If something that is needed is missing or fails. A missed bar is no error.
fn qos(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.refuse_other_build()?;
    let effort = arguments.effort(Effort { rounds: 2, seconds: 30 });
    let cases: Vec<_> = qos::CASES.iter().filter(|case| arguments.wants(case.name)).collect();
    let instead: Vec<_> = instead::CASES.iter().filter(|case| arguments.wants(case.name)).collect();
    let names = qos::CASES.iter().map(|case| case.name).chain(instead::CASES.iter().map(|case| case.name));
    ensure!(!cases.is_empty() || !instead.is_empty(), none_wanted(names.map(str::to_owned)));

    let bed = TestBed::prepare(arguments.dir.as_deref(), arguments.weir.as_deref(), None)?;
    let occasion = Occasion::read("qos", &["qemu-storage-daemon"], &bed, effort)?;
    let (mut rows, mut tables, mut samples) = (Vec::new(), Vec::new(), serde_json::Map::new());
    if !cases.is_empty() {
        let outcome = qos::measure(&bed, &cases, effort)?;
        rows.extend(outcome.rows());
        tables.push(outcome.table());
        samples.insert("laws".to_owned(), serde_json::to_value(&outcome)?);
    }
    if !instead.is_empty() {
        let outcome = instead::measure(&bed, &instead, effort)?;
        rows.extend(outcome.rows());
        tables.push(outcome.table());
        samples.insert("instead".to_owned(), serde_json::to_value(&outcome)?);
    }
    let report = Report::new(occasion, rows, samples.into()).with_table(tables.join("\n\n"));
    print!("{}", report.to_text());
    keep(&report, &bed, arguments)
}

/// Several gateways before one array.
///
/// # Errors
/// If something that is needed is missing or fails. A missed bar is no error.
fn ports(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.refuse_other_build()?;
    let effort = arguments.effort(Effort { rounds: 1, seconds: 2 });
    let runs: Vec<_> = ports::RUNS.iter().filter(|(name, ..)| arguments.wants(name)).collect();
    ensure!(!runs.is_empty(), none_wanted(ports::RUNS.iter().map(|(name, ..)| (*name).to_owned())));

    let bed = TestBed::prepare(arguments.dir.as_deref(), arguments.weir.as_deref(), None)?;
    let occasion = Occasion::read("ports", &["fio"], &bed, effort)?;
    let mut progress = Progress::new(effort.rounds * runs.iter().map(|(_, steps, _)| steps).sum::<u32>());
    let mut rows = Vec::new();
    for _ in 0..effort.rounds {
        for (_, _, run) in &runs {
            rows.extend(run(&bed, &mut progress)?);
        }
    }
    let report = Report::new(occasion, rows, serde_json::Value::Null);
    print!("{}", report.to_text());
    keep(&report, &bed, arguments)
}

/// PostgreSQL beside a hog.
///
/// # Errors
/// If something that is needed is missing or fails. A missed bar is no error.
fn postgres(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.refuse_other_build()?;
    let effort = arguments.effort(Effort { rounds: 3, seconds: 60 });
    ensure!(arguments.wants("postgres"), none_wanted(["postgres".to_owned()].into_iter()));

    let bed = TestBed::prepare(arguments.dir.as_deref(), arguments.weir.as_deref(), None)?;
    let occasion = Occasion::read("postgres", &["fio", "pgbench"], &bed, effort)?;
    let outcome = postgres::measure(&bed, effort)?;
    let report = Report::new(occasion, outcome.rows(), serde_json::to_value(&outcome)?);
    print!("{}", report.to_text());
    keep(&report, &bed, arguments)
}

impl Arguments {
    fn effort(&self, default: Effort) -> Effort {
        Effort {
            rounds: self.rounds.unwrap_or(default.rounds),
            seconds: self.seconds.unwrap_or(default.seconds),
        }
    }

    /// Refuses `--against` where two builds cannot be compared.
    fn refuse_other_build(&self) -> anyhow::Result<()> {
        ensure!(self.against.is_none(), "--against: found another build; accepted: by `make bench` alone");
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|text| name.contains(text))
    }
}

/// Saves the report, if it has all figures of the program that was built for it. Anything else is no history.
fn keep(report: &Report, bed: &TestBed, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.only.is_none() && arguments.weir.is_none() {
        for path in report.save(bed.root())? {
            println!("kept in {path}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn none_wanted(names: impl Iterator<Item = String>) -> String {
    format!("--only: no case has this in its name; there are\n  {}", names.collect::<Vec<_>>().join("\n  "))
}
