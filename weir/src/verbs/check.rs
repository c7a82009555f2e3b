//! `weir check FILE`: prints every value in force and its origin, or every mistake.

use std::path::Path;

use comfy_table::presets;

use crate::answer::Form;
use crate::config::{Report, Source, check_report, controller_report, throttle_report, transfers_report};
use crate::failure::Failure;
use crate::terminal;

/// Prints the values in force by the file of a gateway, a controller, a packet-delay agent or a coordinator
/// of transfers.
///
/// # Errors
/// If there is a mistake in it, or it cannot be read.
pub(crate) fn check(file: &Path, form: Form) -> Result<(), Failure> {
    let source = Source::read(file).map_err(Failure::usage)?;
    let report = if source.is_of_controller() {
        source.controller().map(|config| controller_report(&config))
    } else if source.is_of_throttle() {
        source.throttle().map(|config| throttle_report(&config))
    } else if source.is_of_transfers() {
        source.transfers().map(|config| transfers_report(&config))
    } else {
        source.config().map(|config| check_report(&config))
    };
    form.print(&report.map_err(Failure::usage)?, |report| shown(report, terminal::width()))
}

/// A line for each value; in a terminal that is too narrow for that, a table whose cells have several.
fn shown(report: &Report, width: Option<u16>) -> String {
    let text = report.to_string();
    let is_room = |width: &u16| text.lines().all(|line| line.chars().count() <= usize::from(*width));
    match width.filter(|width| !is_room(width)) {
        None => text,
        Some(width) => {
            let rows = report.settings.iter().map(|row| [row.key.clone(), row.value.clone(), row.origin()]);
            let style = presets::UTF8_HORIZONTAL_ONLY;
            weir_table::table(style, &["key", "value", "from"], rows, |_| true, &[], Some(width))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn in_a_narrow_terminal_no_value_and_no_origin_is_cut_off() {
        let text = "[listen]\nnbd = [\"127.0.0.1:10809\"]\n[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"memory\"\n\
                    size = \"1MiB\"\n";
        let config = Source::of(Path::new("weir.toml"), text.to_owned()).config().unwrap();
        let report = check_report(&config);
        assert_eq!(shown(&report, None), report.to_string());
        let narrow = shown(&report, Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        let missing: Vec<_> = words(&report.to_string()).difference(&words(&narrow)).cloned().collect();
        assert!(missing.iter().all(|word| word.chars().count() > 20), "{missing:?}");
    }
}
