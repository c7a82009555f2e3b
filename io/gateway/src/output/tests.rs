//! The slices that the kernel is offered, and the bytes that it takes, part by part.

use super::*;

/// A reply: its pieces, each a header and the length of its data. Its data are all the same byte.
struct Sample {
    pieces: Vec<(&'static [u8], usize)>,
    fill: u8,
}

fn sample(pieces: &[(&'static [u8], usize)], fill: u8) -> Sample {
    Sample { pieces: pieces.to_vec(), fill }
}

/// Replies with and without data, one in several pieces, and one of nothing at all.
fn samples() -> Vec<Sample> {
    vec![
        sample(&[(b"read", 5)], b'a'),
        sample(&[(b"done", 0)], 0),
        sample(&[(b"done", 0)], 0),
        sample(&[(b"chunk", 3), (b"hole", 0), (b"chunk", 7)], b'b'),
        sample(&[], 0),
        sample(&[(b"", 2)], b'c'),
        sample(&[(b"done", 0)], 0),
    ]
}

fn push(output: &mut Output, pool: &mut BufferPool, sample: &Sample, number: u64) {
    let length: usize = sample.pieces.iter().map(|(_, data)| data).sum();
    let mut at = 0;
    for (header, data) in &sample.pieces {
        output.part(at..at + data, |out| out.extend_from_slice(header));
        at += data;
    }
    let buffer = (length > 0).then(|| {
        let mut buffer = pool.take(length);
        buffer.fill(sample.fill);
        buffer
    });
    output.end(buffer, Reply { tells: NonZeroU64::new(number), ..Reply::default() });
}

fn bytes_of(sample: &Sample) -> Vec<u8> {
    sample
        .pieces
        .iter()
        .flat_map(|(header, data)| [header.to_vec(), vec![sample.fill; *data]])
        .flatten()
        .collect()
}

/// The bytes that a socket gets if it takes at most `most` bytes at a time, and after how many bytes each
/// reply ended.
fn sent(output: &mut Output, pool: &mut BufferPool, most: usize) -> (Vec<u8>, Vec<(u64, usize)>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    while !output.is_empty() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (used, offered) = output.gather(&mut slices);
        let all: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
        assert_eq!(all.len(), offered);
        assert!(slices[..used].iter().all(|slice| !slice.is_empty()));
        let taken = offered.min(most);
        bytes.extend_from_slice(&all[..taken]);
        let sent = bytes.len();
        output.advance(taken, pool, &mut |reply| ends.push((reply.tells.expect("numbered").get(), sent)));
    }
    (bytes, ends)
}

#[test]
fn a_socket_gets_all_replies_in_order_however_little_it_takes_at_a_time() {
    let samples = samples();
    let whole: Vec<u8> = samples.iter().flat_map(bytes_of).collect();
    for most in 1..=whole.len() {
        let (mut output, mut pool) = (Output::default(), BufferPool::default());
        (1..).zip(&samples).for_each(|(number, sample)| push(&mut output, &mut pool, sample, number));
        let (bytes, ends) = sent(&mut output, &mut pool, most);
        assert_eq!(bytes, whole, "{most} bytes at a time");
        assert_eq!(ends.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        let mut until = 0;
        for ((number, sent), sample) in ends.iter().zip(&samples) {
            until += bytes_of(sample).len();
            assert!(*sent >= until, "reply {number} ended after {sent} of {until} bytes");
        }
    }
}

#[test]
fn headers_without_data_between_them_are_one_slice() {
    let (mut output, mut pool) = (Output::default(), BufferPool::default());
    for number in 1..=1_000 {
        push(&mut output, &mut pool, &sample(&[(b"done", 0)], 0), number);
    }
    let mut slices = [IoSlice::new(&[]); SLICES];
    assert_eq!(output.gather(&mut slices), (1, 4_000));
}

#[test]
fn more_replies_than_slices_take_several_calls() {
    let (mut output, mut pool) = (Output::default(), BufferPool::default());
    let reply = sample(&[(b"read", 1)], b'x');
    (1..=1_000).for_each(|number| push(&mut output, &mut pool, &reply, number));
    let (bytes, ends) = sent(&mut output, &mut pool, usize::MAX);
    assert_eq!(bytes, b"readx".repeat(1_000));
    assert_eq!((ends.len(), ends[0].1), (1_000, SLICES / 2 * 5));
}
