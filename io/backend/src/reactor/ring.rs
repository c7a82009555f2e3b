//! The io_uring of a thread: files, slots, submission and completion. All unsafe code about io_uring is here.
#![allow(unsafe_code)] // the kernel is handed memory that it reads and writes later

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::fs::{Advice, AtFlags, StatxFlags, statx};
use rustix::io::{Errno, ReadWriteFlags};
use slab::Slab;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir_model::IoKind;

use super::Kept;
use super::extents::Question;
use super::operation::{Abilities, Beginning, Operation, Step, ZEROES};
use crate::{Buffer, DeviceRequest, Finished, Token};

/// Room for the requests of one turn; a turn with more enters the kernel more than once.
const SUBMISSIONS: u32 = 512;
/// Room for the requests in flight, as many as a pool's queue depth may be. Further requests wait here.
const COMPLETIONS: u32 = 4096;
/// Files that the ring registers. Further files are used by their descriptors, which costs a little more.
const REGISTERED_FILES: u32 = 512;
/// How many questions about extents threads work on at a time. Further questions wait.
const QUESTIONS: usize = 8;

/// The open descriptors of a file.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The descriptor through the page cache. Questions about the file share it, and may outlive the device.
    pub(crate) buffered: Arc<OwnedFd>,
    /// The descriptor for direct I/O, if the file allows that.
    pub(crate) direct: Option<OwnedFd>,
    /// Holds the lock, and is never given to the ring. The kernel takes a ring apart some time after its
    /// process has ended. If the ring had this descriptor, the file would stay locked until then, and a
    /// restarted server could not open it.
    pub(crate) lock: OwnedFd,
    /// The file's path, for the log.
    pub(crate) path: PathBuf,
}

struct File {
    descriptors: Descriptors,
    abilities: Abilities,
    buffered: Target,
    direct: Option<Target>,
    /// Where its finished requests go, if not to the driver.
    kept: Option<Kept>,
    /// The number of slots for this file.
    in_use: usize,
    /// Whether the file is being closed. No request is started any more; the file goes with its last request.
    closing: bool,
}

/// How the kernel knows a file.
#[derive(Clone, Copy)]
enum Target {
    Registered(types::Fixed),
    Descriptor(types::Fd),
}

struct Slot {
    file: usize,
    operation: Operation,
}

/// A question about extents, and the file that it is about.
struct Unasked {
    request: DeviceRequest,
    file: Arc<OwnedFd>,
    kept: Option<Kept>,
}

/// The io_uring of a thread, with the files that it serves and the requests to them.
pub(super) struct Ring {
    uring: AsyncFd<IoUring>,
    files: Slab<File>,
    has_file_table: bool,
    /// Requests that are not finished; an entry's user data is its key.
    slots: Slab<Slot>,
    /// Keys of the slots that wait for room in the ring.
    waiting: VecDeque<usize>,
    /// Entries in the ring, submitted or not, that have not been completed.
    in_flight: usize,
    capacity: usize,
    /// The zeroes that are written to files.
    zeroes: Option<Buffer>,
    /// The slots of requests that may write zeroes for long, by file and token. These can end before they are
    /// done.
    fills: BTreeMap<(usize, Token), usize>,
    /// The questions that threads work on, each with the place for its answer if that is not the driver.
    questions: Vec<(Question, Option<Kept>)>,
    /// Questions that wait for a thread.
    unasked: VecDeque<Unasked>,
    /// The waker of the task that last polled, for questions that are asked after that.
    waker: Option<Waker>,
}

