//! The margins of experiments as tables in Markdown.

use std::fmt::Write;

use super::{Margins, Refused, Spread, spreads};
use crate::experiment::{Expectation, Experiment};
use crate::float::{number, quantity};

/// A section for each experiment: its bounds with their margins, and below them the numbers that were varied.
pub fn table(all: &[(&Experiment, Margins)]) -> String {
    let mut text = "# The claims with each number of their set-up varied\n".to_owned();
    for (experiment, margins) in all {
        let seeds: Vec<_> = margins.seeds.iter().map(u64::to_string).collect();
        push(&mut text, format_args!("\n## {}\n\nSeeds: {}.\n\n", experiment.id, seeds.join(", ")));
        text.push_str(
            "| figure | must be | as it is | margin | with a number varied | hangs most on | breaks with |\n",
        );
        text.push_str("|---|---|---|---|---|---|---|\n");
        for spread in spreads(margins) {
            row(&mut text, experiment, &spread);
        }
        let numbers = margins.numbers();
        let listed = |(place, (name, value)): (usize, &(&str, &str))| format!("{place}. `{name}` = {value}");
        let numbers: Vec<_> = (1..).zip(&numbers).map(listed).collect();
        push(&mut text, format_args!("\nVaried: {}.\n", numbers.join("; ")));
        if !margins.refused.is_empty() {
            let refused: Vec<_> = margins
                .refused
                .iter()
                .map(|Refused { number, reason }| format!("`{number}` ({reason})"))
                .collect();
            push(&mut text, format_args!("\nCannot be varied: {}.\n", refused.join("; ")));
        }
    }
    text
}

fn row(text: &mut String, experiment: &Experiment, spread: &Spread) {
    let cells = spread.cells(experiment);
    let breaks: Vec<_> = spread.breaks.iter().map(|broken| broken.shown(experiment)).collect();
    let breaks = match (spread.holds, breaks.is_empty()) {
        (false, _) => "does not hold anyway".to_owned(),
        (true, true) => "nothing".to_owned(),
        (true, false) => breaks.join("; "),
    };
    push(text, format_args!("| {} | {breaks} |\n", cells.join(" | ")));
}

impl Spread {
    /// The cells of its row: the figure, its bound, its value with the set-up as it is and its margin, its
    /// range over all variations, and the variation that moved it most.
    pub fn cells(&self, experiment: &Experiment) -> [String; 6] {
        let expectation = experiment.expect.iter().find(|expectation| expectation.figure == self.figure);
        let unit = expectation.map_or("", |expectation| expectation.unit.as_str());
        let none = || "none".to_owned();
        let shown = |value: Option<f64>| value.map_or_else(none, |value| quantity(value, unit));
        let range = self.range.map(|(from, to)| format!("{} to {}", number(from), quantity(to, unit)));
        let most = self.most.as_ref().map(|most| {
            let sign = if most.moved > 0.0 { "+" } else { "" };
            format!("{}: {sign}{}", most.variation, quantity(most.moved, unit))
        });
        [
            self.figure.clone(),
            expectation.map_or_else(String::new, Expectation::shown),
            shown(self.value),
            shown(self.margin()),
            range.unwrap_or_else(none),
            most.unwrap_or_else(|| "nothing".to_owned()),
        ]
    }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("memory takes it");
}
