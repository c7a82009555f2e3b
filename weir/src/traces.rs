//! Traces on a command line: the arguments, the progress, and the remarks about irregular lines.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use weir_lab::replay::{Recording, Survey};
use weir_lab::trace::{Format, Remarks};
use weir_model::Span;

use crate::config::units;
use crate::failure::Failure;
use crate::say;

/// A factor of time, above zero: `20x`, `0.5x`.
pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').and_then(|number| number.parse::<f64>().ok());
    factor
        .filter(|factor| (1e-6..=1e6).contains(factor))
        .ok_or_else(|| "accepted: a factor such as 20x or 0.5x, from 0.000001x to 1000000x".to_owned())
}

/// A format by its name.
pub(crate) fn format(text: &str) -> Result<Format, String> {
    Format::by_name(text).ok_or_else(|| format!("accepted: {}", Format::ALL.map(Format::name).join(", ")))
}

/// A length of time above zero.
pub(crate) fn duration(text: &str) -> Result<Span, String> {
    units::read_span(text)
        .filter(|span| !span.is_zero())
        .ok_or_else(|| "accepted: a duration above zero, such as 10s or 5m".to_owned())
}

/// Reads a trace from end to end, with a progress bar.
///
/// # Errors
/// If the file is no trace, or has nothing to replay.
pub(crate) fn survey(recording: &Recording) -> Result<Survey, Failure> {
    let size = std::fs::metadata(&recording.path).map_or(0, |metadata| metadata.len());
    let bar = ProgressBar::new(size).with_style(style("{bytes} of {total_bytes}"));
    bar.set_message(format!("reading {}", recording.path.display()));
    let survey = recording.survey(|bytes| bar.set_position(bytes)).map_err(Failure::usage);
    bar.finish_and_clear();
    let survey = survey?;
    if survey.requests == 0 {
        let place = recording.path.display();
        return Err(Failure::usage(format!(
            "{place}: found no read and no write; accepted: a trace with some"
        )));
    }
    Ok(survey)
}

/// A progress bar for a replay that takes `duration`, in milliseconds of replay time.
pub(crate) fn replay_bar(duration: Span, message: String) -> ProgressBar {
    let bar = ProgressBar::new(duration.as_micros() / 1_000).with_style(style("{percent} %"));
    bar.set_message(message);
    bar
}

/// Prints on standard error the irregularities that the reader tolerated in a trace.
pub(crate) fn print_remarks(path: &Path, remarks: &Remarks) {
    let note = |count: u64, what: &str| {
        if count > 0 {
            say::on_stderr(format_args!("weir: {}: {count} {what}", path.display()));
        }
    };
    note(remarks.out_of_order, "requests stood behind later ones, and come at the time of those");
    note(remarks.others, "requests are neither reads nor writes, and are left out");
    note(remarks.broken, "lines are broken, and are left out:");
    for line in &remarks.first_broken {
        say::on_stderr(format_args!("  {line}"));
    }
    if remarks.broken > remarks.first_broken.len() as u64 {
        let more = remarks.broken - remarks.first_broken.len() as u64;
        say::on_stderr(format_args!("  ... and {more} more"));
    }
}

fn style(position: &str) -> ProgressStyle {
    ProgressStyle::with_template(&format!("{{msg}} {{wide_bar}} {position}, {{eta}} left"))
        .expect("the template is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_factor_with_an_x() {
        assert_eq!(speed("20x"), Ok(20.0));
        assert_eq!(speed("0.5x"), Ok(0.5));
        for wrong in ["20", "x", "0x", "-1x", "infx", "NaNx", "1e9x"] {
            assert!(speed(wrong).unwrap_err().contains("20x"), "{wrong}");
        }
    }
}
