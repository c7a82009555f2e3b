//! What a report draws and says, from the transfers that a coordinator remembers.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use weir_coordinator::proto::{State, TransferInfo};
use weir_lab::plot::{TransferMark, TransfersFigure};

use crate::terminal::printable;
use crate::transfers::text;

/// More marks than this in one figure can neither be told apart nor shown by a browser.
const MOST_DRAWN: usize = 10_000;
/// The longest name of a node in a figure, in characters.
const LONGEST_NAME: usize = 40;

/// The figure, and the words for it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Picture {
    pub(super) figure: TransfersFigure,
    pub(super) summary: Summary,
}

/// What the transfers that are done got. Those that are not drawn count, too.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub(super) struct Summary {
    done: usize,
    /// Those that failed or were cancelled.
    lost: usize,
    /// Those that have a rate.
    rated: usize,
    below: usize,
    bytes: u64,
    /// In which at least one of them was under way.
    busy_ms: u64,
    /// The longest wait for a first byte, in milliseconds, and the transfer that waited.
    #[serde(rename = "longest_wait_ms_and_transfer")]
    longest: Option<(u64, u64)>,
}

impl Picture {
    /// The picture of the transfers that ended at `earliest` or later.
    ///
    /// # Errors
    /// In words for the operator, if none of them is done.
    pub(super) fn of(listed: &[TransferInfo], earliest: u64, within: &str) -> Result<Self, String> {
        let ended = || listed.iter().filter(|one| one.ended_ms > 0 && one.ended_ms >= earliest);
        let lost = ended().filter(|one| matches!(one.state(), State::Failed | State::Cancelled)).count();
        let mut done: Vec<_> = ended().filter(|one| one.state() == State::Done).collect();
        if done.is_empty() {
            let lost =
                if lost > 0 { format!(", and {lost} that failed or were cancelled") } else { String::new() };
            return Err(format!(
                "transfers report: found no transfer that was done{within}{lost}; accepted: at least one"
            ));
        }
        done.sort_unstable_by_key(|one| one.transfer);
        let summary = Summary { lost, ..Summary::of(&done) };
        let drawn = done.split_off(done.len().saturating_sub(MOST_DRAWN));
        let title = format!("transfers that were done{within}");
        Ok(Self { figure: figure(title, &drawn), summary })
    }

    /// What the first figure shows.
    pub(super) fn says(&self) -> String {
        let waits = "and the wait of each until its first byte";
        format!("the rate of {} by number and by time, {waits}", self.drawn())
    }

    /// What the second figure shows.
    pub(super) fn says_by_node(&self) -> String {
        format!(
            "the rate of {} by number, a panel for each of {} node(s)",
            self.drawn(),
            self.figure.nodes.len()
        )
    }

    fn drawn(&self) -> String {
        match self.figure.transfers.len() {
            drawn if drawn < self.summary.done => format!("the last {drawn} transfers"),
            drawn => format!("{drawn} transfer(s)"),
        }
    }
}

fn figure(title: String, drawn: &[&TransferInfo]) -> TransfersFigure {
    let nodes: BTreeSet<&str> = drawn.iter().map(|one| one.node.as_str()).collect();
    let nodes: Vec<_> = nodes.into_iter().collect();
    let since = drawn.iter().map(|one| started(one)).min().unwrap_or(0);
    let mark = |one: &&TransferInfo| TransferMark {
        number: one.transfer,
        node: nodes.partition_point(|name| *name < one.node.as_str()),
        started: seconds(started(one) - since),
        ended: seconds(one.ended_ms - since),
        rate: rate(one),
        asked: one.rate,
        wait: wait(one).map(seconds),
    };
    TransfersFigure {
        title,
        transfers: drawn.iter().map(mark).collect(),
        since: text::time(since),
        nodes: nodes.into_iter().map(shortened).collect(),
    }
}

