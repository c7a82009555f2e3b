//! Tests of replies to reads: holes, fragments, flags.

use super::*;
use crate::fixtures::{session, simple_session};

const KIB: usize = 1024;

fn read(offset: u64, data: &[u8]) -> Command {
    Command::new(CommandKind::Read, 9, offset, u32::try_from(data.len()).unwrap())
}

/// Whether each piece is a hole, and the length that it stands for.
fn shape(session: &Session, command: &Command, data: &[u8]) -> Vec<(&'static str, usize)> {
    read_reply(session, command, data)
        .map(|piece| match piece.header[6..8] {
            [0, 1] => ("data", piece.data.len()),
            [0, 2] => {
                assert!(piece.data.is_empty());
                ("hole", u32::from_be_bytes(*piece.header.last_chunk().unwrap()) as usize)
            }
            _ => panic!("{piece:?}"),
        })
        .collect()
}

#[test]
fn a_simple_reply_is_one_piece_also_of_zeroes() {
    let data = [0; 512];
    let pieces: Vec<Piece> = read_reply(&simple_session(), &read(0, &data), &data).collect();
    assert_eq!(pieces.len(), 1);
    assert_eq!(pieces[0].header[..], *b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x09");
    assert_eq!(pieces[0].data, 0..512);
}

#[test]
fn a_structured_read_without_holes_is_one_last_data_chunk() {
    let data = vec![1; 200 * KIB];
    let pieces: Vec<Piece> = read_reply(&session(), &read(0x1234, &data), &data).collect();
    assert_eq!(pieces.len(), 1);
    let expected = b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x09\0\x03\x20\x08\0\0\0\0\0\0\x12\x34";
    assert_eq!(pieces[0].header[..], *expected);
    assert_eq!(pieces[0].data, 0..200 * KIB);
}

#[test]
fn a_structured_read_of_zeroes_is_one_last_hole() {
    let data = vec![0; 200 * KIB];
    let pieces: Vec<Piece> = read_reply(&session(), &read(0x1234, &data), &data).collect();
    assert_eq!(pieces.len(), 1);
    let expected =
        b"\x66\x8e\x33\xef\0\x01\0\x02\0\0\0\0\0\0\0\x09\0\0\0\x0c\0\0\0\0\0\0\x12\x34\0\x03\x20\0";
    assert_eq!(pieces[0].header[..], *expected);
    assert!(pieces[0].data.is_empty());
}

#[test]
fn runs_of_zero_granules_become_holes_between_data_and_only_the_last_chunk_is_done() {
    let mut data = vec![0; 448 * KIB];
    data[70 * KIB] = 1;
    data[130 * KIB] = 1;
    data[447 * KIB] = 1;
    let command = read(0, &data);
    let expected = [("hole", 64 * KIB), ("data", 128 * KIB), ("hole", 192 * KIB), ("data", 64 * KIB)];
    assert_eq!(shape(&session(), &command, &data), expected);
    let done: Vec<u8> = read_reply(&session(), &command, &data).map(|piece| piece.header[5]).collect();
    assert_eq!(done, [0, 0, 0, 1]);
}

#[test]
fn granules_are_aligned_in_the_export() {
    let mut data = vec![0; 128 * KIB];
    data[0] = 1;
    let command = read(60 * KIB as u64, &data);
    assert_eq!(shape(&session(), &command, &data), [("data", 4 * KIB), ("hole", 124 * KIB)]);
}

#[test]
fn a_read_that_must_not_be_fragmented_is_a_hole_only_if_all_of_it_is_zero() {
    let mut data = vec![0; 192 * KIB];
    let command = Command { dont_fragment: true, ..read(4096, &data) };
    assert_eq!(shape(&session(), &command, &data), [("hole", 192 * KIB)]);
    data[191 * KIB] = 1;
    assert_eq!(shape(&session(), &command, &data), [("data", 192 * KIB)]);
}

#[test]
fn a_single_byte_is_found_wherever_it_is() {
    for length in [1, 63, 64, 65, 200] {
        let mut data = vec![0; length];
        assert!(is_zero(&data));
        for at in 0..length {
            data[at] = 0x80;
            assert!(!is_zero(&data));
            data[at] = 0;
        }
    }
}

#[test]
#[should_panic(expected = "with all its data")]
fn fewer_data_than_asked_for_are_a_mistake_of_the_driver() {
    let _ = read_reply(&session(), &read(0, &[1, 2, 3]), &[1, 2]);
}
