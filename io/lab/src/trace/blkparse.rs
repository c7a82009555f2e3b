//! The text that `blkparse` prints by default: an event a line, `major,minor cpu sequence seconds pid action
//! rwbs sector + sectors [process]` (blkparse(1), "Default output").
//!
//! A request appears once for each step of its life. The reader replays **`Q`**, the instant at which the
//! request was handed to the block layer. `D`, the instant at which it went to the device, comes after the
//! kernel has merged, split and delayed requests. With `D`, a replay would repeat the requests as the traced
//! device shaped them, not the load. If a trace was recorded without `Q` (`blktrace -a issue`), the reader
//! takes `D`.
//!
//! Sectors have 512 bytes, whatever the device's have. All devices of a trace are one address space. The
//! reader passes over the summary behind the events. It counts discards, flushes and pass-through commands as
//! requests of another kind.

use weir_model::IoKind;

use super::line::{Line, Misfit, Recorded, SECTOR, number, quoted, seconds, sector, wrong};

const NAMES: &str = "MAJOR,MINOR CPU SEQUENCE SECONDS PID ACTION RWBS [SECTOR + SECTORS] [PROCESS]";

/// Every action that blkparse prints (blkparse(1), "Action identifiers"); `m` is a message of the kernel.
const ACTIONS: &str = "ABCDFGIMPQRSTUWXm";

/// The beginnings of the lines that are no events: reports of what blkparse has read, and the summary at the
/// end.
const SUMMARY: &[&str] = &[
    "Input file",
    "CPU",
    "Total (",
    "Throughput (",
    "Events (",
    "Skips:",
    "Reads ",
    "Writes ",
    "Read ",
    "Write ",
    "PC ",
    "IO unplugs",
    "Timer unplugs",
    "Allocation wait",
    "Dispatch wait",
    "Completion wait",
];

/// The step of a request's life that counts as its arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    Queued,
    Issued,
}

/// The step to take, as the first lines of a trace decide it.
pub(super) fn arrival<'a>(head: impl Iterator<Item = &'a str>) -> Arrival {
    let mut issued = false;
    for line in head {
        match line.split_ascii_whitespace().nth(5) {
            Some("Q") => return Arrival::Queued,
            Some("D") => issued = true,
            _ => {}
        }
    }
    if issued { Arrival::Issued } else { Arrival::Queued }
}

pub(super) fn parse(line: &str, arrival: Arrival) -> Result<Line, Misfit> {
    let text = line.trim();
    if text.is_empty() || SUMMARY.iter().any(|start| text.starts_with(start)) {
        return Ok(Line::Nothing);
    }
    let mut fields = text.split_ascii_whitespace();
    let header = [(); 7].map(|()| fields.next());
    let [Some(device), Some(_cpu), Some(_sequence), Some(at), Some(_pid), Some(action), rwbs] = header else {
        return Err(Misfit::new(quoted(text), NAMES));
    };
    if !is_device(device) {
        return Err(wrong("MAJOR,MINOR", device, "two numbers, such as 8,16"));
    }
    if !action.starts_with(|letter| ACTIONS.contains(letter)) {
        return Err(wrong("ACTION", action, format_args!("one of {ACTIONS}")));
    }
    let at = seconds("SECONDS", at)?;
    let taken = match arrival {
        Arrival::Queued => "Q",
        Arrival::Issued => "D",
    };
    if action != taken {
        return Ok(Line::Nothing);
    }
    let kind = rwbs.and_then(kind);
    let (Some(kind), Some(first), Some("+"), Some(count)) =
        (kind, fields.next(), fields.next(), fields.next())
    else {
        return Ok(Line::Other);
    };
    Ok(Line::Request(Recorded { at, kind, offset: sector("SECTOR", first)?, length: sectors(count)? }))
}

fn is_device(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    text.split_once(',').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// `R` or `W` stand for the data. An `F` (flush first) may stand before them, modifiers after them. `D` is a
/// discard: it transfers nothing although it counts as a write. `N` transfers nothing either.
fn kind(rwbs: &str) -> Option<IoKind> {
    match rwbs.trim_start_matches('F').chars().next()? {
        'R' => Some(IoKind::Read),
        'W' => Some(IoKind::Write),
        _ => None,
    }
}

fn sectors(text: &str) -> Result<u32, Misfit> {
    let sectors: u64 = number("SECTORS", text)?;
    let bytes = sectors.checked_mul(SECTOR).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| wrong("SECTORS", text, "1 to 8388607"))
}

