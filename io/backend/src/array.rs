//! A volume on a simulated array, in real time: a disk array without the hardware.
//!
//! In an experiment, simulated time drives the array of `weir-sim`. Here the clock drives it: a request that
//! arrives at an instant is answered when the model says so. Volumes on one array share its disks, its cache
//! and its ports, as they would share those of a real array.
//!
//! **Time.** The driver may look late. The array still goes from each of its events to the next, at the
//! instants of the events. So only the answer is late, and no disk's queue is. While no request comes, the
//! array's own work waits too, such as emptying its cache; the array catches up with it at the next request.
//!
//! **Bytes.** The bytes are in a sparse file, because an array models the times of requests and not their
//! data. The file is read and written while the array works on the request, and the answer goes out when both
//! have finished. That is the instant of the model, unless the file is slower. If one waited for the other,
//! each answer would be later than the model's by the time that the file takes. A replay in real time would
//! then be slower than the same replay in simulated time. For the same reason the file goes through the page
//! cache; only a flush waits for the disk beneath.
//!
//! **Place.** Each volume has its own part of the array, so that the heads travel between the volumes. It
//! gets the first gap that is large enough when it is attached. If volumes that came and went leave no such
//! gap, it shares the array's end with another. That changes times a little, and no bytes.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use rustix::io::Errno;
use slab::Slab;
use weir_model::{Instant, IoKind};
use weir_sim::{Array, ArrayOptions, Command};

use crate::file::FileDevice;
use crate::reactor::{Kept, RingFile};
use crate::{BlockDevice, BlockError, DeviceRequest, Finished, Properties, Token};

mod place;

pub use place::{ARRAY_SEED, array_place};

/// An array, and the state of its volumes.
#[derive(Debug)]
pub(crate) struct SharedArray {
    array: Array,
    /// The requests at the array or at a file, by tag.
    requests: Slab<Request>,
    volumes: Slab<Share>,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Request {
    /// The key of its volume.
    volume: usize,
    /// The driver's name for it.
    token: Token,
    kind: IoKind,
    offset: u64,
    length: u32,
    /// Whether the array succeeded; `None` while the request is at the array.
    array: Option<bool>,
    /// The file's result; `None` while the request is at the file.
    file: Option<Finished>,
}

/// One volume's share of an array.
#[derive(Debug)]
struct Share {
    /// Its bytes of the array.
    place: Range<u64>,
    /// How many of its requests are at the array.
    at_array: usize,
    /// The tags of its requests that the array has finished since the device last looked.
    done: Vec<u32>,
    /// How many of its requests the array has finished and the file has not.
    at_file: usize,
    /// Whether the volume's device was dropped. The answers to its requests at the array are then thrown
    /// away.
    gone: bool,
}

/// One volume of an array.
#[derive(Debug)]
pub(crate) struct ArrayDevice {
    shared: Rc<RefCell<SharedArray>>,
    key: usize,
    file: RingFile,
    /// The requests that the file has finished since the device last looked. Their tokens are tags.
    kept: Kept,
    size: u64,
}

impl SharedArray {
    /// An array that is idle and without volumes.
    pub(crate) fn new(options: &ArrayOptions) -> Self {
        Self { array: Array::new(options, ARRAY_SEED), requests: Slab::new(), volumes: Slab::new() }
    }

    /// Adds a volume, which is not larger than the array, and returns its key.
    fn add(&mut self, size: u64) -> usize {
        let taken = self.volumes.iter().map(|(_, share)| share.place.clone());
        let place = array_place(taken, size, self.array.size());
        self.volumes.insert(Share { place, at_array: 0, done: Vec::new(), at_file: 0, gone: false })
    }

    /// Starts a request at the array, and returns its tag.
    fn start(&mut self, now: Instant, volume: usize, request: &DeviceRequest) -> u32 {
        self.advance(now);
        let share = &mut self.volumes[volume];
        share.at_array += 1;
        let &DeviceRequest { token, kind, offset, length, .. } = request;
        let at_array = share.place.start + offset;
        let request = Request { volume, token, kind, offset, length, array: None, file: None };
        let tag = u32::try_from(self.requests.insert(request))
            .expect("the memory of 2^32 requests is far beyond any limit");
        self.array.submit(now, Command { tag, kind, offset: at_array, length });
        self.advance(now);
        tag
    }

    /// Lets the array do its work up to `now`, each event at its own instant.
    fn advance(&mut self, now: Instant) {
        loop {
            while let Some(finished) = self.array.poll_finished() {
                self.array_finished(finished);
            }
            match self.array.poll_timeout() {
                Some(due) if due <= now => self.array.handle_timeout(due),
                _ => return,
            }
        }
    }

