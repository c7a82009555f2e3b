//! A volume's rate gate: a limit on requests a second, and one on bytes a second.
//!
//! The generic cell rate algorithm (ITU-T I.371, Annex A: "virtual scheduling"). A bucket is one instant, up
//! to which the volume has used its rate. A request may pass while that instant lies at most [`BURST`] ahead
//! of now; then the instant moves on by the cost of the request. So the instant at which the gate opens is
//! exact. With a bucket of tokens that a timer refills, it is not. Example: a timer that is to give 10 tokens
//! every 10 ms, but fires every 100 ms, lets 100 requests pass a second instead of 1,000.
//!
//! **The envelope.** Over any span `t`, at most `rate * (t + BURST)` passes, plus one request. A request may
//! be larger than the burst. It passes when the bucket is open, and its cost is a debt that keeps the bucket
//! closed until the debt is paid.
//!
//! **Costs.** Each request counts as one request, a flush too. Its length counts if the device may have to
//! read or write that much ([`IoKind::may_move_its_length`]). A range of zeroes costs as much as a write of
//! zeroes, because a file that cannot make holes is written full of them. A range to be cached costs as much
//! as a read.
//!
//! A trim costs a request and no bytes. It is advice: a device that would have to write for it may leave it.
//! If its bytes counted, the discard of a whole volume that is to be formatted would take hours, because of a
//! limit that its data will never feel. A flush costs no bytes either, and bandwidth does not hold it: the
//! bytes that it makes the device write were charged with their writes.
//!
//! **Why a burst of 5 ms.** A driver wakes late, by a timer's slack or because it is busy. Requests that were
//! not sent in the meantime must be sent afterwards, or the rate is lost. 5 ms covers that amply. It is half
//! a percent of a second, so nobody who measures a rate over a second can see it. At low rates, where less
//! than one request falls in 5 ms, the burst is one request.
//!
//! **Arithmetic.** Costs and instants are in units of 2^-32 ns, in 128 bits, without a division on the
//! request path. Whole nanoseconds would do for requests a second but not for bytes: at 100 GB/s, a byte
//! takes a hundredth of a nanosecond.

use weir_model::{Bandwidth, Instant, IoKind, Iops, Span};

/// How far ahead of its rate a volume may be.
const BURST: Span = Span::from_millis(5);
/// The same for the rate that a promise covers; see [`RateGate::covering`].
const COVERED_BURST: Span = Span::from_millis(100);
/// Binary digits of a tick below the nanosecond.
const FRACTION_BITS: u32 = 32;
/// Ticks in a second.
const TICKS_PER_SECOND: u128 = 1_000_000_000 << FRACTION_BITS;

/// The limits of one volume, and how far it has used them. Without limits it is always open.
#[derive(Clone, Debug)]
pub struct RateGate {
    burst: Span,
    requests: Option<Bucket>,
    bytes: Option<Bucket>,
}

impl Default for RateGate {
    fn default() -> Self {
        Self { burst: BURST, requests: None, bytes: None }
    }
}

impl RateGate {
    /// A gate that tells which requests a promised rate covers. A promise is about windows of a second. So a
    /// volume that had few requests for a moment may catch up afterwards, in a burst of 100 ms of its rate.
    pub fn covering() -> Self {
        Self { burst: COVERED_BURST, ..Self::default() }
    }

    /// Sets the limits. A volume that has used more than its rate keeps its debt of requests or bytes, and
    /// pays it off at the new rate.
    pub fn set_limits(&mut self, now: Instant, requests: Option<Iops>, bytes: Option<Bandwidth>) {
        set_cost(&mut self.requests, now, requests.map(ticks_per_request));
        set_cost(&mut self.bytes, now, bytes.map(ticks_per_byte));
    }

    /// From when on a request of this kind may pass; [`Instant::ORIGIN`] if no limit holds it.
    pub fn opens_at(&self, kind: IoKind) -> Instant {
        let bytes = self.bytes.as_ref().filter(|_| kind.may_move_its_length());
        let opens = |bucket: Option<&Bucket>| bucket.map_or(Instant::ORIGIN, |it| it.opens_at(self.burst));
        opens(self.requests.as_ref()).max(opens(bytes))
    }

    /// Charges a request that passes now.
    pub fn charge(&mut self, now: Instant, kind: IoKind, length: u32) {
        if let Some(requests) = &mut self.requests {
            requests.charge(now, 1);
        }
        if let Some(bytes) = self.bytes.as_mut().filter(|_| kind.may_move_its_length()) {
            bytes.charge(now, length);
        }
    }
}

/// One limit. All values are in ticks; an instant is in ticks since the origin.
#[derive(Clone, Debug)]
struct Bucket {
    cost: u128,
    used_until: u128,
}

impl Bucket {
    #[allow(clippy::cast_possible_truncation)] // bounded by u64::MAX the line above
    fn opens_at(&self, burst: Span) -> Instant {
        let opens = self.used_until.saturating_sub(ticks(burst.as_nanos()));
        let nanos = opens.div_ceil(1 << FRACTION_BITS).min(u128::from(u64::MAX));
        Instant::from_nanos(nanos as u64)
    }

    fn charge(&mut self, now: Instant, units: u32) {
        let cost = self.cost.saturating_mul(u128::from(units));
        self.used_until = self.used_until.max(ticks(now.as_nanos())).saturating_add(cost);
    }
}

/// Sets the cost of a unit; `None` removes the bucket.
fn set_cost(bucket: &mut Option<Bucket>, now: Instant, cost: Option<u128>) {
    match (bucket.as_mut(), cost) {
        (Some(bucket), Some(cost)) if bucket.cost == cost => {}
        (Some(bucket), Some(cost)) => {
            let debt = bucket.used_until.saturating_sub(ticks(now.as_nanos()));
            bucket.used_until = ticks(now.as_nanos()).saturating_add(rescaled(debt, bucket.cost, cost));
            bucket.cost = cost;
        }
        (_, cost) => *bucket = cost.map(|cost| Bucket { cost, used_until: 0 }),
    }
}

/// Converts a debt from the cost `before` to the cost `after`. In floating point: 128-bit products would
/// overflow.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rescaled(debt: u128, before: u128, after: u128) -> u128 {
    (debt as f64 * (after as f64 / before as f64)) as u128
}

const fn ticks(nanos: u64) -> u128 {
    (nanos as u128) << FRACTION_BITS
}

/// Rounded up, so that rounding never exceeds the rate.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn ticks_per_request(rate: Iops) -> u128 {
    ((TICKS_PER_SECOND as f64 / rate.get()).ceil() as u128).max(1)
}

/// Rounded up, so that rounding never exceeds the rate.
fn ticks_per_byte(rate: Bandwidth) -> u128 {
    TICKS_PER_SECOND.div_ceil(u128::from(rate.get()))
}

#[cfg(test)]
mod tests;
