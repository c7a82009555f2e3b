//! An initiator at work: when it begins a request.

use weir_model::Instant;

use super::options::Initiator;

/// The state of an initiator.
#[derive(Debug)]
pub(super) struct Working {
    pub(super) options: Initiator,
    /// Requests that are not answered yet.
    pub(super) outstanding: u32,
    /// Requests that were begun.
    begun: u64,
    /// Before this instant it does not begin another one, by its pace.
    due: Instant,
    /// The last instant at which it was to look whether it begins a request.
    pub(super) looks_at: Option<Instant>,
    /// The number of its session: what an earlier session left is lost.
    pub(super) session: u32,
    pub(super) is_logged_in: bool,
}

/// What an initiator does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// It begins a request.
    Begin,
    /// It does not, before that instant.
    Wait(Instant),
    /// It does not until something else happens.
    Rest,
}

impl Working {
    pub(super) fn new(options: Initiator, first: Instant) -> Self {
        Self { options, outstanding: 0, begun: 0, due: first, looks_at: None, session: 0, is_logged_in: true }
    }

    /// What it does now. If that is to begin a request, the request is begun.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        let is_full = self.outstanding >= self.options.threads;
        if is_full || !self.is_logged_in || self.options.limit.is_some_and(|limit| self.begun >= limit) {
            return Next::Rest;
        }
        let since = now.since(Instant::ORIGIN);
        let Some(&(from, _)) = self.options.bursts.iter().find(|(_, to)| since < *to) else {
            return Next::Rest;
        };
        let begin = self.due.max(Instant::ORIGIN + from);
        if now < begin {
            return Next::Wait(begin);
        }
        if let Some(pace) = self.options.pace {
            self.due = begin + pace;
        }
        self.begun += 1;
        self.outstanding += 1;
        Next::Begin
    }

    /// Whether it has a limit, and has reached it.
    pub(super) fn is_done(&self) -> bool {
        self.options.limit.is_some_and(|limit| self.begun >= limit && self.outstanding == 0)
    }

    /// Its session ends, and with it all that is outstanding.
    pub(super) fn log_out(&mut self) {
        self.outstanding = 0;
        self.is_logged_in = false;
    }

    /// It has a session again.
    pub(super) fn log_in(&mut self, now: Instant) {
        self.session += 1;
        self.is_logged_in = true;
        self.due = now;
    }
}