    fn array_finished(&mut self, finished: weir_sim::Finished) {
        let tag = finished.tag as usize;
        let request = &mut self.requests[tag];
        let volume = request.volume;
        request.array = Some(finished.ok);
        let share = &mut self.volumes[volume];
        share.at_array -= 1;
        if share.gone {
            self.requests.remove(tag);
            self.remove_if_over(volume);
        } else {
            share.done.push(finished.tag);
        }
    }

    /// Takes in a request that a file has finished. Returns the answer if the array has finished the request
    /// too, and [`SharedArray::take_done`] has already seen that.
    fn file_finished(&mut self, done: Finished) -> Option<Finished> {
        let tag = usize::try_from(done.token.0).expect("`start` has made it of a tag");
        let request = &mut self.requests[tag];
        request.file = Some(done);
        request.array?;
        self.volumes[request.volume].at_file -= 1;
        Some(self.answer(tag))
    }

    /// Pushes the answers to the requests that the array has finished since the volume's device last looked.
    /// Requests that the file has not finished are left for later.
    fn take_done(&mut self, volume: usize, finished: &mut Vec<Finished>) {
        let mut done = std::mem::take(&mut self.volumes[volume].done);
        for tag in done.drain(..) {
            if self.requests[tag as usize].file.is_some() {
                finished.push(self.answer(tag as usize));
            } else {
                self.volumes[volume].at_file += 1;
            }
        }
        self.volumes[volume].done = done; // given back for its allocation
    }

    /// The answer to a request that both the array and the file have finished.
    fn answer(&mut self, tag: usize) -> Finished {
        let Request { token, kind, offset, length, array, file, .. } = self.requests.remove(tag);
        let file = file.expect("both callers have seen the file's answer");
        let result = match array {
            Some(true) => file.result,
            _ => Err(BlockError::new(kind, offset, length, Errno::IO)),
        };
        Finished { token, result, ..file }
    }

    /// Removes a volume whose device is dropped.
    fn leave(&mut self, volume: usize) {
        self.requests.retain(|_, request| request.volume != volume || request.array.is_none());
        self.volumes[volume].gone = true;
        self.remove_if_over(volume);
    }

    fn remove_if_over(&mut self, volume: usize) {
        if let Share { gone: true, at_array: 0, .. } = self.volumes[volume] {
            self.volumes.remove(volume);
        }
    }

    fn poll_timeout(&self, volume: usize, file_has_finished: bool) -> Option<Instant> {
        match &self.volumes[volume] {
            Share { done, .. } if !done.is_empty() => Some(Instant::ORIGIN), // at once
            Share { at_file: 1.., .. } if file_has_finished => Some(Instant::ORIGIN),
            Share { at_array: 1.., .. } => self.array.poll_timeout(),
            Share { at_file: 1.., .. } => Some(Instant::FAR_FUTURE),
            _ => None,
        }
    }
}

impl ArrayDevice {
    /// A volume of `size` bytes on an array that is not smaller. Its bytes are in `file`, whose finished
    /// requests come in `kept`.
    pub(crate) fn new(shared: Rc<RefCell<SharedArray>>, file: RingFile, kept: Kept, size: u64) -> Self {
        let key = shared.borrow_mut().add(size);
        Self { shared, key, file, kept, size }
    }
}

impl BlockDevice for ArrayDevice {
    fn properties(&self) -> Properties {
        FileDevice::properties_of(self.size)
    }

    fn start(&mut self, now: Instant, request: DeviceRequest, _finished: &mut Vec<Finished>) {
        let tag = self.shared.borrow_mut().start(now, self.key, &request);
        let request = DeviceRequest { token: Token(tag.into()), ..request };
        let mut at_once = Vec::new();
        self.file.start(request, &mut at_once);
        self.kept.borrow_mut().append(&mut at_once);
    }

    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        let shared = &mut *self.shared.borrow_mut();
        shared.advance(now);
        shared.take_done(self.key, finished);
        finished.extend(self.kept.borrow_mut().drain(..).filter_map(|done| shared.file_finished(done)));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.shared.borrow().poll_timeout(self.key, !self.kept.borrow().is_empty())
    }
}

impl Drop for ArrayDevice {
    fn drop(&mut self) {
        self.shared.borrow_mut().leave(self.key);
    }
}

#[cfg(test)]
mod tests;
