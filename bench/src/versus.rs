//! weir against a rival under one load, in turn: A B B A A B, and so on.
//!
//! Both servers run all the time, because an idle server costs nothing. The two measurements of a round are
//! next to each other, because a shared machine drifts. The order changes from round to round, so that a
//! drift within the rounds favours neither. An even number of rounds is fairest.
//!
//! Two builds are started anew for every other round, in turn. Where the kernel puts the pages of a process
//! makes it faster or slower by some percent for as long as it runs, and a few percent decide there.

use serde::Serialize;

use super::bed::TestBed;
use super::cases::{Bars, Case, Rival, Store};
use super::clients::{self, Sample};
use super::effort::Effort;
use super::progress::Progress;
use super::report::{Bar, Figure, Row, Unit};
use super::servers::{MEMORY_MIB, Server};
use super::statistics::median;

/// A case and the results of its rounds.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    name: String,
    case: Case,
    rounds: Vec<Round>,
}

/// Two measurements, one right after the other.
#[derive(Clone, Copy, Debug, Serialize)]
struct Round {
    weir: Sample,
    other: Sample,
}

/// The two servers of a case.
#[derive(Debug)]
struct Pair {
    weir: Server,
    rival: Server,
}

/// Measures `case`.
///
/// # Errors
/// If a server or a client fails.
pub(super) fn measure(
    bed: &TestBed,
    case: &Case,
    effort: Effort,
    progress: &mut Progress,
) -> anyhow::Result<Measured> {
    let mut pair = Pair::start(bed, case, true)?;
    let name = case.name();
    let sample = |server: &Server| clients::measure(bed, server, case.load, effort.seconds);
    let total = case.rounds(effort.rounds);
    let mut rounds = Vec::new();
    for number in 1..=total {
        if case.rival == Rival::OtherBuild && number > 1 && number % 2 == 1 {
            drop(pair);
            pair = Pair::start(bed, case, number % 4 == 1)?;
        }
        let round = if number % 2 == 1 {
            let weir = sample(&pair.weir)?;
            Round { weir, other: sample(&pair.rival)? }
        } else {
            let other = sample(&pair.rival)?;
            Round { weir: sample(&pair.weir)?, other }
        };
        let Round { weir, other } = round;
        let rival = case.rival;
        let rates = format!("weir {:.0} IO/s, {rival} {:.0} IO/s", weir.iops, other.iops);
        progress.advance(2, &format!("{name}, round {number} of {total}: {rates}"));
        rounds.push(round);
    }
    Ok(Measured { name, case: case.clone(), rounds })
}

impl Pair {
    /// Starts both, and fills their memory in the same order.
    fn start(bed: &TestBed, case: &Case, weir_first: bool) -> anyhow::Result<Self> {
        let ready = |server: anyhow::Result<Server>| {
            let server = server?;
            if case.store == Store::Memory {
                clients::fill(bed, &server, MEMORY_MIB)?;
            }
            anyhow::Ok(server)
        };
        let weir = || ready(Server::weir(bed, case.store, case.transport));
        let rival = || ready(Server::rival(bed, case.rival, case.store, case.transport));
        if weir_first {
            let weir = weir()?;
            Ok(Self { weir, rival: rival()? })
        } else {
            let rival = rival()?;
            Ok(Self { weir: weir()?, rival })
        }
    }
}

impl Measured {
    /// The figures, each with its bar if it has one.
    pub(super) fn rows(&self) -> Vec<Row> {
        let Bars { rate, cpu, extra_cpu_us, p50 } = self.case.bars;
        let rates = self.row("rate", Unit::Iops, |sample| sample.iops, (ratio, Unit::Ratio), rate);
        let cpu_us = |sample: Sample| sample.cpu_us;
        let cpus = match extra_cpu_us {
            Some(_) => {
                self.row("CPU per request", Unit::Micros, cpu_us, (difference, Unit::Micros), extra_cpu_us)
            }
            None => self.row("CPU per request", Unit::Micros, cpu_us, (ratio, Unit::Ratio), cpu),
        };
        let mut rows = vec![rates, cpus];
        if self.case.load.depth == 1 {
            let p50_us = |sample: Sample| sample.p50_us;
            rows.push(self.row("p50 latency", Unit::Micros, p50_us, (ratio, Unit::Ratio), p50));
        }
        rows
    }

    fn row(
        &self,
        what: &str,
        unit: Unit,
        figure: fn(Sample) -> f64,
        (compare, compared_unit): (fn(f64, f64) -> f64, Unit),
        bar: Option<Bar>,
    ) -> Row {
        let over_rounds =
            |of: &dyn Fn(&Round) -> f64, unit| Figure { value: median(self.rounds.iter().map(of)), unit };
        let compared = |round: &Round| compare(figure(round.weir), figure(round.other));
        Row {
            case: self.name.clone(),
            what: what.to_owned(),
            weir: over_rounds(&|round| figure(round.weir), unit),
            other: Some(over_rounds(&|round| figure(round.other), unit)),
            compared: Some(over_rounds(&compared, compared_unit)),
            bar,
        }
    }
}

fn ratio(weir: f64, other: f64) -> f64 {
    weir / other
}

fn difference(weir: f64, other: f64) -> f64 {
    weir - other
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    fn measured(case: &str, rounds: &[(f64, f64)]) -> Measured {
        let case = cases::all().into_iter().find(|found| found.name() == case).unwrap();
        let sample = |value| Sample { iops: value, p50_us: value, cpu_us: value };
        let round = |(weir, other): &(f64, f64)| Round { weir: sample(*weir), other: sample(*other) };
        Measured { name: case.name(), case, rounds: rounds.iter().map(round).collect() }
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_the_medians() {
        // Ratios 2, 3 and 0.5; medians 30 and 20.
        let rows =
            measured("file-read-4k-d32-unix-qemu-nbd", &[(20.0, 10.0), (60.0, 20.0), (30.0, 60.0)]).rows();
        let compared = |row: &Row| row.compared.map(|figure| (figure.value * 1e3).round());
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].weir.value.round(), compared(&rows[0])), (30.0, Some(2_000.0)));
        assert_eq!(rows[0].met(), Some(true));
        assert_eq!(rows[1].met(), Some(false), "the CPU must not be twice the other's");
    }

    #[test]
    fn only_depth_one_shows_latency_and_only_control_shows_a_difference_of_cpu() {
        assert_eq!(measured("file-write-4k-d1-tcp-qemu-nbd", &[(1.0, 1.0)]).rows().len(), 3);
        let control = measured("file-read-4k-d32-unix-without-control", &[(5.0, 4.5)]).rows();
        assert_eq!(control[1].compared, Some(Figure { value: 0.5, unit: Unit::Micros }));
    }
}
