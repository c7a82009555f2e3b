//! Figures, bars and verdicts: as a table for people, and as JSON to compare two commits.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use serde_json::Value;

use super::bed::{TestBed, output_of};
use super::effort::Effort;
use super::machine::Machine;

/// The folder of the history, from the root of the repository.
const RESULTS: &str = "bench/results";

/// What is measured, when, and on which machine. It is read before the measurements: nobody wants to learn
/// after ten minutes that git is missing.
#[derive(Debug, Serialize)]
pub(super) struct Occasion {
    kind: &'static str,
    date: String,
    commit: String,
    /// Whether the tree had changes that are not in the commit.
    modified: bool,
    machine: Machine,
    #[serde(flatten)]
    effort: Effort,
}

/// All results of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    occasion: Occasion,
    rows: Vec<Judged>,
    /// Every single measurement.
    samples: Value,
    #[serde(skip)]
    table: Option<String>,
}

/// A figure and its verdict.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(flatten)]
    row: Row,
    /// Whether its bar is met; `None` if it has none.
    met: Option<bool>,
}

/// One figure, with the figure that it is compared with, and its bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Row {
    pub(super) case: String,
    pub(super) what: String,
    pub(super) weir: Figure,
    /// The same figure of the rival, if there is one.
    pub(super) other: Option<Figure>,
    /// Their ratio or difference: the median over the rounds.
    pub(super) compared: Option<Figure>,
    /// The bar for `compared`, or for `weir` if nothing is compared.
    pub(super) bar: Option<Bar>,
}

/// A value and its unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) value: f64,
    pub(super) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Iops,
    Micros,
    Nanos,
    Kibibytes,
    Mebibytes,
    MegabytesASecond,
    Ratio,
    /// Transactions a second.
    Tps,
    Percent,
    /// A difference of percentages.
    Points,
    Count,
}

/// A bound that a figure must reach.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    /// Whether `value` reaches the bar. A value that could not be measured does not.
    pub(super) fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
        }
    }

    /// The bar with `share` of its strictness.
    pub(super) fn eased(self, share: f64) -> Self {
        match self {
            Self::AtLeast(bar) => Self::AtLeast(bar * share),
            Self::AtMost(bar) => Self::AtMost(bar / share),
        }
    }
}

impl Row {
    /// A figure without a comparison.
    pub(super) fn alone(case: String, what: String, weir: Figure, bar: Option<Bar>) -> Self {
        Self { case, what, weir, other: None, compared: None, bar }
    }

    /// Whether the bar is met, if there is one.
    pub(super) fn met(&self) -> Option<bool> {
        self.bar.map(|bar| bar.met(self.compared.unwrap_or(self.weir).value))
    }

    fn cells(&self) -> [String; 7] {
        let unit = self.compared.unwrap_or(self.weir).unit;
        let bar = self.bar.map(|bar| match bar {
            Bar::AtLeast(value) => format!(">= {}", Figure { value, unit }),
            Bar::AtMost(value) => format!("<= {}", Figure { value, unit }),
        });
        let met = self.met().map(|met| if met { "met" } else { "MISSED" }.to_owned());
        let text = |figure: Option<Figure>| figure.map_or_else(String::new, |figure| figure.to_string());
        [
            self.case.clone(),
            self.what.clone(),
            self.weir.to_string(),
            text(self.other),
            text(self.compared),
            bar.unwrap_or_default(),
            met.unwrap_or_default(),
        ]
    }
}

impl Occasion {
    /// This occasion. `programs` are the programs besides weir that are measured or that measure.
    ///
    /// # Errors
    /// If git or the kernel does not tell, or one of the programs is missing.
    pub(super) fn read(
        kind: &'static str,
        programs: &[&str],
        bed: &TestBed,
        effort: Effort,
    ) -> anyhow::Result<Self> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.current_dir(bed.root()).args(arguments);
            output_of(&mut command, &format!("git {}", arguments.join(" ")))
        };
        Ok(Self {
            kind,
            date: output_of(Command::new("date").args(["--utc", "+%F"]), "date")?.trim().to_owned(),
            commit: git(&["rev-parse", "--short", "HEAD"])?.trim().to_owned(),
            modified: !git(&["status", "--porcelain", "--", ".", ":!bench/results"])?.is_empty(),
            machine: Machine::read(bed, programs)?,
            effort,
        })
    }
}

impl Report {
    /// The report of these rows. `samples` holds every single measurement.
    pub(super) fn new(occasion: Occasion, rows: Vec<Row>, samples: Value) -> Self {
        let judged = |row: Row| Judged { met: row.met(), row };
        Self { occasion, rows: rows.into_iter().map(judged).collect(), samples, table: None }
    }

    /// The same report, with a table before its verdicts.
    pub(super) fn with_table(self, table: String) -> Self {
        Self { table: Some(table), ..self }
    }

    /// The report for people, as Markdown.
    pub(super) fn to_text(&self) -> String {
        let Occasion { kind, date, commit, modified, machine, effort: Effort { rounds, seconds } } =
            &self.occasion;
        let modified = if *modified { ", with changes that it does not have" } else { "" };
        let mut text = format!("# {kind}, {date}, commit {commit}{modified}\n\n{machine}\n");
        let times = if *rounds == 1 { "round" } else { "rounds" };
        let _ = writeln!(
            text,
            "{rounds} {times} of {seconds} s; medians, and medians of the ratios of each round.\n"
        );
        if let Some(table) = &self.table {
            let _ = writeln!(text, "{table}\n"); // writing to a string cannot fail
        }
        let header = ["case", "what", "weir", "other", "compared", "bar", "verdict"];
        let _ = writeln!(text, "{}\n", table(&header, self.rows.iter().map(|judged| judged.row.cells()), 2));
        text.push_str(&verdict(self.rows.iter().map(|judged| &judged.row)));
        text
    }