/// When it started, which is not after its end.
fn started(transfer: &TransferInfo) -> u64 {
    match transfer.started_ms {
        0 => transfer.ended_ms,
        started => started.min(transfer.ended_ms),
    }
}

/// Its rate, unless it was too short to have one.
fn rate(transfer: &TransferInfo) -> Option<u64> {
    let has_rate = transfer.moving_ms > 0 && transfer.moved > 0;
    has_rate.then(|| text::rate_of(transfer.moved, transfer.moving_ms))
}

/// How long it waited for its first byte, in milliseconds.
fn wait(transfer: &TransferInfo) -> Option<u64> {
    let wait = transfer.first_byte_ms.saturating_sub(transfer.asked_ms);
    // Zero has no place on a logarithmic axis, and milliseconds are all that is known.
    (transfer.first_byte_ms > 0).then_some(wait.max(1))
}

fn shortened(name: &str) -> String {
    let mut shown: String = printable(name).chars().take(LONGEST_NAME).collect();
    if name.chars().nth(LONGEST_NAME).is_some() {
        shown.push('…');
    }
    shown
}

impl Summary {
    /// Of transfers that are done.
    fn of(done: &[&TransferInfo]) -> Self {
        let rates = done.iter().filter_map(|one| Some((rate(one)?, one.rate)));
        let (rated, below) = rates
            .fold((0, 0), |(rated, below), (rate, asked)| (rated + 1, below + usize::from(rate < asked)));
        Self {
            done: done.len(),
            lost: 0,
            rated,
            below,
            bytes: done.iter().fold(0, |bytes, one| one.moved.saturating_add(bytes)),
            busy_ms: busy_ms(done),
            longest: done.iter().filter_map(|one| Some((wait(one)?, one.transfer))).max(),
        }
    }
}

/// For how long at least one of them was under way.
fn busy_ms(done: &[&TransferInfo]) -> u64 {
    let mut spans: Vec<_> = done.iter().map(|one| (started(one), one.ended_ms)).collect();
    spans.sort_unstable();
    let mut until = 0;
    spans.into_iter().fold(0, |busy, (from, to)| {
        let added = to.saturating_sub(from.max(until));
        until = until.max(to);
        busy + added
    })
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { done, lost, rated, below, bytes, busy_ms, longest } = self;
        writeln!(f, "{:>12}  {done}; {lost} more failed or were cancelled, and count nowhere", "done")?;
        let short = done - rated;
        let short =
            if short > 0 { format!("; {short} more were too short for a rate") } else { String::new() };
        writeln!(f, "{:>12}  {below} of {rated} had less than the rate that they asked for{short}", "below")?;
        let total = match busy_ms {
            0 => "-".to_owned(),
            ms => text::rate(text::rate_of(*bytes, *ms)),
        };
        let (bytes, busy) = (text::size(*bytes), text::length(*busy_ms));
        writeln!(
            f,
            "{:>12}  {total}: {bytes} in the {busy} in which one or more were under way",
            "total rate"
        )?;
        let longest = longest.map_or("-".to_owned(), |(ms, transfer)| {
            format!("{} until the first byte, transfer {transfer}", text::length(ms))
        });
        writeln!(f, "{:>12}  {longest}", "longest wait")
    }
}

