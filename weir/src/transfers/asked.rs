//! The arguments that say how a transfer is to be served.

use chrono::{DateTime, Days, Local, LocalResult, NaiveDateTime, NaiveTime, TimeZone};
use clap::Args;
use weir_clock::Clock;
use weir_coordinator::Asked;
use weir_model::{Bandwidth, Span};

use crate::config::{bandwidth_argument, units};

/// The texts that are a deadline.
const DEADLINES: &str =
    "a time of the day such as 03:00, a length such as 2h, or 2026-11-24T03:00, in local time";

/// The longest time until a deadline: a year.
const LONGEST: Span = Span::from_secs(366 * 24 * 3_600);

/// How a transfer is to be served.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskedArguments {
    /// The rate that the transfer is to have on average, such as 10MB/s [default: the coordinator's `rate`]
    #[arg(long, value_parser = bandwidth_argument, allow_hyphen_values = true)]
    rate: Option<Bandwidth>,
    /// Its class, one of the coordinator's `classes` [default: the lowest]
    #[arg(long, default_value = "", hide_default_value = true)]
    class: String,
    /// When it is to be done: a time such as 03:00, a length such as 2h, or 2026-11-24T03:00
    #[arg(long, value_name = "TIME", value_parser = deadline_argument)]
    deadline: Option<u64>,
    /// Leave out nodes that cost more
    #[arg(long, value_name = "COST")]
    max_cost: Option<u64>,
}

impl AskedArguments {
    /// For the coordinator.
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            rate: self.rate.map(Bandwidth::get),
            class: self.class.clone(),
            deadline_ms: self.deadline,
            max_cost: self.max_cost,
        }
    }
}

fn deadline_argument(text: &str) -> Result<u64, String> {
    let now = Clock::new().unix_ms();
    deadline(now, text).ok_or_else(|| format!("accepted: {DEADLINES}"))
}

/// A deadline in milliseconds of Unix time.
fn deadline(now_ms: u64, text: &str) -> Option<u64> {
    let now = DateTime::from_timestamp_millis(i64::try_from(now_ms).ok()?)?.with_timezone(&Local);
    if let Some(span) = units::read_span(text).filter(|span| !span.is_zero() && *span <= LONGEST) {
        return now_ms.checked_add(span.as_nanos() / Span::from_millis(1).as_nanos());
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        let days =
            [0, 1, 2].into_iter().filter_map(|days| now.date_naive().checked_add_days(Days::new(days)));
        return days.filter_map(|day| unix_ms(day.and_time(time))).find(|at| *at > now_ms);
    }
    let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"];
    let at = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
    unix_ms(at).filter(|at| *at > now_ms)
}

/// The first instant of that local time. There is none in the hour that a change of the clocks leaves out.
fn unix_ms(local: NaiveDateTime) -> Option<u64> {
    match Local.from_local_datetime(&local) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => u64::try_from(at.timestamp_millis()).ok(),
        LocalResult::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_790_000_000_000;

    #[test]
    fn a_deadline_is_a_length_from_now_on_or_the_next_such_time() {
        assert_eq!(deadline(NOW, "2h"), Some(NOW + 7_200_000));
        let at = deadline(NOW, "03:00").unwrap();
        assert!(at > NOW && at <= NOW + 2 * 86_400_000, "{at}");
        let local = DateTime::from_timestamp_millis(at.cast_signed()).unwrap().with_timezone(&Local);
        assert_eq!(local.format("%H:%M").to_string(), "03:00");
        let far = deadline(NOW, "2040-01-02T03:04").unwrap();
        let local = DateTime::from_timestamp_millis(far.cast_signed()).unwrap().with_timezone(&Local);
        assert_eq!(local.format("%Y-%m-%d %H:%M").to_string(), "2040-01-02 03:04");
    }

    #[test]
    fn what_is_no_time_or_has_passed_is_no_deadline() {
        for text in ["", "soon", "25:00", "0s", "-1h", "2001-01-01T00:00", "2040-13-01T00:00", "99999999999y"]
        {
            assert_eq!(deadline(NOW, text), None, "{text}");
        }
    }
}
