//! Whether promised volumes are there.
//!
//! A volume that asks in bursts is silent between them. If background volumes filled the device in each
//! silence, each burst would begin behind them. So the silences of a volume that has come back soon are taken
//! to be short ones, until one lasts for twice as long.

use weir_model::{Instant, Span};

/// A volume is silent when it had no request for so long. Less is between two requests.
const SILENT: Span = Span::from_secs(1);
/// A silence of less than this is a short one.
const SHORT: Span = Span::from_secs(10);

/// Whether promised volumes are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// They have requests.
    There,
    /// They are silent, and will probably be back soon.
    Between,
    /// They are silent.
    Away,
}

/// When they were there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Silence {
    /// When one of them last had a request.
    last: Option<Instant>,
    /// For how long a silence is probably a short one.
    short: Span,
}

impl Default for Silence {
    fn default() -> Self {
        Self { last: None, short: SILENT }
    }
}

impl Silence {
    /// A promised volume has a request. True: a silence ends.
    pub(super) fn on_request(&mut self, now: Instant) -> bool {
        let silence = self.last.replace(now).map(|last| now.since(last)).filter(|since| *since >= SILENT);
        if let Some(silence) = silence {
            self.short = if silence < SHORT { silence.saturating_mul(2).min(SHORT) } else { SILENT };
        }
        silence.is_some()
    }

    /// Whether they are there.
    pub(super) fn presence(&self, now: Instant) -> Presence {
        match self.last.map(|last| now.since(last)) {
            Some(since) if since < SILENT => Presence::There,
            Some(since) if since < self.short => Presence::Between,
            _ => Presence::Away,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(tenths: u64) -> Instant {
        Instant::from_nanos(tenths * 100_000_000)
    }

    #[test]
    fn who_came_back_soon_is_waited_for_twice_as_long() {
        let mut silence = Silence::default();
        assert_eq!(silence.presence(second(0)), Presence::Away);
        assert!(!silence.on_request(second(0)), "the first request ends no silence");
        assert_eq!(
            (silence.presence(second(9)), silence.presence(second(10))),
            (Presence::There, Presence::Away)
        );
        assert!(silence.on_request(second(30)));
        assert_eq!(silence.presence(second(45)), Presence::Between);
        assert_eq!(silence.presence(second(90)), Presence::Away, "six seconds later");
    }

    #[test]
    fn a_long_silence_says_nothing_of_the_next_one() {
        let mut silence = Silence::default();
        silence.on_request(second(0));
        silence.on_request(second(30));
        silence.on_request(second(300));
        assert_eq!(silence.presence(second(315)), Presence::Away);
    }
}
