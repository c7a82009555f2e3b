//! How well a volume is protected from its neighbour: a paced victim with an SLO, and a hog on the same
//! device.
//!
//! In each round the victim first runs alone, which shows what to promise. Then both run without control,
//! then both under each of two laws: Façade's and that of promises. The judged latency is the gateway's own,
//! from the request parsed to the reply handed to the socket. The report shows the client's view beside it.

mod configuration;
pub(super) mod instead;
mod loads;
mod phase;

use std::time::Duration;

use serde::Serialize;

use super::bed::TestBed;
use super::effort::Effort;
use super::progress::Progress;
use super::report::{self, Bar, Figure, Row, Unit};
use super::statistics::median;
use super::status::{GatewayView, Windows};
use configuration::{Control, Device, Setting};
use loads::{Hog, LARGE_WRITES, RANDOM_READS, READS, STATION_READS, Victim};
use phase::Phase;

/// The promise on a file, as a multiple of the victim's mean latency when alone.
const SLO_FACTOR: f64 = 4.0;

/// The length of a window, by default of weir too.
const WINDOW: Duration = Duration::from_secs(1);

const ALONE: &str = "alone";
const WITHOUT: &str = "without control";
const FACADE: &str = "facade";
const PROMISE: &str = "promise";

/// A neighbour, and the bars beside it.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    device: Device,
    victim: &'static Victim,
    hog: &'static Hog,
    /// The promise; `None`: [`SLO_FACTOR`] times the latency alone.
    slo_us: Option<u64>,
    /// The bar for the victim's windows that keep the promise, in percent.
    windows: Bar,
    /// The bar for the hog's rate with control, in percent of its rate without.
    hog_share: Option<Bar>,
}

/// Picks a phase of a round.
type Pick = fn(&Round) -> &Phase;

/// All of them.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "file-read-hog",
        device: Device::File,
        victim: &READS,
        hog: &RANDOM_READS,
        slo_us: None,
        windows: Bar::AtLeast(95.0),
        hog_share: Some(Bar::AtLeast(70.0)),
    },
    Case {
        name: "file-write-hog",
        device: Device::File,
        victim: &READS,
        hog: &LARGE_WRITES,
        slo_us: None,
        windows: Bar::AtLeast(95.0),
        hog_share: None,
    },
    Case {
        name: "station",
        device: Device::Station,
        victim: &STATION_READS,
        hog: &RANDOM_READS,
        slo_us: Some(12_000),
        windows: Bar::AtLeast(99.0),
        hog_share: Some(Bar::AtLeast(90.0)),
    },
];

/// The results of all cases.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    cases: Vec<Measured>,
}

/// The result of a case.
#[derive(Debug, Serialize)]
struct Measured {
    name: &'static str,
    #[serde(skip)]
    bars: (Bar, Option<Bar>),
    rounds: Vec<Round>,
}

/// The phases, one right after the other.
#[derive(Debug, Serialize)]
struct Round {
    alone: Phase,
    slo_us: u64,
    without: Phase,
    facade: Phase,
    promise: Phase,
}

/// Measures them in turn.
///
/// # Errors
/// If a server or a client fails.
pub(super) fn measure(bed: &TestBed, cases: &[&Case], effort: Effort) -> anyhow::Result<Outcome> {
    let mut measured: Vec<Measured> = cases
        .iter()
        .map(|case| Measured { name: case.name, bars: (case.windows, case.hog_share), rounds: Vec::new() })
        .collect();
    for case in cases {
        phase::write_images(bed, case.device)?;
    }
    let phases = u32::try_from(cases.len())? * 4 * effort.rounds;
    let mut progress = Progress::new(phases);
    for number in 1..=effort.rounds {
        for (case, measured) in cases.iter().zip(&mut measured) {
            let label = format!("{}, round {number} of {}", case.name, effort.rounds);
            measured.rounds.push(round(bed, case, effort.seconds, &label, &mut progress)?);
        }
    }
    Ok(Outcome { cases: measured })
}

fn round(
    bed: &TestBed,
    case: &Case,
    seconds: u32,
    label: &str,
    progress: &mut Progress,
) -> anyhow::Result<Round> {
    let Case { device, victim, hog, .. } = *case;
    let mut run = |what, control, slo_us, hog| {
        let phase =
            phase::run(bed, Setting { device, control, slo_us, victim, hog, seconds, window: WINDOW })?;
        let hog = phase.hog.map_or_else(String::new, |hog| format!(", hog {:.0} IO/s", hog.iops));
        let Windows { met, missed, .. } = phase.gateway.windows;
        let verdicts =
            if slo_us.is_some() { format!(", {met} windows met, {missed} missed") } else { String::new() };
        progress
            .advance(1, &format!("{label}, {what}: victim {:.0} us{verdicts}{hog}", phase.gateway.mean_us));
        anyhow::Ok(phase)
    };
    let alone = run(ALONE, Control::None, None, None)?;
    let slo_us = case.slo_us.unwrap_or_else(|| whole_micros(SLO_FACTOR * alone.gateway.mean_us));
    let without = run(WITHOUT, Control::None, Some(slo_us), Some(hog))?;
    let facade = run(FACADE, Control::Facade, Some(slo_us), Some(hog))?;
    let promise = run(PROMISE, Control::Promise, Some(slo_us), Some(hog))?;
    Ok(Round { alone, slo_us, without, facade, promise })
}

