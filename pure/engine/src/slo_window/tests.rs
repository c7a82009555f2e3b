//! Claims about windows: whose request counts where, and when a verdict is certain.

use weir_model::{Iops, SloPoint};

use super::*;

const SECOND: Span = Span::from_secs(1);

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + ms(millis)
}

/// Reads in 10 ms and writes in 20 ms, up to 100 a second.
fn slo() -> Slo {
    let up_to = Iops::new(100.0).unwrap();
    Slo::new(vec![SloPoint { up_to, read: ms(10), write: ms(20) }]).unwrap()
}

/// A volume in simulated time.
struct Volume {
    windows: SloWindows,
    now: Instant,
    waiting: Vec<Request>,
    submitted: usize,
    closed: Vec<WindowReport>,
}

/// A request that has no answer.
#[derive(Clone, Copy, PartialEq)]
struct Request {
    number: usize,
    came: Instant,
    window: WindowNumber,
}

impl Volume {
    fn new() -> Self {
        let windows = SloWindows::new(at(0));
        Self { windows, now: at(0), waiting: Vec::new(), submitted: 0, closed: Vec::new() }
    }

    /// A volume to which so many reads came in its first second, each of which took no time. It is in its
    /// second second.
    fn after(reads: u64) -> Self {
        let mut volume = Self::new();
        (0..reads).for_each(|_| volume.had(0, Direction::Read));
        volume.end(at(1_000));
        volume.closed.clear();
        volume
    }

    fn submit(&mut self, direction: Direction) -> Request {
        let window = self.windows.on_arrival(self.now, Some(direction));
        let request = Request { number: self.submitted, came: self.now, window };
        self.submitted += 1;
        self.waiting.push(request);
        request
    }

    fn end_request(&mut self, now: Instant, request: Request, ending: Ending) {
        self.now = now;
        self.waiting.retain(|waiting| *waiting != request);
        self.windows.on_end(now, request.came, Some(request.window), ending);
        if ending == Ending::Answered {
            let latency = Latency { total: now.since(request.came), at_device: Span::ZERO };
            self.windows.on_answer(4096, Some(latency));
        }
        self.close();
    }

    /// A request comes now, and is answered after so many milliseconds.
    fn had(&mut self, latency: u64, direction: Direction) {
        let request = self.submit(direction);
        self.end_request(self.now + ms(latency), request, Ending::Answered);
    }

    fn end(&mut self, now: Instant) -> WindowTraffic {
        self.end_with(now, Some(&slo()))
    }

    /// The window ends, and the volume has this SLO.
    fn end_with(&mut self, now: Instant, slo: Option<&Slo>) -> WindowTraffic {
        self.now = now;
        let traffic = self.windows.end(now, slo, self.waiting.first().map(|oldest| oldest.came));
        self.close();
        traffic
    }

    fn close(&mut self) {
        self.closed.extend(std::iter::from_fn(|| self.windows.close(self.now)));
    }

    fn verdicts(&self) -> Vec<Verdict> {
        self.closed.iter().map(|window| window.verdict).collect()
    }
}

/// The window of a second in which requests with these latencies came, after one with `previous` reads.
fn closed(previous: u64, requests: &[(Direction, u64)]) -> WindowReport {
    let mut volume = Volume::after(previous);
    requests.iter().for_each(|(direction, latency)| volume.had(*latency, *direction));
    volume.end(at(2_000));
    volume.closed[0]
}

#[test]
fn the_mean_is_compared_with_the_target_of_the_mix() {
    use Direction::{Read, Write};
    assert_eq!(closed(50, &[(Read, 9), (Read, 11)]).verdict, Verdict::Met);
    assert_eq!(closed(50, &[(Read, 9), (Read, 12)]).verdict, Verdict::Missed);
    let mixed = closed(50, &[(Read, 14), (Write, 16)]);
    assert_eq!((mixed.target, mixed.verdict), (Some(ms(15)), Verdict::Met));
}

#[test]
fn the_mix_is_of_what_came_and_not_of_what_was_answered() {
    let mut volume = Volume::after(50);
    volume.had(11, Direction::Write);
    let reads = [(); 3].map(|()| volume.submit(Direction::Read));
    volume.end(at(2_000));
    assert_eq!(volume.verdicts(), [Verdict::Missed]);
    assert_eq!(volume.closed[0].target, Some(Span::from_micros(12_500)), "a write and three reads");
    for read in reads {
        volume.end_request(at(2_001), read, Ending::Answered);
    }
}

