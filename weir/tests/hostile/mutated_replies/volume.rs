//! One volume of the attack: its server's abilities, its client's requests, and the server's answers to them.
//!
//! **Each request has a place of its own** of 1 MiB, which no other request ever has. The place determines
//! the kind of the request and, for a write, its bytes. So the server can judge a request without knowing the
//! client. And the client's answer can be compared with the server's answer to that very request, also if
//! weir sent the request on several connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use rand::{Rng, RngExt};

use super::judge::{Answer, Asked};
use crate::harness::{Flags, bytes, command};

/// Bytes of a place.
const PLACE: u64 = 1 << 20;

/// The size of a volume: it has places for more requests than anybody makes.
pub(super) const SIZE: u64 = 1 << 50;

/// The bytes of which all data are parts.
static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| bytes(1, 2 << 20));

/// Transmission flags of an export.
const HAS_FLAGS: u16 = 1;
const FLUSH: u16 = 1 << 2;
const FUA: u16 = 1 << 3;
const TRIM: u16 = 1 << 5;
const ZEROES: u16 = 1 << 6;
const MULTI_CONN: u16 = 1 << 8;
const CACHE: u16 = 1 << 10;

/// The servers' abilities. They differ from volume to volume.
const OFFERS: [Offer; 4] = [
    Offer { flags: HAS_FLAGS | FLUSH | FUA | TRIM | ZEROES | CACHE | MULTI_CONN, longest: 1 << 20 },
    Offer { flags: HAS_FLAGS | FLUSH, longest: 1 << 20 },
    Offer { flags: HAS_FLAGS | FUA | TRIM, longest: 512 },
    Offer { flags: HAS_FLAGS | FLUSH | TRIM | ZEROES | MULTI_CONN, longest: 2048 },
];

/// A server's statement in the handshake.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) flags: u16,
    /// The most bytes of a read or a write that it takes.
    pub(super) longest: u32,
}

/// The state that the client and the server of a volume share.
pub(super) struct Volume {
    pub(super) number: u64,
    pub(super) offer: Offer,
    /// The server's answers, by the first byte of their requests, each with the length of the request.
    said: Mutex<BTreeMap<u64, Vec<(u32, Answer)>>>,
    /// Flushes that the server said it had done.
    flushes: AtomicU64,
}

/// A request of the client.
pub(super) struct Request {
    pub(super) command: u16,
    pub(super) flags: Flags,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// The number of flushes that were done when the request was made.
    flushes: u64,
}

/// This many requests in a row have all kinds among them.
pub(super) const KINDS: u64 = 16;

/// The command for the place that `offset` lies in.
fn command_of(offset: u64) -> u16 {
    match offset / PLACE % KINDS {
        0..8 => command::READ,
        8..12 => command::WRITE,
        12 => command::WRITE_ZEROES,
        13 => command::TRIM,
        14 => command::CACHE,
        _ => command::FLUSH,
    }
}

/// What the client writes there.
fn written(offset: u64, length: u32) -> &'static [u8] {
    let start = (offset / PLACE).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    part(start + offset % PLACE, length)
}

/// `length` bytes from byte `at` of all content on.
fn part(at: u64, length: u32) -> &'static [u8] {
    &CONTENT[usize::try_from(at).expect("it lies within 2 MiB")..][..length as usize]
}

/// Data for a read. Another read is unlikely to get the same data.
pub(super) fn any_data(length: u32, random: &mut impl Rng) -> &'static [u8] {
    part(random.random_range(0..PLACE), length)
}

impl Offer {
    fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

impl Volume {
    pub(super) fn new(number: u64) -> Self {
        let offer = OFFERS[usize::try_from(number).expect("there are few") % OFFERS.len()];
        Self { number, offer, said: Mutex::default(), flushes: AtomicU64::new(0) }
    }

    pub(super) fn name(&self) -> String {
        format!("v{}", self.number)
    }

    /// What is wrong with a request that came to the server, if anything: the client did not make it, or its
    /// data belong to another request.
    pub(super) fn fault_of(&self, asked: &Asked, data: &[u8]) -> Option<String> {
        let has = |flag| self.offer.has(flag);
        let of_place = command_of(asked.offset);
        let is_right = match asked.command {
            command::FLUSH => has(FLUSH) && (asked.offset, asked.length) == (0, 0),
            command::WRITE if of_place == command::WRITE_ZEROES => {
                !has(ZEROES) && data.iter().all(|byte| *byte == 0)
            }
            command::WRITE => of_place == command::WRITE && data == written(asked.offset, asked.length),
            command::WRITE_ZEROES => has(ZEROES) && of_place == command::WRITE_ZEROES,
            command::TRIM => has(TRIM) && of_place == command::TRIM,
            command::CACHE => has(CACHE) && of_place == command::CACHE,
            command => command == of_place,
        };
        let is_short =
            ![command::READ, command::WRITE].contains(&asked.command) || asked.length <= self.offer.longest;
        (!is_right || !is_short).then(|| format!("{}: nobody asks for {asked:?}", self.name()))
    }

