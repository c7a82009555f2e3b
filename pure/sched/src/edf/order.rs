//! Whether a volume's requests go in order: each begins where an earlier one ended.
//!
//! A scan has one place at which it goes on, or some: clients read several files, and several threads read
//! one file each. So the ends of the last few runs are remembered. A request that begins at none of them
//! begins a run, and the run that grew longest ago is forgotten. The ends lie in an array of fixed length: a
//! request costs some comparisons and no allocation.
//!
//! Only exact ends count. A tolerance would take random requests in a small, busy region for a scan. So a
//! client that sends a scan's requests in another order is not recognised.

/// How many runs are remembered.
const RUNS: usize = 8;
/// The weight of one request in the share of requests that went on: one part in so many.
const MEMORY: u16 = 16;
/// All requests went on.
const ALL: u16 = 1 << 10;
/// From this share on, a volume goes in order. Runs of 16 requests reach it.
const BEGINS: u16 = ALL / 8 * 7;
/// Below this share, it does so no longer. The distance keeps a volume from changing sides all the time.
const ENDS: u16 = ALL / 4 * 3;

/// What is remembered of a volume's requests.
#[derive(Debug)]
pub(super) struct Order {
    /// Where the last runs ended, the one that grew last first.
    ends: [u64; RUNS],
    /// The smoothed share of requests that went on with a run, in parts of [`ALL`].
    share: u16,
    is_kept: bool,
}

impl Order {
    /// Nothing is known: the volume does not go in order.
    pub(super) const fn unknown() -> Self {
        Self { ends: [u64::MAX; RUNS], share: 0, is_kept: false }
    }

    /// Whether the volume goes in order.
    pub(super) const fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// A request came for `length` bytes from `offset` on. Returns whether the volume has begun or ceased to
    /// go in order by that.
    pub(super) fn note(&mut self, offset: u64, length: u32) -> bool {
        let known = self.ends.iter().position(|end| *end == offset);
        // The end that is replaced moves to the front, and those before it move back.
        let mut moved = offset.saturating_add(length.into());
        for end in self.ends.iter_mut().take(known.map_or(RUNS, |place| place + 1)) {
            moved = std::mem::replace(end, moved);
        }
        let seen = if known.is_some() { ALL } else { 0 };
        self.share = self.share - self.share / MEMORY + seen / MEMORY;
        let was_kept = self.is_kept;
        self.is_kept = self.share >= if was_kept { ENDS } else { BEGINS };
        self.is_kept != was_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u32 = 4096;

    /// Notes requests of so many streams in turn, each in runs of `run` requests.
    fn streams(order: &mut Order, streams: u64, run: u64, requests: u64) {
        for nth in 0..requests {
            let (stream, place) = (nth % streams, nth / streams);
            // Runs lie apart, as the streams do.
            let block = (place / run) * 2 * run + place % run;
            order.note((stream << 40) + block * u64::from(LENGTH), LENGTH);
        }
    }

    fn is_kept_by(count: u64, run: u64) -> bool {
        let mut order = Order::unknown();
        streams(&mut order, count, run, 4_000);
        order.is_kept()
    }

    #[test]
    fn up_to_eight_scans_at_a_time_go_in_order_and_more_do_not() {
        assert!(is_kept_by(1, 1_000) && is_kept_by(8, 1_000));
        assert!(!is_kept_by(9, 1_000));
    }

    #[test]
    fn runs_of_32_requests_go_in_order_and_runs_of_2_do_not() {
        assert!(is_kept_by(1, 32) && !is_kept_by(1, 2));
    }

    #[test]
    fn a_scan_beside_a_few_random_requests_of_its_volume_still_goes_in_order() {
        let mut order = Order::unknown();
        let mut next = 0;
        for nth in 0..1_000_u64 {
            if nth % 12 == 11 {
                order.note(nth * 7_919 * 4096 + 1, LENGTH);
            } else {
                order.note(next, LENGTH);
                next += u64::from(LENGTH);
            }
        }
        assert!(order.is_kept());
    }

    #[test]
    fn a_scan_that_turns_to_random_requests_goes_in_order_no_longer() {
        let mut order = Order::unknown();
        streams(&mut order, 1, 1_000, 100);
        assert!(order.is_kept());
        for nth in 0..8_u64 {
            order.note((nth * 7_919) << 20, LENGTH);
        }
        assert!(!order.is_kept());
    }
}
