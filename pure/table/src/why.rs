//! Where the time of a volume's requests went, and on whose behalf they waited, as tables for people.
//!
//! The first lines answer the question; the tables have the figures.

use weir_status::{ControlKind, HeldBack, LatencyParts, Share, Whose, Why};

use crate::sharing::LIST;
use crate::{latency, table};

const LATENCIES: [&str; 7] = ["", "total", "own limit", "turn", "device", "reply held", "reply sent"];

/// A sentence that answers, a row for each latency with its parts, what held requests back, and for whom; in
/// `width` columns.
pub fn why(why: &Why, width: Option<u16>) -> String {
    let Why { volume, pool, latencies, held_back, waited_for, beside, .. } = why;
    let over = whole(why.seconds);
    let mut said = vec![format!(
        "volume {volume} in pool {pool}, the last {over}: {} requests answered\n{}",
        why.requests,
        answer(why)
    )];
    if !latencies.is_empty() {
        said.push(table(LIST, &LATENCIES, latencies.iter().map(row), |column| column == 0, &[], width));
    }
    if !held_back.is_empty() {
        let rows = held_back.iter().map(|HeldBack { by, seconds }| [seconds_of(*seconds), by.to_string()]);
        said.push(format!(
            "Held back, in sum over requests:\n{}",
            table(LIST, &["time", "by"], rows, |c| c == 1, &[], width)
        ));
    }
    said.extend(shares("Waited for their turn", "on behalf of", waited_for, width));
    said.extend(shares("At the device", "beside requests of", beside, width));
    said.join("\n\n")
}

/// Where most of the time went, and on a second line for whom. Requests that still wait count with their
/// time so far: of a volume that starves, the few that are answered say nothing.
fn answer(why: &Why) -> String {
    let of_replies = |us: fn(&LatencyParts) -> f64| {
        let mean = why.latencies.first().map_or(0.0, us);
        mean / 1e6 * why.requests as f64
    };
    let own = why.held_back.iter().filter(|held| held.by.is_own_limit()).map(|held| held.seconds);
    let sum = |shares: &[Share]| shares.iter().map(|share| share.seconds).sum::<f64>();
    let parts = [
        own.sum(),
        sum(&why.waited_for),
        sum(&why.beside),
        of_replies(|mean| mean.held_us),
        of_replies(|mean| mean.reply_us),
    ];
    let most = parts.into_iter().enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
    let (place, part) = most.unwrap_or_default();
    if part <= 0.0 {
        return "No request came, or none was answered".to_owned();
    }
    let held = |is_own: bool| why.held_back.iter().find(|held| held.by.is_own_limit() == is_own);
    let by = |is_own| held(is_own).map(|held| held.by.to_string()).unwrap_or_default();
    let for_whom = |shares: &[Share], how: &str| {
        let first = shares.first();
        first
            .map(|first| format!("\n{:.0} % of that {how} {}", first.percent, name(first)))
            .unwrap_or_default()
    };
    let sentence = match place {
        0 => format!("held back by {}", by(true)),
        1 => {
            let whom = for_whom(&why.waited_for, "on behalf of");
            format!("waiting for their turn at {}{whom}", by(false))
        }
        2 => format!("at the device{}", for_whom(&why.beside, "beside requests of")),
        3 => "finished, with their replies held: the volume writes more than write_limit".to_owned(),
        _ => "finished, until the client had taken their replies".to_owned(),
    };
    let law = match (place, why.control) {
        (2, ControlKind::None) => "\ncontrol = \"none\": weir holds nobody back",
        _ => "",
    };
    let percent = part / parts.into_iter().sum::<f64>() * 100.0;
    let none = if why.requests == 0 { "None was answered yet. " } else { "" };
    format!("{none}Most of their time, {percent:.0} %, they were {sentence}{law}")
}

fn row(parts: &LatencyParts) -> [String; LATENCIES.len()] {
    let LatencyParts { of, total_us, own_limit_us, turn_us, device_us, held_us, reply_us, .. } = parts;
    let [total, own, turn, device, held, reply] =
        [total_us, own_limit_us, turn_us, device_us, held_us, reply_us].map(|us| latency(*us));
    [of.clone(), total, own, turn, device, held, reply]
}