    /// Notes answers that the server is about to send.
    pub(super) fn say(&self, answers: Vec<(Asked, Answer)>) {
        let mut said = self.said.lock().expect("nobody panics with it");
        for (asked, answer) in answers {
            if asked.command == command::FLUSH {
                self.flushes.fetch_add(u64::from(answer.is_ok()), Ordering::Release);
            } else {
                said.entry(asked.offset).or_default().push((asked.length, answer));
            }
        }
    }

    /// The client's request of this number, from 1 on. The first place belongs to flushes, which have no
    /// place.
    pub(super) fn request(&self, number: u64, random: &mut impl Rng) -> Request {
        let (place, command) = (number * PLACE, command_of(number * PLACE));
        let flushes = self.flushes.load(Ordering::Acquire);
        if command == command::FLUSH {
            return Request { command, flags: Flags::NONE, offset: 0, length: 0, flushes };
        }
        let length = match random.random_range(0..128) {
            0 => 1 << 20,
            1..16 => random.random_range(1..=16_384),
            _ => random.random_range(1..=4096),
        };
        let offset = place + random.random_range(0..=(PLACE - u64::from(length)).min(4096));
        let changes = [command::WRITE, command::WRITE_ZEROES, command::TRIM].contains(&command);
        let flags = if changes && random.random_ratio(1, 8) { Flags::FUA } else { Flags::NONE };
        Request { command, flags, offset, length, flushes }
    }

    /// Forgets the answers before `offset`. No request before it is left.
    pub(super) fn forget_before(&self, offset: u64) {
        let mut said = self.said.lock().expect("nobody panics with it");
        let kept = said.split_off(&offset);
        *said = kept;
    }
}

impl Request {
    /// The data of a write.
    pub(super) fn data(&self) -> &'static [u8] {
        if self.command == command::WRITE { written(self.offset, self.length) } else { &[] }
    }

    /// Whether the server is asked for a flush: because the request is a flush, or because the server has no
    /// other way to make a write durable.
    fn flushes_at(&self, volume: &Volume) -> bool {
        let is_durable = self.command == command::FLUSH || self.flags.0 & Flags::FUA.0 != 0;
        is_durable && volume.offer.has(FLUSH) && (self.command == command::FLUSH || !volume.offer.has(FUA))
    }

    /// Where the request ends.
    fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    /// What is wrong with the client's answer, if anything: the server did not send it.
    pub(super) fn fault_of(&self, error: u32, data: &[u8], volume: &Volume) -> Option<String> {
        let said = volume.said.lock().expect("nobody panics with it");
        let about_it: Vec<_> = said.range(self.offset..self.end()).flat_map(|(_, answers)| answers).collect();
        let was_said = match error {
            0 => self.was_answered_with(data, volume, &said),
            // This is also the answer to a request that the server did not answer in time, and to a flush
            // after a loss.
            EIO => true,
            error => {
                self.flushes_at(volume)
                    || about_it.iter().any(|(_, answer)| matches!(answer, Err(said) if told(*said) == error))
            }
        };
        if was_said {
            return None;
        }
        let Self { command, offset, length, .. } = self;
        let start = |data: &[u8]| data[..data.len().min(16)].to_vec();
        let about_it: Vec<_> = about_it
            .iter()
            .map(|(length, answer)| (length, answer.as_ref().map(|data| start(data))))
            .collect();
        Some(format!(
            "{}: command {command} for {length} bytes at {offset} was answered with error {error} and {:?}…; \
             the server said {about_it:?}",
            volume.name(),
            start(data),
        ))
    }

    /// Whether the server answered so, to each of the pieces that were made of the request.
    fn was_answered_with(
        &self,
        data: &[u8],
        volume: &Volume,
        said: &BTreeMap<u64, Vec<(u32, Answer)>>,
    ) -> bool {
        match self.command {
            command::TRIM if !volume.offer.has(TRIM) => return true,
            command::CACHE if !volume.offer.has(CACHE) => return true,
            _ if self.flushes_at(volume) && volume.flushes.load(Ordering::Acquire) == self.flushes => {
                return false;
            }
            _ => {}
        }
        let (mut at, mut rest) = (self.offset, data);
        while at < self.end() {
            let answers = said.get(&at).map(Vec::as_slice).unwrap_or_default();
            let is_it =
                |(_, answer): &&(u32, Answer)| answer.as_ref().is_ok_and(|data| rest.starts_with(data));
            let Some((length, answer)) = answers.iter().find(is_it) else { return false };
            rest = &rest[answer.as_ref().map_or(0, Vec::len)..];
            at += u64::from(*length);
        }
        at == self.end() && rest.is_empty()
    }
}

const EIO: u32 = 5;

/// The error that weir's client gets if a server answered with this error: see `errno` in `upstream::link`
/// and `NbdError::from_errno`. A server that is shutting down counts as lost.
fn told(error: u32) -> u32 {
    match error {
        1 | 12 | 22 | 28 => error,
        95 => 22,
        _ => EIO,
    }
}
