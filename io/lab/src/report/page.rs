//! The page as text.

use std::fmt::Write;

use super::Outcome;
use crate::check::{Checked, CheckedFigure, Conclusion, Found};
use crate::experiment::{Expectation, Experiment, Variant};
use crate::float::{number, quantity};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1120px;margin:2em auto;padding:0 1em}\
    h2{margin:2.2em 0 .2em;border-top:1px solid #ddd;padding-top:1em}table{border-collapse:collapse;margin:.8em 0}\
    th,td{text-align:left;padding:.25em .9em .25em 0;border-bottom:1px solid #e4e4e4;vertical-align:top}\
    th{font-weight:600}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
    .ok{color:#00734f;font-weight:600}.no{color:#b3261e;font-weight:600}.skip{color:#7a5b00;font-weight:600}\
    .muted{color:#666}svg{max-width:100%;height:auto}pre{background:#f6f6f6;padding:1em;overflow:auto;font-size:13px}\
    summary{cursor:pointer;color:#0060a0}";

/// The page of all experiments.
pub(super) fn page(outcomes: &[(&Experiment, Outcome)]) -> String {
    let mut body = String::new();
    overview(&mut body, outcomes);
    for (experiment, outcome) in outcomes {
        section(&mut body, experiment, outcome);
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>weir: the papers' claims</title>\
         <style>{STYLE}</style></head>\n<body>\n<h1>The papers' claims, reproduced</h1>\n{body}</body>\n</html>\n"
    )
}

fn overview(body: &mut String, outcomes: &[(&Experiment, Outcome)]) {
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|(_, outcome)| wanted(outcome)).count();
    let hold = count(|outcome| outcome.conclusion() == Some(Conclusion::Holds));
    let fail = count(|outcome| outcome.conclusion() == Some(Conclusion::Fails));
    let not_shown = count(|outcome| outcome.conclusion() == Some(Conclusion::NotShown));
    let not_reproduced = count(|outcome| outcome.conclusion() == Some(Conclusion::NotReproduced));
    let without = count(|outcome| outcome.conclusion() == Some(Conclusion::HoldsWithout));
    let fragile = count(|outcome| outcome.conclusion() == Some(Conclusion::Fragile));
    let skipped = count(|outcome| outcome.conclusion().is_none());
    push(
        body,
        format_args!(
            "<p>{hold} of {} hold, {fail} do not, {fragile} are fragile, {without} hold without their law, {not_shown} are not shown, \
             {not_reproduced} are not reproduced, {skipped} were skipped. ",
            outcomes.len()
        ),
    );
    body.push_str(
        "A claim holds if everything that must hold does with every seed. Times are simulated.</p>\n",
    );
    body.push_str("<table><tr><th>experiment</th><th>paper</th><th>claim</th><th>verdict</th></tr>\n");
    for (experiment, outcome) in outcomes {
        let (id, paper) = (escaped(&experiment.id), paper(experiment));
        let claim = escaped(&experiment.claim);
        let verdict = verdict(outcome);
        push(
            body,
            format_args!(
                "<tr><td><a href=\"#{id}\">{id}</a></td><td>{paper}</td><td>{claim}</td><td>{verdict}</td></tr>\n"
            ),
        );
    }
    body.push_str("</table>\n");
}

fn section(body: &mut String, experiment: &Experiment, outcome: &Outcome) {
    let id = escaped(&experiment.id);
    push(body, format_args!("<h2 id=\"{id}\">{id} {}</h2>\n", verdict(outcome)));
    push(body, format_args!("<p class=\"muted\">{}</p>\n", paper(experiment)));
    push(body, format_args!("<p>{}</p>\n", escaped(&experiment.claim)));
    push(body, format_args!("<p><b>Must hold:</b> {}</p>\n", escaped(&experiment.must)));
    match outcome {
        Outcome::Skipped { reason } => push(body, format_args!("<p>Skipped: {}.</p>\n", escaped(reason))),
        Outcome::Done { checked, svg, commit } => {
            table(body, experiment, checked);
            push(body, format_args!("<figure>{svg}</figure>\n"));
            let seeds: Vec<_> = checked.seeds.iter().map(u64::to_string).collect();
            let seeds = format!("The figure shows seed {}. Seeds: {}", checked.seeds[0], seeds.join(", "));
            push(body, format_args!("<p class=\"muted\">{seeds}; commit {}.</p>\n", escaped(commit)));
        }
    }
    if !experiment.deviations.is_empty() {
        body.push_str("<p>Where this is not the paper's set-up:</p><ul>\n");
        for deviation in &experiment.deviations {
            push(body, format_args!("<li>{}</li>\n", escaped(deviation)));
        }
        body.push_str("</ul>\n");
    }
    let text = escaped(&experiment.text);
    push(body, format_args!("<details><summary>The set-up</summary><pre>{text}</pre></details>\n"));
}

fn table(body: &mut String, experiment: &Experiment, checked: &Checked) {
    body.push_str("<table><tr><th>figure</th><th>the paper</th><th class=\"n\">here (median)</th>");
    body.push_str("<th class=\"n\">over all seeds</th><th>must be</th><th class=\"n\">margin</th><th></th>");
    for variant in checked.with_figures() {
        push(body, format_args!("<th class=\"n\">{}</th>", variant.shown()));
    }
    body.push_str("</tr>\n");
    for (number, (expectation, figure)) in experiment.expect.iter().zip(&checked.figures).enumerate() {
        let (class, word) = match figure {
            figure if !figure.is_bounded() => ("muted", "reported"),
            CheckedFigure { fails, unshown, .. } if fails.is_empty() && unshown.is_empty() => ("ok", "holds"),
            CheckedFigure { fails, .. } if fails.is_empty() => ("no", Conclusion::NotShown.shown()),
            CheckedFigure { not_reproduced: Some(_), .. } => ("no", Conclusion::NotReproduced.shown()),
            _ => ("no", "does not hold"),
        };
        push(
            body,
            format_args!(
                "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td>\
             <td class=\"n\">{}</td><td class=\"{class}\">{word}</td>",
                escaped(&expectation.says),
                escaped(&expectation.paper),
                escaped(&figure.shown_median(&expectation.unit)),
                escaped(&figure.shown_range(&expectation.unit)),
                escaped(&expectation.shown()),
                escaped(&figure.shown_margin(&expectation.unit)),
            ),
        );
        for variant in checked.with_figures() {
            let cell = checked.shown_in(variant, number, &expectation.unit).unwrap_or_default();
            push(body, format_args!("<td class=\"n\">{}</td>", escaped(&cell)));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table>\n");
    for variant in &checked.variants {
        push(body, format_args!("<p>{}</p>\n", escaped(&capitalised(&variant.line(experiment)))));
    }
    for expectation in &experiment.expect {
        if let Some(reason) = &expectation.not_reproduced {
            let (figure, reason) = (escaped(&expectation.says), escaped(reason));
            push(body, format_args!("<p><b>Not reproduced:</b> {figure}. {reason}</p>\n"));
        }
    }
}

fn verdict(outcome: &Outcome) -> String {
    let (class, word) = match outcome {
        Outcome::Done { checked, .. } => match checked.conclusion() {
            Conclusion::Holds => ("ok", Conclusion::Holds.shown()),
            other => ("no", other.shown()),
        },
        Outcome::Skipped { .. } => ("skip", "skipped"),
    };
    format!("<span class=\"{class}\">{word}</span>")
}

fn paper(experiment: &Experiment) -> String {
    let paper = &experiment.paper;
    escaped(&format!("{} §{}, {}", paper.name, paper.section, paper.figure))
}

impl Expectation {
    /// The bounds, in words.
    pub fn shown(&self) -> String {
        let unit = &self.unit;
        match self.bounds() {
            (None, None) => "-".to_owned(),
            (Some(least), None) => format!(">= {}", quantity(least, unit)),
            (None, Some(most)) => format!("<= {}", quantity(most, unit)),
            (Some(least), Some(most)) => format!("{} to {}", number(least), quantity(most, unit)),
        }
    }
}

impl Checked {
    /// What became of the bounds under the paper's own law.
    pub fn shown_with(&self) -> &'static str {
        match self.conclusion() {
            Conclusion::HoldsWithout => Conclusion::Holds.shown(),
            other => other.shown(),
        }
    }

    /// The variants that have figures.
    pub fn with_figures(&self) -> impl Iterator<Item = Variant> {
        let with = |variant: &Variant| matches!(self.found(*variant), Some(Found::Figures { .. }));
        Variant::ALL.into_iter().filter(with)
    }

    /// The figure of this number in a variant: its median, and whether its bounds hold. `None` if the variant
    /// has no figures.
    pub fn shown_in(&self, variant: Variant, number: usize, unit: &str) -> Option<String> {
        match self.found(variant)? {
            Found::Figures { figures, .. } => Some(figures.get(number)?.shown_with_verdict(unit)),
            Found::Impossible(_) => None,
        }
    }
}

impl CheckedFigure {
    /// The median with its unit, and whether the bounds hold, if there are any.
    pub fn shown_with_verdict(&self, unit: &str) -> String {
        let median = self.shown_median(unit);
        match self {
            _ if !self.is_bounded() => median,
            _ if self.fails.is_empty() => format!("{median}: holds"),
            _ => format!("{median}: does not hold"),
        }
    }

    /// The median with its unit.
    pub fn shown_median(&self, unit: &str) -> String {
        self.median().map_or_else(|| "none".to_owned(), |median| quantity(median, unit))
    }

    /// The range with its unit.
    pub fn shown_range(&self, unit: &str) -> String {
        let range = self.range();
        range.map_or_else(
            || "none".to_owned(),
            |(from, to)| format!("{} to {}", number(from), quantity(to, unit)),
        )
    }

    /// The margin with its unit.
    pub fn shown_margin(&self, unit: &str) -> String {
        self.margin().map_or_else(|| "-".to_owned(), |margin| quantity(margin, unit))
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn push(body: &mut String, text: std::fmt::Arguments<'_>) {
    body.write_fmt(text).expect("memory takes it");
}
