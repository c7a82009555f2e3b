//! Clients that do what was recorded: each request at its time, whether those before it were answered or not.
//!
//! A recorded device is seldom as large as the volume. So offsets are folded into the volume by modulo, which
//! keeps neighbours neighbours. A request that would reach over the end is clipped there. A request that is
//! out of order comes together with the one before it.

use std::fmt;

use weir_model::{Instant, IoKind};

use super::{Asked, Trace};
use crate::scenario::TraceRequest;

/// The shortest length of a recorded request, except for flushes. No device has smaller sectors.
const SECTOR: u32 = 512;

/// The recorded clients of a volume.
pub(crate) struct TracedClient {
    trace: Trace,
    /// Bytes of the volume.
    size: u64,
    next: Option<(Instant, TraceRequest)>,
}

impl TracedClient {
    pub(super) fn new(mut trace: Trace, size: u64) -> Self {
        let next = trace.next().map(|request| (Instant::ORIGIN + request.at, request));
        Self { trace, size, next }
    }

    pub(super) fn next_at(&self) -> Instant {
        self.next.map_or(Instant::FAR_FUTURE, |(at, _)| at)
    }

    pub(super) fn ask(&mut self, now: Instant) -> Option<Asked> {
        let (at, TraceRequest { kind, offset, length, .. }) = self.next.filter(|(at, _)| *at <= now)?;
        self.next = self.trace.next().map(|request| ((Instant::ORIGIN + request.at).max(at), request));
        let offset = offset % self.size;
        let room = u32::try_from(self.size - offset).unwrap_or(u32::MAX);
        let length = if kind == IoKind::Flush { 0 } else { length.max(SECTOR).min(room) };
        Some(Asked { kind, offset, length, by_thread: false })
    }
}

impl fmt::Debug for TracedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracedClient")
            .field("size", &self.size)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
