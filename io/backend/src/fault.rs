//! The layer in front of every device: it refuses invalid requests, and injects faults.
//!
//! Faults are rules: every n-th request of a kind fails, starts late, or is kept until the rules change. They
//! sit in front of the device and not inside it, so that each rule works with each device. Without rules the
//! layer costs one branch.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use rustix::io::Errno;
use weir_model::{Instant, IoKind, Span};

use crate::{BlockDevice, DeviceRequest, Finished, Properties, Token};

/// A fault: which requests it strikes, and its effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultRule {
    /// The kind of request that the rule is for; `None`: all kinds.
    pub on: Option<IoKind>,
    /// The rule strikes every n-th request of this kind: 1 strikes each request, 3 the third, the sixth …
    pub every: NonZeroU64,
    /// The effect on the request.
    pub effect: FaultEffect,
}

/// The effect on a request that a rule strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultEffect {
    /// The request fails, and never reaches the device.
    Error(Errno),
    /// The request reaches the device this much later.
    Delay(Span),
    /// The request is kept from the device until the rules change.
    Stall,
}

/// A device, and the faults in front of it.
#[derive(Debug)]
pub struct Device {
    inner: Box<dyn BlockDevice>,
    size: u64,
    /// `None` if there are no rules and nothing is kept.
    faults: Option<Box<Faults>>,
}

#[derive(Debug, Default)]
struct Faults {
    /// Each rule with the number of requests of its kind so far.
    rules: Vec<(FaultRule, u64)>,
    /// Requests that start later, by their time. The number orders requests of the same instant.
    delayed: BTreeMap<(Instant, u64), DeviceRequest>,
    delayed_so_far: u64,
    stalled: Vec<DeviceRequest>,
}

impl Device {
    /// `inner`, with `rules` in front of it.
    pub(crate) fn new(inner: Box<dyn BlockDevice>, rules: Vec<FaultRule>) -> Self {
        let size = inner.properties().size;
        let faults = (!rules.is_empty()).then(|| Box::new(Faults::new(rules)));
        Self { inner, size, faults }
    }

    /// Replaces the rules. The new rules count from zero. Stalled requests start now, and are not judged
    /// again. Delayed requests start when they would have. Requests that are done at once are pushed to
    /// `finished`.
    pub fn set_faults(&mut self, now: Instant, rules: Vec<FaultRule>, finished: &mut Vec<Finished>) {
        let mut old = self.faults.take().map_or_else(Faults::default, |faults| *faults);
        let stalled = std::mem::take(&mut old.stalled);
        let new = Faults { rules: Faults::new(rules).rules, ..old };
        self.faults = new.is_of_use().then(|| Box::new(new));
        for request in stalled {
            self.inner.start(now, request, finished);
        }
    }
}

impl Faults {
    fn new(rules: Vec<FaultRule>) -> Self {
        Self { rules: rules.into_iter().map(|rule| (rule, 0)).collect(), ..Self::default() }
    }

    fn is_of_use(&self) -> bool {
        !(self.rules.is_empty() && self.delayed.is_empty())
    }

    /// Counts the request in every rule for its kind. The first rule that strikes it decides.
    fn judge(&mut self, kind: IoKind) -> Option<FaultEffect> {
        let mut effect = None;
        for (rule, seen) in &mut self.rules {
            if rule.on.is_none_or(|on| on == kind) {
                *seen += 1;
                if seen.is_multiple_of(rule.every.get()) {
                    effect = effect.or(Some(rule.effect));
                }
            }
        }
        effect
    }

    /// The request, if it is to start now.
    fn pass(
        &mut self,
        now: Instant,
        request: DeviceRequest,
        finished: &mut Vec<Finished>,
    ) -> Option<DeviceRequest> {
        match self.judge(request.kind) {
            None => return Some(request),
            Some(FaultEffect::Error(errno)) => finished.push(request.fail(errno)),
            Some(FaultEffect::Stall) => self.stalled.push(request),
            Some(FaultEffect::Delay(span)) => {
                self.delayed_so_far += 1;
                self.delayed.insert((now + span, self.delayed_so_far), request);
            }
        }
        None
    }

    fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((due, _), _)| *due)
    }
}

impl BlockDevice for Device {
    fn properties(&self) -> Properties {
        self.inner.properties()
    }

    /// Fails a request that reaches beyond the device with `EINVAL`: such a write would make a file grow.
    ///
    /// # Panics
    /// If a read or write comes without a buffer of its length, which is the driver's mistake.
    fn start(&mut self, now: Instant, request: DeviceRequest, finished: &mut Vec<Finished>) {
        if request.kind.direction().is_some() {
            let bytes = request.buffer.as_ref().map(|buffer| buffer.len() as u64);
            assert_eq!(bytes, Some(u64::from(request.length)), "a {} carries its data", request.kind.name());
        }
        if request.end().is_none_or(|end| end > self.size) {
            return finished.push(request.fail(Errno::INVAL));
        }
        if request.length == 0 && request.kind != IoKind::Flush {
            return finished.push(request.succeed());
        }
        match &mut self.faults {
            None => self.inner.start(now, request, finished),
            Some(faults) => {
                if let Some(request) = faults.pass(now, request, finished) {
                    self.inner.start(now, request, finished);
                }
            }
        }
    }

    fn poll_finished(&mut self, now: Instant, finished: &mut Vec<Finished>) {
        if let Some(faults) = &mut self.faults {
            while faults.next_due().is_some_and(|due| due <= now) {
                let (_, request) = faults.delayed.pop_first().expect("one is due");
                self.inner.start(now, request, finished);
            }
        }
        self.inner.poll_finished(now, finished);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let of_device = self.inner.poll_timeout();
        let Some(faults) = &self.faults else { return of_device }; // nearly always, and asked for each request
        faults.next_due().into_iter().chain(of_device).min()
    }

    fn take_loss(&mut self) -> bool {
        self.inner.take_loss()
    }

    /// Delayed and stalled requests stay so, as the rules say.
    fn abandon(&mut self, token: Token) {
        self.inner.abandon(token);
    }
}

#[cfg(test)]
mod tests;
