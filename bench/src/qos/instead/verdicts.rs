//! From rounds to figures, bars and the table.

use std::fmt;

use super::super::super::report::{self, Bar, Figure, Row, Unit};
use super::super::super::statistics::median;
use super::super::super::status::Windows;
use super::choice::{self, Tried};
use super::qemu::kept_percent;
use super::{
    ALONE, BFQ, CAP, DEPTH, Measured, Outcome, PHASES, PROMISE, Phase, QEMU, Round, SLO_FACTOR, WITHOUT,
};

/// How far the law may be below the best static setting: in windows, in points; and in the hog's rate.
const WINDOWS_BAR: f64 = -0.5;
const HOG_BAR: f64 = 0.95;

/// The fewest windows that decide. A run with fewer says so.
const ENOUGH_WINDOWS: u64 = 300;

impl Outcome {
    /// The figures with bars: two for each case.
    pub(in super::super::super) fn rows(&self) -> Vec<Row> {
        self.cases.iter().flat_map(Measured::rows).collect()
    }

    /// Every phase.
    pub(in super::super::super) fn table(&self) -> String {
        let header = [
            "case",
            "with",
            "SLO",
            "windows",
            "met %",
            "seconds kept %",
            "p99",
            "hog IO/s",
            "of free %",
            "in force ms",
        ];
        let of_bfq = self.without_bfq.as_ref().map_or_else(String::new, |why| {
            format!("\n\nBFQ is not on this kernel, or cannot be used: {why}.")
        });
        let table = report::table(&header, self.cases.iter().flat_map(Measured::cells), 2);
        format!(
            "What a user would use instead. Windows of 200 ms, as the gateway judges them; all rounds together. \
             *Seconds kept* and the p99 are as the victim's client sees them: a second is kept within {SLO_FACTOR} \
             times its mean alone. *In force*: from `weir set` until the promise is kept. Times in us, but for \
             the last.\n\n{table}{of_bfq}"
        )
    }
}

impl Measured {
    fn rows(&self) -> Vec<Row> {
        let statics = [DEPTH, CAP].map(|setting| Tried {
            setting,
            met_percent: self.windows(setting).attainment_percent(),
            hog_iops: self.hog(setting),
        });
        let Some(best) = choice::best(&statics, -WINDOWS_BAR) else { return Vec::new() };
        let windows = self.windows(PROMISE);
        let percent = |value| Figure { value, unit: Unit::Percent };
        let met = windows.attainment_percent();
        let ratios = self.rounds.iter().map(|round| round.hog(PROMISE) / round.hog(best.setting));
        let beside = self.named(best.setting);
        let count = windows.met + windows.missed;
        let few =
            if count < ENOUGH_WINDOWS { format!(" ({count} of {ENOUGH_WINDOWS})") } else { String::new() };
        vec![
            Row {
                case: self.name.to_owned(),
                what: format!("windows met{few}, beside {beside}"),
                weir: percent(met),
                other: Some(percent(best.met_percent)),
                compared: Some(Figure { value: met - best.met_percent, unit: Unit::Points }),
                bar: Some(Bar::AtLeast(WINDOWS_BAR)),
            },
            Row {
                case: self.name.to_owned(),
                what: format!("hog's rate, beside {beside}"),
                weir: Figure { value: self.hog(PROMISE), unit: Unit::Iops },
                other: Some(Figure { value: best.hog_iops, unit: Unit::Iops }),
                compared: Some(Figure { value: median(ratios), unit: Unit::Ratio }),
                bar: Some(Bar::AtLeast(HOG_BAR)),
            },
        ]
    }

    /// A kind of setting, with its value.
    fn named(&self, setting: &str) -> String {
        match setting {
            DEPTH => format!("{DEPTH} {}", self.best.depth),
            CAP => format!("{CAP} {} IO/s", self.best.cap_iops),
            QEMU => format!("{QEMU} {} IO/s", self.best.qemu_iops),
            other => other.to_owned(),
        }
    }

    fn phases(&self, of: &str) -> impl Iterator<Item = &Phase> {
        self.rounds.iter().filter_map(move |round| round.phases.get(of))
    }

    fn windows(&self, of: &str) -> Windows {
        self.phases(of).fold(Windows::default(), |sum, phase| sum.plus(phase.gateway.windows))
    }

    fn hog(&self, of: &str) -> f64 {
        median(self.phases(of).map(Phase::hog_iops))
    }

    fn cells(&self) -> Vec<[String; 10]> {
        let with_phase = PHASES.into_iter().filter(|of| *of != BFQ || self.phases(BFQ).next().is_some());
        with_phase.map(|of| self.cells_of(of)).collect()
    }

    fn cells_of(&self, of: &'static str) -> [String; 10] {
        let number =
            |value: f64, digits| if value.is_nan() { String::new() } else { format!("{value:.digits$}") };
        let over = |value: &dyn Fn(&Round) -> f64| median(self.rounds.iter().map(value));
        let windows = if of == ALONE { Windows::default() } else { self.windows(of) };
        let count = windows.met + windows.missed;
        let change = self.rounds.iter().filter_map(|round| round.change_ms.get(of));
        let change = change.map(|ms| ms.unwrap_or(f64::INFINITY));
        #[allow(clippy::cast_precision_loss)] // an SLO is below 2^53 us
        let slo = over(&|round| round.slo_us as f64);
        [
            self.name.to_owned(),
            self.named(of),
            number(slo, 0),
            if count == 0 { String::new() } else { count.to_string() },
            number(windows.attainment_percent(), 1),
            number(over(&|round| round.kept_percent(of)), 0),
            number(over(&|round| round.phases.get(of).map_or(f64::NAN, |phase| phase.victim.p99_us)), 0),
            number(self.hog(of), 0),
            number(over(&|round| round.hog(of) * 100.0 / round.hog(WITHOUT)), 0),
            number(median(change), 0).replace("inf", "never"),
        ]
    }
}

impl Round {
    fn hog(&self, of: &str) -> f64 {
        self.phases.get(of).map_or(f64::NAN, Phase::hog_iops)
    }

    /// The seconds in which the client's mean latency was within four times its mean alone.
    fn kept_percent(&self, of: &str) -> f64 {
        let pair = self.phases.get(ALONE).zip(self.phases.get(of));
        pair.map_or(f64::NAN, |(alone, phase)| {
            kept_percent(&phase.victim_seconds, SLO_FACTOR * alone.victim.mean_us)
        })
    }
}

/// For the progress.
impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for of in PHASES.into_iter().filter(|of| *of != ALONE) {
            let Some(phase) = self.phases.get(of) else { continue };
            let met = phase.gateway.windows.attainment_percent();
            let met = if met.is_nan() { String::new() } else { format!(" {met:.0} % met,") };
            write!(f, "{of}:{met} p99 {:.0} us, hog {:.0} IO/s; ", phase.victim.p99_us, phase.hog_iops())?;
        }
        write!(f, "SLO {} us", self.slo_us)
    }
}