#[test]
fn one_fast_reply_beside_a_hundred_requests_that_hang_is_a_window_missed() {
    let mut volume = Volume::after(50);
    volume.had(1, Direction::Read);
    (0..100).for_each(|_| _ = volume.submit(Direction::Read));
    let traffic = volume.end(at(2_000));
    assert_eq!((traffic.answered, traffic.mean_latency), (1, Some(ms(1))));
    assert_eq!(volume.verdicts(), [Verdict::Missed]);
    assert_eq!((volume.closed[0].offered.total(), volume.closed[0].completed), (101, 1));
}

#[test]
fn a_request_that_hangs_over_windows_counts_in_the_one_in_which_it_came_and_in_no_other() {
    let mut volume = Volume::after(50);
    let hangs = volume.submit(Direction::Read);
    (0..99).for_each(|_| volume.had(0, Direction::Read));
    volume.end(at(1_900));
    assert_eq!(volume.verdicts(), [], "0.9 s of at most 100 times 10 ms");
    volume.had(3, Direction::Read);
    assert_eq!(volume.verdicts(), [], "the windows are closed in their order");
    volume.end(at(2_900));
    assert_eq!(volume.verdicts(), [Verdict::Missed, Verdict::Met]);
    volume.had(4, Direction::Read);
    volume.end_request(at(3_500), hangs, Ending::Answered);
    volume.end(at(3_900));
    assert_eq!(volume.verdicts(), [Verdict::Missed, Verdict::Met, Verdict::Met]);
    assert_eq!(volume.closed[2].mean_latency, Some(ms(4)));
}

#[test]
fn a_window_is_met_when_its_last_request_is_answered() {
    let mut volume = Volume::after(50);
    let last = volume.submit(Direction::Read);
    (0..99).for_each(|_| volume.had(0, Direction::Read));
    volume.end(at(1_900));
    volume.end_request(at(2_000), last, Ending::Answered);
    assert_eq!(volume.verdicts(), [Verdict::Met]);
    assert_eq!((volume.closed[0].completed, volume.closed[0].mean_latency), (100, Some(ms(10))));
}

#[test]
fn what_a_law_lets_through_changes_neither_the_number_of_requests_nor_the_target() {
    let (mut fast, mut slow) = (Volume::after(50), Volume::after(50));
    (0..40).for_each(|_| fast.had(0, Direction::Read));
    (0..40).for_each(|_| _ = slow.submit(Direction::Read));
    for now in [at(2_000), at(3_000)] {
        fast.end(now);
        slow.end(now);
    }
    let seen = |volume: &Volume| volume.closed.iter().map(|it| (it.offered, it.target)).collect::<Vec<_>>();
    assert_eq!(seen(&fast), seen(&slow));
    assert_eq!(fast.verdicts(), [Verdict::Met, Verdict::Idle]);
    assert_eq!(slow.verdicts(), [Verdict::Missed, Verdict::Missed], "the others still wait");
}

#[test]
fn more_than_agreed_in_the_window_before_ends_the_promise() {
    let report = closed(200, &[(Direction::Read, 500)]);
    assert_eq!((report.target, report.verdict), (None, Verdict::OutOfContract));
}

#[test]
fn a_window_in_which_nothing_came_is_idle_unless_something_waits_too_long() {
    assert_eq!(closed(50, &[]).verdict, Verdict::Idle);
    assert_eq!(closed(200, &[]).verdict, Verdict::Idle);
    let mut volume = Volume::after(50);
    volume.now = at(1_995);
    let waits = volume.submit(Direction::Read);
    volume.end(at(2_000));
    volume.end(at(2_004));
    assert_eq!(volume.verdicts(), [], "the first window may still be met");
    volume.end(at(3_000));
    volume.end_request(at(3_500), waits, Ending::Answered);
    volume.end(at(4_000));
    assert_eq!(volume.verdicts(), [Verdict::Missed, Verdict::Idle, Verdict::Missed, Verdict::Idle]);
}