#[cfg(test)]
mod tests {
    use weir_model::Span;

    use super::*;

    const QUEUED: &str = "  8,0    3        1     1.000000697   697  Q   W 223490 + 8 [kjournald]";

    #[test]
    fn what_is_queued_is_a_request_in_sectors_of_512_bytes() {
        let request = Recorded {
            at: Span::from_nanos(1_000_000_697),
            kind: IoKind::Write,
            offset: 223_490 * 512,
            length: 4_096,
        };
        assert_eq!(parse(QUEUED, Arrival::Queued), Ok(Line::Request(request)));
        let with_elapsed_time = QUEUED.replace("+ 8", "+ 8 (     123)");
        assert_eq!(parse(&with_elapsed_time, Arrival::Queued), Ok(Line::Request(request)));
        let ahead = QUEUED.replace(" W ", " RAM ");
        let read = Recorded { kind: IoKind::Read, ..request };
        assert_eq!(parse(&ahead, Arrival::Queued), Ok(Line::Request(read)));
        let flush_first = QUEUED.replace(" W ", " FWFS ");
        assert_eq!(parse(&flush_first, Arrival::Queued), Ok(Line::Request(request)));
    }

    #[test]
    fn the_other_steps_of_a_request_and_the_summary_are_none() {
        for line in [
            "  8,0    3       11     0.009507758   697  C   W 223490 + 8 [0]",
            "  8,0    3        2     0.000001829   697  G   W 223490 + 8 [kjournald]",
            "  8,0    3        3     0.000002197   697  P   N [kjournald]",
            "  8,0    3        9     0.000008000   697 UT   N [kworker/0:1 x] 1",
            "  8,0    0        0     0.000012000     0  m   N cfq697 insert_request",
            "  8,0    3        8     0.000005000   697  D   W 223490 + 8 [kjournald]",
            "CPU3 (sda):",
            " Reads Queued:           0,        0KiB\t Writes Queued:         128,      512KiB",
            " Read depth:             0        \t Write depth:            32",
            "Throughput (R/W): 0KiB/s / 2,000KiB/s",
            "Events (sda): 42 entries",
            "Skips: 0 forward (0 -   0.0%)",
            "",
        ] {
            assert_eq!(parse(line, Arrival::Queued), Ok(Line::Nothing), "{line}");
        }
    }

    #[test]
    fn discards_flushes_and_pass_through_commands_are_of_another_kind() {
        for line in [
            "8,0 1 5 0.5 9 Q D 1024 + 2048 [fstrim]",
            "8,0 1 5 0.5 9 Q FN [fsync]",
            "8,0 1 5 0.5 9 Q R 36 (12 00 00 00 24 00 ..) [hdparm]",
            "8,0 1 5 0.5 9 Q N [x]",
        ] {
            assert_eq!(parse(line, Arrival::Queued), Ok(Line::Other), "{line}");
        }
    }

    #[test]
    fn what_was_issued_is_taken_where_nothing_was_recorded_as_queued() {
        let issued = QUEUED.replace('Q', "D");
        assert_eq!(arrival([issued.as_str(), QUEUED].into_iter()), Arrival::Queued);
        assert_eq!(arrival([issued.as_str(), "CPU0 (sda):"].into_iter()), Arrival::Issued);
        assert!(matches!(parse(&issued, Arrival::Issued), Ok(Line::Request(_))));
        assert_eq!(parse(QUEUED, Arrival::Issued), Ok(Line::Nothing));
    }

    #[test]
    fn a_line_that_is_none_says_which_field_and_what_it_takes() {
        let found = |line| parse(line, Arrival::Queued).unwrap_err().found;
        assert_eq!(found("nonsense"), "\"nonsense\"");
        assert_eq!(found("sda 1 5 0.5 9 Q R 1 + 8 [x]"), "\"sda\" as MAJOR,MINOR");
        assert_eq!(found("8,0 1 5 0.5 9 Z R 1 + 8 [x]"), "\"Z\" as ACTION");
        assert_eq!(found("8,0 1 5 now 9 Q R 1 + 8 [x]"), "\"now\" as SECONDS");
        assert_eq!(found("8,0 1 5 0.5 9 Q R 1 + 0 [x]"), "\"0\" as SECTORS");
    }
}
