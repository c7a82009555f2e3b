//! What holds for any readings of a device's counters.

use proptest::prelude::*;

use super::*;

proptest! {
    /// A device that does `reads` and takes `millis` for them in each interval, from any start of its
    /// counters: the sums of what the meter says are exactly that, across every wrap.
    #[test]
    fn what_is_measured_adds_up_to_what_the_device_did(
        start in any::<(u32, u32)>(),
        intervals in prop::collection::vec((1u64..10_000, 0u32..1 << 30, 0u64..1 << 20), 1..40),
    ) {
        let mut meter = DeviceMeter::default();
        let mut counters = BlockCounters {
            reads: start.0.into(), read_millis: start.1, ..BlockCounters::default()
        };
        meter.handle_reading(Instant::ORIGIN, counters);
        let (mut sum, mut written) = (Reads::default(), 0);
        for (k, &(reads, millis, sectors)) in (1..).zip(&intervals) {
            counters.reads += reads;
            counters.read_millis = counters.read_millis.wrapping_add(millis);
            counters.sectors_written += sectors;
            let done = meter.handle_reading(Instant::ORIGIN + Span::from_millis(100 * k), counters);
            sum += done.reads;
            written += done.written;
        }
        let millis: u64 = intervals.iter().map(|interval| u64::from(interval.1)).sum();
        prop_assert_eq!(sum.finished.count, intervals.iter().map(|interval| interval.0).sum::<u64>());
        prop_assert_eq!(sum.finished.took, Span::from_millis(millis));
        prop_assert_eq!(written, intervals.iter().map(|interval| 512 * interval.2).sum::<u64>());
    }

    /// Whatever the counters say, the meter does not panic, and no outstanding read is older than the meter.
    #[test]
    fn any_counters_can_be_read(
        readings in prop::collection::vec(any::<(u64, u32, u64, u32, u8)>(), 1..40),
    ) {
        let (mut meter, mut now) = (DeviceMeter::default(), Instant::ORIGIN);
        for &(reads, read_millis, sectors_written, reads_in_flight, step) in &readings {
            now = now + Span::from_millis(step.into());
            let seen = BlockCounters { reads, read_millis, sectors_written, reads_in_flight };
            let done = meter.handle_reading(now, seen);
            prop_assert!(done.reads.finished.took <= Span::from_millis(u64::from(WENT_BACK)));
            for reads in [done.reads, meter.handle_reading(now, seen).reads] {
                prop_assert!(reads.outstanding.mean() <= Some(now.since(Instant::ORIGIN)));
            }
        }
    }
}
