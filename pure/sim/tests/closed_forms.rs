//! The models compared with closed forms, or with data sheets.
//!
//! A simulator that is wrong by a constant factor still draws plausible curves. So here a loop that is too
//! short to be wrong drives each model by itself, and the model must give the number of the textbook.

use std::num::NonZeroU32;

use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use weir_model::{Instant, Span};
use weir_sim::{
    DiskOptions, DiskOrder, EventQueue, Member, MemberIo, MemberOptions, Prng, Seed, SsdOptions, Started,
    StationOptions,
};

/// One member and the events that it has announced.
struct Bench {
    member: Member,
    events: EventQueue<u32>,
    started: Vec<Started>,
    random: Prng,
    now: Instant,
}

impl Bench {
    fn new(options: &MemberOptions, seed: u64) -> Self {
        let member = options.build([Seed(seed).stream("member")]).unwrap().remove(0);
        let random = Seed(seed).stream("requests");
        Self { member, events: EventQueue::new(), started: Vec::new(), random, now: Instant::ORIGIN }
    }

    fn push(&mut self, io: MemberIo) {
        self.member.push(self.now, io, &mut self.started);
        self.announce();
    }

    /// Goes to the next end of a request, if it lies before `until`. Returns the request's tag.
    fn finish(&mut self, until: Instant) -> Option<u32> {
        let ends = self.events.next_at().filter(|&ends| ends <= until)?;
        let tag = self.events.pop_due(ends)?;
        self.now = ends;
        self.member.finish(ends, tag, &mut self.started);
        self.announce();
        Some(tag)
    }

    fn announce(&mut self) {
        self.started.drain(..).for_each(|Started { tag, ends }| self.events.push(ends, tag));
    }

    /// A request for 4 KiB anywhere in the first `share` of the member.
    fn random_io(&mut self, tag: u32, write: bool, share: f64) -> MemberIo {
        let offset = self.random.random_range(0..pages(share, self.member.capacity())) * 4_096;
        MemberIo { tag, write, offset, length: 4_096 }
    }

    /// Does `count` requests of 4 KiB, with `depth` outstanding. Returns how many ended a second.
    fn closed(&mut self, depth: u32, write: bool, share: f64, count: u32) -> f64 {
        let begin = self.now;
        for tag in 0..depth {
            let io = self.random_io(tag, write, share);
            self.push(io);
        }
        for _ in 0..count {
            let tag = self.finish(Instant::FAR_FUTURE).unwrap();
            let io = self.random_io(tag, write, share);
            self.push(io);
        }
        let rate = f64::from(count) / self.now.since(begin).as_secs_f64();
        while self.finish(Instant::FAR_FUTURE).is_some() {}
        rate
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a capacity
fn pages(share: f64, capacity: u64) -> u64 {
    ((capacity / 4_096) as f64 * share) as u64
}

fn assert_near(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() <= tolerance,
        "{what}: {found}, expected {expected} within {tolerance}"
    );
}

/// The mean time in the queue, in service times, of `count` requests that come at random, at the rate `load`
/// of the most that is served.
fn mean_wait(servers: u32, exponential: bool, load: f64, count: u32) -> f64 {
    let service_time = Span::from_millis(1);
    let servers = NonZeroU32::new(servers).unwrap();
    let mut bench =
        Bench::new(&MemberOptions::Station(StationOptions { servers, service_time, exponential }), 7);
    let gap = service_time.as_secs_f64() / load / f64::from(servers.get());
    let mut arrivals = Seed(7).stream("arrivals");
    let (mut arrived, mut total, mut at) = (vec![Instant::ORIGIN; count as usize], 0.0, Instant::ORIGIN);
    let mut end = |bench: &mut Bench, until, arrived: &[Instant]| {
        while let Some(tag) = bench.finish(until) {
            total += bench.now.since(arrived[tag as usize]).as_secs_f64();
        }
    };
    for tag in 0..count {
        let pause: f64 = Exp1.sample(&mut arrivals);
        at = at + Span::from_secs_f64(pause * gap);
        end(&mut bench, at, &arrived);
        bench.now = at;
        arrived[tag as usize] = at;
        bench.push(MemberIo { tag, write: false, offset: 0, length: 4_096 });
    }
    end(&mut bench, Instant::FAR_FUTURE, &arrived);
    total / f64::from(count) / service_time.as_secs_f64() - 1.0
}

#[test]
fn the_wait_of_m_m_1_is_that_of_the_textbook() {
    for load in [0.5_f64, 0.8] {
        assert_near(mean_wait(1, true, load, 1_000_000), load / (1.0 - load), 0.03, "M/M/1");
    }
}

#[test]
fn the_wait_of_m_d_1_is_half_of_that() {
    for load in [0.5_f64, 0.8] {
        assert_near(mean_wait(1, false, load, 1_000_000), load / (1.0 - load) / 2.0, 0.03, "M/D/1");
    }
}

#[test]
fn the_wait_of_m_m_k_is_by_erlangs_formula() {
    for (servers, load) in [(2_u32, 0.8_f64), (6, 0.9)] {
        let offered = f64::from(servers) * load;
        // Erlang B by its recursion, and C, the probability to wait, from it.
        let blocked = (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b));
        let waits = blocked / (1.0 - load * (1.0 - blocked));
        let expected = waits / (f64::from(servers) * (1.0 - load));
        assert_near(mean_wait(servers, true, load, 2_000_000), expected, 0.03, "M/M/k");
    }
}

