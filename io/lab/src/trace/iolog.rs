//! fio's iolog, versions 2 and 3 (HOWTO of fio, "Trace file format"). The first line names the version. The
//! lines after it are `filename action [offset length]`; in version 3 a time stands before them.
//!
//! **Times in version 3.** The documentation leaves the unit open. fio writes microseconds since the start of
//! the job, and reads them as such (`iolog.c`, `log_io_u` and `iolog_delay`, as of version 3.42).
//!
//! **Times in version 2.** Only `wait` lines tell time. The documentation says that their number means
//! microseconds after the `wait` before. But fio has always slept until so many **milliseconds after the
//! start** (`read_iolog_get`: `mtime_since_genesis`). The reader follows fio and not its documentation,
//! because people tried their traces with fio; fio's own issue 756 explains it in the same way. All requests
//! between two `wait` lines come at one instant. fio itself writes logs without `wait` lines, and all
//! requests of such a log come at once: the log names the requests, but not their times.
//!
//! All files are one address space. `sync`, `datasync` and `trim` are requests of another kind.

use weir_model::{IoKind, Span};

use super::line::{Line, Misfit, Recorded, length, number, quoted, wrong};

/// The first line, by version.
const HEADERS: [(&str, Version); 2] =
    [("fio version 2 iolog", Version::Two { clock: Span::ZERO }), ("fio version 3 iolog", Version::Three)];

/// The version, and the time that the lines so far have told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Two {
        /// The time of the last `wait`.
        clock: Span,
    },
    Three,
}

/// The version that this first line names.
pub(super) fn version(line: &str) -> Option<Version> {
    // Like fio, the reader ignores the rest of the line.
    HEADERS.iter().find(|(header, _)| line.starts_with(header)).map(|(_, version)| *version)
}

/// The accepted first lines, for a message.
pub(super) fn headers() -> String {
    HEADERS.map(|(header, _)| format!("{header:?}")).join(" or ")
}

pub(super) fn parse(line: &str, version: &mut Version) -> Result<Line, Misfit> {
    if line.trim().is_empty() || self::version(line).is_some() {
        return Ok(Line::Nothing);
    }
    let mut fields = line.split_ascii_whitespace();
    let at = match version {
        Version::Two { clock } => *clock,
        Version::Three => Span::from_micros(number("timestamp", fields.next().unwrap_or_default())?),
    };
    let (_file, action, rest) = (fields.next(), fields.next(), (fields.next(), fields.next()));
    match (action, rest) {
        (Some("add" | "open" | "close"), (None, None)) => Ok(Line::Nothing),
        (Some("read"), (Some(offset), Some(bytes))) => request(at, IoKind::Read, offset, bytes),
        (Some("write"), (Some(offset), Some(bytes))) => request(at, IoKind::Write, offset, bytes),
        (Some("sync" | "datasync" | "trim"), (Some(_), Some(_))) => Ok(Line::Other),
        (Some("wait"), (Some(until), Some(_))) => match version {
            Version::Two { clock } => {
                *clock = Span::from_millis(number("wait", until)?).max(*clock);
                Ok(Line::Nothing)
            }
            Version::Three => {
                Err(wrong("action", "wait", "anything else: version 3 has a time on each line"))
            }
        },
        _ => Err(Misfit::new(quoted(line.trim()), accepted(*version))),
    }
}

fn request(at: Span, kind: IoKind, offset: &str, bytes: &str) -> Result<Line, Misfit> {
    let (offset, length) = (number("offset", offset)?, length("length", bytes)?);
    Ok(Line::Request(Recorded { at, kind, offset, length }))
}

const fn accepted(version: Version) -> &'static str {
    match version {
        Version::Two { .. } => {
            "FILE add|open|close, or FILE read|write|sync|datasync|trim|wait OFFSET LENGTH, as in version 2"
        }
        Version::Three => {
            "TIMESTAMP FILE add|open|close, or TIMESTAMP FILE read|write|sync|datasync|trim OFFSET LENGTH, as in version 3"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(at: Span, offset: u64) -> Result<Line, Misfit> {
        Ok(Line::Request(Recorded { at, kind: IoKind::Read, offset, length: 4_096 }))
    }

    #[test]
    fn the_first_line_names_the_version() {
        assert_eq!(version("fio version 2 iolog\r"), Some(Version::Two { clock: Span::ZERO }));
        assert_eq!(version("fio version 3 iolog"), Some(Version::Three));
        assert_eq!(version("fio version 1 iolog"), None);
        assert_eq!(headers(), r#""fio version 2 iolog" or "fio version 3 iolog""#);
    }

    #[test]
    fn in_version_2_a_wait_is_until_so_many_milliseconds_after_the_start() {
        let mut version = version("fio version 2 iolog").unwrap();
        let mut parse = |line| parse(line, &mut version);
        assert_eq!(parse("/dev/sdb add"), Ok(Line::Nothing));
        assert_eq!(parse("/dev/sdb open"), Ok(Line::Nothing));
        assert_eq!(parse("/dev/sdb read 512 4096"), read(Span::ZERO, 512));
        assert_eq!(parse("/dev/sdb wait 5000 0"), Ok(Line::Nothing));
        assert_eq!(parse("/dev/sdb wait 4000 0"), Ok(Line::Nothing));
        assert_eq!(parse("/dev/sdb read 1024 4096"), read(Span::from_secs(5), 1_024));
        assert_eq!(parse("/dev/sdb sync 0 0"), Ok(Line::Other));
        assert_eq!(parse("/dev/sdb close"), Ok(Line::Nothing));
    }

    #[test]
    fn in_version_3_each_line_has_a_time_in_microseconds() {
        let mut version = Version::Three;
        let mut parse = |line| parse(line, &mut version);
        assert_eq!(parse("12 /dev/sdb add"), Ok(Line::Nothing));
        assert_eq!(parse("1500 /dev/sdb read 512 4096"), read(Span::from_micros(1_500), 512));
        assert_eq!(parse("1600 /dev/sdb trim 512 4096"), Ok(Line::Other));
        assert!(parse("1700 /dev/sdb wait 512 0").unwrap_err().accepted.contains("version 3"));
    }

    #[test]
    fn a_line_that_is_none_says_what_is_accepted() {
        let mut two = version("fio version 2 iolog").unwrap();
        assert!(parse("/dev/sdb erase 0 512", &mut two).unwrap_err().accepted.ends_with("as in version 2"));
        assert!(parse("/dev/sdb read 0", &mut two).is_err());
        assert_eq!(parse("/dev/sdb read x 512", &mut two).unwrap_err().found, "\"x\" as offset");
        assert_eq!(
            parse("/dev/sdb add", &mut Version::Three).unwrap_err().found,
            "\"/dev/sdb\" as timestamp"
        );
    }
}
