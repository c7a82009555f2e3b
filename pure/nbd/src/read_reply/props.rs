//! Property: the pieces of a reply to a read make up its data.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::fields::Fields;
use crate::fixtures::{session, simple_session};

/// The data that a client gets from a structured reply. Checks every rule for chunks.
fn reassemble(command: &Command, data: &[u8]) -> (Vec<u8>, usize) {
    let mut result = vec![0xaa; data.len()];
    let mut next_offset = command.offset;
    let mut chunks = 0;
    let mut done = false;
    for piece in read_reply(&session(), command, data) {
        assert!(!done, "nothing follows the last chunk");
        chunks += 1;
        let mut fields = Fields::new(&piece.header);
        assert_eq!(fields.u32(), Some(wire::STRUCTURED_REPLY_MAGIC));
        done = fields.u16() == Some(chunk_flag::DONE);
        let kind = fields.u16().unwrap();
        assert_eq!(fields.u64(), Some(command.cookie));
        let payload = fields.u32().unwrap() as usize;
        assert_eq!(piece.header.len() + piece.data.len(), wire::CHUNK_HEADER_LENGTH + payload);
        assert_eq!(fields.u64(), Some(next_offset), "chunks are in order and do not overlap");
        let start = usize::try_from(next_offset - command.offset).unwrap();
        let length = if kind == chunk_type::OFFSET_HOLE {
            let length = fields.u32().unwrap() as usize;
            result[start..start + length].fill(0);
            length
        } else {
            assert_eq!(kind, chunk_type::OFFSET_DATA);
            result[start..start + piece.data.len()].copy_from_slice(&data[piece.data.clone()]);
            piece.data.len()
        };
        assert!(fields.is_empty() && length > 0);
        next_offset += length as u64;
    }
    assert!(done);
    (result, chunks)
}

/// Stretches of zeroes and of other bytes, with lengths around that of a granule.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![1_usize..100, 65_000_usize..66_000, Just(65_536), 1_usize..200_000];
    let byte = prop_oneof![3 => Just(0_u8), 2 => 1_u8..];
    vec((length, byte), 1..6).prop_map(|stretches| {
        stretches.into_iter().flat_map(|(length, byte)| std::iter::repeat_n(byte, length)).collect()
    })
}

proptest! {
    #[test]
    fn reassembling_the_pieces_gives_the_data(
        data in data(),
        offset in prop_oneof![Just(0), 0_u64..200_000, (0_u64..8).prop_map(|n| n << 16)],
        cookie: u64,
        dont_fragment: bool,
    ) {
        let length = u32::try_from(data.len()).unwrap();
        let command = Command { dont_fragment, ..Command::new(CommandKind::Read, cookie, offset, length) };
        let (reassembled, chunks) = reassemble(&command, &data);
        prop_assert!(reassembled == data);
        prop_assert!(!dont_fragment || chunks == 1);
        prop_assert!(chunks <= data.len() / 65_536 + 2);

        let simple: Vec<Piece> = read_reply(&simple_session(), &command, &data).collect();
        prop_assert_eq!(simple.len(), 1);
        prop_assert_eq!(&simple[0].data, &(0..data.len()));
    }
}