fn shares(what: &str, header: &str, shares: &[Share], width: Option<u16>) -> Option<String> {
    let all: f64 = shares.iter().map(|share| share.seconds).sum();
    let rows = shares.iter().map(|share| {
        let Share { seconds, percent, requests, .. } = share;
        [seconds_of(*seconds), format!("{percent:.1} %"), requests.to_string(), name(share)]
    });
    let header = ["time", "part", "requests sent", header];
    let rows = table(LIST, &header, rows, |column| column == 3, &[2], width);
    (!shares.is_empty()).then(|| format!("{what} for {}, in sum over requests:\n{rows}", seconds_of(all)))
}

/// A volume by its name, all others in words.
fn name(share: &Share) -> String {
    match (&share.volume, share.whose) {
        (Some(volume), Whose::Volume) => volume.clone(),
        (_, whose) => whose.to_string(),
    }
}

fn seconds_of(seconds: f64) -> String {
    latency(seconds * 1e6)
}

fn whole(seconds: f64) -> String {
    format!("{seconds:.0} s")
}

#[cfg(test)]
mod tests {
    use weir_status::HeldBy;

    use super::*;

    fn mean(turn_us: f64, device_us: f64) -> LatencyParts {
        let total_us = turn_us + device_us;
        let (of, requests) = ("mean".to_owned(), 10);
        let (own_limit_us, held_us, reply_us) = (0.0, 0.0, 0.0);
        LatencyParts { of, requests, total_us, own_limit_us, turn_us, device_us, held_us, reply_us }
    }

    fn share(whose: Whose, volume: Option<&str>, percent: f64, of: f64) -> Share {
        let seconds = of * percent / 100.0;
        Share { whose, volume: volume.map(str::to_owned), seconds, percent, requests: 42 }
    }

    /// Requests that waited and were at the device for so many seconds in sum.
    fn some(latencies: Vec<LatencyParts>, turn: f64, device: f64) -> Why {
        Why {
            volume: "db".to_owned(),
            pool: "p".to_owned(),
            control: ControlKind::Facade,
            seconds: 62.0,
            requests: 10,
            latencies,
            held_back: vec![HeldBack { by: HeldBy::Depth, seconds: turn }],
            waited_for: vec![
                share(Whose::Volume, Some("hog"), 93.0, turn),
                share(Whose::Itself, Some("db"), 7.0, turn),
            ],
            beside: vec![
                share(Whose::Volume, Some("hog"), 60.0, device),
                share(Whose::Itself, Some("db"), 40.0, device),
            ],
        }
    }

    #[test]
    fn the_first_lines_answer_where_most_of_the_time_went_and_for_whom() {
        let said = why(&some(vec![mean(8_000.0, 2_000.0)], 1.0, 0.25), None);
        let first: Vec<_> = said.lines().take(3).collect();
        assert_eq!(
            first,
            [
                "volume db in pool p, the last 62 s: 10 requests answered",
                "Most of their time, 80 %, they were waiting for their turn at the depth: the device had as many \
             requests as it may have",
                "93 % of that on behalf of hog",
            ]
        );
        let said = why(&some(vec![mean(2_000.0, 8_000.0)], 1.0, 4.0), None);
        assert!(
            said.contains("80 %, they were at the device\n60 % of that beside requests of hog\n"),
            "{said}"
        );
        for part in ["own limit", "(its own requests)", "930.00 ms", "93.0 %", "42"] {
            assert!(said.contains(part), "{part} in\n{said}");
        }
    }

    #[test]
    fn of_a_volume_that_starves_what_still_waits_answers_and_not_the_few_that_were_answered() {
        let said = why(&some(vec![mean(100.0, 9_000.0)], 30.0, 0.01), None);
        assert!(said.contains("100 %, they were waiting for their turn at the depth"), "{said}");
        assert!(said.contains("93 % of that on behalf of hog"), "{said}");
    }

    #[test]
    fn a_volume_of_which_nothing_is_answered_says_where_its_requests_are() {
        let stuck = Why { requests: 0, ..some(Vec::new(), 0.000_01, 30.0) };
        let said = why(&stuck, None);
        assert!(
            said.contains("None was answered yet. Most of their time, 100 %, they were at the device"),
            "{said}"
        );
        let silent = Why { held_back: Vec::new(), waited_for: Vec::new(), beside: Vec::new(), ..stuck };
        assert!(why(&silent, None).ends_with("No request came, or none was answered"));
    }
}
