//! `weir why`: where the time of a volume's requests went, and on whose behalf they waited.

use clap::Args;
use weir_api::{MOST_REMEMBERED, why_path};
use weir_model::Span;
use weir_status::Why;

use crate::answer::Form;
use crate::ask;
use crate::config::units::{read_span, show_span};
use crate::config::{NAMES, is_name};
use crate::failure::Failure;
use crate::named::{ServerArgument, Usual};
use crate::terminal::{self, printable};

/// What to say, and how.
#[derive(Args, Debug)]
pub(crate) struct WhyArguments {
    /// The volume
    volume: String,
    #[command(flatten)]
    server: ServerArgument,
    /// How far back to look, from 1s to 3m. What is kept is in slices of ten seconds, so the answer goes
    /// back up to ten seconds more, and says how far
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = last)]
    last: Span,
    #[command(flatten)]
    form: Form,
}

/// Prints where the time went.
///
/// # Errors
/// If there is no server that answers, or no such volume.
pub(crate) async fn why(arguments: WhyArguments) -> Result<(), Failure> {
    let WhyArguments { volume, server, last, form } = arguments;
    if !is_name(&volume) {
        let found = printable(&volume);
        return Err(Failure::usage(format!(
            "volume {found:?}: found a name of no volume; accepted: {NAMES}"
        )));
    }
    let why: Why = ask::get(&server.to_ask(Usual::GATEWAY)?, &why_path(&volume, last)).await?;
    form.print(&why, |why| weir_table::why(why, terminal::width()))
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