/// A whole number of microseconds: a configuration has no fractions.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates; NaN becomes 1, which nothing keeps
fn whole_micros(us: f64) -> u64 {
    us.round().max(1.0) as u64
}

impl Outcome {
    /// The figures that have bars.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.cases.iter().flat_map(Measured::rows).collect()
    }

    /// Every phase, from both sides.
    pub(super) fn table(&self) -> String {
        let header = [
            "case",
            "phase",
            "SLO",
            "met",
            "missed",
            "other",
            "mean",
            "p50 <=",
            "p99 <=",
            "client mean",
            "p50",
            "p99",
            "hog IO/s",
        ];
        let rows = self.cases.iter().flat_map(Measured::cells);
        let table = report::table(&header, rows, 2);
        format!(
            "The victim's windows (all rounds together), its latency as the gateway sees it (percentiles to a factor of \
             two) and as its client does, in us.\n\n{table}"
        )
    }
}

impl Measured {
    fn rows(&self) -> Vec<Row> {
        let (windows, hog_share) = self.bars;
        let percent = |value| Figure { value, unit: Unit::Percent };
        let attainment = |of: Pick| percent(self.windows(of).attainment_percent());
        let hog = |of: Pick| {
            let rates = self.rounds.iter().map(|round| of(round).hog_iops());
            Figure { value: median(rates), unit: Unit::Iops }
        };
        let row = |what: String, weir, other, compared, bar| Row {
            case: self.name.to_owned(),
            what,
            weir,
            other: Some(other),
            compared,
            bar,
        };
        let without: Pick = |round| &round.without;
        let laws: [(&str, Pick); 2] = [(FACADE, |round| &round.facade), (PROMISE, |round| &round.promise)];
        let of_law = |(law, with): (&str, Pick)| {
            let share = |round: &Round| with(round).hog_iops() * 100.0 / round.without.hog_iops();
            let share = percent(median(self.rounds.iter().map(share)));
            let met = format!("victim's windows met, {law}");
            [
                row(met, attainment(with), attainment(without), None, Some(windows)),
                row(format!("hog's rate, {law}"), hog(with), hog(without), Some(share), hog_share),
            ]
        };
        laws.into_iter().flat_map(of_law).collect()
    }

    /// The windows of all rounds together. In one round of 15 windows, a single miss would already be 7 %.
    fn windows(&self, of: Pick) -> Windows {
        self.rounds.iter().fold(Windows::default(), |sum, round| sum.plus(of(round).gateway.windows))
    }

    fn cells(&self) -> [[String; 13]; 4] {
        let phases: [(&str, Pick); 4] = [
            (ALONE, |round| &round.alone),
            (WITHOUT, |round| &round.without),
            (FACADE, |round| &round.facade),
            (PROMISE, |round| &round.promise),
        ];
        phases.map(|(label, of)| {
            let number = |value: f64| if value.is_nan() { String::new() } else { format!("{value:.0}") };
            let over = |value: &dyn Fn(&Round) -> f64| number(median(self.rounds.iter().map(value)));
            let gateway = |value: fn(GatewayView) -> f64| over(&|round| value(of(round).gateway));
            let Windows { met, missed, out_of_contract, idle } = self.windows(of);
            let promised = label != ALONE;
            let only_promised = |text: String| if promised { text } else { String::new() };
            #[allow(clippy::cast_precision_loss)] // an SLO is below 2^53 us
            let slo = over(&|round| round.slo_us as f64);
            [
                self.name.to_owned(),
                label.to_owned(),
                only_promised(slo),
                only_promised(met.to_string()),
                only_promised(missed.to_string()),
                only_promised((out_of_contract + idle).to_string()),
                gateway(|view| view.mean_us),
                gateway(|view| view.p50_us),
                gateway(|view| view.p99_us),
                over(&|round| of(round).victim.mean_us),
                over(&|round| of(round).victim.p50_us),
                over(&|round| of(round).victim.p99_us),
                over(&|round| of(round).hog_iops()),
            ]
        })
    }
}

#[cfg(test)]
mod tests;
