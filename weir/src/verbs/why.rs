//! `weir why`: where the time of a volume's requests went, and on whose behalf they waited.

use std::io::Write;

use clap::Args;
use weir_api::{MOST_REMEMBERED, why_path};
use weir_model::Span;
use weir_status::Why;

use crate::ask;
use crate::config::units::{read_span, show_span};
use crate::config::{NAMES, is_name};
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;

/// What to say, and how.
#[derive(Args, Debug)]
pub(crate) struct WhyArguments {
    /// The volume
    volume: String,
    /// The server: its configuration file, the URL of its metrics address, or its control socket
    #[arg(default_value = ask::USUAL_METRICS)]
    source: String,
    /// How far back to look, from 1s to 3m. What is kept is in slices of ten seconds, so the answer goes
    /// back up to ten seconds more, and says how far
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = last)]
    last: Span,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

/// Prints where the time went.
///
/// # Errors
/// If there is no server that answers, or no such volume.
pub(crate) async fn why(arguments: WhyArguments) -> Result<(), Failure> {
    let WhyArguments { volume, source, last, json } = arguments;
    if !is_name(&volume) {
        let found = printable(&volume);
        return Err(Failure::usage(format!(
            "volume {found:?}: found a name of no volume; accepted: {NAMES}"
        )));
    }
    let (server, path) = (ask::to_ask(&source)?, why_path(&volume, last));
    let text = ask::text(&server, &path).await?;
    let why: Why = ask::read(&server, &text)?;
    let said = if json { text } else { weir_table::why(&why) };
    Ok(writeln!(say::out(), "{}", printable(&said))?)
}

/// A time that the server remembers.
fn last(text: &str) -> Result<Span, String> {
    let accepted = Span::from_secs(1)..=MOST_REMEMBERED;
    read_span(text)
        .filter(|last| accepted.contains(last))
        .ok_or_else(|| format!("found {text:?}; accepted: a time from 1s to {}", show_span(MOST_REMEMBERED)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_the_server_does_not_remember_is_refused_with_what_is_accepted() {
        assert_eq!(last("1m 30s"), Ok(Span::from_secs(90)));
        for wrong in ["4m", "500ms", "60", "a while"] {
            let refused = last(wrong).unwrap_err();
            assert!(refused.contains(wrong) && refused.contains("from 1s to 3m"), "{refused}");
        }
    }
}
