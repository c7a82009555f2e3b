//! The door of every device: what is wrong is refused here, and what shall go wrong goes wrong here.
//!
//! Faults are rules: every n-th request of a kind fails, starts late, or is kept until the rules change. They
//! sit in front of a device and not inside of one, so that each works with each. Without rules they cost one
//! branch.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use rustix::io::Errno;
use weir_model::{Instant, IoKind, Span};

use crate::{BlockDevice, DeviceRequest, Finished, Properties, Token};

/// What shall go wrong, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultRule {
    /// The kind of request that it is for; `None` for all.
    pub on: Option<IoKind>,
    /// Each how many-th request of this kind it strikes: 1 strikes every one, 3 the third, the sixth …
    pub every: NonZeroU64,
    /// What happens to the request.
    pub effect: FaultEffect,
}

/// What happens to a request that a rule strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultEffect {
    /// It fails, and never reaches the device.
    Error(Errno),
    /// It reaches the device this much later.
    Delay(Span),
    /// It is kept from the device until the rules change.
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
    /// Each with the number of requests of its kind so far.
    rules: Vec<(FaultRule, u64)>,
    /// Requests that start later, by when, and by number for those at the same instant.
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

    /// Changes the rules, whose counts start again. What is stalled starts now, and is not judged again; what
    /// is delayed starts when it would have. Pushes what is done at once.
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

    /// Counts the request in every rule for its kind; the first of those that strike it decides.
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

    /// Fails a request that reaches beyond the device with `EINVAL`: a write there would make a file grow.
    ///
    /// # Panics
    /// If a read or write comes without a buffer of its length: the driver's mistake.
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
        let due = self.faults.as_ref().and_then(|faults| faults.next_due());
        [due, self.inner.poll_timeout()].into_iter().flatten().min()
    }

    fn take_loss(&mut self) -> bool {
        self.inner.take_loss()
    }

    /// What is delayed or stalled here stays so, as the rules say.
    fn abandon(&mut self, token: Token) {
        self.inner.abandon(token);
    }
}

#[cfg(test)]
mod tests;
