//! Memory that the kernel reads and writes directly, and a pool of it.
//!
//! O_DIRECT wants memory aligned to the device's blocks, which a `Vec<u8>` is not. The pool keeps such
//! memory, because fresh memory for each request would be mapped, zeroed and unmapped each time, which costs
//! more than the request.
//!
//! Buffers are pages mapped for them, not memory of the allocator. So a buffer takes as much memory as its
//! size says and no more. An allocator needs a second page for each aligned one, and keeps the pages that it
//! gets back. Untouched pages take no memory: if a client announces 32 MiB and sends one byte, its buffer
//! uses a page. A small buffer is cut from a larger mapping. When it is dropped, its part goes back to the
//! kernel at once, even while its neighbours are in use.
//!
//! A buffer is initialised once, when it is mapped. After that it may hold an earlier request's bytes. They
//! cannot leak: a device fills the whole buffer of a read, or fails the read.
#![allow(unsafe_code)] // owns raw memory, as the standard library has no aligned vector

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use memmap2::{Advice, MmapMut, MmapRaw, UncheckedAdvice};

/// The alignment of every buffer, in bytes. O_DIRECT asks for this much on any usual device.
pub(crate) const ALIGNMENT: usize = 4096;
/// The pool keeps buffers of 2^12 to 2^25 bytes (NBD clients send no more); it frees larger ones.
const CLASSES: usize = 14;
/// Buffers of the first classes, to 64 KiB, are cut from mappings of this many bytes.
const SMALL_CLASSES: usize = 5;
const SHEET: usize = 1 << 20;
/// The pool keeps this many bytes at most: 128 requests of 512 KiB.
const RETAINED: usize = 64 << 20;

/// Page-aligned memory, always initialised.
pub struct Buffer {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
    /// The mapping that this buffer was cut from, perhaps with others; or its own whole mapping.
    sheet: Arc<MmapRaw>,
}

/// Unused buffers, by size. The pool is limited to 64 MiB, and to the room that its user leaves it.
#[derive(Debug)]
pub struct BufferPool {
    /// By class: class `c` has buffers of `ALIGNMENT << c` bytes.
    free: [Vec<Buffer>; CLASSES],
    retained: usize,
    /// How many bytes it may retain now.
    room: usize,
    /// By class: the mapping that the next buffers are cut from, and how much of it is in use.
    sheets: [Option<(Arc<MmapRaw>, usize)>; SMALL_CLASSES],
}

// SAFETY: a buffer is the only user of its part of the sheet, as a `Box<[u8]>` is of its memory.
unsafe impl Send for Buffer {}

impl Buffer {
    /// A buffer of `len` zeroes in memory of its own.
    pub(crate) fn zeroed(len: usize) -> Self {
        let capacity = len.max(1).next_multiple_of(ALIGNMENT);
        Self::cut(&map(capacity), 0, len, capacity)
    }

    /// The `capacity` bytes of `sheet` from `offset` on, which no other buffer has.
    fn cut(sheet: &Arc<MmapRaw>, offset: usize, len: usize, capacity: usize) -> Self {
        assert!(len <= capacity && offset + capacity <= sheet.len());
        // SAFETY: within the mapping, as was just asserted.
        let start = unsafe { sheet.as_mut_ptr().add(offset) };
        let start = NonNull::new(start).expect("a mapping is not at address zero");
        Self { start, len, capacity, sheet: Arc::clone(sheet) }
    }

