//! The law in several gateways, before a device that is a formula.

use super::*;

/// Gateways: a promised volume of 200 reads a second behind the first, and background volumes that always
/// have requests waiting behind all others. Each background request at the device makes a read take 1 ms
/// longer than 4 ms.
struct Gateways {
    laws: Vec<Promises>,
    standings: Standings<usize>,
    now: Instant,
    are_apart: bool,
}

impl Gateways {
    fn new(number: usize) -> Self {
        Self {
            laws: (0..number).map(|_| Promises::among_others()).collect(),
            standings: Standings::default(),
            now: Instant::ORIGIN,
            are_apart: false,
        }
    }

    /// How many background requests a gateway has at the device, on average.
    fn background(&self, gateway: usize) -> f64 {
        match self.laws[gateway].allowance(self.now) {
            _ if gateway == 0 => 0.0,
            Allowance::Free => 60.0,
            Allowance::Requests { most, .. } => f64::from(most).min(60.0),
            Allowance::Share { share, .. } => share,
        }
    }

    fn all(&self) -> f64 {
        (1..self.laws.len()).map(|gateway| self.background(gateway)).sum()
    }

    /// Lets a period pass, and returns how long reads took in it, in seconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some requests
    fn period(&mut self) -> f64 {
        self.now = self.now + PERIOD;
        let latency = 0.004 + 0.001 * self.all();
        let mut told = Vec::new();
        for gateway in 0..self.laws.len() {
            let (volume, at_device) = if gateway == 0 {
                (reads(self.now, latency), 0)
            } else {
                let at_device = self.background(gateway).ceil() as u32;
                (background(at_device), at_device)
            };
            let seen = PromiseObservation {
                volumes: vec![volume],
                background_peak: at_device,
                background_at_device: at_device,
            };
            self.laws[gateway].step(self.now, &seen);
            told.extend(self.laws[gateway].poll_news().map(|standing| (gateway, standing)));
        }
        for (from, standing) in told.into_iter().filter(|_| !self.are_apart) {
            self.standings.set(self.now, from, standing);
            for to in (0..self.laws.len()).filter(|to| *to != from) {
                let at_device = self.background(to).ceil() as u32;
                self.laws[to].hear(self.now, self.standings.beside(self.now, &to), at_device, at_device);
            }
        }
        latency
    }

    fn seconds(&mut self, seconds: u32) -> Vec<f64> {
        (0..seconds * 20).map(|_| self.period()).collect()
    }
}

fn reads(now: Instant, latency: f64) -> PromisedObservation {
    let spent = |reads: u32| Span::from_secs_f64(f64::from(reads) * latency);
    let window = |arrived| WindowSeen { arrived, outstanding: 0, spent: spent(arrived) };
    PromisedObservation {
        serial: 1,
        target: Some(Target::Latency(LIMIT)),
        spent: spent(READS),
        busy: spent(READS).min(PERIOD),
        arrived: READS,
        answered: READS,
        outstanding: 1,
        current: window(READS * 10),
        previous: window(READS * 20),
        at_device_for: spent(READS),
        finished: READS,
        ended: now.as_nanos().is_multiple_of(1_000_000_000).then(|| window(READS * 20)),
        ..PromisedObservation::default()
    }
}

fn background(at_device: u32) -> PromisedObservation {
    PromisedObservation {
        serial: 2,
        arrived: 50,
        answered: at_device,
        outstanding: 60,
        at_device,
        ..PromisedObservation::default()
    }
}

/// A volume is about to miss its promise.
fn hard() -> Standing {
    let strain = Strain { window: 3.0, lately: 3.0, likely: 3.0, latency: 0.03, service: 0.004 };
    Standing { is_promised: true, is_there: true, strain: Some(strain), ..Standing::default() }
}

#[test]
fn a_promise_behind_one_gateway_holds_back_the_background_behind_all_others() {
    for number in [2, 4] {
        let mut gateways = Gateways::new(number);
        gateways.seconds(10);
        let late = gateways.seconds(60).iter().filter(|latency| **latency > LIMIT.as_secs_f64()).count();
        assert_eq!(late, 0, "{number} gateways");
        assert!(gateways.all() >= 3.0, "{} of the 6 that would do no harm", gateways.all());
    }
}

