//! Empty queues that the next replies use.
//!
//! An empty queue goes back to its thread, and the thread keeps a limited amount of memory in such queues. If
//! each of ten thousand connections kept its empty queue, each would hold the memory of its largest burst for
//! ever. If a queue were cut down when it runs empty, it would grow again with each burst of the same client.
//! That made deep queues of reads a tenth slower.

use super::{Part, Queue};

/// The memory that a thread's empty queues may hold, in bytes: some five with 1,024 reads each, or hundreds
/// of small ones.
const KEPT: usize = 1 << 20;

/// The empty queues of one thread.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    queues: Vec<Queue>,
    bytes: usize,
}

impl Spares {
    /// The queue that was given back last, or a new one.
    pub(super) fn take(&mut self) -> Queue {
        let Some(queue) = self.queues.pop() else { return Queue::default() };
        self.bytes -= footprint(&queue);
        queue
    }

    /// Keeps a queue in which nothing waits, if there is room for it.
    pub(super) fn put(&mut self, mut queue: Queue) {
        let bytes = footprint(&queue);
        if queue.parts.capacity() > 0 && self.bytes + bytes <= KEPT {
            queue.headers.clear();
            queue.headers_written = 0;
            self.bytes += bytes;
            self.queues.push(queue);
        }
    }
}

/// The memory of an empty queue, in bytes.
fn footprint(queue: &Queue) -> usize {
    size_of::<Queue>()
        + queue.headers.capacity()
        + queue.parts.capacity() * size_of::<Part>()
        + queue.buffers.capacity() * size_of::<weir_backend::Buffer>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(parts: usize) -> Queue {
        Queue { parts: std::collections::VecDeque::with_capacity(parts), ..Queue::default() }
    }

    #[test]
    fn a_queue_keeps_the_room_of_its_burst_for_the_next() {
        let mut spares = Spares::default();
        spares.put(Queue { headers: vec![1; 100], headers_written: 100, ..queue(500) });
        let queue = spares.take();
        assert!(queue.parts.capacity() >= 500 && queue.headers.is_empty() && queue.headers_written == 0);
        assert_eq!(spares.bytes, 0);
        assert_eq!(spares.take().parts.capacity(), 0, "there was only one");
    }

    #[test]
    fn empty_queues_hold_no_more_than_their_bound_however_long_they_were() {
        let mut spares = Spares::default();
        for _ in 0..1_000 {
            spares.put(queue(1_000));
        }
        assert!(spares.bytes <= KEPT && spares.queues.len() < 100);
        let held: usize = spares.queues.iter().map(footprint).sum();
        assert_eq!(spares.bytes, held);
    }
}
