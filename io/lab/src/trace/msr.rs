//! The traces of Microsoft Research Cambridge (SNIA IOTTA, block traces 388): lines of
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! The timestamp is the time at which the request was issued, as a Windows file time: units of 100 ns since
//! the year 1601. `Type` is `Read` or `Write`. Offset and size are in bytes (README of the traces). The
//! reader ignores the response time, because a replay measures its own. A file holds one disk. If files were
//! put together, all disks are one address space.

use weir_model::{IoKind, Span};

use super::line::{Line, Misfit, Recorded, fields, length, number, wrong};

const NAMES: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

pub(super) fn parse(line: &str) -> Result<Line, Misfit> {
    if line.trim().is_empty() || line.trim() == NAMES {
        return Ok(Line::Nothing);
    }
    let [at, _host, _disk, operation, offset, bytes, _response_time] = fields(line, NAMES, false)?;
    let kind = match operation {
        _ if operation.eq_ignore_ascii_case("Read") => IoKind::Read,
        _ if operation.eq_ignore_ascii_case("Write") => IoKind::Write,
        _ => return Err(wrong("Type", operation, "Read or Write")),
    };
    Ok(Line::Request(Recorded {
        at: file_time(at)?,
        kind,
        offset: number("Offset", offset)?,
        length: length("Size", bytes)?,
    }))
}

/// Time since 1601; up to the year 2185.
fn file_time(text: &str) -> Result<Span, Misfit> {
    let ticks: u64 = number("Timestamp", text)?;
    let nanos =
        ticks.checked_mul(100).ok_or_else(|| wrong("Timestamp", text, "a time before the year 2185"))?;
    Ok(Span::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_file_time_in_steps_of_100_ns_and_a_range_in_bytes() {
        assert_eq!(
            parse("128166372003061629,usr,0,Read,7014609920,24576,41286"),
            Ok(Line::Request(Recorded {
                at: Span::from_nanos(12_816_637_200_306_162_900),
                kind: IoKind::Read,
                offset: 7_014_609_920,
                length: 24_576,
            }))
        );
        assert!(matches!(parse("1,hm,1,Write,0,512,9"), Ok(Line::Request(r)) if r.kind == IoKind::Write));
        assert_eq!(parse(NAMES), Ok(Line::Nothing));
    }

    #[test]
    fn a_line_that_is_none_says_which_field_and_what_it_takes() {
        let misfit = |line| parse(line).unwrap_err();
        assert_eq!(misfit("1,hm,1,Trim,0,512,9"), wrong("Type", "Trim", "Read or Write"));
        assert!(misfit("18446744073709551615,hm,1,Read,0,512,9").accepted.contains("2185"));
        assert!(misfit("1,hm,1,Read,0,512").accepted.starts_with("7 fields: Timestamp,Hostname"));
    }
}
