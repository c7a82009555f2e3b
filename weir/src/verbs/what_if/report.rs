//! The output of `weir whatif`: a row for each traced volume, without the proposal and with it.

use std::fmt;

use comfy_table::presets;
use serde::Serialize;
use weir_lab::what_if::Answer;
use weir_table::latency;

use super::Judged;
use crate::terminal;

const HEADER: [&str; 8] =
    ["volume", "", "offered IO/s", "mean", "p95", "SLO met", "out of contract", "answer"];

/// A volume, today and as proposed. A side without the volume is left out.
#[derive(Serialize, Debug)]
pub(super) struct Row {
    volume: String,
    without: Option<Side>,
    with: Option<Side>,
}

/// A volume in one of the two configurations.
#[derive(Serialize, Debug)]
struct Side {
    offered_iops: f64,
    mean_us: f64,
    p95_us: f64,
    windows_met: u64,
    windows_missed: u64,
    windows_out_of_contract: u64,
    /// The share of the windows with a promise in which the promise was kept.
    slo_attainment: Option<f64>,
    unanswered: u64,
    /// `holds`, `fails` or `no_promise`.
    answer: &'static str,
    /// What stands in the way of a promise that fails.
    binding: Option<String>,
}

/// All rows, as a table.
pub(super) struct Rows<'a>(pub(super) &'a [Row]);

impl Row {
    pub(super) fn new(volume: &str, without: Option<&Judged>, with: Option<&Judged>) -> Self {
        Self { volume: volume.to_owned(), without: without.map(Side::new), with: with.map(Side::new) }
    }

    /// Whether the volume's promise would not be kept.
    pub(super) fn fails(&self) -> bool {
        self.with.as_ref().is_some_and(|side| side.answer == "fails")
    }
}

impl Side {
    #[allow(clippy::cast_precision_loss)] // exact up to 2^53 ns
    fn new(Judged { outcome, answer, array }: &Judged) -> Self {
        let both = outcome.both_ns();
        let (answer, binding) = match answer {
            Answer::Holds => ("holds", None),
            Answer::Fails(binding) => ("fails", Some(binding.words(array))),
            Answer::NoPromise => ("no_promise", None),
        };
        Self {
            offered_iops: outcome.offered_iops(),
            mean_us: both.mean() / 1e3,
            p95_us: both.value_at_quantile(0.95) as f64 / 1e3,
            windows_met: outcome.windows.met,
            windows_missed: outcome.windows.missed,
            windows_out_of_contract: outcome.windows.out_of_contract,
            slo_attainment: outcome.windows.attainment(),
            unanswered: outcome.unanswered,
            answer,
            binding,
        }
    }

    fn cells(&self, volume: &str, when: &str) -> [String; HEADER.len()] {
        let judged = self.windows_met + self.windows_missed;
        let met = self.slo_attainment.map(|share| format!("{:.2} % of {judged}", share * 100.0));
        let unanswered = match self.unanswered {
            0 => String::new(),
            count => format!("; {count} not answered"),
        };
        let answer = match (self.answer, &self.binding) {
            ("holds", _) => "holds".to_owned(),
            (_, Some(binding)) => format!("does not hold: {binding}"),
            _ => "nothing to hold".to_owned(),
        };
        [
            volume.to_owned(),
            when.to_owned(),
            format!("{:.1}", self.offered_iops),
            latency(self.mean_us),
            latency(self.p95_us),
            met.unwrap_or_else(|| "-".to_owned()),
            self.windows_out_of_contract.to_string(),
            answer + &unanswered,
        ]
    }
}

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.0.iter().flat_map(|row| {
            let sides = [(&row.without, "today"), (&row.with, "proposed")];
            sides.into_iter().filter_map(|(side, when)| Some(side.as_ref()?.cells(&row.volume, when)))
        });
        let is_text = |column| column < 2 || column == HEADER.len() - 1;
        let (style, width) = (presets::UTF8_HORIZONTAL_ONLY, terminal::width());
        f.write_str(&weir_table::table(style, &HEADER, rows, is_text, &[6, 2, 3], width))
    }
}
