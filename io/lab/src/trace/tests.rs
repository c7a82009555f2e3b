//! Claims about the reader that hold for every format.

use std::fmt::Write as _;
use std::io::Write as _;

use weir_model::IoKind;

use super::*;

const CSV: &str = "t_us,op,offset,length\n100,R,0,512\n250,W,4096,8192\n";

fn reader(text: impl Into<Vec<u8>>) -> Result<TraceReader, TraceError> {
    TraceReader::new("t.csv".to_owned(), io::Cursor::new(text.into()), None)
}

fn requests(text: impl Into<Vec<u8>>) -> Vec<TraceRequest> {
    reader(text).unwrap().map(Result::unwrap).collect()
}

fn request(at_us: u64, kind: IoKind, offset: u64, length: u32) -> TraceRequest {
    TraceRequest { at: Span::from_micros(at_us), kind, offset, length }
}

#[test]
fn times_count_from_the_first_request_on() {
    let expected = [request(0, IoKind::Read, 0, 512), request(150, IoKind::Write, 4096, 8192)];
    assert_eq!(requests(CSV), expected);
}

#[test]
fn compression_is_told_by_the_content() {
    let plain = requests(CSV);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(CSV.as_bytes()).unwrap();
    assert_eq!(requests(gzip.finish().unwrap()), plain);
    assert_eq!(requests(zstd::encode_all(CSV.as_bytes(), 1).unwrap()), plain);
}

#[test]
fn a_file_that_was_compressed_in_pieces_is_read_to_its_end() {
    let gzip = |text: &str| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    };
    assert_eq!(requests([gzip(CSV), gzip("300,R,0,512\n")].concat()).len(), 3);
}

#[test]
fn a_compressed_file_that_is_cut_off_is_an_error_with_its_line() {
    let mut text = CSV.to_owned();
    (0..100_000).for_each(|n| writeln!(text, "{},R,{},512", 300 + n, (n * 7_919) % 4_000_000).unwrap());
    let whole = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let cut = whole[..whole.len() / 2].to_vec();
    let last = reader(cut).unwrap().last().unwrap().unwrap_err();
    assert!(matches!(last, TraceError::Read { line, .. } if line > 3), "{last}");
}

#[test]
fn the_format_is_found_out_from_the_first_lines() {
    for (text, format) in [
        (CSV, Format::Csv),
        ("0,R,0,512\n", Format::Csv),
        ("128166372003061629,usr,0,Read,7014609920,24576,41286\n", Format::Msr),
        ("0,303567,3584,w,0.000000\n", Format::Spc),
        ("Input file sda.0 added\n  8,0    3  1  0.0   697  Q   W 223490 + 8 [x]\n", Format::Blkparse),
        ("fio version 2 iolog\n/dev/sdb add\n", Format::Iolog),
        ("fio version 3 iolog\n", Format::Iolog),
        ("t_us,op,offset,length\n", Format::Csv),
        ("rubbish\n0,R,0,512\n", Format::Csv),
    ] {
        assert_eq!(reader(text).unwrap().format(), format, "{text}");
    }
}

#[test]
fn a_file_of_no_format_says_what_it_begins_with_and_what_is_accepted() {
    let message = |text: &str| reader(text).err().unwrap().to_string();
    assert!(
        message("hello\n")
            .starts_with("t.csv:1: found \"hello\", and nothing below it that would be a trace")
    );
    assert!(message("").contains("found an empty file"));
    for format in Format::ALL {
        assert!(message("hello\n").contains(&format!("{} (", format.name())));
    }
}

#[test]
fn a_format_that_is_given_is_the_only_one_that_is_tried() {
    let open = |format| TraceReader::new("t".to_owned(), CSV.as_bytes(), Some(format));
    assert!(open(Format::Csv).is_ok());
    let message = open(Format::Spc).err().unwrap().to_string();
    assert!(message.ends_with("accepted: spc (ASU,LBA,Size,Opcode,Timestamp)"), "{message}");
    assert!(Format::ALL.iter().all(|format| Format::by_name(format.name()) == Some(*format)));
}

#[test]
fn the_first_broken_line_is_an_error_with_its_number_and_ends_the_reading() {
    let mut reader = reader(format!("{CSV}oops\n400,R,0,512\n")).unwrap();
    assert!(reader.by_ref().take(2).all(|request| request.is_ok()));
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "t.csv:4: found \"oops\"; accepted: 4 fields: t_us,op,offset,length");
    assert!(reader.next().is_none());
}

