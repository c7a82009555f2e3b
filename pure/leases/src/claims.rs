//! What a gateway claims to hold, as far as the claim can be true.
//!
//! A hello may claim anything, and an amount that is counted for one gateway is not there for the others. So
//! the controller cuts a claim down to the most that a controller can have granted, and to the longest time
//! for which it can have granted it:
//!
//! - The same run under the same controller holds what it was granted on an earlier stream. The ledger knows
//!   the most of that.
//! - Another run under the same controller was granted nothing. It holds what every gateway begins with.
//! - A controller that has just started does not know what the controller before it granted. That was at most
//!   the total, for at most the longest lease. After a lease, only a gateway's static part can be in force.
//! - A static part of which the controller knows nothing is at most what it gives a gateway itself, whichever
//!   volumes that serves.
//!
//! Example: of a total of 160, a hello claims 1,000,000 requests for 500 years. A controller that has just
//! started counts 160, for three intervals; one that granted this run 40 until two seconds from now counts
//! 40, for two seconds.

use weir_model::Instant;

use crate::amounts::{Amounts, Holding, VolumeKey};
use crate::bound::Bound;
use crate::controller::Controller;
use crate::ledger::{GatewayKey, Known, Sent};
use crate::message::Hello;
use crate::share::fit_requests;

impl Controller {
    /// What a gateway with this hello is counted with. Volumes that are not known get numbers.
    pub(crate) fn claimed(&mut self, now: Instant, key: GatewayKey, hello: &Hello) -> Sent {
        let claims: Vec<(VolumeKey, Amounts, Amounts)> = hello
            .volumes
            .iter()
            .map(|held| (self.names.key(&held.volume), held.grant.into(), held.fallback.into()))
            .collect();
        let part = self.fallback(claims.iter().map(|(volume, ..)| *volume));
        let most = self.plausible(now, key, hello.run, &part);
        let told = |volume: &VolumeKey| most.grants.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        let left = |volume: &VolumeKey| most.fallback.get(volume).copied().unwrap_or(Amounts::UNTOLD);
        let mut grants: Holding = claims
            .iter()
            .map(|(volume, grant, _)| (*volume, grant.min(told(volume)).within(self.limits(*volume))))
            .collect();
        let mut fallback: Holding = claims
            .iter()
            .map(|(volume, _, fallback)| (*volume, fallback.min(left(volume).max(part[volume]))))
            .collect();
        let total = Bound::AtMost(self.most_requests().into());
        fit_requests(total, grants.values_mut().map(|amounts| &mut amounts.requests));
        // A volume that the gateway was not told of has a request beside the static part.
        let together = most.fallback_together.plus(Bound::AtMost(claims.len() as u64));
        fit_requests(together, fallback.values_mut().map(|amounts| &mut amounts.requests));
        let number = self.gateways.get(&key).map_or(0, |gateway| gateway.number);
        Sent { number, at: now, until: most.until.min(now + hello.left), grants, fallback }
    }

    /// The most that a run of a gateway can hold; `part` is its static part.
    fn plausible(&self, now: Instant, key: GatewayKey, run: u64, part: &Holding) -> Known {
        let is_another = self.gateways.get(&key).and_then(|gateway| gateway.run).is_some_and(|of| of != run);
        match self.ledger.known(now, key) {
            Some(_) if is_another => Known {
                grants: part.clone(),
                fallback: part.clone(),
                fallback_together: Bound::Unlimited,
                until: now,
            },
            Some(known) => known,
            None => {
                let most = Amounts { requests: self.most_requests(), ..Amounts::UNTOLD };
                let grants = part.keys().map(|volume| (*volume, most)).collect();
                let fallback = self.most_fallback(part.keys().copied());
                let fallback_together = Bound::AtMost(self.most_fallback_requests());
                Known { grants, fallback, fallback_together, until: now + self.longest_lease }
            }
        }
    }
}