#[test]
fn a_request_that_fails_counts_for_nothing_and_one_that_is_taken_back_counts_with_its_age() {
    let mut volume = Volume::after(50);
    let failed = volume.submit(Direction::Read);
    volume.end_request(at(1_400), failed, Ending::Failed);
    volume.end(at(2_000));
    assert_eq!((volume.closed[0].verdict, volume.closed[0].mean_latency), (Verdict::Idle, None));
    assert_eq!(volume.closed[0].offered.total(), 1);
    let aborted = volume.submit(Direction::Read);
    volume.end_request(at(2_100), aborted, Ending::Aborted);
    volume.end(at(3_000));
    assert_eq!((volume.closed[1].verdict, volume.closed[1].mean_latency), (Verdict::Missed, Some(ms(100))));
    assert_eq!(volume.closed[1].completed, 0);
}

#[test]
fn requests_that_fail_came_all_the_same() {
    let mut volume = Volume::after(200);
    for _ in 0..200 {
        let request = volume.submit(Direction::Read);
        volume.end_request(at(1_400), request, Ending::Failed);
    }
    volume.end(at(2_000));
    volume.end(at(3_000));
    assert_eq!(volume.verdicts(), [Verdict::OutOfContract, Verdict::Idle]);
    assert_eq!(volume.closed[1].target, None, "200 came in the window before");
}

#[test]
fn a_window_whose_last_request_fails_after_its_end_is_judged_by_the_others() {
    let mut volume = Volume::after(50);
    let fails = volume.submit(Direction::Read);
    (0..99).for_each(|_| volume.had(0, Direction::Read));
    volume.end(at(1_900));
    volume.end_request(at(1_950), fails, Ending::Failed);
    assert_eq!(volume.verdicts(), [Verdict::Met]);
}

#[test]
fn few_windows_stay_open_however_long_a_request_hangs_and_each_is_closed_once() {
    let mut volume = Volume::after(50);
    let first = volume.submit(Direction::Read);
    // So many that their target allows one to hang for hundreds of seconds.
    (0..100_000).for_each(|_| volume.had(0, Direction::Read));
    let mut windows = 0;
    for second in 2..200 {
        volume.end(at(second * 1_000));
        windows += 1;
        assert!(volume.windows.ended.len() <= KEPT);
        assert_eq!(volume.closed.len() + volume.windows.ended.len(), windows);
    }
    assert_eq!(volume.closed[0].verdict, Verdict::Met, "some 65 s of at most 100,001 times 10 ms");
    volume.end_request(at(300_000), first, Ending::Answered);
    assert_eq!(volume.closed.len(), windows);
}

#[test]
fn requests_from_before_a_restart_belong_to_no_window() {
    let mut volume = Volume::after(50);
    let before = volume.submit(Direction::Read);
    volume.end(at(1_005));
    volume.windows.restart(at(1_005), 1);
    let after = volume.submit(Direction::Read);
    volume.end_request(at(1_900), before, Ending::Answered);
    volume.end_request(at(1_900), after, Ending::Aborted);
    volume.end(at(2_005));
    assert_eq!(volume.closed.len(), 1);
    assert_eq!((volume.closed[0].offered.total(), volume.closed[0].completed), (1, 0));
}

#[test]
fn an_slo_that_changes_is_in_force_for_the_window_that_is_running() {
    let mut volume = Volume::after(50);
    volume.had(15, Direction::Read);
    let (up_to, read, write) = (Iops::new(100.0).unwrap(), ms(15), ms(15));
    let milder = Slo::new(vec![SloPoint { up_to, read, write }]).unwrap();
    volume.end_with(at(2_000), Some(&milder));
    volume.had(15, Direction::Read);
    volume.end_with(at(3_000), None);
    assert_eq!(volume.verdicts(), [Verdict::Met, Verdict::NoSlo]);
}

#[test]
fn flushes_and_trims_beyond_the_rate_end_the_promise_as_reads_do() {
    let mut volume = Volume::new();
    (0..200).for_each(|_| _ = volume.windows.on_arrival(at(0), None));
    volume.end(at(1_000));
    assert_eq!((volume.closed[0].verdict, volume.closed[0].offered.total()), (Verdict::Idle, 0));
    assert_eq!(volume.windows.target(&slo()), None);
    volume.windows.on_arrival(at(1_000), None);
    volume.end(at(2_000));
    volume.end(at(3_000));
    assert_eq!(volume.verdicts()[1..], [Verdict::OutOfContract, Verdict::Idle], "and is over");
}