/// Builds an entry for a file, registered or not: `io_uring` has a type for each.
macro_rules! entry {
    ($target:expr, $fd:ident => $operation:expr) => {
        match $target {
            Target::Registered($fd) => $operation.build(),
            Target::Descriptor($fd) => $operation.build(),
        }
    };
}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        let uring = set_up()?;
        let capacity = usize::try_from(uring.params().cq_entries()).expect("32 bits fit");
        let has_file_table = uring.submitter().register_files_sparse(2 * REGISTERED_FILES).is_ok();
        // SAFETY: the ring owns its descriptor, never changes it, and lives in the `AsyncFd`.
        let uring = unsafe { AsyncFd::register_with_interest(uring, Interest::READABLE) }?;
        Ok(Self {
            uring,
            files: Slab::new(),
            has_file_table,
            slots: Slab::new(),
            waiting: VecDeque::new(),
            in_flight: 0,
            capacity,
            zeroes: None,
            fills: BTreeMap::new(),
            questions: Vec::new(),
            unasked: VecDeque::new(),
            waker: None,
        })
    }

    pub(super) fn add(
        &mut self,
        descriptors: Descriptors,
        abilities: Abilities,
        kept: Option<Kept>,
    ) -> usize {
        let key = self.files.vacant_key();
        let (buffered, direct) = self.register(key, &descriptors);
        self.files.insert(File { descriptors, abilities, buffered, direct, kept, in_use: 0, closing: false })
    }

    /// Registers a file under its key: two places in the kernel's table for each.
    fn register(&self, key: usize, descriptors: &Descriptors) -> (Target, Option<Target>) {
        let buffered = descriptors.buffered.as_raw_fd();
        let direct = descriptors.direct.as_ref().map(AsRawFd::as_raw_fd);
        if let Some(place) = self.place(key)
            && self.set_place(place, [buffered, direct.unwrap_or(-1)]).is_ok()
        {
            let direct = direct.map(|_| Target::Registered(types::Fixed(place + 1)));
            return (Target::Registered(types::Fixed(place)), direct);
        }
        (Target::Descriptor(types::Fd(buffered)), direct.map(|fd| Target::Descriptor(types::Fd(fd))))
    }

    fn place(&self, key: usize) -> Option<u32> {
        let key = u32::try_from(key).ok()?;
        (self.has_file_table && key < REGISTERED_FILES).then_some(2 * key)
    }

    fn set_place(&self, place: u32, descriptors: [RawFd; 2]) -> io::Result<usize> {
        self.uring.get_ref().submitter().register_files_update(place, &descriptors)
    }

    pub(super) fn close(&mut self, key: usize) {
        self.files[key].closing = true;
        self.remove_if_unused(key);
    }

    fn remove_if_unused(&mut self, key: usize) {
        let file = &self.files[key];
        if !file.closing || file.in_use > 0 {
            return;
        }
        if let Target::Registered(types::Fixed(place)) = file.buffered {
            // Until this succeeds the kernel keeps the file open, though not its lock. The next file takes
            // over the place.
            if let Err(error) = self.set_place(place, [-1, -1]) {
                // No peer: once, when a volume ends.
                tracing::warn!(path = %file.descriptors.path.display(), %error, "the kernel keeps the file open");
            }
        }
        self.files.remove(key);
    }

    pub(super) fn start(&mut self, file: usize, request: DeviceRequest, finished: &mut Vec<Finished>) {
        if matches!(request.kind, IoKind::Trim | IoKind::WriteZeroes | IoKind::BlockStatus) {
            self.files[file].look_for_end(); // the kernel would find nothing amiss beyond it
        }
        match Operation::begin(request, &self.files[file].abilities) {
            Beginning::AtOnce(done) => finished.push(done),
            Beginning::AskExtents(request) => self.ask(file, request),
            Beginning::Kernel(operation) => {
                self.files[file].in_use += 1;
                let key = self.slots.insert(Slot { file, operation });
                if !self.waiting.is_empty() || !self.issue(key) {
                    self.waiting.push_back(key);
                }
            }
        }
    }

    /// Notes that no client waits for a request of this file.
    pub(super) fn abandon(&mut self, file: usize, token: Token) {
        if let Some(key) = self.fills.get(&(file, token)) {
            self.slots[*key].operation.abandon();
        }
    }

    fn ask(&mut self, file: usize, request: DeviceRequest) {
        let File { descriptors, kept, .. } = &self.files[file];
        let file = Arc::clone(&descriptors.buffered);
        self.unasked.push_back(Unasked { request, file, kept: kept.clone() });
        if let Some(waker) = &self.waker {
            waker.wake_by_ref(); // to have the question polled, and so be woken by it
        }
    }

    pub(super) fn poll_questions(&mut self, cx: &mut Context<'_>, finished: &mut Vec<Finished>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
        loop {
            while self.questions.len() < QUESTIONS
                && let Some(Unasked { request, file, kept }) = self.unasked.pop_front()
            {
                self.questions.push((Question::ask(request, file), kept));
            }
            let asked = self.questions.len();
            self.questions.retain_mut(|(question, kept)| match question.poll_answer(cx) {
                Poll::Ready(answer) => {
                    give(answer, kept.as_ref(), finished);
                    false
                }
                Poll::Pending => true,
            });
            if self.questions.len() == asked || self.unasked.is_empty() {
                return;
            }
        }
    }

    /// Puts a slot's next step into the ring. False if there is no room.
    fn issue(&mut self, key: usize) -> bool {
        if self.in_flight == self.capacity {
            return false;
        }
        let slot = &self.slots[key];
        let zeroes = &mut self.zeroes;
        let entry = build(&self.files[slot.file], &slot.operation, zeroes).user_data(key as u64);
        // SAFETY: the entry points into the slot's buffer, or into `zeroes`. Both stay where they are and are
        // not looked at until the kernel is done: a slot is removed by its completion only, `zeroes` never,
        // and `drop` waits for what is in flight. The entry's file stays open for as long as the slot is
        // there.
        while unsafe { self.uring.get_mut().submission().push(&entry) }.is_err() {
            if !self.enter() {
                return false;
            }
        }
        self.in_flight += 1;
        let Slot { file, operation } = &self.slots[key];
        if operation.is_long() {
            self.fills.insert((*file, operation.request.token), key);
        }
        true
    }

    /// Submits the entries in the ring. False if the kernel cannot take them now.
    pub(super) fn enter(&mut self) -> bool {
        while !self.uring.get_mut().submission().is_empty() {
            match self.uring.get_ref().submit() {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    Some(Errno::AGAIN | Errno::BUSY) => return false,
                    _ => panic!("the kernel refuses a ring that it has set up itself: {error}"),
                },
            }
        }
        true
    }

    pub(super) fn has_completions(&mut self) -> bool {
        !self.uring.get_mut().completion().is_empty()
    }

    /// Reads all completions. Pushes the requests that are done, and puts the next steps of the others into
    /// the ring; also the slots that waited for room.
    pub(super) fn reap(&mut self, finished: &mut Vec<Finished>) {
        while let Some((key, result)) = self.next_completion() {
            let slot = &mut self.slots[key];
            let file = &mut self.files[slot.file];
            if slot.operation.raises_doubt(result) {
                file.look_for_end();
            }
            let was_whole = !file.abilities.is_cut_off();
            let outcome = slot.operation.advance(result, &mut file.abilities);
            if was_whole {
                file.tell_if_cut_off();
            }
            match outcome {
                Some(outcome) => self.finish(key, outcome, finished),
                None => {
                    if !self.issue(key) {
                        self.waiting.push_front(key);
                    }
                }
            }
        }
        while let Some(key) = self.waiting.front().copied() {
            if !self.issue(key) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    fn next_completion(&mut self) -> Option<(usize, Result<u32, Errno>)> {
        let completion = self.uring.get_mut().completion().next()?;
        self.in_flight -= 1;
        let key = usize::try_from(completion.user_data()).expect("`issue` has made it of a key");
        let result = completion.result();
        Some((key, u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result))))
    }

    fn finish(&mut self, key: usize, outcome: Result<(), Errno>, finished: &mut Vec<Finished>) {
        let slot = self.slots.remove(key);
        if !self.fills.is_empty() {
            self.fills.remove(&(slot.file, slot.operation.request.token));
        }
        let file = &mut self.files[slot.file];
        give(slot.operation.request.finish(outcome), file.kept.as_ref(), finished);
        file.in_use -= 1;
        self.remove_if_unused(slot.file);
    }

    /// Ready if the ring's descriptor reported completions. Clears that report.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.uring
            .poll_read_ready(cx)
            .map(|guard| guard.expect("a task is polled only while its runtime is there").clear_ready())
    }
}

