//! The times of a disk: sequential and random throughput, cache, queue, and how they follow from its data
//! sheet.

use super::*;
use crate::event_queue::EventQueue;
use crate::random::Seed;

fn disk(options: &DiskOptions) -> Disk {
    Disk::new(DiskKind::new(options).unwrap(), Seed(1).stream("disk"))
}

/// Serves `count` reads of `length` bytes one after the other from `offset` on, `depth` at a time. Returns
/// bytes a second.
fn stream(options: &DiskOptions, offset: u64, length: u32, depth: u32, count: u32) -> f64 {
    let mut disk = disk(options);
    let mut events = EventQueue::new();
    let mut started = Vec::new();
    let io = |tag: u32| MemberIo {
        tag,
        write: false,
        offset: offset + u64::from(tag) * u64::from(length),
        length,
    };
    (0..depth).for_each(|tag| disk.push(Instant::ORIGIN, io(tag), &mut started));
    let (mut next, mut now, mut first) = (depth, Instant::ORIGIN, Instant::ORIGIN);
    loop {
        started.drain(..).for_each(|Started { tag, ends }| events.push(ends, tag));
        let Some(ends) = events.next_at() else { break };
        now = ends;
        let Some(tag) = events.pop_due(now) else { break };
        if tag == 0 {
            first = now;
        }
        disk.finish(now, tag, &mut started);
        if next < count {
            disk.push(now, io(next), &mut started);
            next += 1;
        }
    }
    f64::from(count - 1) * f64::from(length) / now.since(first).as_secs_f64()
}

#[test]
fn every_preset_is_a_disk_of_its_capacity() {
    for (&name, gigabytes) in DiskOptions::PRESETS.iter().zip([18.2, 18.2, 18.35, 73.4]) {
        let options = DiskOptions::preset(name).unwrap();
        #[allow(clippy::cast_precision_loss)]
        let capacity = disk(&options).capacity() as f64;
        assert!((capacity / gigabytes / 1e9 - 1.0).abs() < 0.005, "{name}: {capacity}");
        assert_eq!(disk(&options).capacity(), options.capacity());
    }
    assert!(DiskOptions::preset("quantum").is_none());
}

#[test]
fn a_sequential_stream_reads_at_the_rate_of_its_zone() {
    let options = DiskOptions::preset("cheetah-18lp").unwrap();
    let kind = DiskKind::new(&options).unwrap();
    let last = options.capacity() - 64_000_000;
    // Single reads of 4 KiB are left out: the overhead of a command limits them.
    for (length, depth) in [(4_096, 4), (16_384, 1), (65_536, 1), (65_536, 2), (1 << 20, 1), (1 << 20, 2)] {
        for (offset, zone) in [(0, 0), (last, 8)] {
            let rate = stream(&options, offset, length, depth, 48_000_000 / length);
            let media = kind.mechanics.geometry.media_rate(zone);
            assert!(
                (rate / media - 1.0).abs() < 0.02,
                "{length} x {depth} in zone {zone}: {rate} of {media}"
            );
        }
    }
}

#[test]
fn several_streams_at_once_are_read_in_segments_and_not_in_single_requests() {
    let options = DiskOptions::preset("cheetah-18lp").unwrap();
    let mut disk = disk(&options);
    let mut started = Vec::new();
    let mut now = Instant::ORIGIN;
    let mut positioned = 0;
    for tag in 0..400_u32 {
        // Two streams, each of which takes 20 ms for each of its reads.
        let offset = u64::from(tag % 2) * 9_000_000_000 + u64::from(tag / 2) * 8_192;
        disk.push(now, MemberIo { tag, write: false, offset, length: 8_192 }, &mut started);
        let ends = started.pop().unwrap().ends;
        positioned += u32::from(ends.since(now) > Span::from_millis(1));
        disk.finish(ends, tag, &mut started);
        now = ends + Span::from_millis(20);
    }
    assert!(positioned < 20, "{positioned} of 400 reads moved the arm");
}