#[test]
fn what_is_offered_in_one_window_decides_what_the_next_is_promised() {
    let mut volume = Volume::new();
    (0..200).for_each(|_| volume.had(0, Direction::Read));
    volume.end(at(1_000));
    assert_eq!((volume.closed[0].offered.total(), volume.closed[0].target), (200, Some(ms(10))));
    assert_eq!((volume.closed[0].offered.over, volume.windows.target(&slo())), (SECOND, None));
}

/// A volume of which 90 % of the requests are promised 10 ms. A window needs 100 requests.
fn with_percentile() -> Volume {
    let mut volume = Volume::new();
    let target = Percentile::from_tenths(900).map(|p90| Target::Percentile(p90, ms(10)));
    volume.windows.set_target(at(0), target, 0);
    volume
}

#[test]
fn a_window_of_a_percentile_is_extended_until_ten_requests_are_expected_above_it() {
    let mut volume = with_percentile();
    volume.end(at(1_000));
    assert_eq!(volume.verdicts(), [Verdict::Idle], "nothing came");
    (0..60).for_each(|_| volume.had(0, Direction::Read));
    volume.end(at(2_000));
    volume.end(at(3_000));
    assert_eq!(volume.verdicts(), [Verdict::Idle], "60 are too few");
    (0..40).for_each(|_| volume.had(0, Direction::Read));
    assert_eq!(volume.end(at(4_000)).offered.total(), 40);
    assert_eq!(volume.verdicts(), [Verdict::Idle, Verdict::Met]);
    let Offered { reads, over, .. } = volume.closed[1].offered;
    assert_eq!((reads, over, volume.closed[1].target), (100, ms(3_000), Some(ms(10))));
}

#[test]
fn a_percentile_is_missed_by_one_late_request_too_many() {
    for (late, verdict) in [(12, Verdict::Met), (13, Verdict::Missed)] {
        let mut volume = with_percentile();
        (late..120).for_each(|_| volume.had(0, Direction::Read));
        (0..late).for_each(|_| volume.had(11, Direction::Read));
        volume.end(at(1_000));
        assert_eq!(volume.verdicts(), [verdict], "{late} of 120");
    }
}

#[test]
fn requests_that_hang_are_late_when_they_are_older_than_a_percentile_allows() {
    let mut volume = with_percentile();
    (0..108).for_each(|_| volume.had(0, Direction::Read));
    (0..12).for_each(|_| _ = volume.submit(Direction::Read));
    volume.end(at(1_000));
    assert_eq!(volume.verdicts(), [Verdict::Met], "even if all 12 are late");
    (0..107).for_each(|_| volume.had(0, Direction::Read));
    volume.now = at(1_995);
    let hanging = [(); 13].map(|()| volume.submit(Direction::Read));
    volume.end(at(2_000));
    volume.end_request(at(2_010), hanging[0], Ending::Answered);
    assert_eq!(volume.verdicts(), [Verdict::Met], "12 may be in time");
    volume.end_request(at(2_011), hanging[1], Ending::Answered);
    assert_eq!(volume.verdicts(), [Verdict::Met, Verdict::Missed]);
}

#[test]
fn a_mean_latency_in_place_of_the_slo_is_judged_at_any_rate() {
    let mut volume = Volume::after(10_000);
    volume.windows.set_target(at(1_000), Some(Target::Latency(ms(5))), 0);
    volume.had(6, Direction::Write);
    volume.end(at(2_000));
    volume.windows.set_target(at(2_000), None, 0);
    volume.had(6, Direction::Write);
    volume.end(at(3_000));
    assert_eq!(volume.verdicts(), [Verdict::Missed, Verdict::Met]);
    assert_eq!((volume.closed[0].target, volume.closed[1].target), (Some(ms(5)), Some(ms(20))));
}

#[test]
fn a_promised_rate_is_judged_by_what_was_answered_while_something_waits() {
    let mut volume = Volume::new();
    volume.windows.set_target(at(0), Iops::new(30.0).map(Target::Rate), 0);
    for (answers, latency) in [(30, 33), (29, 34), (29, 30)] {
        (0..answers).for_each(|_| volume.had(latency, Direction::Read));
        let end = at(volume.now.since(at(0)).as_nanos().div_ceil(1_000_000_000) * 1_000);
        volume.end(end);
    }
    assert_eq!(volume.verdicts(), [Verdict::Met, Verdict::Missed, Verdict::Idle]);
}