#[test]
fn broken_lines_that_are_to_be_skipped_are_counted_and_the_first_ten_are_kept() {
    let mut text = CSV.to_owned();
    (0..25).for_each(|n| writeln!(text, "oops {n}").unwrap());
    text.push_str("400,R,0,512\n");
    let reader = reader(text).unwrap().skip_broken(true);
    let account = reader.account();
    assert_eq!(reader.filter_map(Result::ok).count(), 3);
    let remarks = account.remarks();
    assert_eq!((remarks.broken, remarks.first_broken.len()), (25, 10));
    assert!(remarks.first_broken[9].starts_with("t.csv:13: found \"oops 9\""), "{remarks:?}");
}

#[test]
fn a_request_behind_a_later_one_comes_with_it_and_one_far_behind_is_broken() {
    let reader = reader("5000000,R,0,512\n4000000,R,512,512\n3000000,R,0,512\n").unwrap();
    let account = reader.account();
    let read: Vec<_> = reader.collect();
    assert_eq!(read[1].as_ref().unwrap(), &request(0, IoKind::Read, 512, 512));
    let error = read[2].as_ref().unwrap_err().to_string();
    let expected =
        "t.csv:3: found a time 2s before that of a line above; accepted: lines by time, give or take 1s";
    assert_eq!(error, expected);
    let remarks = account.remarks();
    assert_eq!((remarks.out_of_order, remarks.failure.as_deref()), (1, Some(expected)));
}

#[test]
fn a_request_a_day_after_the_one_before_is_read_and_one_that_comes_later_is_broken() {
    let day = 24 * 3_600 * 1_000_000_u64;
    let read = |second| reader(format!("0,R,0,512\n{second},R,0,512\n")).unwrap().last().unwrap();
    assert_eq!(read(day).unwrap().at, Span::from_micros(day));
    let error = read(day + 1).unwrap_err().to_string();
    assert!(error.contains("t.csv:2: found a time") && error.contains("without a request"), "{error}");
}

#[test]
fn what_is_neither_a_read_nor_a_write_is_left_out_and_counted() {
    let reader =
        reader("fio version 3 iolog\n0 f add\n10 f read 0 512\n20 f sync 0 0\n30 f trim 0 512\n").unwrap();
    let account = reader.account();
    assert_eq!(reader.map(Result::unwrap).count(), 1);
    assert_eq!(account.remarks().others, 2);
}

#[test]
fn bytes_count_as_they_are_in_the_file() {
    let packed = zstd::encode_all(CSV.as_bytes(), 1).unwrap();
    let size = packed.len() as u64;
    let reader = reader(packed).unwrap();
    let account = reader.account();
    assert_eq!(reader.count(), 2);
    assert_eq!(account.bytes_read(), size);
}

/// A file that never ends, made of many lines or of one line.
struct Endless(&'static [u8], usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for byte in &mut *buffer {
            *byte = self.0[self.1 % self.0.len()];
            self.1 += 1;
        }
        Ok(buffer.len())
    }
}

#[test]
fn however_long_a_trace_is_no_more_than_a_line_of_it_is_kept() {
    let endless = Endless(b"7,R,4096,512\n", 0);
    let mut reader = TraceReader::new("endless".to_owned(), endless, None).unwrap();
    for _ in 0..500_000 {
        assert_eq!(reader.next().unwrap().unwrap(), request(0, IoKind::Read, 4096, 512));
    }
    assert!(reader.line.capacity() <= 2 * MOST_BYTES, "{} bytes", reader.line.capacity());
}

#[test]
fn a_line_without_end_is_broken_and_not_kept() {
    let text = format!("{CSV}{}\n400,R,0,512\n", "9".repeat(1 << 20));
    let reader = reader(text).unwrap().skip_broken(true);
    let account = reader.account();
    assert_eq!(reader.map(Result::unwrap).count(), 3);
    assert_eq!(
        account.remarks().first_broken,
        ["t.csv:4: found a line that goes on; accepted: at most 4096 bytes".to_owned()]
    );
}

#[test]
fn bytes_that_are_no_text_are_a_broken_line() {
    let mut text = CSV.as_bytes().to_vec();
    text.extend(b"\xff\xfe\n");
    let error = reader(text).unwrap().last().unwrap().unwrap_err().to_string();
    assert_eq!(error, "t.csv:4: found bytes that are no text; accepted: UTF-8");
}
