//! Where the time of a volume's requests went, and on whose behalf they waited, as tables for people.
//!
//! The first lines answer the question; the tables have the figures.

use weir_status::{ControlKind, HeldBack, LatencyParts, Share, Whose, Why};

use crate::latency;
use crate::sharing::{LIST, table};

const LATENCIES: [&str; 7] = ["", "total", "own limit", "turn", "device", "reply held", "reply sent"];

/// A sentence that answers, a row for each latency with its parts, what held requests back, and for whom.
pub fn why(why: &Why) -> String {
    let Why { volume, pool, latencies, held_back, waited_for, beside, .. } = why;
    let over = whole(why.seconds);
    let mut said = vec![format!(
        "volume {volume} in pool {pool}, the last {over}: {} requests answered\n{}",
        why.requests,
        answer(why)
    )];
    if !latencies.is_empty() {
        said.push(table(LIST, &LATENCIES, latencies.iter().map(row), |column| column == 0).to_string());
    }
    if !held_back.is_empty() {
        let rows = held_back.iter().map(|HeldBack { by, seconds }| [seconds_of(*seconds), by.to_string()]);
        said.push(format!(
            "Held back, in sum over requests:\n{}",
            table(LIST, &["time", "by"], rows, |c| c == 1)
        ));
    }
    said.extend(shares("Waited for their turn", "on behalf of", waited_for));
    said.extend(shares("At the device", "beside requests of", beside));
    said.join("\n\n")
}

/// Where most of the time went, and on a second line for whom.
fn answer(why: &Why) -> String {
    let Some(mean) = why.latencies.first() else {
        return match why.held_back.first() {
            Some(held) => format!("None was answered. Most of what waits is held back by {}", held.by),
            None => "No request came, or none was answered".to_owned(),
        };
    };
    let LatencyParts { total_us, own_limit_us, turn_us, device_us, held_us, reply_us, .. } = mean;
    let parts = [own_limit_us, turn_us, device_us, held_us, reply_us];
    let most = parts.into_iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1));
    let (place, part) = most.map_or((2, 0.0), |(place, part)| (place, *part));
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
    let percent = part / total_us.max(f64::MIN_POSITIVE) * 100.0;
    format!("Most of their time, {percent:.0} %, they were {sentence}{law}")
}

fn row(parts: &LatencyParts) -> [String; LATENCIES.len()] {
    let LatencyParts { of, total_us, own_limit_us, turn_us, device_us, held_us, reply_us, .. } = parts;
    let [total, own, turn, device, held, reply] =
        [total_us, own_limit_us, turn_us, device_us, held_us, reply_us].map(|us| latency(*us));
    [of.clone(), total, own, turn, device, held, reply]
}

fn shares(what: &str, header: &str, shares: &[Share]) -> Option<String> {
    let all: f64 = shares.iter().map(|share| share.seconds).sum();
    let rows = shares.iter().map(|share| {
        let Share { seconds, percent, requests, .. } = share;
        [seconds_of(*seconds), format!("{percent:.1} %"), requests.to_string(), name(share)]
    });
    let rows = table(LIST, &["time", "part", "requests sent", header], rows, |column| column == 3);
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

    fn share(whose: Whose, volume: Option<&str>, percent: f64) -> Share {
        Share { whose, volume: volume.map(str::to_owned), seconds: percent / 100.0, percent, requests: 42 }
    }

    fn some(latencies: Vec<LatencyParts>) -> Why {
        Why {
            volume: "db".to_owned(),
            pool: "p".to_owned(),
            control: ControlKind::Facade,
            seconds: 62.0,
            requests: 10,
            latencies,
            held_back: vec![HeldBack { by: HeldBy::Depth, seconds: 1.0 }],
            waited_for: vec![share(Whose::Volume, Some("hog"), 93.0), share(Whose::Itself, Some("db"), 7.0)],
            beside: vec![share(Whose::Volume, Some("hog"), 60.0)],
        }
    }

    #[test]
    fn the_first_lines_answer_where_most_of_the_time_went_and_for_whom() {
        let said = why(&some(vec![mean(8_000.0, 2_000.0)]));
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
        let said = why(&some(vec![mean(2_000.0, 8_000.0)]));
        assert!(
            said.contains("80 %, they were at the device\n60 % of that beside requests of hog\n"),
            "{said}"
        );
        for part in ["own limit", "(its own requests)", "930.00 ms", "93.0 %", "42"] {
            assert!(said.contains(part), "{part} in\n{said}");
        }
    }

    #[test]
    fn a_volume_of_which_nothing_is_answered_says_what_holds_its_requests() {
        let why_of = Why { requests: 0, ..some(Vec::new()) };
        assert!(why(&why_of).contains("None was answered. Most of what waits is held back by the depth"));
        let silent = Why { held_back: Vec::new(), waited_for: Vec::new(), beside: Vec::new(), ..why_of };
        assert!(why(&silent).ends_with("No request came, or none was answered"));
    }
}
