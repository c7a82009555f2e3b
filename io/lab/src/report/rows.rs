//! The rows of the papers as a table in Markdown: each bounded figure as the paper has it, with its law and
//! how far from its bound, without the law, and under the law of promises.

use std::fmt::Write;

use super::Outcome;
use crate::check::{Checked, Found};
use crate::experiment::{Experiment, Variant};

/// The table.
pub(super) fn rows(outcomes: &[(&Experiment, Outcome)]) -> String {
    let mut text = "| experiment | figure | paper | must be | with the law | margin |".to_owned();
    for variant in Variant::ALL {
        push(&mut text, format_args!(" {} |", variant.shown()));
    }
    text.push_str(" verdict |\n|---|---|---|---|---|---|---|---|---|\n");
    for (experiment, outcome) in outcomes {
        match outcome {
            Outcome::Skipped { reason } => {
                push(&mut text, format_args!("| `{}` | | | | | | | | skipped: {reason} |\n", experiment.id));
            }
            Outcome::Done { checked, .. } => row(&mut text, experiment, checked),
        }
    }
    text
}

/// The verdicts of an experiment, and its figures below them.
fn row(text: &mut String, experiment: &Experiment, checked: &Checked) {
    push(text, format_args!("| `{}` | | | |", experiment.id));
    push(text, format_args!(" {} | |", checked.shown_with()));
    for variant in Variant::ALL {
        let shown = checked.found(variant).map_or_else(|| "-".to_owned(), Found::shown);
        push(text, format_args!(" {shown} |"));
    }
    push(text, format_args!(" {} |\n", checked.conclusion().shown()));
    for (number, expectation) in experiment.expect.iter().enumerate() {
        let figure = &checked.figures[number];
        if !figure.is_bounded() {
            continue;
        }
        let (says, paper, must) = (&expectation.says, &expectation.paper, expectation.shown());
        let with = figure.shown_with_verdict(&expectation.unit);
        let margin = figure.shown_margin(&expectation.unit);
        push(text, format_args!("| | {says} | {paper} | {must} | {with} | {margin} |"));
        for variant in Variant::ALL {
            let cell = checked.shown_in(variant, number, &expectation.unit);
            push(text, format_args!(" {} |", cell.as_deref().unwrap_or("-")));
        }
        text.push_str(" |\n");
    }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("memory takes it");
}
