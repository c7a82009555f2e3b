//! What a gateway promises by taking a message: until when it may use what was granted, and what it may use
//! after that. It is computed from the messages alone, and compared with the gateway's engine.

use weir_control::Grant;
use weir_leases::Grants;
use weir_model::{Bandwidth, Instant, MilliIops, Span};

use super::surroundings::Going;
use crate::check::Breach;

/// The promise of one message.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    until: Instant,
    alone_at: Instant,
    /// By volume: its name, the grant, and the static part.
    volumes: Vec<(String, Grant, Grant)>,
}

/// The promises of a process, by its own clock.
#[derive(Debug)]
pub(super) struct Promises {
    /// Within this time after it is due, the whole fallback is in force.
    patience: Span,
    /// When the hello and the reports of the stream were sent: the hello at index 0, a report at its number.
    sent: Vec<Instant>,
    /// The promise of the message that is in force.
    applied: Option<Promise>,
    /// The promise of the message that came last.
    received: Option<Promise>,
}

impl Promises {
    pub(super) fn new(interval: Span) -> Self {
        // Twice the longest handover.
        let patience = Span::from_nanos(interval.as_nanos() / 10);
        Self { patience, sent: Vec::new(), applied: None, received: None }
    }

    pub(super) fn on_hello(&mut self, shown: Instant) {
        self.sent = vec![shown];
    }

    pub(super) fn on_sent(&mut self, shown: Instant, number: u64) {
        assert_eq!(self.sent.len() as u64, number, "reports are numbered from one");
        self.sent.push(shown);
    }

    pub(super) fn on_received(&mut self, shown: Instant, grants: &Grants) -> Promise {
        let asked = usize::try_from(grants.answers).ok().and_then(|number| self.sent.get(number));
        let volume =
            |volume: &weir_leases::VolumeGrant| (volume.volume.clone(), volume.grant, volume.fallback);
        let promise = Promise {
            until: *asked.unwrap_or(&shown) + grants.lease,
            alone_at: shown + grants.alone_after,
            volumes: grants.volumes.iter().map(volume).collect(),
        };
        self.received = Some(promise.clone());
        promise
    }

    /// The message of this promise is in force; `None`: the whole fallback is in force.
    pub(super) fn on_applied(&mut self, promise: Option<Promise>) {
        self.applied = promise.or(self.applied.take());
    }

    /// Checks that every bound in force is one that was promised.
    pub(super) fn check<'a>(
        &self,
        shown: Instant,
        awake_since: Instant,
        in_force: impl Iterator<Item = (&'a str, Grant)>,
    ) -> Going {
        for (volume, in_force) in in_force {
            let promised = |promise: &Option<Promise>| {
                let promise = promise.as_ref()?;
                let (_, grant, fallback) = promise.volumes.iter().find(|(name, ..)| name == volume)?;
                Some((promise.until, promise.alone_at, *grant, *fallback))
            };
            if let Some((until, alone_at, grant, fallback)) = promised(&self.applied)
                && shown >= until
            {
                let promised = if shown < alone_at { lesser(grant, fallback) } else { fallback };
                if exceeds(in_force, promised) {
                    let volume = volume.to_owned();
                    return Err(Box::new(Breach::LeaseOutlived { volume, in_force, promised }));
                }
            }
            if let Some((_, alone_at, _, fallback)) = promised(&self.received)
                && shown >= alone_at.max(awake_since) + self.patience
                && in_force != fallback
            {
                let volume = volume.to_owned();
                return Err(Box::new(Breach::NotFallenBack { volume, in_force, fallback }));
            }
        }
        Ok(())
    }
}

fn rates(grant: Grant) -> (u64, u64) {
    (grant.max_iops.map_or(u64::MAX, MilliIops::get), grant.max_bandwidth.map_or(u64::MAX, Bandwidth::get))
}

fn lesser(one: Grant, other: Grant) -> Grant {
    let (ours, theirs) = (rates(one), rates(other));
    Grant {
        concurrency: one.concurrency.min(other.concurrency),
        max_iops: if ours.0 <= theirs.0 { one.max_iops } else { other.max_iops },
        max_bandwidth: if ours.1 <= theirs.1 { one.max_bandwidth } else { other.max_bandwidth },
    }
}

fn exceeds(one: Grant, other: Grant) -> bool {
    let (ours, theirs) = (rates(one), rates(other));
    one.concurrency > other.concurrency || ours.0 > theirs.0 || ours.1 > theirs.1
}
