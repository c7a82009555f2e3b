//! What a device's counters say, one case each.

use ReadWait::{Finished, NoReads, Outstanding};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(millis)
}

fn counters(reads: u64, read_millis: u32, reads_in_flight: u32) -> BlockCounters {
    BlockCounters { reads, read_millis, sectors_written: 0, reads_in_flight }
}

fn finished(count: u64, millis: u64) -> Reads {
    Reads { finished: Waits { count, took: Span::from_millis(millis) }, ..Reads::default() }
}

/// The waits between readings 100 ms apart.
fn waits(readings: &[BlockCounters]) -> Vec<ReadWait> {
    let mut meter = DeviceMeter::default();
    let read = |(k, &seen): (u64, _)| meter.handle_reading(at(100 * k), seen).reads.wait();
    (0..).zip(readings).map(read).collect()
}

#[test]
fn the_wait_is_the_time_of_the_reads_divided_by_their_number() {
    let wait = waits(&[counters(1000, 70_000, 0), counters(1010, 70_125, 3), counters(1010, 70_125, 0)]);
    assert_eq!(wait, [NoReads, Finished(Span::from_micros(12_500)), NoReads]);
}

#[test]
fn the_devices_of_a_resource_count_by_their_reads() {
    let mut sum = finished(9, 9);
    sum += finished(1, 11);
    assert_eq!(sum.wait(), Finished(Span::from_millis(2)));
    assert_eq!(Reads::default().wait(), NoReads);
}

#[test]
fn outstanding_reads_of_a_device_only_make_the_wait_of_a_resource_longer() {
    let beside = |age| {
        let mut sum = finished(3, 30);
        sum += Reads { outstanding: Waits { count: 1, took: Span::from_millis(age) }, ..Reads::default() };
        sum.wait()
    };
    assert_eq!(beside(9), Finished(Span::from_millis(10)));
    assert_eq!(beside(50), Finished(Span::from_millis(20)));
}

#[test]
fn milliseconds_wrap_at_32_bits() {
    let wait = waits(&[counters(5, u32::MAX - 9, 0), counters(7, 10, 0)]);
    assert_eq!(wait[1], Finished(Span::from_millis(10)));
}

#[test]
fn a_counter_that_goes_back_is_another_device_and_the_interval_does_not_count() {
    let fewer_reads = waits(&[counters(500, 900, 0), counters(3, 6, 0), counters(5, 10, 0)]);
    assert_eq!(fewer_reads, [NoReads, NoReads, Finished(Span::from_millis(2))]);
    let less_time = waits(&[counters(5, 900, 0), counters(6, 10, 0), counters(7, 14, 0)]);
    assert_eq!(less_time, [NoReads, NoReads, Finished(Span::from_millis(4))]);
    let mut meter = DeviceMeter::default();
    meter.handle_reading(at(0), BlockCounters { sectors_written: 100, ..counters(1, 1, 0) });
    let done = meter.handle_reading(at(100), BlockCounters { sectors_written: 8, ..counters(2, 2, 0) });
    assert_eq!(done, Done::default());
}

#[test]
fn a_device_that_was_away_begins_anew() {
    let mut meter = DeviceMeter::default();
    meter.handle_reading(at(0), counters(5, 10, 1));
    meter.handle_absence();
    assert_eq!(meter.handle_reading(at(100), counters(900, 5000, 0)), Done::default());
}

#[test]
fn reads_that_hang_count_by_their_age_from_the_first_reading_that_shows_them() {
    let hanging = counters(5, 10, 2);
    let waits = waits(&[counters(5, 10, 0), hanging, hanging, hanging, counters(7, 310, 0)]);
    assert_eq!(waits[..2], [NoReads, Outstanding(Span::ZERO)], "they may have begun just now");
    assert_eq!(waits[2..4], [100, 200].map(|age| Outstanding(Span::from_millis(age))));
    assert_eq!(waits[4], Finished(Span::from_millis(150)), "finished at last");
}

#[test]
fn a_read_that_began_while_others_hang_is_no_older_than_it_can_be() {
    let mut meter = DeviceMeter::default();
    for (k, in_flight) in [(0, 1), (1, 3)] {
        meter.handle_reading(at(100 * k), counters(5, 10, in_flight));
    }
    let reads = meter.handle_reading(at(200), counters(5, 10, 3)).reads;
    let the_one_from_the_start = Waits { count: 1, took: Span::from_millis(200) };
    assert_eq!(reads, Reads { outstanding: the_one_from_the_start, ..Reads::default() });
}

#[test]
fn written_sectors_have_512_bytes() {
    let mut meter = DeviceMeter::default();
    meter.handle_reading(at(0), BlockCounters { sectors_written: 10, ..counters(0, 0, 0) });
    let done = meter.handle_reading(at(100), BlockCounters { sectors_written: 14, ..counters(0, 0, 0) });
    assert_eq!(done.written, 2048);
}
