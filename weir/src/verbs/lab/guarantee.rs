//! `weir lab guarantee`: how much of a promise each law gives back, on cells that nobody chose.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use weir_lab::guarantee::{
    Cell, Gateways, Harm, Interval, Judge, Judgement, Kept, LawSummary, Loads, Matrix, OracleFile, Played,
    Spread, Worst, WorstHarm, draw, play_scenes, summarise, watch,
};
use weir_model::Span;

use super::shown_table;
use crate::answer::{Form, json};
use crate::failure::Failure;
use crate::{say, traces};

/// The seed of the cells that every version is judged by.
const FROZEN: u64 = 1;

/// Which cells to judge.
#[derive(Args, Debug)]
pub(crate) struct GuaranteeArguments {
    /// Draw the cells from this seed, instead of those that every version is judged by
    #[arg(long, value_name = "SEED")]
    fresh: Option<u64>,
    /// How many cells
    #[arg(long, default_value = "200", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cells: u32,
    /// Judge this cell alone, and print its runs. With one gateway, draw them over time
    #[arg(long, value_name = "NUMBER", conflicts_with = "cells")]
    cell: Option<u32>,
    /// Judge the law of promises over so many gateways: the promised volume is behind the first, and the
    /// other volume's clients are behind the rest
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(Gateways::MOST)))]
    gateways: u32,
    /// How long a message takes from one gateway to another
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = traces::duration)]
    apart: Span,
    /// How many cells at a time
    #[arg(long, default_value = "2")]
    jobs: NonZeroUsize,
    /// What static settings do in each cell, as found before; what is missing is found and added
    #[arg(long, value_name = "FILE", default_value = "lab-results/oracle.jsonl")]
    oracle: PathBuf,
    /// The folder of the results
    #[arg(long, default_value = "lab-results")]
    out: PathBuf,
    #[command(flatten)]
    form: Form,
}

/// What is written.
#[derive(Serialize)]
struct Written<'a> {
    seed: u64,
    /// How many gateways there were.
    gateways: u32,
    /// The recordings that were drawn from, beside the made-up loads.
    recordings: Vec<&'a str>,
    laws: &'a [LawSummary],
    scenes: &'a [Played],
    cells: &'a [Judgement],
}

impl GuaranteeArguments {
    fn gateways(&self) -> Gateways {
        match NonZeroU32::new(self.gateways) {
            Some(number) if self.gateways > 1 => Gateways { number, apart: self.apart },
            _ => Gateways::ONE,
        }
    }

    /// What the files of the results are called, without their endings.
    fn name(&self, seed: u64) -> String {
        if self.gateways > 1 {
            format!("guarantee-{seed}-gateways-{}-apart-{}us", self.gateways, self.apart.as_micros())
        } else {
            format!("guarantee-{seed}")
        }
    }
}