    /// The start of the memory, for the kernel to write to. Valid for as long as the buffer lives, wherever
    /// it moves.
    pub(crate) fn as_raw(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

/// Maps `length` bytes of zeroes, which take no memory until they are touched.
fn map(length: usize) -> Arc<MmapRaw> {
    let Ok(sheet) = MmapMut::map_anon(length) else {
        let layout = Layout::from_size_align(length, ALIGNMENT);
        alloc::handle_alloc_error(layout.expect("no request is larger than half of the address space"));
    };
    if length <= SHEET {
        // Inside a huge page, memory that was given back would return with its neighbours. Kernels without
        // huge pages ignore this.
        let _ = sheet.advise(Advice::NoHugePage);
    }
    Arc::new(MmapRaw::from(sheet))
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len <= capacity` bytes from `start` on are ours and were initialised when they were
        // allocated.
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
        if Arc::strong_count(&self.sheet) > 1 {
            let offset = self.start.as_ptr().addr() - self.sheet.as_mut_ptr().addr();
            // SAFETY: this part of the mapping is only ours, and nobody reads it again.
            // If it is refused, the memory comes back with the rest of the sheet.
            let _ = unsafe {
                self.sheet.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, self.capacity)
            };
        }
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
        Self {
            free: std::array::from_fn(|_| Vec::new()),
            retained: 0,
            room: RETAINED,
            sheets: std::array::from_fn(|_| None),
        }
    }

    /// A buffer of `len` bytes. Its content is arbitrary.
    pub fn take(&mut self, len: usize) -> Buffer {
        let capacity = Self::footprint(len);
        let class = self.class(capacity);
        match class.and_then(|class| self.free[class].pop()) {
            Some(mut buffer) => {
                self.retained -= buffer.capacity;
                buffer.len = len;
                buffer
            }
            None => self.make(class, len, capacity),
        }
    }

    fn make(&mut self, class: Option<usize>, len: usize, capacity: usize) -> Buffer {
        let Some(current) = class.and_then(|class| self.sheets.get_mut(class)) else {
            return Buffer::cut(&map(capacity), 0, len, capacity);
        };
        let (sheet, used) = current.get_or_insert_with(|| (map(SHEET), 0));
        let buffer = Buffer::cut(sheet, *used, len, capacity);
        *used += capacity;
        if *used == SHEET {
            *current = None;
        }
        buffer
    }

    /// The memory that a buffer of `len` bytes takes.
    pub fn footprint(len: usize) -> usize {
        len.max(ALIGNMENT).next_power_of_two()
    }

    /// Keeps `buffer` for a later [`take`](Self::take), or frees it if the pool is full.
    pub fn put(&mut self, buffer: Buffer) {
        if let Some(class) = self.class(buffer.capacity)
            && self.retained + buffer.capacity <= self.room
        {
            self.retained += buffer.capacity;
            self.free[class].push(buffer);
        }
    }

    /// Keeps at most `bytes` from now on. If `bytes` is the unused rest of a budget, then all buffers
    /// together, unused and in use, are within the budget.
    pub fn keep_at_most(&mut self, bytes: u64) {
        self.room = usize::try_from(bytes).unwrap_or(usize::MAX).min(RETAINED);
        while self.retained > self.room {
            let largest = self.free.iter_mut().rev().find_map(Vec::pop);
            let freed = largest.expect("what is retained is in one of the classes");
            self.retained -= freed.capacity;
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
        pool.keep_at_most(10 << 20);
        assert_eq!(pool.retained, 10 << 20);
        let spare = Buffer::zeroed(1 << 20);
        pool.put(spare);
        assert_eq!(pool.retained, 10 << 20, "there is no room for another");
        pool.keep_at_most(u64::MAX);
        assert_eq!(pool.room, RETAINED);
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
    #[test]
    fn small_buffers_do_not_overlap_and_are_zeroed_whatever_became_of_those_before() {
        let mut pool = BufferPool::new();
        let mut kept = Vec::new();
        for number in 0..600_usize {
            let mut buffer = pool.take(4096);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(u8::try_from(number % 250 + 1).unwrap());
            if number % 3 == 0 {
                kept.push((number, buffer));
            }
        }
        for (number, buffer) in kept {
            assert!(buffer.iter().all(|byte| usize::from(*byte) == number % 250 + 1));
        }
    }

    #[test]
    fn a_small_buffer_that_is_dropped_takes_no_memory_though_its_neighbours_are_in_use() {
        let mut pool = BufferPool::new();
        let mut buffers: Vec<_> = (0..256).map(|_| pool.take(4096)).collect();
        buffers.iter_mut().for_each(|buffer| buffer.fill(1));
        let last = buffers.pop().unwrap();
        let sheet = Arc::clone(&last.sheet);
        assert_eq!(resident(&sheet), 256);
        drop(buffers);
        assert_eq!(resident(&sheet), 1);
        assert!(last.iter().all(|byte| *byte == 1));
    }

    /// Pages of the mapping that are in memory.
    fn resident(sheet: &MmapRaw) -> usize {
        use std::os::unix::fs::FileExt;
        // One word of eight bytes for each page; the top bit says that it is there.
        let mut words = vec![0; sheet.len() / ALIGNMENT * 8];
        let at = sheet.as_mut_ptr().addr() / ALIGNMENT * 8;
        std::fs::File::open("/proc/self/pagemap").unwrap().read_exact_at(&mut words, at as u64).unwrap();
        words.chunks(8).filter(|word| word[7] & 0x80 != 0).count()
    }
}
