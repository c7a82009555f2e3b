//! How many bytes of an object have passed: have left for its node, or have arrived from it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio_stream::Stream;

/// The most bytes that a connection takes at a time, so that they are counted soon before they leave. The
/// connection has up to 16 slices in its own buffer, which are counted and have not left.
const SLICE: usize = 8 << 10;

/// A count that a writer or a reader raises, and others read.
#[derive(Clone, Default, Debug)]
pub struct Passed(Arc<AtomicU64>);

impl Passed {
    pub(crate) fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicU64::new(bytes)))
    }

    /// The bytes: of a writer from the first of the object on, of a reader from the first that it reads on. A
    /// request that failed and is sent again lowers it.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take_back(&self, bytes: u64) {
        let less = |sent: u64| Some(sent.saturating_sub(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less); // it never refuses
    }
}

/// The body of a request, in slices that are counted when the connection takes them.
pub(crate) struct Counted<S, C> {
    pieces: S,
    rest: Bytes,
    count: C,
}

impl<S, C> Counted<S, C> {
    pub(crate) fn new(pieces: S, count: C) -> Self {
        Self { pieces, rest: Bytes::new(), count }
    }
}

impl<E, S: Stream<Item = Result<Bytes, E>> + Unpin, C: Fn(u64) + Unpin> Stream for Counted<S, C> {
    type Item = Result<Bytes, E>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.rest.is_empty() {
            match Pin::new(&mut self.pieces).poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => self.rest = piece,
                other => return other,
            }
        }
        let length = self.rest.len().min(SLICE);
        let slice = self.rest.split_to(length);
        (self.count)(length as u64);
        Poll::Ready(Some(Ok(slice)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_body_is_counted_slice_by_slice_and_stays_the_same() {
        let pieces = [Bytes::from(vec![1; SLICE + 5]), Bytes::new(), Bytes::from(vec![2; 3])];
        let sent = Passed::new(100);
        let stream = tokio_stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        let mut body = Counted::new(stream, |bytes| sent.add(bytes));
        let (mut lengths, mut counts, mut all) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(Ok(slice)) = body.next().await {
            lengths.push(slice.len());
            counts.push(sent.get());
            all.extend(slice);
        }
        let slice = SLICE as u64;
        assert_eq!(lengths, [SLICE, 5, 3]);
        assert_eq!(counts, [100 + slice, 105 + slice, 108 + slice]);
        assert_eq!(all, [vec![1; SLICE + 5], vec![2; 3]].concat());
    }
}
