//! Properties of the reply decoder, for any bytes.

use proptest::prelude::*;

use super::*;

/// Noise with magic numbers strewn in: it gets past the first check more often than plain noise.
fn near_replies() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec()),
        (0..2u16, prop_oneof![0..6u16, Just(chunk_type::ERROR)], 0..3u64, 0..64u32).prop_map(
            |(flags, kind, cookie, length)| {
                let mut out = wire::STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
                out.extend(flags.to_be_bytes());
                out.extend(kind.to_be_bytes());
                out.extend(cookie.to_be_bytes());
                out.extend(length.to_be_bytes());
                out
            }
        ),
        (0..3u32, 0..3u64).prop_map(|(error, cookie)| {
            let mut out = wire::SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec();
            out.extend(error.to_be_bytes());
            out.extend(cookie.to_be_bytes());
            out
        }),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(Just(0u8), 0..40),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn run(structured: bool, pieces: &[&[u8]]) -> Result<Vec<Reply>, ReplyError> {
    let mut decoder = ReplyDecoder::new(structured);
    let mut replies = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(reply) = decoder.next_reply(&mut input, |cookie| {
            (cookie < 2).then_some(Awaited { offset: 0, data: if cookie == 0 { 16 } else { 0 } })
        })? {
            replies.push(reply);
        }
    }
    Ok(replies)
}

/// Like `run`, for a caller that takes the data off.
fn receive(structured: bool, pieces: &[&[u8]]) -> Result<Vec<Received>, ReplyError> {
    let mut decoder = ReplyDecoder::new(structured);
    let mut received = Vec::new();
    let mut data = 0;
    for piece in pieces {
        let mut input = *piece;
        loop {
            let taken = input.len().min(data);
            data -= taken;
            input = &input[taken..];
            if data > 0 {
                break;
            }
            let awaited = |cookie| {
                (cookie < 2).then_some(Awaited { offset: 0, data: if cookie == 0 { 16 } else { 0 } })
            };
            let Some(next) = decoder.next_received(&mut input, awaited)? else { break };
            match next {
                Received::Data { start, length, .. } => {
                    assert!(length > 0 && start + length <= 16, "it lies within the read");
                    data = length as usize;
                }
                Received::Zeroes { start, length, .. } => {
                    assert!(length > 0 && start + length <= 16, "it lies within the read");
                }
                Received::Reply(_) => {}
            }
            received.push(next);
        }
    }
    Ok(received)
}

proptest! {
    #[test]
    fn no_bytes_panic_and_no_split_changes_what_they_mean(
        structured: bool,
        bytes in near_replies(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = run(structured, &[&bytes]);
        let (front, back) = bytes.split_at(cut.index(bytes.len() + 1));
        prop_assert_eq!(&run(structured, &[front, back]), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&run(structured, &single), &whole);
        let with_data = receive(structured, &[&bytes]);
        prop_assert_eq!(&receive(structured, &[front, back]), &with_data);
        prop_assert_eq!(&receive(structured, &single), &with_data);
        let replies = with_data.map(|received| {
            let reply = |received| if let Received::Reply(reply) = received { Some(reply) } else { None };
            received.into_iter().filter_map(reply).collect::<Vec<_>>()
        });
        prop_assert_eq!(replies, whole);
    }
}