#[allow(clippy::cast_precision_loss)] // milliseconds of some years
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use weir_lab::plot;

    use super::*;

    /// 100 MB that were moved between these seconds, and asked for at 0 s.
    fn transfer(number: u64, node: &str, from: u64, to: u64) -> TransferInfo {
        TransferInfo {
            transfer: number,
            node: node.to_owned(),
            moved: 100_000_000,
            rate: 10_000_000,
            asked_ms: 1_000_000,
            started_ms: 1_000_000 + from * 1_000,
            first_byte_ms: 1_000_000 + from * 1_000 + 100,
            ended_ms: 1_000_000 + to * 1_000,
            moving_ms: (to - from) * 1_000,
            state: State::Done.into(),
            ..TransferInfo::default()
        }
    }

    /// As a coordinator lists them: the last one first.
    fn listed() -> Vec<TransferInfo> {
        vec![transfer(7, "cloud", 4, 24), transfer(5, "array", 2, 4), transfer(3, "cloud", 0, 5)]
    }

    #[test]
    fn the_same_transfers_give_the_same_figures() {
        let picture = Picture::of(&listed(), 0, "").unwrap();
        let mut turned = listed();
        turned.reverse();
        assert_eq!(picture, Picture::of(&turned, 0, "").unwrap());
        let svg = |picture: &Picture| plot::transfers(&picture.figure).unwrap();
        assert_eq!(svg(&picture), svg(&picture.clone()));
    }

    #[test]
    fn a_transfer_is_drawn_with_its_rate_its_node_and_its_wait() {
        let TransfersFigure { nodes, transfers, .. } = Picture::of(&listed(), 0, "").unwrap().figure;
        assert_eq!(nodes, ["array", "cloud"]);
        let numbers: Vec<_> = transfers.iter().map(|one| one.number).collect();
        assert_eq!(numbers, [3, 5, 7]);
        let last = TransferMark {
            number: 7,
            node: 1,
            started: 4.0,
            ended: 24.0,
            rate: Some(5_000_000),
            asked: 10_000_000,
            wait: Some(4.1),
        };
        assert_eq!(transfers[2], last);
    }

    #[test]
    fn the_summary_counts_those_below_and_the_time_in_which_something_moved() {
        let mut all = listed();
        all.push(TransferInfo { state: State::Failed.into(), ..transfer(8, "array", 0, 9) });
        all.push(TransferInfo { state: State::Active.into(), ended_ms: 0, ..transfer(9, "array", 0, 9) });
        all.push(TransferInfo { moving_ms: 0, ..transfer(10, "array", 30, 30) });
        let shown = Picture::of(&all, 0, "").unwrap().summary.to_string();
        for wanted in [
            "done  4; 1 more failed or were cancelled",
            "below  1 of 3 had less than the rate that they asked for; 1 more were too short for a rate",
            "total rate  16.7 MB/s: 400 MB in the 24.0 s in which",
            "longest wait  30.1 s until the first byte, transfer 10",
        ] {
            assert!(shown.contains(wanted), "{wanted}\n{shown}");
        }
    }

    #[test]
    fn only_transfers_that_ended_late_enough_are_drawn_and_none_is_a_refusal() {
        let picture = Picture::of(&listed(), 1_005_000, " in the last 1h").unwrap();
        assert_eq!(picture.figure.transfers.len(), 2);
        let refused = Picture::of(&listed(), 9_000_000, " in the last 1h").unwrap_err();
        assert!(refused.contains("found no transfer that was done in the last 1h; accepted"), "{refused}");
        let lost = TransferInfo { state: State::Cancelled.into(), ..transfer(1, "array", 0, 1) };
        let refused = Picture::of(&[lost], 0, "").unwrap_err();
        assert!(refused.contains("and 1 that failed or were cancelled"), "{refused}");
    }

    #[test]
    fn of_very_many_transfers_the_last_are_drawn_and_all_are_counted() {
        let all: Vec<_> = (1..=10_001).map(|number| transfer(number, "array", 0, 1)).collect();
        let picture = Picture::of(&all, 0, "").unwrap();
        assert_eq!((picture.figure.transfers.len(), picture.summary.done), (10_000, 10_001));
        assert_eq!(picture.figure.transfers[0].number, 2);
        assert!(picture.says().contains("the last 10000 transfers"), "{}", picture.says());
    }

    #[test]
    fn a_name_is_shortened_and_no_command_to_what_shows_it() {
        assert_eq!(shortened("array"), "array");
        assert_eq!(shortened(&"n".repeat(300)), format!("{}…", "n".repeat(40)));
        assert!(!shortened("a\u{1b}[2J").contains('\u{1b}'));
    }
}
