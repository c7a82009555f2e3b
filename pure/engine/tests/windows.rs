//! SLO windows, from outside: which events say what, and when, whatever happens in the middle of a window.

use weir_engine::{
    Control, Dispatch, Engine, EngineConfig, Event, MaestroConfig, Request, TotalConcurrency, VolumeConfig,
    WindowReport,
};
use weir_model::{
    Instant, IoId, IoKind, Iops, Objective, Percentile, Slo, SloPoint, Span, Target, Verdict, VolumeId,
};

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ORIGIN + ms(millis)
}

fn config(control: Control) -> EngineConfig {
    EngineConfig { control, ..EngineConfig::default() }
}

/// A pool with a volume that is promised 10 ms.
struct Pool {
    engine: Engine,
    volume: VolumeId,
    ended: usize,
    closed: Vec<WindowReport>,
}

impl Pool {
    fn new() -> Self {
        let mut engine = Engine::new(at(0), config(Control::None));
        let point = SloPoint { up_to: Iops::new(1e6).unwrap(), read: ms(10), write: ms(10) };
        let slo = Slo::new(vec![point]).ok();
        let volume = engine.add_volume(at(0), VolumeConfig { slo, ..VolumeConfig::default() });
        Self { engine, volume, ended: 0, closed: Vec::new() }
    }

    /// A read that goes to the device at once.
    fn read(&mut self, now: Instant) -> IoId {
        let id = self.queue(now);
        assert!(matches!(self.engine.poll_dispatch(now), Dispatch::Issue(_)));
        id
    }

    fn queue(&mut self, now: Instant) -> IoId {
        let request = Request { volume: self.volume, kind: IoKind::Read, offset: 0, length: 4096 };
        self.engine.handle_submit(now, request)
    }

    fn answer(&mut self, now: Instant, id: IoId) {
        self.engine.handle_complete(now, id, true);
        self.engine.handle_reply(now, id);
        self.hear();
    }

    fn timeout(&mut self, now: Instant) {
        self.engine.handle_timeout(now);
        self.hear();
    }

    fn hear(&mut self) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::WindowEnded { .. } => self.ended += 1,
                Event::WindowClosed { window, .. } => self.closed.push(window),
                _ => {}
            }
        }
    }

    fn verdicts(&self) -> Vec<Verdict> {
        self.closed.iter().map(|window| window.verdict).collect()
    }
}

#[test]
fn a_window_is_closed_with_the_reply_to_its_last_request() {
    let mut pool = Pool::new();
    let last = pool.read(at(995));
    pool.timeout(at(1_000));
    assert_eq!((pool.ended, pool.verdicts()), (1, vec![]));
    let next = pool.read(at(1_000));
    pool.answer(at(1_001), next);
    assert_eq!(pool.verdicts(), []);
    pool.answer(at(1_004), last);
    assert_eq!(pool.verdicts(), [Verdict::Met]);
    assert_eq!((pool.closed[0].completed, pool.closed[0].mean_latency), (1, Some(ms(9))));
}

#[test]
fn of_two_requests_at_the_instant_of_a_windows_end_each_counts_in_its_own() {
    let mut pool = Pool::new();
    let before = pool.read(at(1_000));
    pool.timeout(at(1_000));
    let after = pool.read(at(1_000));
    pool.answer(at(1_005), before);
    pool.answer(at(1_020), after);
    pool.timeout(at(2_000));
    assert_eq!(pool.verdicts(), [Verdict::Met, Verdict::Missed]);
}

#[test]
fn a_driver_that_is_late_ends_the_window_late_and_its_requests_stay_in_it() {
    let mut pool = Pool::new();
    let late = pool.read(at(1_003));
    pool.timeout(at(1_005));
    pool.answer(at(1_006), late);
    assert_eq!((pool.closed[0].offered.total(), pool.closed[0].offered.over), (1, ms(1_005)));
    pool.timeout(at(2_000));
    assert_eq!(pool.verdicts(), [Verdict::Met, Verdict::Idle]);
}