    /// Adds the report to the history below `root`, and returns the paths from there. Existing reports stay.
    ///
    /// # Errors
    /// If the files cannot be written.
    pub(super) fn save(&self, root: &Path) -> anyhow::Result<[String; 2]> {
        let Occasion { kind, date, commit, .. } = &self.occasion;
        fs::create_dir_all(root.join(RESULTS)).context(RESULTS)?;
        let numbered = |n: u32| if n == 1 { String::new() } else { format!("-{n}") };
        let names = (1..).map(|n| format!("{RESULTS}/{date}-{commit}-{kind}{}", numbered(n)));
        let mut free = names.filter(|name| !root.join(format!("{name}.json")).exists());
        let name = free.next().context("there are more numbers than files")?;
        let write = |end: &str, content: String| {
            let path = format!("{name}.{end}");
            fs::write(root.join(&path), content).with_context(|| path.clone())?;
            anyhow::Ok(path)
        };
        let json = serde_json::to_string_pretty(self)? + "\n";
        Ok([write("json", json)?, write("md", self.to_text())?])
    }
}

/// A table in Markdown, which is also easy to read on a terminal. The first `left` columns are text.
pub(super) fn table<const N: usize>(
    header: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    left: usize,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if i < left { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.to_string()
}

fn verdict<'r>(rows: impl Iterator<Item = &'r Row>) -> String {
    let with_bars: Vec<&Row> = rows.filter(|row| row.bar.is_some()).collect();
    let missed: Vec<&Row> = with_bars.iter().copied().filter(|row| row.met() == Some(false)).collect();
    let mut text = format!("{} of {} bars met.\n", with_bars.len() - missed.len(), with_bars.len());
    for row in missed {
        let [case, what, weir, other, compared, bar, _] = row.cells();
        let found = if compared.is_empty() { weir } else { format!("{compared} ({weir}, other {other})") };
        let _ = writeln!(text, "- MISSED: {case}, {what}: {found}; bar {bar}");
    }
    text
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.unit {
            Unit::Iops => write!(f, "{value:.0} IO/s"),
            Unit::Micros => write!(f, "{value:.2} us"),
            Unit::Nanos => write!(f, "{value:.0} ns"),
            Unit::Kibibytes => write!(f, "{value:.1} KiB"),
            Unit::Mebibytes => write!(f, "{value:.1} MiB"),
            Unit::MegabytesASecond => write!(f, "{value:.0} MB/s"),
            Unit::Tps => write!(f, "{value:.1} tps"),
            Unit::Ratio => write!(f, "{value:.3} x"),
            Unit::Percent => write!(f, "{value:.1} %"),
            Unit::Points => write!(f, "{value:+.1} points"),
            Unit::Count => write!(f, "{value:.0}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(compared: f64, bar: Option<Bar>) -> Row {
        let iops = |value| Figure { value, unit: Unit::Iops };
        Row {
            case: "file-read".to_owned(),
            what: "rate".to_owned(),
            weir: iops(80_000.4),
            other: Some(iops(60_000.0)),
            compared: Some(Figure { value: compared, unit: Unit::Ratio }),
            bar,
        }
    }

    #[test]
    fn a_bar_is_met_at_its_value_and_never_by_what_is_no_number() {
        assert!(Bar::AtLeast(1.0).met(1.0) && !Bar::AtLeast(1.0).met(0.999));
        assert!(Bar::AtMost(1.0).met(1.0) && !Bar::AtMost(1.0).met(1.001));
        assert!(!Bar::AtMost(1.0).met(f64::NAN) && !Bar::AtLeast(1.0).met(f64::NAN));
    }

    #[test]
    fn what_is_compared_is_judged_before_the_figure_itself() {
        assert_eq!(row(1.2, Some(Bar::AtLeast(1.15))).met(), Some(true));
        assert_eq!(row(1.1, Some(Bar::AtLeast(1.15))).met(), Some(false));
        assert_eq!(row(1.1, None).met(), None);
        let alone = Row { compared: None, ..row(0.0, Some(Bar::AtLeast(80_000.0))) };
        assert_eq!(alone.met(), Some(true));
    }

    #[test]
    fn missed_bars_are_listed_with_their_figures() {
        let rows = [row(1.2, Some(Bar::AtLeast(1.15))), row(1.1, Some(Bar::AtLeast(1.15))), row(9.0, None)];
        let expected = "1 of 2 bars met.\n\
            - MISSED: file-read, rate: 1.100 x (80000 IO/s, other 60000 IO/s); bar >= 1.150 x\n";
        assert_eq!(verdict(rows.iter()), expected);
    }

    #[test]
    fn a_table_is_markdown() {
        let text = table(&["case", "rate"], [["a".to_owned(), "1 IO/s".to_owned()]].into_iter(), 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("|--") && lines[2].starts_with("| a "), "{text}");
    }
}
