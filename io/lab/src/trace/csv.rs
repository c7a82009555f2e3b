//! Comma-separated values with the header `t_us,op,offset,length`: microseconds since the first request, `R`
//! or `W`, bytes, bytes. It is the only format here that was made for replaying: sorted, in bytes, and with
//! nothing to leave out.

use weir_model::{IoKind, Span};

use super::line::{Line, Misfit, Recorded, fields, length, number, wrong};

/// The first line.
pub(super) const HEADER: &str = "t_us,op,offset,length";

pub(super) fn parse(line: &str) -> Result<Line, Misfit> {
    if line.trim().is_empty() || line.trim() == HEADER {
        return Ok(Line::Nothing);
    }
    let [at, operation, offset, bytes] = fields(line, HEADER, false)?;
    let kind = match operation {
        "R" => IoKind::Read,
        "W" => IoKind::Write,
        _ => return Err(wrong("op", operation, "R or W")),
    };
    Ok(Line::Request(Recorded {
        at: Span::from_micros(number("t_us", at)?),
        kind,
        offset: number("offset", offset)?,
        length: length("length", bytes)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_in_microseconds_an_operation_and_a_range_in_bytes() {
        let request = |at, kind, offset, length| {
            Ok(Line::Request(Recorded { at: Span::from_micros(at), kind, offset, length }))
        };
        assert_eq!(
            parse("449518,W,19336661504,7168"),
            request(449_518, IoKind::Write, 19_336_661_504, 7_168)
        );
        assert_eq!(parse("0,R,0,512\r"), request(0, IoKind::Read, 0, 512));
        assert_eq!(parse(HEADER), Ok(Line::Nothing));
        assert_eq!(parse(""), Ok(Line::Nothing));
    }

    #[test]
    fn a_line_that_is_none_says_which_field_and_what_it_takes() {
        let message = |line| parse(line).map_err(|misfit| format!("{}; {}", misfit.found, misfit.accepted));
        assert_eq!(message("0,x,0,512"), Err("\"x\" as op; R or W".to_owned()));
        assert_eq!(message("-1,R,0,512"), Err("\"-1\" as t_us; a whole number".to_owned()));
        assert_eq!(message("0,R,0"), Err("\"0,R,0\"; 4 fields: t_us,op,offset,length".to_owned()));
        assert!(message("0,R,0,512,7").unwrap_err().ends_with("4 fields: t_us,op,offset,length"));
        assert!(message("0,R,0,0").unwrap_err().starts_with("\"0\" as length; a number of bytes from 1"));
        assert!(message("0,R,0,4294967296").is_err());
    }
}
