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
//! | `operation` | a request to a file as steps for the kernel |
//! | `extents` | which parts of a file are allocated |
//!
//! **Cost.** A request takes a slot from a slab and an entry in the ring; nothing is allocated once the slab
//! has grown. One system call submits all requests of a turn. Completions are read from shared memory without
//! a system call. The files are registered, which saves the kernel the look-up.
//!
//! **Set-up.** *Single issuer* and *cooperative task running*: the kernel need not interrupt this thread to
//! post a completion, because the thread enters the kernel often enough. *Deferred* task running would save a
//! little more, but a ring with deferred work does not wake a task that polls its descriptor.
//!
//! **Ownership.** A slot owns its request, buffer included, from [`start`](RingFile::start) until the kernel
//! is done with it. Nothing cancels or frees the request in between, even if no client waits for it any more.
//! A request that takes several steps in the kernel may end between two of them.

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
/// Dropping the last handle waits until the kernel is done with the requests in flight, as closing a file
/// would.
#[derive(Clone)]
pub struct Reactor {
    ring: Rc<RefCell<Ring>>,
    links: Rc<RefCell<Links>>,
}

/// The thread's connections to other servers. They are polled together with the ring, not by tasks of their
/// own. Such a task would have to be woken for each turn, and then wake the driver.
#[derive(Default)]
struct Links {
    links: Vec<Weak<RefCell<Link>>>,
    /// The buffer for reads from any socket; empty if there is no socket.
    scratch: Vec<u8>,
}

/// Bytes read from a socket at a time: many small replies for each system call, and still within the cache of
/// a core.
const SCRATCH: usize = 128 << 10;

/// Finished requests that do not go to the reactor's driver, until their owner takes them.
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

    /// Hands all started requests to the kernel. This takes one system call for all files, one for each
    /// connection to a server, and none where nothing was started. Returns false if the kernel has no memory
    /// for it now; then call it, or [`Reactor::poll_finished`], again soon.
    pub fn submit(&self) -> bool {
        self.links.borrow_mut().for_each(|link, _| link.send());
        self.ring.borrow_mut().enter()
    }

    /// Pushes the finished requests to any file or server of this reactor, and has the task woken when more
    /// finish. Only one task may poll at a time: of several, only the last is woken.
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
            // `enter` may have finished some requests already. Only if there are none, the readiness is
            // cleared, and completions are looked for once more. So none can slip in between.
            if ring.has_completions() {
                continue;
            }
            match ring.poll_ready(cx) {
                Poll::Ready(()) => {}
                Poll::Pending => return,
            }
        }
    }

    /// Adds the link to a server, until the link is dropped.
    pub(crate) fn add_link(&self, link: &Rc<RefCell<Link>>) {
        let links = &mut *self.links.borrow_mut();
        links.scratch.resize(SCRATCH, 0);
        links.links.push(Rc::downgrade(link));
    }

    /// Adds a file.
    pub(crate) fn add(&self, descriptors: Descriptors, abilities: Abilities) -> RingFile {
        let key = self.ring.borrow_mut().add(descriptors, abilities, None);
        RingFile { reactor: self.clone(), key }
    }

    /// Adds a file whose finished requests are kept for an owner with more to do for them. The owner gives
    /// the requests tokens of its own. [`Reactor::poll_finished`] does not push these requests, but wakes its
    /// task for them.
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
    /// Changes the abilities of all files so far.
    pub(crate) fn change_abilities(&self, change: impl Fn(&mut Abilities)) {
        self.ring.borrow_mut().change_abilities(change);
    }
}

impl RingFile {
    /// Starts a request that lies inside the file.
    pub(crate) fn start(&self, request: DeviceRequest, finished: &mut Vec<Finished>) {
        self.reactor.ring.borrow_mut().start(self.key, request, finished);
    }

    /// Says that no client waits for this request: see [`BlockDevice::abandon`](crate::BlockDevice::abandon).
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
