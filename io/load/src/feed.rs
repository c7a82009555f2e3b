//! Recorded requests at their times.
//!
//! A feed keeps the requests that have arrived and could not be sent yet. Of the later requests, it keeps
//! only the next one. A recording is read once, from a file that may be longer than memory. (A
//! [`Pacer`](crate::Pacer) keeps no waiting requests, because it can compute its sequence twice.)

use std::collections::VecDeque;

use weir_model::{Direction, Instant, Span};

use crate::arrivals::late;
use crate::workload::{Next, Operation};

/// A recorded request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayRequest {
    /// When to send it, after the start.
    pub at: Span,
    /// Whether it is a read or a write. The data of a write are made up.
    pub direction: Direction,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, above zero.
    pub length: u32,
}

/// The requests that an export can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    pub(crate) size: u64,
    /// Offsets and lengths must be multiples of this.
    pub(crate) least: u32,
    /// The longest request.
    pub(crate) most: u32,
}

/// A recording that is being replayed.
pub(crate) struct Feed {
    requests: Box<dyn Iterator<Item = ReplayRequest>>,
    room: Room,
    start: Instant,
    end: Instant,
    /// Requests that have arrived and were not sent.
    waiting: VecDeque<(Instant, Operation)>,
    /// The next request of the recording.
    ahead: Option<(Instant, Operation)>,
    read: u64,
    taken: u64,
    refused: Option<(u64, ReplayRequest)>,
}

impl Feed {
    /// A feed of `requests`, which are in order of time. Their times count from `start`, and requests at or
    /// after `end` are left out.
    pub(crate) fn new(
        requests: impl Iterator<Item = ReplayRequest> + 'static,
        room: Room,
        start: Instant,
        end: Instant,
    ) -> Self {
        let mut feed = Self {
            requests: Box::new(requests),
            room,
            start,
            end,
            waiting: VecDeque::new(),
            ahead: None,
            read: 0,
            taken: 0,
            refused: None,
        };
        feed.read_on();
        feed
    }

    /// The next request, if it is due.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Next> {
        let (since, operation) = self.front().filter(|(at, _)| *at <= now)?;
        if self.waiting.pop_front().is_none() {
            self.read_on();
        }
        self.taken += 1;
        Some(Next { since, late: late(since, now), operation })
    }

    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.front().map(|(at, _)| at)
    }

    pub(crate) fn offered_before(&mut self, instant: Instant) -> u64 {
        let instant = instant.min(self.end);
        while let Some(next) = self.ahead.filter(|(at, _)| *at < instant) {
            self.waiting.push_back(next);
            self.read_on();
        }
        self.taken + self.waiting.len() as u64
    }

    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn end_at(&mut self, end: Instant) {
        self.end = self.end.min(end);
        let end = self.end;
        self.waiting.retain(|(at, _)| *at < end);
    }

    /// The request that the export cannot take, with its number. The recording ended early at this request.
    pub(crate) const fn refused(&self) -> Option<(u64, ReplayRequest)> {
        self.refused
    }

    fn front(&self) -> Option<(Instant, Operation)> {
        self.waiting.front().copied().or(self.ahead).filter(|(at, _)| *at < self.end)
    }

    fn read_on(&mut self) {
        let latest = self.ahead.take().map_or(self.start, |(at, _)| at);
        let Some(request) = self.requests.next().filter(|_| self.refused.is_none()) else { return };
        self.read += 1;
        if !self.room.takes(&request) {
            self.refused = Some((self.read, request));
            return;
        }
        let ReplayRequest { at, direction, offset, length } = request;
        let operation = Operation { read: direction == Direction::Read, offset, length };
        self.ahead = Some(((self.start + at).max(latest), operation));
    }
}

impl Room {
    fn takes(self, request: &ReplayRequest) -> bool {
        let ReplayRequest { offset, length, .. } = *request;
        let fits = offset.checked_add(length.into()).is_some_and(|end| end <= self.size);
        let whole = offset.is_multiple_of(self.least.into()) && length.is_multiple_of(self.least);
        fits && whole && (1..=self.most).contains(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { size: 1 << 20, least: 512, most: 65_536 };

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Span::from_millis(ms)
    }

    fn request(ms: u64, offset: u64) -> ReplayRequest {
        ReplayRequest { at: Span::from_millis(ms), direction: Direction::Read, offset, length: 512 }
    }

    fn feed(requests: Vec<ReplayRequest>) -> Feed {
        Feed::new(requests.into_iter(), ROOM, at(100), at(1_000))
    }

    #[test]
    fn requests_come_at_their_time_after_the_start_and_before_the_end() {
        let mut feed = feed(vec![request(0, 0), request(5, 512), request(900, 1_024)]);
        assert_eq!(feed.take(at(99)), None);
        let first = feed.take(at(100)).unwrap();
        assert_eq!((first.since, first.late, first.operation.offset), (at(100), None, 0));
        assert_eq!(feed.due_at(), Some(at(105)));
        let second = feed.take(at(107)).unwrap();
        assert_eq!((second.since, second.late), (at(105), Some(Span::from_millis(2))));
        assert_eq!((feed.due_at(), feed.taken()), (None, 2));
    }

    #[test]
    fn what_has_arrived_and_was_not_sent_is_offered_and_sent_in_its_order() {
        let mut feed = feed((0..10).map(|n| request(n, n * 512)).collect());
        assert_eq!(feed.offered_before(at(104)), 4);
        assert_eq!(feed.take(at(104)).unwrap().since, at(100));
        assert_eq!((feed.offered_before(at(106)), feed.taken()), (6, 1));
        let offsets: Vec<u64> =
            std::iter::from_fn(|| feed.take(at(500))).map(|next| next.operation.offset).collect();
        assert_eq!(offsets, (1..10).map(|n| n * 512).collect::<Vec<_>>());
    }

    #[test]
    fn an_earlier_end_takes_back_what_would_have_come_after_it() {
        let mut feed = feed((0..10).map(|n| request(n, 0)).collect());
        assert_eq!(feed.offered_before(at(108)), 8);
        feed.end_at(at(103));
        assert_eq!(feed.offered_before(at(900)), 3);
        assert_eq!(std::iter::from_fn(|| feed.take(at(500))).count(), 3);
    }

    #[test]
    fn a_request_that_the_export_cannot_take_ends_the_recording_and_is_named() {
        for wrong in [
            request(1, (1 << 20) - 511),
            request(1, 1 << 20),
            request(1, u64::MAX),
            request(1, 100),
            ReplayRequest { length: 65_536 + 512, ..request(1, 0) },
            ReplayRequest { length: 0, ..request(1, 0) },
        ] {
            let mut feed = feed(vec![request(0, 0), wrong, request(2, 0)]);
            assert_eq!(std::iter::from_fn(|| feed.take(at(500))).count(), 1);
            assert_eq!(feed.refused(), Some((2, wrong)));
        }
    }
}