fn disk(order: DiskOrder) -> (DiskOptions, MemberOptions) {
    let options = DiskOptions { order, ..DiskOptions::preset("cheetah-18lp").unwrap() };
    (options.clone(), MemberOptions::Disk(options))
}

#[test]
fn one_random_read_at_a_time_takes_the_average_seek_half_a_turn_and_the_overhead() {
    for &name in DiskOptions::PRESETS {
        let options = DiskOptions::preset(name).unwrap();
        let half_a_turn = 30.0 / f64::from(options.rpm);
        let expected = options.seek.average.as_secs_f64() + half_a_turn + options.overhead.as_secs_f64();
        let rate = Bench::new(&MemberOptions::Disk(options), 3).closed(1, false, 1.0, 50_000);
        assert_near(rate, 1.0 / expected, 0.03, name);
    }
}

#[test]
fn one_random_write_at_a_time_takes_its_average_seek() {
    let (options, member) = disk(DiskOrder::ShortestPositioning);
    let seek = options.seek.average + options.write_settle;
    assert_eq!(seek, Span::from_millis(6), "the data sheet's figure for writes");
    let expected = seek.as_secs_f64() + 30.0 / f64::from(options.rpm) + options.overhead.as_secs_f64();
    assert_near(Bench::new(&member, 3).closed(1, true, 1.0, 50_000), 1.0 / expected, 0.03, "writes");
}

#[test]
fn the_wait_for_the_sector_is_half_a_turn_on_average() {
    let (options, member) = disk(DiskOrder::Fifo);
    let mut bench = Bench::new(&member, 5);
    let mut total = 0.0;
    let pauses = 20_000_u32;
    for tag in 0..pauses {
        // Writes to the disk's first sector, at random times, so that no seek, no switch and no buffer plays
        // a part.
        bench.push(MemberIo { tag, write: true, offset: 0, length: 512 });
        let begin = bench.now;
        bench.finish(Instant::FAR_FUTURE).unwrap();
        total += (bench.now.since(begin)).as_secs_f64() - options.overhead.as_secs_f64();
        let pause: f64 = Exp1.sample(&mut bench.random);
        bench.now = bench.now + Span::from_secs_f64(pause * 0.05);
    }
    assert_near(total / f64::from(pauses), 0.003, 0.03, "half a turn at 10,000 rpm, and a sector");
}

#[test]
fn throughput_rises_with_the_queue_and_saturates_unless_served_in_order_of_arrival() {
    let rates = |order| {
        let (_, member) = disk(order);
        [1, 2, 4, 8, 16, 32, 64, 128].map(|depth| Bench::new(&member, 3).closed(depth, false, 1.0, 20_000))
    };
    let shortest = rates(DiskOrder::ShortestPositioning);
    assert!(shortest[..7].is_sorted(), "{shortest:?}");
    assert!(shortest[5] > 2.0 * shortest[0], "{shortest:?}");
    assert_near(shortest[7], shortest[6], 0.03, "beyond the 64 commands that the disk sees");
    let elevator = rates(DiskOrder::Elevator);
    assert!(elevator[..7].is_sorted() && elevator[6] < shortest[6], "{elevator:?}");
    let fifo = rates(DiskOrder::Fifo);
    assert!(fifo.iter().all(|rate| (rate / fifo[0] - 1.0).abs() < 0.06), "{fifo:?}");
}