#[test]
fn what_was_written_is_not_read_from_the_buffer() {
    let mut disk = disk(&DiskOptions::preset("cheetah-18lp").unwrap());
    let mut now = Instant::ORIGIN;
    let mut took = |write| {
        let mut started = Vec::new();
        disk.push(now, MemberIo { tag: 0, write, offset: 1 << 20, length: 4_096 }, &mut started);
        let ends = started[0].ends;
        disk.finish(ends, 0, &mut started);
        let took = ends.since(now);
        now = ends + Span::from_millis(100);
        took
    };
    let buffered = Span::from_micros(280 + 41);
    assert!(took(false) > buffered);
    assert!(took(false) <= buffered);
    assert!(took(true) > buffered);
    assert!(took(false) > buffered, "the buffer held what was there before");
}

#[test]
fn sequential_writes_lose_a_turn_each_unless_they_are_queued() {
    let options = DiskOptions::preset("cheetah-18lp").unwrap();
    let time = |depth: u32| {
        let mut disk = disk(&options);
        let (mut started, mut now) = (Vec::new(), Instant::ORIGIN);
        let io = |tag: u32| MemberIo { tag, write: true, offset: u64::from(tag) * 4_096, length: 4_096 };
        (0..depth).for_each(|tag| disk.push(now, io(tag), &mut started));
        for tag in 0..200 {
            assert_eq!(started[0].tag, tag);
            now = started.remove(0).ends;
            disk.finish(now, tag, &mut started);
            disk.push(now, io(tag + depth), &mut started);
        }
        now.as_nanos() / 200
    };
    let turn = 6_000_000;
    assert!((turn * 9 / 10..turn * 11 / 10).contains(&time(1)), "{} ns", time(1));
    assert!(time(2) < turn / 20, "{} ns", time(2));
}

#[test]
fn the_disk_chooses_among_those_that_it_sees_and_the_rest_come_in_their_order() {
    let options = DiskOptions { tags: NonZeroU32::MIN, ..DiskOptions::preset("cheetah-18lp").unwrap() };
    let mut disk = disk(&options);
    let mut started = Vec::new();
    for tag in 0..20_u32 {
        let offset = u64::from(tag * 7 % 20) * 900_000_000;
        disk.push(Instant::ORIGIN, MemberIo { tag, write: false, offset, length: 4_096 }, &mut started);
    }
    assert_eq!(disk.outstanding(), 20);
    for tag in 0..20 {
        assert_eq!((started.len(), started[0].tag), (1, tag));
        let ends = started.remove(0).ends;
        disk.finish(ends, tag, &mut started);
    }
    assert_eq!(disk.outstanding(), 0);
}

#[test]
fn options_that_make_no_disk_are_refused_with_what_would_do() {
    let good = || DiskOptions::preset("cheetah-18lp").unwrap();
    let text = |options: DiskOptions| options.check().unwrap_err().to_string();
    assert_eq!(good().check(), Ok(()));
    assert!(text(DiskOptions { rpm: 0, ..good() }).contains("0 rpm is not modelled"));
    assert!(text(DiskOptions { rpm: 3_000, ..good() }).contains("3000 rpm"));
    assert!(text(DiskOptions { zones: Vec::new(), ..good() }).contains("3 cylinders or more"));
    assert!(text(DiskOptions { head_switch: Span::from_millis(6), ..good() }).contains("less than a turn"));
    assert!(text(DiskOptions { segment_size: 511, ..good() }).contains("511 bytes"));
    assert!(text(DiskOptions { interface: 0, ..good() }).contains("0 bytes a second"));
    let no_sectors = vec![Zone { cylinders: 9_801, sectors_per_track: 0 }];
    assert!(text(DiskOptions { zones: no_sectors, ..good() }).contains("between 1 and 2^32 - 1"));
}
