//! The replies of one connection that its socket has not taken yet. Many go in one `writev`, and payload is
//! never copied.

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

/// Slices that one call hands to the kernel; more take another call. The kernel's own limit is 1,024.
const SLICES: usize = 256;

/// Written header bytes after which they are cut off, because some clients never let the queue run empty.
const HEADERS_WRITTEN_LIMIT: usize = 64 * 1024;

/// Bytes waiting for the socket, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The parts that wait. The queue has no memory of its own while nothing waits.
    queue: Queue,
    /// Bytes that the socket has taken in all.
    taken: u64,
}

/// The parts of replies, and the headers and buffers that the parts refer to.
#[derive(Debug, Default)]
struct Queue {
    headers: Vec<u8>,
    /// Bytes of `headers` that are written.
    headers_written: usize,
    parts: VecDeque<Part>,
    buffers: VecDeque<Buffer>,
}

/// Header bytes, then data, then the end of the reply; each may be missing. Nearly every reply is one part,
/// so a reply costs one entry of the queue.
#[derive(Debug)]
struct Part {
    /// The number of further bytes of `headers`.
    header: usize,
    /// A range of the first buffer that is not yet released.
    data: Range<usize>,
    end: Option<End>,
}

/// The end of a reply. It frees the reply's charge, and the reply's buffer if there is one.
#[derive(Debug)]
struct End {
    reply: Reply,
    has_buffer: bool,
}

/// The request that a reply ends, and the charge of the request.
#[derive(Default, Debug)]
pub(crate) struct Reply {
    /// The engine's request; `None` if the request was refused before the engine had it.
    pub(crate) request: Option<IoId>,
    /// The charge of the request; `None` if it was refused before it was charged.
    pub(crate) charge: Option<Charge>,
    /// The number of the last loss of the volume that the reply tells of, if it does.
    pub(crate) tells: Option<NonZeroU64>,
}

impl Output {
    /// How many parts of replies wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.parts.len()
    }

    /// True if everything has been written.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.parts.is_empty()
    }

    /// How many bytes the socket has taken since the connection began.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes an empty queue of `spares`, if the output has none. Without this call, the queue gets memory of
    /// its own when something is appended.
    pub(crate) fn prepare(&mut self, spares: &mut Spares) {
        if self.queue.parts.capacity() == 0 {
            self.queue = spares.take();
        }
    }

    /// Appends header bytes through `write`, which may only append, and behind them a range of the buffer
    /// that the next [`Output::end`] brings.
    pub(crate) fn part(&mut self, data: Range<usize>, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.queue.headers.len();
        write(&mut self.queue.headers);
        let header = self.queue.headers.len() - before;
        self.queue.parts.push_back(Part { header, data, end: None });
    }

    /// Ends a reply: `buffer` holds the ranges appended since the end before.
    pub(crate) fn end(&mut self, buffer: Option<Buffer>, reply: Reply) {
        let end = Some(End { reply, has_buffer: buffer.is_some() });
        match self.queue.parts.back_mut() {
            Some(part) if part.end.is_none() => part.end = end,
            _ => self.queue.parts.push_back(Part { header: 0, data: 0..0, end }),
        }
        self.queue.buffers.extend(buffer);
    }

    /// Writes as much as the socket takes, and calls `ended` with every reply that is written to its end. An
    /// empty queue goes to `spares`.
    pub(crate) fn flush(
        &mut self,
        stream: &Stream,
        pool: &mut BufferPool,
        spares: &mut Spares,
        mut ended: impl FnMut(Reply),
    ) -> io::Result<()> {
        while !self.queue.parts.is_empty() {
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
        if queue.parts.is_empty() {
            spares.put(std::mem::take(queue));
        } else if queue.headers_written > HEADERS_WRITTEN_LIMIT {
            queue.headers.drain(..queue.headers_written);
            queue.headers_written = 0;
        }
        Ok(())
    }

    /// Ends all replies that are not written to their end, because the connection writes nothing more.
    pub(crate) fn abandon(&mut self, pool: &mut BufferPool, mut ended: impl FnMut(Reply)) {
        for End { reply, .. } in self.queue.parts.drain(..).filter_map(|part| part.end) {
            ended(reply);
        }
        self.queue.buffers.drain(..).for_each(|buffer| pool.put(buffer));
    }

    /// Fills `slices` from the front; returns how many were used, and their bytes in all. Headers without
    /// data between them form one slice, because each slice costs the kernel time, and the replies to writes
    /// are nothing but headers.
    fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> (usize, usize) {
        let Queue { headers, headers_written, parts, buffers } = &self.queue;
        let header = |range: Range<usize>| &headers[range];
        let (mut used, mut bytes) = (0, 0);
        let mut put = |slice: &'a [u8]| {
            slices[used] = IoSlice::new(slice);
            used += 1;
            bytes += slice.len();
            used
        };
        let (mut gathered, mut header_end) = (*headers_written, *headers_written);
        let mut buffers = buffers.iter();
        let mut buffer = buffers.next();
        for Part { header: length, data, end } in parts {
            header_end += length;
            if !data.is_empty() {
                if gathered < header_end && put(header(gathered..header_end)) == SLICES {
                    return (used, bytes);
                }
                gathered = header_end;
                let buffer = buffer.expect("a reply with data has a buffer");
                if put(&buffer[data.clone()]) == SLICES {
                    return (used, bytes);
                }
            }
            if end.as_ref().is_some_and(|end| end.has_buffer) {
                buffer = buffers.next();
            }
        }
        if gathered < header_end {
            put(header(gathered..header_end));
        }
        (used, bytes)
    }

    /// Takes `written` bytes, and the ends of replies that they complete, off the front.
    fn advance(&mut self, mut written: usize, pool: &mut BufferPool, ended: &mut impl FnMut(Reply)) {
        while let Some(part) = self.queue.parts.front_mut() {
            let of_header = written.min(part.header);
            self.queue.headers_written += of_header;
            part.header -= of_header;
            written -= of_header;
            let of_data = written.min(part.data.len());
            part.data.start += of_data;
            written -= of_data;
            if part.header > 0 || !part.data.is_empty() {
                return;
            }
            let end = part.end.take();
            self.queue.parts.pop_front();
            let Some(End { reply, has_buffer }) = end else { continue };
            ended(reply);
            if has_buffer {
                pool.put(self.queue.buffers.pop_front().expect("a reply with data has a buffer"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