impl File {
    /// Looks whether a regular file still has its served length. The question goes to this kernel only, so it
    /// does not wait for a file system on the network. (A block device has no length here; reads show if its
    /// end has moved.)
    fn look_for_end(&mut self) {
        let was_whole = !self.abilities.is_cut_off();
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        if !self.abilities.block_device
            && let Ok(found) = statx(&*self.descriptors.buffered, "", flags, StatxFlags::SIZE)
        {
            self.abilities.end = self.abilities.end.min(found.stx_size);
        }
        if was_whole {
            self.tell_if_cut_off();
        }
    }

    /// Logs an error if the file was cut off. Call it once, after a check that may have found that.
    fn tell_if_cut_off(&self) {
        let Abilities { size, end, .. } = self.abilities;
        if self.abilities.is_cut_off() {
            // No peer: once, until the volume is served again.
            tracing::error!(
                path = %self.descriptors.path.display(), size, end,
                "the file was cut off while it was served, and what lay beyond its end is lost; requests that reach there, and \
                 all flushes, fail until the volume is removed and served again"
            );
        }
    }
}

#[cfg(test)]
impl Ring {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Submits, and waits until one request is done.
    pub(super) fn submit_and_wait(&self) {
        self.uring.get_ref().submit_and_wait(1).unwrap();
    }