/// Judges the cells.
///
/// # Errors
/// If a recording cannot be read, a run breaks a rule that holds for every run, or the results cannot be
/// written.
pub(super) fn guarantee(arguments: &GuaranteeArguments) -> Result<(), Failure> {
    let matrix = Matrix::embedded();
    let loads = Loads::read(&matrix).map_err(refused)?;
    // Before the work, which takes minutes.
    let folders = [arguments.oracle.parent(), Some(arguments.out.as_path())];
    for folder in folders.into_iter().flatten() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let oracles = OracleFile::open(&arguments.oracle).map_err(refused)?;
    let gateways = arguments.gateways();
    let judge = Judge::new(&matrix, &loads, &oracles).over(gateways);
    let seed = arguments.fresh.unwrap_or(FROZEN);
    let name = arguments.name(seed);
    if let Some(number) = arguments.cell {
        let cell = draw(&matrix, &loads, seed, number);
        one(&cell, &judge.judge(&cell)?, arguments.form)?;
        if gateways != Gateways::ONE {
            return Ok(()); // what is drawn is one gateway
        }
        let path = arguments.out.join(format!("{name}-cell-{number}.svg"));
        fs::write(&path, watch(&judge, &cell)?).with_context(|| format!("writing {}", path.display()))?;
        return match arguments.form.json {
            true => Ok(()),
            false => Ok(writeln!(say::out(), "over time: {}", path.display())?),
        };
    }
    let cells: Vec<_> = (0..arguments.cells).map(|number| draw(&matrix, &loads, seed, number)).collect();
    let judged = with_progress(&judge, &cells, arguments.jobs.get())?;
    // Scenes are played behind one gateway.
    let is_one = gateways == Gateways::ONE;
    let scenes = if is_one { play_scenes(&matrix, arguments.jobs.get())? } else { Vec::new() };
    let laws = summarise(&judged);
    let recordings: Vec<&str> = loads.recorded().collect();
    let mut out = say::out();
    if !arguments.form.json {
        writeln!(out, "{}", heading(seed, &judged))?;
        writeln!(out, "recordings: {}", if recordings.is_empty() { none() } else { recordings.join(", ") })?;
        writeln!(out, "{}", table_of_laws(&laws))?;
        if is_one {
            writeln!(out, "{}", table_of_scenes(&scenes))?;
        }
    }
    let path = arguments.out.join(format!("{name}.json"));
    let written = json(&Written {
        seed,
        gateways: arguments.gateways,
        recordings,
        laws: &laws,
        scenes: &scenes,
        cells: &judged,
    })?;
    fs::write(&path, &written).with_context(|| format!("writing {}", path.display()))?;
    match arguments.form.json {
        true => Ok(writeln!(out, "{written}")?),
        false => Ok(writeln!(out, "every cell: {}", path.display())?),
    }
}

/// A file that is not what it should be.
#[allow(clippy::needless_pass_by_value)] // as map_err wants it
fn refused(error: anyhow::Error) -> Failure {
    Failure::usage(format!("{error:#}"))
}

