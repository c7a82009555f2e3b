//! SPC trace files ("SPC Trace File Format Specification", revision 1.0.1, Storage Performance Council,
//! 2002): lines of `ASU,LBA,Size,Opcode,Timestamp`, then optional further fields. The `Financial` and
//! `WebSearch` traces of the UMass repository have this format.
//!
//! The address is in blocks of 512 bytes, the size in bytes, the time in seconds with decimals since the
//! start. An opcode is `R` or `W` in either case. Fields may have white space around them. All
//! application-specific units (ASU) are one address space here, each of them from zero on. To replay unit by
//! unit, split the trace first.

use weir_model::IoKind;

use super::line::{Line, Misfit, Recorded, fields, length, number, seconds, sector, wrong};

const NAMES: &str = "ASU,LBA,Size,Opcode,Timestamp";

pub(super) fn parse(line: &str) -> Result<Line, Misfit> {
    if line.trim().is_empty() {
        return Ok(Line::Nothing);
    }
    let [unit, address, bytes, operation, at] = fields(line, NAMES, true)?;
    number::<u32>("ASU", unit)?;
    let kind = match operation {
        "R" | "r" => IoKind::Read,
        "W" | "w" => IoKind::Write,
        _ => return Err(wrong("Opcode", operation, "R or W")),
    };
    Ok(Line::Request(Recorded {
        at: seconds("Timestamp", at)?,
        kind,
        offset: sector("LBA", address)?,
        length: length("Size", bytes)?,
    }))
}

#[cfg(test)]
mod tests {
    use weir_model::Span;

    use super::*;

    #[test]
    fn addresses_are_in_blocks_of_512_bytes_and_sizes_in_bytes() {
        let write = Recorded {
            at: Span::from_micros(26_214),
            kind: IoKind::Write,
            offset: 303_574 * 512,
            length: 3_584,
        };
        assert_eq!(parse("0,303574,3584,w,0.026214"), Ok(Line::Request(write)));
        assert_eq!(parse(" 0, 303574 ,3584,\tW,0.026214 ,extra,7"), Ok(Line::Request(write)));
        let read = Recorded { kind: IoKind::Read, ..write };
        assert_eq!(parse("0,303574,3584,r,0.026214\r"), Ok(Line::Request(read)));
    }

    #[test]
    fn a_line_that_is_none_says_which_field_and_what_it_takes() {
        let misfit = |line| parse(line).unwrap_err();
        assert_eq!(misfit("0,303574,3584,x,0.02"), wrong("Opcode", "x", "R or W"));
        assert_eq!(misfit("0,1,512,r,0.02s").found, "\"0.02s\" as Timestamp");
        assert_eq!(misfit("0,36028797018963968,512,r,0").accepted, "a sector below 2^55");
        assert_eq!(misfit("0,1,512,r").accepted, "5 fields: ASU,LBA,Size,Opcode,Timestamp");
    }
}
