//! `weir set`: changes targets, priorities, limits and thresholds of volumes and pools while a server serves
//! them.
//!
//! All changes of a command go to the server in one request. The server judges them as it judges its file,
//! and puts all of them in force or refuses them as a whole. They last until the server reads its file again.

use clap::Args;
use comfy_table::presets;
use weir_api::{AskError, CHANGES_PATH, Change, Changed, Changes, Setting};

use crate::answer::Form;
use crate::ask;
use crate::daemon::change;
use crate::failure::Failure;
use crate::named::ServerArgument;
use crate::terminal;

/// What can stand where a change begins.
const CHANGE: &str = "volume NAME KEY=VALUE... or pool NAME KEY=VALUE...";

/// The changes, and the server.
#[derive(Args, Debug)]
#[command(
    override_usage = "weir set [OPTIONS] <volume|pool> <NAME> <KEY=VALUE>... [<volume|pool> <NAME> <KEY=VALUE>...]..."
)]
pub(crate) struct SetArguments {
    /// Each change: volume or pool, its name, and its settings. For a volume: priority=4,
    /// target.latency=5ms, target.p95=20ms, target.throughput=20MiB/s, target.iops=900, max_iops=1200iops,
    /// max_bandwidth=100MiB/s, max_concurrency=64; for a pool: total_concurrency=80, threshold=10ms. KEY=none
    /// takes it away
    #[arg(required = true, value_name = "CHANGE")]
    words: Vec<String>,
    /// Only say what would differ, or why it would be refused
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgument,
    #[command(flatten)]
    form: Form,
}

/// Asks the server for the changes, and prints what differs.
///
/// # Errors
/// If the server refuses or cannot be asked; then nothing has changed. If its answer is missing or cannot be
/// read; then the error says that something may have.
pub(crate) async fn set(arguments: SetArguments) -> Result<(), Failure> {
    let SetArguments { words, dry_run, server, form } = arguments;
    let changes = Changes { changes: read(&words).map_err(Failure::usage)?, dry_run };
    let server = server.to_change()?;
    let answer = server.post(CHANGES_PATH, &changes).await.map_err(|error| failure(error, dry_run))?;
    let changed: Changed = ask::parse(&server, &answer).map_err(|error| failure(error, dry_run))?;
    form.print(&changed, |changed| shown(&changes.changes, changed))
}

/// The failure of the request. Once a change was sent, a server that was stopped puts it in force when it
/// goes on, and the operator has to know that.
fn failure(error: AskError, dry_run: bool) -> Failure {
    if dry_run || !error.may_be_done() {
        return ask::failure(error);
    }
    let unknown = "the request was sent, so it is not known whether the change is in force; the same weir set \
                   with --dry-run tells: what it still names is not in force";
    Failure::Runtime(anyhow::anyhow!("{error}; {unknown}"))
}

fn shown(changes: &[Change], changed: &Changed) -> String {
    let said = change::said(changes, changed);
    if changed.settings.is_empty() {
        return format!("{said}\nno setting differs");
    }
    let head = if changed.dry_run { ["setting", "is", "would be"] } else { ["setting", "was", "is"] };
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let rows = changed.settings.iter().map(|setting| {
        let Setting { key, old, new } = setting;
        [key.clone(), cell(old), cell(new)]
    });
    let style = presets::UTF8_HORIZONTAL_ONLY;
    format!("{said}\n{}", weir_table::table(style, &head, rows, |_| true, &[], terminal::width()))
}

/// The changes that the words ask for.
fn read(words: &[String]) -> Result<Vec<Change>, String> {
    let mut changes: Vec<Change> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let refused = |found: &str| format!("set: found {found}; accepted: {CHANGE}");
        if let (Some((key, value)), Some(change)) = (word.split_once('='), changes.last_mut()) {
            change.set.push((key.trim().to_owned(), value.trim().to_owned()));
            continue;
        }
        if !["volume", "pool"].contains(&word.as_str()) {
            return Err(refused(&format!("{word:?}")));
        }
        let name = words.next().filter(|name| !name.contains('='));
        let name = name.ok_or_else(|| refused(&format!("{word} without a name")))?;
        if words.as_slice().first().is_none_or(|next| !next.contains('=')) {
            return Err(refused(&format!("{word} {name} without a setting")));
        }
        changes.push(Change { table: word.clone(), name: name.clone(), set: Vec::new() });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_change_that_was_sent_and_not_answered_nobody_knows_whether_it_is_in_force() {
        let server = || weir_api::Server::read("unix:/run/weir.sock").unwrap();
        let said = |error, dry_run| failure(error, dry_run).to_string();
        let silent = || AskError::NoAnswer(server(), "within 5s".to_owned());
        let told = said(silent(), false);
        assert!(
            told.contains("not known whether the change is in force") && told.contains("--dry-run"),
            "{told}"
        );
        assert!(!said(silent(), true).contains("in force"));
        for surely_not in [AskError::NotSent(server(), String::new()), AskError::Refused(String::new())] {
            let told = said(surely_not, false);
            assert!(!told.contains("in force"), "{told}");
        }
    }

    fn read_from(text: &str) -> Result<Vec<Change>, String> {
        read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_has_any_number_of_volumes_and_pools_each_with_its_settings() {
        let change = |table: &str, name: &str, set: &[(&str, &str)]| Change {
            table: table.to_owned(),
            name: name.to_owned(),
            set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        };
        let words =
            "volume oltp priority=4 target.latency=5ms volume volume target=none pool array1 threshold=10ms";
        let wanted = [
            change("volume", "oltp", &[("priority", "4"), ("target.latency", "5ms")]),
            change("volume", "volume", &[("target", "none")]),
            change("pool", "array1", &[("threshold", "10ms")]),
        ];
        assert_eq!(read_from(words).unwrap(), wanted);
    }

    #[test]
    fn words_that_are_no_changes_are_refused_with_what_was_found() {
        for (words, found) in [
            ("gateway a priority=2", "found \"gateway\""),
            ("priority=2", "found \"priority=2\""),
            ("volume", "found volume without a name"),
            ("volume priority=2", "found volume without a name"),
            ("volume oltp", "found volume oltp without a setting"),
            ("volume oltp volume bulk priority=2", "found volume oltp without a setting"),
            ("volume oltp priority=2 bulk priority=2", "found \"bulk\""),
        ] {
            let refused = read_from(words).unwrap_err();
            assert!(refused.contains(found) && refused.ends_with(CHANGE), "{words}: {refused}");
        }
    }
}