#[test]
fn a_request_that_its_client_takes_back_counts_with_its_age() {
    let mut pool = Pool::new();
    let queued = pool.queue(at(900));
    pool.timeout(at(1_000));
    assert_eq!(pool.verdicts(), [Verdict::Missed]);
    let queued_too = pool.queue(at(1_995));
    assert!(pool.engine.handle_abort(at(1_999), queued));
    pool.timeout(at(2_000));
    assert!(pool.engine.handle_abort(at(2_004), queued_too));
    pool.hear();
    assert_eq!(pool.verdicts(), [Verdict::Missed, Verdict::Met]);
    assert_eq!((pool.closed[1].completed, pool.closed[1].mean_latency), (0, Some(ms(9))));
}

#[test]
fn windows_outlive_a_change_of_the_law_and_begin_anew_with_another_length() {
    let mut pool = Pool::new();
    let first = pool.read(at(995));
    pool.timeout(at(1_000));
    pool.engine.set_config(at(1_000), config(Control::Promise));
    pool.answer(at(1_004), first);
    assert_eq!(pool.verdicts(), [Verdict::Met]);
    let second = pool.read(at(1_995));
    pool.timeout(at(2_000));
    let half = EngineConfig { slo_window: ms(500), ..config(Control::Promise) };
    pool.engine.set_config(at(2_000), half);
    pool.answer(at(2_004), second);
    pool.timeout(at(2_500));
    assert_eq!(pool.verdicts(), [Verdict::Met, Verdict::Idle], "the second window is not counted");
}

#[test]
fn every_window_is_closed_once_when_nothing_hangs_any_more() {
    let mut pool = Pool::new();
    let mut hanging = Vec::new();
    for second in 1..=300 {
        hanging.push(pool.read(at(1_000 * second - 1)));
        pool.timeout(at(1_000 * second));
        if second % 7 == 0 {
            hanging.drain(..).for_each(|id| pool.answer(at(1_000 * second + 1), id));
        }
        assert!(pool.ended - pool.closed.len() <= 2, "a request that hangs for a second is late");
    }
    hanging.drain(..).for_each(|id| pool.answer(at(300_500), id));
    assert_eq!((pool.ended, pool.closed.len()), (300, 300));
    let of = |verdict| pool.closed.iter().filter(|window| window.verdict == verdict).count();
    assert_eq!((of(Verdict::Met), of(Verdict::Missed)), (300 / 7, 300 - 300 / 7));
}

#[test]
fn a_target_is_judged_in_place_of_the_slo_under_the_law_of_promises_and_under_no_other() {
    let mut pool = Pool::new();
    let median = Percentile::from_tenths(500).unwrap();
    let objective = Objective { target: Some(Target::Percentile(median, ms(5))), ..Objective::default() };
    pool.engine.set_volume(at(0), pool.volume, VolumeConfig { objective, ..VolumeConfig::default() });
    let interval = ms(500);
    let maestro = MaestroConfig { interval, total: TotalConcurrency::Auto };
    for (second, control, verdict) in [
        (0, Control::None, Verdict::NoSlo),
        (1, Control::Promise, Verdict::Missed),
        (2, Control::Maestro(maestro), Verdict::NoSlo),
    ] {
        pool.engine.set_config(at(1_000 * second), config(control));
        for read in 0..21 {
            let came = 1_000 * second + 20 * read;
            let id = pool.read(at(came));
            pool.answer(at(came + if read < 11 { 6 } else { 1 }), id);
        }
        pool.timeout(at(1_000 * (second + 1)));
        assert_eq!(pool.verdicts().last(), Some(&verdict), "{control:?}");
    }
}

#[test]
fn a_rate_that_is_promised_counts_only_while_a_request_waits() {
    let mut pool = Pool::new();
    let objective = Objective { target: Iops::new(30.0).map(Target::Rate), ..Objective::default() };
    pool.engine.set_volume(at(0), pool.volume, VolumeConfig { objective, ..VolumeConfig::default() });
    pool.engine.set_config(at(0), config(Control::Promise));
    for (second, latency) in [(0, 20), (1, 40), (2, 2)] {
        let mut now = at(1_000 * second);
        while now < at(1_000 * second + 500) || latency > 2 && now < at(1_000 * (second + 1)) {
            let id = pool.read(now);
            now = now + ms(latency);
            pool.answer(now, id);
        }
        pool.timeout(at(1_000 * (second + 1)));
    }
    assert_eq!(pool.verdicts(), [Verdict::Met, Verdict::Missed, Verdict::Idle]);
}
