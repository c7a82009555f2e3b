//! Memory that the kernel reads and writes directly, and a pool of it.
//!
//! O_DIRECT wants memory aligned to the device's blocks, which a `Vec<u8>` is not. Fresh memory for each
//! request would be mapped, zeroed and unmapped each time, which costs more than the request; hence the pool.
//!
//! A buffer is initialised once, when it is allocated, and may hold an earlier request's bytes after that. None
//! of these can leak: a device fills the whole buffer of a read or fails it.
#![allow(unsafe_code)] // owns raw memory, as the standard library has no aligned vector

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// The alignment of every buffer, in bytes: what O_DIRECT asks for on any usual device.
pub(crate) const ALIGNMENT: usize = 4096;
/// The pool keeps buffers of 2^12 to 2^25 bytes (the most that NBD clients send); larger ones are freed.
const CLASSES: usize = 14;
/// The pool keeps this many bytes at most: 128 requests of 512 KiB.
const RETAINED: usize = 64 << 20;

/// Page-aligned memory, always initialised.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
}

/// Buffers that are at hand, by size; bounded to 64 MiB.
#[derive(Debug)]
pub struct BufferPool {
    /// By class: class `c` has buffers of `ALIGNMENT << c` bytes.
    free: [Vec<Buffer>; CLASSES],
    retained: usize,
}

// SAFETY: a buffer is the only owner of its memory, as a `Box<[u8]>` is.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A buffer of `len` zeroes in `capacity` bytes of memory, a multiple of the alignment above zero.
    fn with_capacity(len: usize, capacity: usize) -> Self {
        assert!(len <= capacity && capacity > 0 && capacity.is_multiple_of(ALIGNMENT));
        let layout = Self::layout(capacity);
        // SAFETY: the layout's size is above zero.
        let start = unsafe { alloc::alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| alloc::handle_alloc_error(layout));
        Self { start, len, capacity }
    }

    /// A buffer of `len` zeroes, apart from any pool.
    pub(crate) fn zeroed(len: usize) -> Self {
        Self::with_capacity(len, len.max(1).next_multiple_of(ALIGNMENT))
    }

    /// Where the memory starts, for the kernel to write to. Valid for as long as the buffer lives, wherever it
    /// moves.
    pub(crate) fn as_raw(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, ALIGNMENT)
            .expect("no request is larger than half of the address space")
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len <= capacity` bytes from `start` on are ours and were initialised when they were allocated.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and we are borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with this layout in `with_capacity`.
        unsafe { alloc::dealloc(self.start.as_ptr(), Self::layout(self.capacity)) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

impl BufferPool {
    /// An empty pool.
    pub fn new() -> Self {
        Self { free: std::array::from_fn(|_| Vec::new()), retained: 0 }
    }

    /// A buffer of `len` bytes, which may hold anything.
    pub fn take(&mut self, len: usize) -> Buffer {
        let capacity = Self::footprint(len);
        match self.class(capacity).and_then(|class| self.free[class].pop()) {
            Some(mut buffer) => {
                self.retained -= buffer.capacity;
                buffer.len = len;
                buffer
            }
            None => Buffer::with_capacity(len, capacity),
        }
    }

    /// The memory that a buffer of `len` bytes takes.
    pub fn footprint(len: usize) -> usize {
        len.max(ALIGNMENT).next_power_of_two()
    }

    /// Keeps `buffer` for a later [`take`](Self::take), or frees it if the pool is full.
    pub fn put(&mut self, buffer: Buffer) {
        if let Some(class) = self.class(buffer.capacity)
            && self.retained + buffer.capacity <= RETAINED
        {
            self.retained += buffer.capacity;
            self.free[class].push(buffer);
        }
    }

    /// The class of the buffers that have exactly this capacity.
    fn class(&self, capacity: usize) -> Option<usize> {
        let class = (capacity / ALIGNMENT).trailing_zeros() as usize;
        (class < CLASSES && capacity == ALIGNMENT << class).then_some(class)
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_zeroed_and_as_long_as_asked_for() {
        for len in [0, 1, 4095, 4096, 4097, 1 << 20] {
            let buffer = BufferPool::new().take(len);
            assert_eq!(buffer.len(), len);
            assert!(buffer.as_raw().addr().is_multiple_of(ALIGNMENT));
            assert!(buffer.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_buffer_that_was_put_back_is_taken_again_by_a_request_of_its_class() {
        let mut pool = BufferPool::new();
        let buffer = pool.take(5000);
        let memory = buffer.as_raw();
        pool.put(buffer);
        let other_class = pool.take(4096);
        assert_ne!(other_class.as_raw(), memory);
        let again = pool.take(8192);
        assert_eq!((again.as_raw(), again.len()), (memory, 8192));
    }

    #[test]
    fn the_pool_keeps_no_more_than_its_bound_and_nothing_too_large() {
        let mut pool = BufferPool::new();
        let taken: Vec<_> = (0..100).map(|_| pool.take(1 << 20)).collect();
        taken.into_iter().for_each(|buffer| pool.put(buffer));
        assert_eq!(pool.retained, RETAINED);
        let mut pool = BufferPool::new();
        let large = pool.take((32 << 20) + 1);
        pool.put(large);
        assert_eq!(pool.retained, 0);
    }

    #[test]
    fn a_buffer_from_elsewhere_is_never_lent_beyond_its_memory() {
        let mut pool = BufferPool::new();
        pool.put(Buffer::zeroed(3 * ALIGNMENT));
        assert_eq!(pool.retained, 0, "it is of no class, and freed");
        assert_eq!(pool.take(4 * ALIGNMENT).len(), 4 * ALIGNMENT);
    }
}