    /// From now on files are not registered.
    pub(super) fn forget_file_table(&mut self) {
        self.has_file_table = false;
    }

    /// Changes the abilities of all files so far.
    pub(super) fn change_abilities(&mut self, change: impl Fn(&mut Abilities)) {
        self.files.iter_mut().for_each(|(_, file)| change(&mut file.abilities));
    }
}

/// Hands a finished request to the driver, or to its owner's list.
fn give(done: Finished, kept: Option<&Kept>, finished: &mut Vec<Finished>) {
    match kept {
        Some(kept) => kept.borrow_mut().push(done),
        None => finished.push(done),
    }
}

/// Sets up the ring. Older kernels do not know all the options that make it fast.
fn set_up() -> io::Result<IoUring> {
    let mut fast = IoUring::builder();
    fast.setup_cqsize(COMPLETIONS).setup_single_issuer().setup_coop_taskrun();
    fast.build(SUBMISSIONS).or_else(|_| IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS))
}

/// The entry for an operation's next step.
fn build(file: &File, operation: &Operation, zeroes: &mut Option<Buffer>) -> squeue::Entry {
    let target = |direct: bool| {
        if direct { file.direct.expect("`Abilities::direct` says that there is one") } else { file.buffered }
    };
    let data = |skip: u32| {
        let buffer = operation
            .request
            .buffer
            .as_ref()
            .expect("`Device::start` has seen the buffer of each read and write");
        buffer.as_raw().wrapping_add(skip as usize)
    };
    match operation.step(&file.abilities) {
        Step::Read { skip, offset, length, direct } => {
            entry!(target(direct), fd => opcode::Read::new(fd, data(skip), length).offset(offset))
        }
        Step::Write { skip, offset, length, direct, durable } => {
            let flags = if durable { bits(ReadWriteFlags::DSYNC.bits()) } else { 0 };
            entry!(target(direct), fd =>
                opcode::Write::new(fd, data(skip), length).offset(offset).rw_flags(flags))
        }
        Step::WriteZeroes { offset, length, direct } => {
            let zeroes = zeroes.get_or_insert_with(|| Buffer::zeroed(ZEROES as usize)).as_raw();
            entry!(target(direct), fd => opcode::Write::new(fd, zeroes, length).offset(offset))
        }
        Step::Allocate { offset, length, mode } => {
            let mode = bits(mode.bits());
            entry!(file.buffered, fd => opcode::Fallocate::new(fd, length).offset(offset).mode(mode))
        }
        Step::Sync => {
            entry!(file.buffered, fd => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC))
        }
        Step::WillNeed { offset, length } => {
            let advice = Advice::WillNeed as i32;
            entry!(file.buffered, fd => opcode::Fadvise::new(fd, length.into(), advice).offset(offset))
        }
    }
}

/// Flags as the ring's entries have them.
fn bits(flags: u32) -> i32 {
    i32::from_ne_bytes(flags.to_ne_bytes())
}

impl Drop for Ring {
    /// Waits until the kernel writes into none of the buffers any more. If the ring fails even in this, the
    /// buffers are leaked. Lost memory does little harm. A kernel that writes into memory which now belongs
    /// to another request would destroy data.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            match self.uring.get_ref().submitter().submit_and_wait(1) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => {}
                Err(_) if !self.has_completions() => {
                    mem::forget(mem::take(&mut self.slots));
                    mem::forget(self.zeroes.take());
                    return;
                }
                _ => while self.next_completion().is_some() {},
            }
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} files, {} in flight, {} waiting", self.files.len(), self.in_flight, self.waiting.len())
    }
}