#[test]
fn nobody_waits_for_ever_at_a_disk_that_serves_the_shortest_way_first() {
    let (_, member) = disk(DiskOrder::ShortestPositioning);
    let mut bench = Bench::new(&member, 9);
    let mut arrived = [Instant::ORIGIN; 64];
    let mut longest = Span::ZERO;
    // 63 requests go to the outermost hundredth, and one goes to the innermost.
    for tag in 0..63 {
        let io = bench.random_io(tag, false, 0.01);
        bench.push(io);
    }
    let far = MemberIo { tag: 63, write: false, offset: 18_000_000_000, length: 4_096 };
    bench.push(far);
    for _ in 0..20_000 {
        let tag = bench.finish(Instant::FAR_FUTURE).unwrap();
        longest = longest.max(bench.now.since(arrived[tag as usize]));
        arrived[tag as usize] = bench.now;
        let io = if tag == 63 { far } else { bench.random_io(tag, false, 0.01) };
        bench.push(io);
    }
    assert!(longest < Span::from_secs(3), "{longest}");
}

#[test]
fn the_same_seed_gives_the_same_instants() {
    let (_, member) = disk(DiskOrder::ShortestPositioning);
    let run = |seed| {
        let mut bench = Bench::new(&member, seed);
        bench.closed(16, false, 1.0, 5_000);
        bench.now
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn ssd() -> SsdOptions {
    SsdOptions::preset("nvme-tlc-500gb").unwrap()
}

#[test]
fn reads_of_a_flash_disk_are_those_of_the_data_sheet_at_both_ends() {
    let rate = |depth| Bench::new(&MemberOptions::Ssd(ssd()), 3).closed(depth, false, 1.0, 100_000);
    assert_near(rate(1), 15_000.0, 0.03, "one at a time");
    assert_near(rate(128), 370_000.0, 0.05, "32 each of 4 threads");
}

#[test]
fn reads_of_a_flash_disk_rise_with_its_dies_and_saturate() {
    let rate = |dies, depth| {
        let options = SsdOptions { dies_per_channel: NonZeroU32::new(dies).unwrap(), ..ssd() };
        Bench::new(&MemberOptions::Ssd(options), 3).closed(depth, false, 1.0, 100_000)
    };
    let by_dies = [1, 2, 4].map(|dies| rate(dies, 512));
    assert_near(by_dies[1], by_dies[0] * 2.0, 0.05, "twice the dies");
    assert!(by_dies[2] > by_dies[1] * 1.7, "{by_dies:?}");
    let by_depth = [1, 4, 16, 64, 256, 512].map(|depth| rate(2, depth));
    assert!(by_depth.is_sorted(), "{by_depth:?}");
    assert_near(by_depth[5], by_depth[4], 0.03, "saturated");
}

#[test]
fn a_flash_disk_writes_slower_for_good_once_its_spare_space_is_used_up() {
    let rate = |full| {
        let small = SsdOptions { capacity: 5_000_000_512, spare: 500_000_000, full, ..ssd() };
        let mut bench = Bench::new(&MemberOptions::Ssd(small), 3);
        bench.closed(64, true, 1.0, 200_000);
        bench.closed(64, true, 1.0, 400_000)
    };
    let (fresh, sustained) = (rate(false), rate(true));
    assert_near(fresh, 16.0 * 32_768.0 / 0.000_870 / 4_096.0, 0.05, "16 dies that program 32 KiB in 870 us");
    // With 1.1 bytes of flash for each byte, 5.6 bytes are programmed for each byte written; 4.6 of them are
    // read before.
    assert!((4.5..7.0).contains(&(fresh / sustained)), "fresh {fresh}, sustained {sustained}");
}

#[test]
fn a_fresh_flash_disk_becomes_a_used_one_by_being_written() {
    let small =
        |full| MemberOptions::Ssd(SsdOptions { capacity: 500_002_816, spare: 50_000_000, full, ..ssd() });
    let mut bench = Bench::new(&small(false), 3);
    for _ in 0..8 {
        bench.closed(64, true, 1.0, 200_000);
    }
    let worn = bench.closed(64, true, 1.0, 100_000);
    let full = Bench::new(&small(true), 3).closed(64, true, 1.0, 300_000);
    assert_near(worn, full, 0.1, "sustained");
}
