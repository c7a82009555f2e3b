//! Requests go to the devices as the engine lets them.

use weir_backend::{BlockDevice, Buffer, DeviceRequest, Finished};
use weir_engine::Dispatch;
use weir_model::{Instant, Io, IoKind};
use weir_nbd::CommandKind;

use super::{Pending, Pool};
use crate::shard::memory::Memory;
use crate::shard::token::request_token;

/// The requests and the bytes that the devices of one pool get before the thread looks at its sockets: about
/// a millisecond of work. Without this bound, a device that finishes at once, such as memory, would work off
/// all waiting requests. For some thousand requests, or a few of the largest, that takes half a second.
/// Meanwhile, other pools of the thread get no answer.
const REQUESTS: u32 = 256;
const BYTES: u64 = 4 << 20;

impl Pool {
    /// Sends every request to its device that the engine lets go, until the quota is used up.
    pub(in crate::shard) fn dispatch(
        &mut self,
        now: Instant,
        memory: &mut Memory,
        finished: &mut Vec<Finished>,
    ) {
        while self.dirty && !self.quota.is_used_up() {
            let Dispatch::Issue(io) = self.engine.poll_dispatch(now) else {
                self.dirty = false;
                break;
            };
            self.quota.use_up(io.length);
            let pending = self.pending.get_mut(io.id.slot).expect("what was submitted is pending");
            let buffer = match io.kind {
                IoKind::Read => Some(memory.buffer(io.length)),
                _ => pending.buffer.take(),
            };
            let request = device_request(self.key, &io, pending, buffer);
            let first = self.first_port(io.volume);
            let is_alone = io.kind == IoKind::Flush && self.is_alone(first);
            let volume = self.volume(first);
            match io.kind {
                IoKind::Write | IoKind::Trim | IoKind::WriteZeroes => volume.unflushed.note_change(),
                IoKind::Flush => volume.unflushed.note_flush(io.id.slot, is_alone),
                IoKind::Read | IoKind::Cache | IoKind::BlockStatus => {}
            }
            volume.device.start(now, request, finished);
            if !volume.timed && volume.keeps_time() {
                self.timed.push(first);
            }
        }
    }

    /// Whether the pool sends nothing more until the quota is renewed.
    pub(in crate::shard) const fn has_used_up_its_quota(&self) -> bool {
        self.quota.is_used_up()
    }

    /// Renews the quota after the thread has looked at its sockets. Returns whether requests may have waited
    /// for this.
    pub(in crate::shard) fn renew_quota(&mut self) -> bool {
        self.quota = Quota::FULL;
        self.dirty
    }
}

/// The requests that the devices of a pool may still get before the thread looks at its sockets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    requests: u32,
    bytes: u64,
}

impl Quota {
    pub(super) const FULL: Self = Self { requests: REQUESTS, bytes: BYTES };

    const fn is_used_up(self) -> bool {
        self.requests == 0 || self.bytes == 0
    }

    /// Takes a request of this length off the quota. A request goes even if it is longer than the rest.
    fn use_up(&mut self, length: u32) {
        self.requests = self.requests.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(length.into());
    }
}

fn device_request(pool: usize, io: &Io, pending: &Pending, buffer: Option<Buffer>) -> DeviceRequest {
    debug_assert_eq!(pending.id, io.id, "the engine issues what was submitted");
    let command = &pending.command;
    DeviceRequest {
        token: request_token(pool, io.id.slot),
        kind: io.kind,
        offset: io.offset,
        length: io.length,
        fua: command.fua && command.kind != CommandKind::Read,
        no_hole: command.no_hole,
        fast_zero: command.fast_zero,
        buffer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many requests of this length a pool may start on one quota.
    fn started(length: u32) -> u32 {
        let mut quota = Quota::FULL;
        let mut started = 0;
        while !quota.is_used_up() {
            quota.use_up(length);
            started += 1;
        }
        started
    }

    #[test]
    fn a_pool_starts_no_more_than_its_quota_and_always_one_request() {
        assert_eq!(started(0), REQUESTS);
        assert_eq!(started(4096), REQUESTS);
        assert_eq!(started(128 << 10), 32);
        assert_eq!(started(32 << 20), 1);
    }
}
