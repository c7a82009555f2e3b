//! Ablations as tables in Markdown.

use std::fmt::Write;

use weir_engine::{Completion, Constant};

use super::{Ablation, Change, Form, PERCENT};
use crate::check::CheckedFigure;
use crate::experiment::{Expectation, Experiment};
use crate::float::{number, quantity};

/// A table of all completions with the rows that each changes, and a section for each experiment with the
/// figures.
pub fn table(all: &[(&Experiment, Ablation)]) -> String {
    let mut text = "# What each completion of a law buys\n\n".to_owned();
    text.push_str(
        "| completion | without it, the complete law changes | with it, the literal law changes |\n",
    );
    text.push_str("|---|---|---|\n");
    for one in Completion::ALL {
        let forms = [(Form::Complete, Form::But(one)), (Form::Literal, Form::With(one))];
        summary(&mut text, one.name(), forms, all);
    }
    text.push_str("\n| constant | a quarter less changes | a quarter more changes |\n|---|---|---|\n");
    for constant in Constant::ALL {
        let forms = PERCENT.map(|percent| (Form::Complete, Form::Scaled(constant, percent)));
        summary(&mut text, constant.name(), forms, all);
    }
    for (experiment, ablation) in all {
        section(&mut text, experiment, ablation);
    }
    text
}

/// A line: the rows that change from the first form of each pair to the second. None if none was run.
fn summary(text: &mut String, name: &str, forms: [(Form, Form); 2], all: &[(&Experiment, Ablation)]) {
    let is_there = |(_, ablation): &&(&Experiment, Ablation)| {
        forms.iter().all(|(_, to)| ablation.forms.contains_key(&to.name()))
    };
    let there: Vec<_> = all.iter().filter(is_there).collect();
    if there.is_empty() {
        return;
    }
    let cells = forms.map(|(from, to)| {
        let row = |(experiment, ablation): &&(&Experiment, Ablation)| {
            summed_up(&experiment.id, &ablation.changes(from, to))
        };
        let rows: Vec<String> = there.iter().filter_map(row).collect();
        if rows.is_empty() { "nothing".to_owned() } else { rows.join(", ") }
    });
    push(text, format_args!("| `{name}` | {} | {} |\n", cells[0], cells[1]));
}

/// A row of a completion, such as `facade-slo (2 figures, 1 breaks)`.
fn summed_up(id: &str, changes: &[Change]) -> Option<String> {
    let turning = |to: bool| changes.iter().filter(|change| change.turns() && change.holds[1] == to).count();
    let figures = match changes.len() {
        0 => return None,
        1 => "1 figure".to_owned(),
        many => format!("{many} figures"),
    };
    let part = |count: usize, what: &str| {
        if count > 0 { format!(", **{count} {what}**") } else { String::new() }
    };
    Some(format!("{id} ({figures}{}{})", part(turning(false), "breaks"), part(turning(true), "holds then")))
}

fn section(text: &mut String, experiment: &Experiment, ablation: &Ablation) {
    let seeds: Vec<_> = ablation.seeds.iter().map(u64::to_string).collect();
    push(text, format_args!("\n## {}\n\nSeeds: {}.\n\n", experiment.id, seeds.join(", ")));
    text.push_str("| figure | must be | complete | noise | literal | noise |\n|---|---|---|---|---|---|\n");
    let (complete, literal) = (ablation.figures(Form::Complete), ablation.figures(Form::Literal));
    for (expectation, (complete, literal)) in experiment.expect.iter().zip(complete.iter().zip(literal)) {
        if complete.is_bounded() {
            let [a, b] = [complete, literal]
                .map(|figure| format!("{} | {}", value(figure, expectation), noise(figure, expectation)));
            let (name, bound) = (&expectation.figure, expectation.shown());
            push(text, format_args!("| {name} | {bound} | {a} | {b} |\n"));
        }
    }
    let completions = super::completions(experiment).into_iter().map(|one| (one.name(), ablation.of(one)));
    let completions = lines(experiment, completions);
    if !completions.is_empty() {
        text.push_str(
            "\n| completion | figure | complete without it | literal with it |\n|---|---|---|---|\n",
        );
        text.push_str(&completions);
    }
    let constants = Constant::ALL.into_iter().map(|constant| {
        let changes = |percent| ablation.changes(Form::Complete, Form::Scaled(constant, percent));
        (constant.name(), PERCENT.map(changes))
    });
    let constants = lines(experiment, constants);
    if !constants.is_empty() {
        text.push_str("\n| constant | figure | a quarter less | a quarter more |\n|---|---|---|---|\n");
        text.push_str(&constants);
    }
}

/// A line for each figure that changes, with both changes.
fn lines(experiment: &Experiment, all: impl Iterator<Item = (&'static str, [Vec<Change>; 2])>) -> String {
    let mut text = String::new();
    for (name, changes) in all {
        for expectation in &experiment.expect {
            let cells = changes.each_ref().map(|changes| {
                let change = changes.iter().find(|change| change.figure == expectation.figure);
                change.map(|change| shown(change, &expectation.unit))
            });
            if cells.iter().any(Option::is_some) {
                let [one, other] = cells.map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
                push(&mut text, format_args!("| `{name}` | {} | {one} | {other} |\n", expectation.figure));
            }
        }
    }
    text
}

/// The mean of a figure, in bold if its bound breaks.
fn value(figure: &CheckedFigure, expectation: &Expectation) -> String {
    let shown = figure.mean().map_or_else(|| "none".to_owned(), |mean| quantity(mean, &expectation.unit));
    if figure.fails.is_empty() && figure.unshown.is_empty() { shown } else { format!("**{shown}**") }
}

fn noise(figure: &CheckedFigure, expectation: &Expectation) -> String {
    figure
        .range()
        .map_or_else(|| "none".to_owned(), |(least, most)| quantity(most - least, &expectation.unit))
}

/// A change, such as `95.1 -> 40 %, **breaks**`.
fn shown(change: &Change, unit: &str) -> String {
    let one = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), number);
    let cell = format!("{} -> {} {unit}", one(change.from), one(change.to)).trim_end().to_owned();
    match (change.turns(), change.holds[1]) {
        (false, _) => cell,
        (true, false) => format!("{cell}, **breaks**"),
        (true, true) => format!("{cell}, **holds then**"),
    }
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("memory takes it");
}