fn with_progress(judge: &Judge<'_>, cells: &[Cell], jobs: usize) -> anyhow::Result<Vec<Judgement>> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} cells, {elapsed}, {eta} left")?;
    let bar = ProgressBar::new(cells.len() as u64).with_style(style);
    let judged = judge.judge_all(cells, jobs, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    judged
}

fn heading(seed: u64, judged: &[Judgement]) -> String {
    let at_risk = judged.iter().filter(|cell| cell.is_at_risk()).count();
    let safe = judged.iter().filter(|cell| cell.is_safe()).count();
    format!(
        "{} cells of seed {seed}: {at_risk} with a promise at risk, {safe} safe without control, {} that the volume does \
         not keep alone",
        judged.len(),
        judged.len() - at_risk - safe
    )
}

/// A row for each figure, and a column for each law.
fn table_of_laws(laws: &[LawSummary]) -> String {
    let names: Vec<_> = laws.iter().map(|law| law.law.to_string()).collect();
    let head: Vec<_> = ["figure"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut rows = Vec::new();
    let mut add = |figure: &str, of: &dyn Fn(&LawSummary) -> String| {
        rows.push([figure.to_owned()].into_iter().chain(laws.iter().map(of)).collect::<Vec<_>>());
    };
    let harm = |harm: Option<WorstHarm>| harm.map_or_else(none, shown_worst);
    add("restored, of what the oracle restores (95 %)", &|law| law.restored.map_or_else(none, shown));
    add("the same in the worst cell with 30 windows to restore", &|law| {
        law.worst_restored.map_or_else(none, |worst| shown_figure("", worst))
    });
    add("such cells with less than 0.9 x", &|law| format!("{} of {}", law.below, law.telling));
    add("cells with fewer windows kept than without control", &|law| {
        format!("{} of {}", law.worse.len(), law.cells)
    });
    add("bursts whose first second is kept, of the oracle's", &|law| {
        format!("{} of {}", law.bursts_kept, law.bursts)
    });
    add("the other volume at worst: promise safe", &|law| harm(law.others_safe));
    add("at risk, beside the mildest static setting", &|law| harm(law.others_at_risk));
    add("not kept even alone", &|law| harm(law.others_hopeless));
    add("the promised volume at worst, alone on the array", &|law| harm(law.oneself));
    shown_table(&head, rows, &[])
}

/// A row for each figure of a scene on an array.
fn table_of_scenes(scenes: &[Played]) -> String {
    let laws = scenes.iter().flat_map(|played| played.laws.keys()).collect::<BTreeSet<_>>();
    let laws: Vec<_> = laws.into_iter().map(ToString::to_string).collect();
    let head = ["scene", "array", "should be", "without"].into_iter();
    let head: Vec<_> = head.chain(laws.iter().map(String::as_str)).collect();
    let rows = scenes.iter().map(|Played { figure, array, bar, without, laws }| {
        let bar = match *bar {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (Some(least), None) => format!(">= {least}"),
            (None, Some(most)) => format!("<= {most}"),
            (None, None) => none(),
        };
        let laws = laws.values().map(|spread| spread.map_or_else(none, shown_spread));
        let head = [(*figure).to_owned(), (*array).to_owned(), bar, shown_spread(*without)];
        head.into_iter().chain(laws).collect::<Vec<_>>()
    });
    shown_table(&head, rows, &[])
}

fn shown_spread(Spread { median, low, high }: Spread) -> String {
    if low < high { format!("{median:.2} ({low:.2} to {high:.2})") } else { format!("{median:.2}") }
}

fn one(cell: &Cell, judged: &Judgement, form: Form) -> Result<(), Failure> {
    let mut out = say::out();
    if form.json {
        return Ok(writeln!(out, "{}", json(judged)?)?);
    }
    writeln!(out, "cell {}: {cell}: {}; {} s without a request", cell.number, judged.promise, judged.idle)?;
    let head = [
        "run",
        "windows kept",
        "more than without",
        "requests in time",
        "longest",
        "others (mean, p99, rate)",
        "oneself, alone",
    ];
    let mut rows = Vec::new();
    let mut add = |name: String, kept: &Kept, beside: [String; 3]| {
        let [gained, others, oneself] = beside;
        #[allow(clippy::cast_precision_loss)] // microseconds of two minutes
        let longest = format!("{:.1} ms", kept.worst_us as f64 / 1e3);
        let in_time = format!("{} of {}", kept.in_time, kept.requests);
        let met = format!("{} of {}", kept.met, kept.windows);
        rows.push([name, met, gained, in_time, longest, others, oneself]);
    };
    add("alone".to_owned(), &judged.alone, [none(), none(), none()]);
    add("without control".to_owned(), &judged.without, [none(), none(), none()]);
    if let Some(oracle) = &judged.oracle {
        add(format!("oracle: {}", oracle.setting), &oracle.kept, [none(), none(), none()]);
    }
    for (law, judged) in &judged.laws {
        let Interval { value, low, high } = judged.gained;
        let gained = format!("{value:.0} ({low:.0} to {high:.0})");
        add(law.to_string(), &judged.kept, [gained, shown_harm(judged.others), shown_harm(judged.oneself)]);
    }
    Ok(writeln!(out, "{}", shown_table(&head, rows, &[]))?)
}

fn none() -> String {
    "-".to_owned()
}

fn shown(interval: Interval) -> String {
    let Interval { value, low, high } = interval;
    format!("{value:.2} x ({low:.2} to {high:.2})")
}

/// Four lines: each figure with its cell, and how many cells are beyond the bar.
fn shown_worst(worst: WorstHarm) -> String {
    let WorstHarm { mean, p99, rate, beyond, cells } = worst;
    let figures = [("mean ", mean), ("p99 ", p99), ("rate ", rate)];
    let mut lines: Vec<String> = figures.map(|(name, worst)| shown_figure(name, worst)).into();
    lines.extend(beyond.map(|beyond| format!("beyond the bar: {beyond} of {cells}")));
    lines.join("\n")
}

fn shown_figure(name: &str, worst: Worst) -> String {
    format!("{name}{:.2} x (cell {})", worst.value, worst.cell)
}

fn shown_harm(harm: Harm) -> String {
    format!("{:.2} x, {:.2} x, {:.2} x", harm.mean, harm.p99, harm.rate)
}
