//! Where the time of a volume's requests went, and on whose behalf they waited: the engine's sums, with the
//! names of volumes. The ports of a volume are added up.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use weir_engine::{Charged, Hold, TimeSpent, TimeSplit, Whom};
use weir_model::{Instant, Span, VolumeId};
use weir_status::{HeldBack, HeldBy, LatencyParts, Share, Whose, Why};

use super::Pool;

/// The percentiles that are told, in tenths of a percent.
const PERCENTILES: [(&str, u16); 3] = [("p50", 500), ("p90", 900), ("p99", 990)];

impl Pool {
    /// Where the time of a volume's requests went in the last while; `None` if the volume is gone.
    pub(in crate::shard) fn why(&self, now: Instant, id: VolumeId, last: Span) -> Option<Why> {
        let volume = self.volumes.get(id.0 as usize)?.as_ref()?;
        let spent = volume.ports.iter().map(|port| self.engine.time_spent(now, *port, last));
        let spent = spent.reduce(|mut sum, other| {
            sum.add(&other);
            sum
        })?;
        Some(Why {
            volume: volume.name.clone(),
            pool: self.name.clone(),
            control: self.control_kind(),
            seconds: now.saturating_since(spent.since).as_secs_f64(),
            requests: spent.count(),
            latencies: latencies(&spent),
            held_back: held_back(&spent),
            waited_for: self.shares(id, &spent.waited_for),
            beside: self.shares(id, &spent.beside),
        })
    }

    /// What was charged, with the names of the volumes. `of` is the volume that waited.
    fn shares(&self, of: VolumeId, charges: &[Charged]) -> Vec<Share> {
        let mut sums: BTreeMap<(Whose, Option<String>), (Span, u64)> = BTreeMap::new();
        for Charged { whom, time, requests } in charges {
            let (sum, went) = sums.entry(self.whose(of, *whom)).or_default();
            *sum += *time;
            *went += requests;
        }
        let all = sums.values().fold(Span::ZERO, |all, (time, _)| all + *time).as_secs_f64();
        let mut shares: Vec<_> = sums.into_iter().collect();
        shares.sort_by_key(|(_, (time, _))| Reverse(*time));
        let share = |((whose, volume), (time, requests)): ((Whose, Option<String>), (Span, u64))| {
            let seconds = time.as_secs_f64();
            Share { whose, volume, seconds, percent: seconds / all * 100.0, requests }
        };
        shares.into_iter().map(share).collect()
    }

    fn whose(&self, of: VolumeId, whom: Whom) -> (Whose, Option<String>) {
        match whom {
            Whom::Volume(port) => {
                let first = self.first_port(port);
                match self.name_of(first).map(str::to_owned) {
                    Some(name) if first == of => (Whose::Itself, Some(name)),
                    Some(name) => (Whose::Volume, Some(name)),
                    None => (Whose::Gone, None),
                }
            }
            Whom::Gone => (Whose::Gone, None),
            Whom::Others => (Whose::Others, None),
            Whom::OtherGateway => (Whose::OtherGateway, None),
            Whom::Driver => (Whose::Weir, None),
            Whom::Nobody => (Whose::Nobody, None),
        }
    }
}

/// The parts of the mean, and around each percentile.
fn latencies(spent: &TimeSpent) -> Vec<LatencyParts> {
    if spent.count() == 0 {
        return Vec::new();
    }
    let around = PERCENTILES.iter().filter_map(|(name, tenths)| {
        let band = spent.around(*tenths)?;
        Some(parts(name, band.count.into(), &band.split))
    });
    [parts("mean", spent.count(), &spent.sum())].into_iter().chain(around).collect()
}

#[allow(clippy::cast_precision_loss)]
fn parts(of: &str, requests: u64, sum: &TimeSplit) -> LatencyParts {
    let mean = |part: Span| part.as_nanos() as f64 / 1e3 / requests as f64;
    LatencyParts {
        of: of.to_owned(),
        requests,
        total_us: mean(sum.total()),
        own_limit_us: mean(sum.own_limit),
        turn_us: mean(sum.turn),
        device_us: mean(sum.device),
        held_us: mean(sum.held),
        reply_us: mean(sum.reply),
    }
}

fn held_back(spent: &TimeSpent) -> Vec<HeldBack> {
    let held = Hold::ALL.iter().zip(spent.holds).filter(|(_, time)| !time.is_zero());
    let mut held: Vec<_> = held.collect();
    held.sort_by_key(|(_, time)| Reverse(*time));
    held.into_iter().map(|(hold, time)| HeldBack { by: word(*hold), seconds: time.as_secs_f64() }).collect()
}

const fn word(hold: Hold) -> HeldBy {
    match hold {
        Hold::Rate => HeldBy::Rate,
        Hold::Concurrency => HeldBy::Concurrency,
        Hold::GrantedRate => HeldBy::GrantedRate,
        Hold::GrantedConcurrency => HeldBy::GrantedConcurrency,
        Hold::Depth => HeldBy::Depth,
        Hold::PromisedBound => HeldBy::PromisedBound,
        Hold::Turn => HeldBy::Turn,
        Hold::BackgroundBound => HeldBy::BackgroundBound,
        Hold::Driver => HeldBy::Driver,
    }
}