#[test]
fn background_is_cut_when_it_is_heard_that_a_promise_is_in_danger_and_not_at_the_end_of_a_period() {
    let mut law = Promises::among_others();
    law.hear(Instant::ORIGIN, hard(), 60, 60);
    let cut = law.allowance(Instant::ORIGIN);
    assert_eq!(cut, Allowance::Requests { most: 30, cost: Span::ZERO });
    let soon = Instant::ORIGIN + Span::from_millis(1);
    law.hear(soon, hard(), 30, 60);
    assert_eq!(law.allowance(soon), cut, "the next cut waits until this one can be seen");
}

#[test]
fn a_gateway_that_has_lost_the_others_keeps_its_bound_and_does_not_raise_it() {
    let mut gateways = Gateways::new(2);
    gateways.seconds(30);
    let before = gateways.all();
    gateways.are_apart = true;
    gateways.seconds(60);
    assert!(gateways.laws.iter().all(|law| law.has_lost_others(gateways.now)));
    assert!(gateways.all() <= before && gateways.all() > 0.9, "{} of {before}", gateways.all());
    gateways.are_apart = false;
    gateways.seconds(1);
    assert!(gateways.laws.iter().all(|law| !law.has_lost_others(gateways.now)));
}

#[test]
fn that_a_volume_has_come_back_is_told_before_the_period_ends() {
    let mut law = Promises::among_others();
    let seen = PromiseObservation {
        volumes: vec![reads(Instant::ORIGIN, 0.004)],
        background_peak: 0,
        background_at_device: 0,
    };
    law.step(Instant::ORIGIN, &seen);
    assert!(law.poll_news().is_some());
    law.on_request(Instant::ORIGIN + Span::from_millis(900), 1);
    assert_eq!(law.poll_news(), None, "it was not silent");
    law.on_request(Instant::ORIGIN + Span::from_secs(3), 1);
    assert!(law.poll_news().is_some_and(|standing| standing.is_there && standing.is_promised));
}

#[test]
fn the_least_that_background_gets_is_divided_among_the_gateways_that_have_some() {
    for number in [2_u32, 4] {
        let mut law = Promises::among_others();
        let mut now = Instant::ORIGIN;
        let others = Standing { backgrounds: number - 2, ..hard() };
        for _ in 0..20 * 20 {
            now = now + PERIOD;
            law.hear(now, others, 1, 1);
            law.step(
                now,
                &PromiseObservation {
                    volumes: vec![background(1)],
                    background_peak: 1,
                    background_at_device: 1,
                },
            );
        }
        let Allowance::Share { share, .. } = law.allowance(now) else { panic!("{law:?}") };
        let sum = share * f64::from(number - 1);
        assert!((sum - 1.0 / 256.0).abs() < 1e-9, "{sum} behind {number} gateways");
    }
}

#[test]
fn background_that_comes_late_has_no_more_than_the_others_after_the_first_cut() {
    let mut law = Promises::among_others();
    let others = Standing { backgrounds: 2, bounded: 2, bounds: 8.0, ..hard() };
    law.hear(Instant::ORIGIN, others, 60, 60);
    assert_eq!(law.guard.bound(), Some(4.0));
    let mut law = Promises::among_others();
    law.hear(Instant::ORIGIN, hard(), 60, 60);
    assert_eq!(law.guard.bound(), Some(30.0), "nobody else has a bound");
    let mut now = Instant::ORIGIN;
    while law.guard.bound() == Some(30.0) {
        now = now + PERIOD;
        law.hear(now, others, 30, 30);
        law.step(
            now,
            &PromiseObservation {
                volumes: vec![background(30)],
                background_peak: 30,
                background_at_device: 30,
            },
        );
    }
    assert_eq!(law.guard.bound(), Some(4.0));
}

#[test]
fn a_gateway_whose_background_has_no_requests_is_not_cut_for_what_others_do() {
    let mut law = Promises::among_others();
    law.hear(Instant::ORIGIN, hard(), 60, 60);
    let mut now = Instant::ORIGIN;
    let idle = PromisedObservation { serial: 2, ..PromisedObservation::default() };
    for _ in 0..200 {
        now = now + PERIOD;
        law.hear(now, hard(), 0, 0);
        law.step(
            now,
            &PromiseObservation { volumes: vec![idle], background_peak: 0, background_at_device: 0 },
        );
    }
    assert_eq!(law.guard.bound(), Some(30.0));
}

