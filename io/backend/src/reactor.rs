//! The reactor of one thread: an io_uring, through which all files of the thread are read and written, and
//! the sockets to other NBD servers. A driver submits to both, and looks for completions of both, in one
//! place.
//!
//! The obvious alternatives cost more. A thread of its own for the ring costs two wake-ups for each request,
//! and a pool of threads costs more than that. So the kernel's own asynchronous interface is used in the
//! thread that parses the requests. The ring's descriptor is polled through tokio like any socket, so that
//! one wait covers both.
//!
//! | file | what it does |
//! |---|---|
//! | `ring` | the io_uring: files, slots, submission and completion |
//! | `operation` | what a request to a file is to the kernel, step by step |
//! | `extents` | which parts of a file are allocated |
//!
//! **Cost.** A request takes a slot from a slab and an entry in the ring; nothing is allocated once the slab
//! has grown. All requests of a turn are submitted with one system call. Completions are read from shared
//! memory without a system call. The files are registered, which saves the kernel the look-up.
//!
//! **Set-up.** *Single issuer* and *cooperative task running*: the kernel need not interrupt this thread to
//! post a completion, as the thread enters it often enough. Not *deferred* task running: it saves a little
//! more, but a ring with deferred work does not wake the task that polls its descriptor.
//!
//! **Ownership.** A slot owns its request, buffer included, from [`start`](RingFile::start) until the kernel
//! is done with it. Nothing cancels or frees it in between, even if its client has left. A request that is
//! several steps to the kernel may end between two of them.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use crate::upstream::Link;
use crate::{DeviceRequest, Finished, OpenError, Token};

mod extents;
mod operation;
mod ring;

pub(crate) use operation::{Abilities, DIRECT_BLOCK};
pub(crate) use ring::Descriptors;

use ring::Ring;

/// A handle to the reactor of this thread; clones share the io_uring and the sockets.
///
/// Dropping the last handle waits for the kernel to be done with what is in flight, as closing a file would.
#[derive(Clone)]
pub struct Reactor {
    ring: Rc<RefCell<Ring>>,
    links: Rc<RefCell<Links>>,
}

/// The servers that the thread has connections to. They are polled like the ring, and not by tasks of their
/// own: a task would have to be woken for each turn, and would have to wake the driver in its turn.
#[derive(Default)]
struct Links {
    links: Vec<Weak<RefCell<Link>>>,
    /// What is read from any socket; empty if there is none.
    scratch: Vec<u8>,
}

/// Bytes read from a socket at a time: many small replies for each system call, and still within the cache of
/// a core.
const SCRATCH: usize = 128 << 10;

/// Where requests that have finished go instead of to the reactor's driver, until they are taken from there.
pub(crate) type Kept = Rc<RefCell<Vec<Finished>>>;

/// A file that the ring serves. On drop it is closed once its last request has finished.
#[derive(Debug)]
pub(crate) struct RingFile {
    reactor: Reactor,
    key: usize,
}

impl Reactor {
    /// Sets up the io_uring of this thread.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or none left for this user.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new() -> Result<Self, OpenError> {
        let ring = Ring::new().map_err(OpenError::Ring)?;
        Ok(Self { ring: Rc::new(RefCell::new(ring)), links: Rc::default() })
    }

    /// Hands all requests that were started to the kernel: one system call for all files, and one for each
    /// connection to a server; none where nothing was started. False if the kernel has no memory for them
    /// now: call this, or [`Reactor::poll_finished`], again soon.
    pub fn submit(&self) -> bool {
        self.links.borrow_mut().for_each(|link, _| link.send());
        self.ring.borrow_mut().enter()
    }

    /// Pushes the requests to any file or server that have finished, and has the task woken when more do.
    /// Belongs to one task at a time: if several tasks poll it, only the last is woken.
    pub fn poll_finished(&self, cx: &mut Context<'_>, finished: &mut Vec<Finished>) {
        self.links.borrow_mut().for_each(|link, scratch| link.poll(cx, scratch, finished));
        let ring = &mut *self.ring.borrow_mut();
        ring.poll_questions(cx, finished);
        loop {
            ring.reap(finished);
            if !ring.enter() {
                cx.waker().wake_by_ref(); // the kernel is short of memory; let others run, and try again
                return;
            }
            // `enter` may have finished some already. Only if there are none is the readiness cleared, and
            // looked for again after that, so that none can slip in between.
            if ring.has_completions() {
                continue;
            }
            match ring.poll_ready(cx) {
                Poll::Ready(()) => {}
                Poll::Pending => return,
            }
        }
    }

    /// Takes in the way to a server, until it is dropped.
    pub(crate) fn add_link(&self, link: &Rc<RefCell<Link>>) {
        let links = &mut *self.links.borrow_mut();
        links.scratch.resize(SCRATCH, 0);
        links.links.push(Rc::downgrade(link));
    }

    /// Takes a file in.
    pub(crate) fn add(&self, descriptors: Descriptors, abilities: Abilities) -> RingFile {
        let key = self.ring.borrow_mut().add(descriptors, abilities, None);
        RingFile { reactor: self.clone(), key }
    }

    /// Takes in a file whose finished requests are kept for a device that has more to do for them, and that
    /// gives them tokens of its own. [`Reactor::poll_finished`] does not tell of these requests, but wakes
    /// its task for them.
    pub(crate) fn add_kept(&self, descriptors: Descriptors, abilities: Abilities) -> (RingFile, Kept) {
        let kept = Kept::default();
        let key = self.ring.borrow_mut().add(descriptors, abilities, Some(Rc::clone(&kept)));
        (RingFile { reactor: self.clone(), key }, kept)
    }
}

impl Links {
    /// Calls `act` for each link that is still in use.
    fn for_each(&mut self, mut act: impl FnMut(&mut Link, &mut [u8])) {
        let scratch = &mut self.scratch;
        self.links.retain(|link| {
            let Some(link) = link.upgrade() else { return false };
            act(&mut link.borrow_mut(), scratch);
            true
        });
    }
}

#[cfg(test)]
impl Reactor {
    /// Changes what all files so far can do.
    pub(crate) fn change_abilities(&self, change: impl Fn(&mut Abilities)) {
        self.ring.borrow_mut().change_abilities(change);
    }
}

impl RingFile {
    /// Starts a request that lies inside of the file.
    pub(crate) fn start(&self, request: DeviceRequest, finished: &mut Vec<Finished>) {
        self.reactor.ring.borrow_mut().start(self.key, request, finished);
    }

    /// The request has no client any more: see [`BlockDevice::abandon`](crate::BlockDevice::abandon).
    pub(crate) fn abandon(&self, token: Token) {
        self.reactor.ring.borrow_mut().abandon(self.key, token);
    }
}

impl Drop for RingFile {
    fn drop(&mut self) {
        self.reactor.ring.borrow_mut().close(self.key);
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ring.try_borrow() {
            Ok(ring) => write!(f, "Reactor({ring:?})"),
            Err(_) => f.write_str("Reactor(in use)"),
        }
    }
}

#[cfg(test)]
mod tests;
