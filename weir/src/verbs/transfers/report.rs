//! `weir transfers report`: figures of what the transfers that are done got, and a summary.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use weir_clock::Clock;
use weir_lab::plot;
use weir_model::Span;

use crate::answer::Form;
use crate::config::units;
use crate::failure::Failure;
use crate::traces;
use crate::transfers::{CoordinatorArgument, failure};

mod picture;

use picture::{Picture, Summary};

/// What is drawn, and where to.
#[derive(Args, Debug)]
pub(super) struct ReportArguments {
    /// The directory of the figures; weir makes it if there is none, and replaces no file in it
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Only the transfers that ended within this time, such as 24h [default: all that are remembered]
    #[arg(long, value_name = "TIME", value_parser = traces::duration)]
    last: Option<Span>,
    #[command(flatten)]
    form: Form,
}

/// What was drawn, and what is in it.
#[derive(Serialize)]
struct Drawn<'a> {
    figures: Vec<String>,
    summary: &'a Summary,
}

/// Draws the figures, and prints what is in them.
///
/// # Errors
/// If no transfer is done, a figure cannot be written, or no coordinator answers.
pub(super) async fn report(
    coordinator: &CoordinatorArgument,
    arguments: &ReportArguments,
) -> Result<(), Failure> {
    let ReportArguments { output, last, form } = arguments;
    let listed = coordinator.client()?.transfers(true).await.map_err(failure)?;
    let within = last.map_or(String::new(), |span| format!(" in the last {}", units::show_span(span)));
    let earliest = last.map_or(0, |span| Clock::new().unix_ms().saturating_sub(span.as_micros() / 1_000));
    let picture = Picture::of(&listed, earliest, &within).map_err(Failure::usage)?;
    let svgs = [
        ("transfers.svg", plot::transfers(&picture.figure)?, picture.says()),
        ("transfers-by-node.svg", plot::transfers_by_node(&picture.figure)?, picture.says_by_node()),
    ];
    fs::create_dir_all(output).map_err(|error| wrong(output, &error))?;
    // All or none: a second figure that cannot be made must not leave the first one alone.
    let files = svgs.iter().map(|(name, ..)| NewFile::create(output.join(name)));
    let files: Vec<_> = files.collect::<Result<_, _>>()?;
    let mut figures = Vec::new();
    for (file, (_, svg, _)) in files.into_iter().zip(&svgs) {
        figures.push(file.write(svg)?.display().to_string());
    }
    form.print(&Drawn { figures, summary: &picture.summary }, |drawn| {
        let figures = drawn.figures.iter().zip(&svgs);
        let lines: String = figures.map(|(path, (.., says))| format!("{path}: {says}\n")).collect();
        format!("{lines}\n{}", drawn.summary)
    })
}

/// A file that did not exist before. It goes with this, unless it is written.
struct NewFile {
    file: File,
    path: PathBuf,
    is_written: bool,
}

impl NewFile {
    fn create(path: PathBuf) -> Result<Self, Failure> {
        let file = File::create_new(&path).map_err(|error| wrong(&path, &error))?;
        Ok(Self { file, path, is_written: false })
    }

    fn write(mut self, text: &str) -> io::Result<PathBuf> {
        self.file.write_all(text.as_bytes())?;
        self.is_written = true;
        Ok(self.path.clone())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_written {
            let _ = fs::remove_file(&self.path); // it may be gone
        }
    }
}

fn wrong(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    Failure::usage(format!("--output: found {path}: {error}; accepted: a directory for new files"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_replaced_and_one_that_is_not_written_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transfers.svg");
        drop(NewFile::create(path.clone()).unwrap());
        assert!(!path.exists());
        NewFile::create(path.clone()).unwrap().write("first").unwrap();
        let refused = NewFile::create(path.clone()).err().expect("it is there").to_string();
        assert!(refused.contains("accepted: a directory for new files"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
    }
}
