//! Recorded block I/O in any of its formats: lines in, requests out.

use std::fmt::Write;
use std::io::Cursor;

use weir_lab::trace::{Format, TraceReader};
use weir_model::{IoKind, Span};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "trace",
    run,
    seeds,
    words: &[
        b",",
        b" ",
        b"-1",
        b"18446744073709551615",
        b"4294967296",
        b"0.000000001",
        b"R",
        b"Read",
        b"Q",
        b"\xff",
        b"fio version 2 iolog\n",
    ],
    must_reach: &[
        "csv",
        "msr",
        "spc",
        "blkparse",
        "iolog",
        "no format",
        "broken line",
        "request",
        "out of order",
    ],
};

/// The most bytes of a line that a message repeats.
const MOST_SAID: usize = 1024;

fn seeds() -> Vec<Script> {
    let blkparse = "Input file sda.0 added\n  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n  \
                    8,0    3        2     0.000009000   697  D   W 223490 + 8 [kjournald]\n  8,0    3        3     0.100000001   \
                    698  Q  FN [fsync]\n  8,0    1        4     0.100000000   698  Q   R 7 + 16 [cat]\nCPU0 (sda):\n Reads Queued: 1\n";
    [
        "t_us,op,offset,length\n100,R,0,512\n250,W,4096,8192\n240,R,0,512\n",
        "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,2517696512,4096,703\n",
        "0,303567,3584,w,0.000000\n1,1209856,8192,R,0.026214\n0,9,512,r,0.026213,more\n",
        blkparse,
        "fio version 2 iolog\n/dev/sdb add\n/dev/sdb open\n/dev/sdb read 0 4096\n/dev/sdb wait 10 0\n/dev/sdb write 4096 512\n/dev/sdb sync 0 0\n",
        "hello\n",
        "0,R,0,512\nhello\n1,R,0,512\n",
        "fio version 3 iolog\n0 f add\n10 f read 0 512\n20 f sync 0 0\n30 f trim 0 512\n25 f write 0 512\n",
    ]
    .into_iter()
    .map(Script::of_lines)
    .collect()
}

fn run(script: &Script, seen: &mut Seen) {
    let text = script.joined();
    read(&text, None, seen);
    for format in Format::ALL {
        read(&text, Some(format), &mut Seen::default());
    }
}

fn read(text: &[u8], format: Option<Format>, seen: &mut Seen) {
    let lines = text.split(|byte| *byte == b'\n').count();
    (0..lines).for_each(|_| seen.message());
    let Ok(reader) = TraceReader::new("t".to_owned(), Cursor::new(text.to_vec()), format) else {
        return seen.reach("no format");
    };
    seen.reach(reader.format().name());
    let reader = reader.skip_broken(true);
    let account = reader.account();
    let (mut last, mut requests) = (Span::ZERO, Vec::new());
    for request in reader {
        let request = request.expect("broken lines are skipped, and memory can be read");
        assert!(request.length > 0 && last <= request.at, "{request:?} after {last}");
        last = request.at;
        requests.push(request);
        seen.reach("request");
    }
    let remarks = account.remarks();
    assert!(requests.len() + usize::try_from(remarks.broken + remarks.others).unwrap_or(usize::MAX) <= lines);
    assert!(remarks.first_broken.len() <= 10);
    assert!(remarks.first_broken.iter().all(|said| said.len() <= MOST_SAID), "{remarks:?}");
    if remarks.broken > 0 {
        seen.reach("broken line");
    }
    if remarks.out_of_order > 0 {
        seen.reach("out of order");
    }
    if !requests.is_empty() && requests.iter().all(|request| request.at.as_nanos() % 1000 == 0) {
        let mut csv = String::from("t_us,op,offset,length\n");
        for request in &requests {
            let op = if request.kind == IoKind::Read { 'R' } else { 'W' };
            let _ = writeln!(csv, "{},{op},{},{}", request.at.as_micros(), request.offset, request.length);
        }
        let again = TraceReader::new("again".to_owned(), Cursor::new(csv), Some(Format::Csv));
        let again: Vec<_> =
            again.expect("it is CSV").map(|request| request.expect("it was written so")).collect();
        assert_eq!(again, requests, "what was read is what is written");
    }
}
