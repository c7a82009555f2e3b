//! The replies of one connection that its socket has not taken yet: many in one `writev`, payload never
//! copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::ops::Range;

use weir_backend::{Buffer, BufferPool};
use weir_model::IoId;

use crate::budget::Charge;
use crate::stream::Stream;

mod spares;

pub(crate) use spares::Spares;

/// Slices handed to the kernel at a time; replies beyond them take another call. The kernel's own limit is
/// 1,024.
const SLICES: usize = 256;

/// Written header bytes after which they are cut off, for a client that never lets the queue run empty.
const HEADERS_WRITTEN_LIMIT: usize = 64 * 1024;

/// Bytes waiting for the socket, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Without memory of its own while nothing waits.
    queue: Queue,
    /// Bytes that the socket has taken in all.
    taken: u64,
}

/// The parts of replies, and what they are parts of.
#[derive(Debug, Default)]
struct Queue {
    headers: Vec<u8>,
    /// Bytes of `headers` that are written.
    headers_written: usize,
    segments: VecDeque<Segment>,
    buffers: VecDeque<Buffer>,
}

#[derive(Debug)]
enum Segment {
    /// So many further bytes of `headers`.
    Header(usize),
    /// A range of the first buffer that is not yet released.
    Data(Range<usize>),
    /// The end of a reply: what it held is free, its buffer (if it had one) included.
    End { reply: Reply, has_buffer: bool },
}

/// What a reply ends.
#[derive(Default, Debug)]
pub(crate) struct Reply {
    /// The engine's request; `None` if it was refused before it became one.
    pub(crate) request: Option<IoId>,
    /// What the request held; `None` if it was refused before it held anything.
    pub(crate) charge: Option<Charge>,
    /// Up to which loss of the volume it tells, if it does.
    pub(crate) tells: Option<NonZeroU64>,
}

impl Output {
    /// How much is waiting, in parts of replies.
    pub(crate) fn len(&self) -> usize {
        self.queue.segments.len()
    }

    /// True if everything has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.segments.is_empty()
    }

    /// How many bytes the socket has taken since the connection began.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes an empty queue of `spares`, if it has none. What is appended without that gets memory of its
    /// own.
    pub(crate) fn prepare(&mut self, spares: &mut Spares) {
        if self.queue.segments.capacity() == 0 {
            self.queue = spares.take();
        }
    }

    /// Appends header bytes through `write`, which may only append.
    pub(crate) fn header(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.queue.headers.len();
        write(&mut self.queue.headers);
        let grown = self.queue.headers.len() - before;
        match self.queue.segments.back_mut() {
            Some(Segment::Header(length)) => *length += grown,
            _ if grown > 0 => self.queue.segments.push_back(Segment::Header(grown)),
            _ => {}
        }
    }

    /// Appends a range of the buffer that the next [`Output::end`] brings.
    pub(crate) fn data(&mut self, range: Range<usize>) {
        self.queue.segments.push_back(Segment::Data(range));
    }

    /// Ends a reply: `buffer` holds the ranges appended since the end before.
    pub(crate) fn end(&mut self, buffer: Option<Buffer>, reply: Reply) {
        self.queue.segments.push_back(Segment::End { reply, has_buffer: buffer.is_some() });
        self.queue.buffers.extend(buffer);
    }

    /// Writes as much as the socket takes; `ended` is called with every reply that is written to its end. An
    /// empty queue goes to `spares`.
    pub(crate) fn flush(
        &mut self,
        stream: &Stream,
        pool: &mut BufferPool,
        spares: &mut Spares,
        mut ended: impl FnMut(Reply),
    ) -> io::Result<()> {
        while !self.queue.segments.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (used, offered) = self.gather(&mut slices);
            let written = if used == 0 { 0 } else { stream.try_write(&slices[..used])? };
            self.advance(written, pool, &mut ended);
            self.taken += written as u64;
            if written < offered {
                break;
            }
        }
        let queue = &mut self.queue;
        if queue.segments.is_empty() {
            spares.put(std::mem::take(queue));
        } else if queue.headers_written > HEADERS_WRITTEN_LIMIT {
            queue.headers.drain(..queue.headers_written);
            queue.headers_written = 0;
        }
        Ok(())
    }

    /// Gives everything back that the connection will not write any more.
    pub(crate) fn abandon(&mut self, pool: &mut BufferPool, mut ended: impl FnMut(Reply)) {
        for segment in self.queue.segments.drain(..) {
            if let Segment::End { reply, .. } = segment {
                ended(reply);
            }
        }
        self.queue.buffers.drain(..).for_each(|buffer| pool.put(buffer));
    }

    /// Fills `slices` from the front; returns how many were used, and their bytes in all.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> (usize, usize) {
        let (mut used, mut bytes) = (0, 0);
        let mut header_at = self.queue.headers_written;
        let mut buffers = self.queue.buffers.iter();
        let mut buffer = buffers.next();
        for segment in &self.queue.segments {
            if used == SLICES {
                break;
            }
            let slice: &[u8] = match segment {
                Segment::Header(length) => {
                    header_at += length;
                    &self.queue.headers[header_at - length..header_at]
                }
                Segment::Data(range) => &buffer.expect("a reply with data has a buffer")[range.clone()],
                Segment::End { has_buffer, .. } => {
                    if *has_buffer {
                        buffer = buffers.next();
                    }
                    continue;
                }
            };
            slices[used] = IoSlice::new(slice);
            used += 1;
            bytes += slice.len();
        }
        (used, bytes)
    }

    /// Takes `written` bytes, and the ends of replies that they complete, off the front.
    fn advance(&mut self, mut written: usize, pool: &mut BufferPool, ended: &mut impl FnMut(Reply)) {
        while let Some(segment) = self.queue.segments.front_mut() {
            match segment {
                Segment::Header(length) if written < *length => {
                    *length -= written;
                    self.queue.headers_written += written;
                    return;
                }
                Segment::Header(length) => {
                    written -= *length;
                    self.queue.headers_written += *length;
                }
                Segment::Data(range) if written < range.len() => {
                    range.start += written;
                    return;
                }
                Segment::Data(range) => written -= range.len(),
                Segment::End { .. } => {}
            }
            if let Some(Segment::End { reply, has_buffer }) = self.queue.segments.pop_front() {
                ended(reply);
                if has_buffer {
                    pool.put(self.queue.buffers.pop_front().expect("a reply with data has a buffer"));
                }
            }
        }
    }
}