#[test]
fn promised_rates_are_not_lowered_while_background_behind_another_gateway_could_give_way() {
    let lowered = |is_in_the_way: bool| {
        let mut law = Promises::among_others();
        let volume = |serial| PromisedObservation {
            serial,
            target: Iops::new(400.0).map(Target::Rate),
            busy: PERIOD,
            answered: 10,
            arrived: 10,
            outstanding: 4,
            ..PromisedObservation::default()
        };
        let seen = PromiseObservation {
            volumes: vec![volume(1), volume(2)],
            background_peak: 0,
            background_at_device: 0,
        };
        let mut now = Instant::ORIGIN;
        for _ in 0..20 * 20 {
            now = now + PERIOD;
            law.hear(now, Standing { is_in_the_way, ..Standing::default() }, 0, 0);
            law.step(now, &seen);
        }
        law.covered().any(|(_, times)| times.is_some_and(|times| times < 1.0))
    };
    assert!(lowered(false) && !lowered(true));
}

#[test]
fn the_volume_that_is_worst_off_may_be_behind_another_gateway() {
    let mut law = Promises::among_others();
    let seen = PromiseObservation {
        volumes: vec![reads(Instant::ORIGIN, 0.004)],
        background_peak: 0,
        background_at_device: 0,
    };
    law.hear(Instant::ORIGIN, hard(), 0, 0);
    law.step(Instant::ORIGIN, &seen);
    assert_eq!(law.worst(), Some(WorstOff { serial: None, strain: 3.0 }));
}

#[test]
fn after_a_cut_elsewhere_windows_from_before_it_do_not_count() {
    let likely = |cuts: u32| {
        let mut law = Promises::among_others();
        law.step(
            Instant::ORIGIN,
            &PromiseObservation {
                volumes: vec![reads(Instant::ORIGIN, 0.004)],
                background_peak: 0,
                background_at_device: 0,
            },
        );
        let mut now = Instant::ORIGIN + PERIOD;
        law.hear(now, Standing { cuts, ..Standing::default() }, 0, 0);
        let bad = PromisedObservation { ended: reads(Instant::ORIGIN, 0.03).ended, ..reads(now, 0.004) };
        for _ in 0..20 {
            now = now + PERIOD;
            law.step(
                now,
                &PromiseObservation { volumes: vec![bad], background_peak: 0, background_at_device: 0 },
            );
        }
        law.poll_news().and_then(|standing| standing.strain).map_or(0.0, |strain| strain.likely)
    };
    assert!(likely(0) > 2.0, "windows of three times the limit");
    assert!(likely(1) < 1e-9, "a cut was heard of");
}

#[test]
fn a_gateway_that_has_not_heard_of_the_others_since_its_start_lets_no_more_than_one_request_through() {
    let mut law = Promises::among_others();
    for period in 0..200_u64 {
        let now = Instant::from_nanos(period * PERIOD.as_nanos());
        law.step(
            now,
            &PromiseObservation {
                volumes: vec![background(60)],
                background_peak: 60,
                background_at_device: 60,
            },
        );
        assert_eq!(law.allowance(now), Allowance::Requests { most: 1, cost: Span::ZERO });
    }
}

#[test]
fn a_gateway_that_was_free_when_it_lost_the_others_is_not_held_to_more_or_less_than_it_did_then() {
    let mut law = Promises::among_others();
    let mut at = |second: u64, answered: u32| {
        let mut allowed = Vec::new();
        for period in second * 20..(second + 1) * 20 {
            let now = Instant::from_nanos(period * PERIOD.as_nanos());
            if second < 3 {
                law.hear(now, Standing::default(), 0, 0);
            }
            let seen = PromisedObservation { answered, ..background(60) };
            law.step(
                now,
                &PromiseObservation { volumes: vec![seen], background_peak: 60, background_at_device: 60 },
            );
            allowed.push(law.allowance(now));
        }
        allowed.pop()
    };
    let free = (0..3).map(|second| at(second, 50)).last().flatten();
    assert_eq!(free, Some(Allowance::Free));
    at(4, 50);
    let [before, after] = [at(6, 50), at(8, 500)];
    assert_eq!(before, after, "it answers ten times as many, and is allowed no more");
    assert!(matches!(before, Some(Allowance::Requests { most: 100.., .. })), "{before:?}");
}
