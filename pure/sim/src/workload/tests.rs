//! When clients ask, and for what: rates, mixes, sizes, places, phases, threads, traces.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_engine::VolumeConfig;
use weir_model::{Iops, Span};

use super::*;
use crate::scenario::{Arrivals, Locality, Phase, Workload};

const fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn iops(rate: f64) -> Iops {
    Iops::new(rate).unwrap()
}

/// 4 KiB anywhere, two thirds of them reads.
fn workload(arrivals: Arrivals) -> Workload {
    Workload {
        arrivals,
        reads: 0.67,
        sizes: vec![(4096, 1.0)],
        locality: Locality::Uniform,
        flush_every: None,
    }
}

fn closed(threads: u32, think: Span) -> Arrivals {
    Arrivals::Closed { threads, think }
}

fn volume(phases: Vec<(Span, Option<Workload>)>) -> VolumeScenario {
    VolumeScenario {
        name: "db".to_owned(),
        config: VolumeConfig::default(),
        start: 0,
        size: 4_000 * 4096,
        phases: phases.into_iter().map(|(at, workload)| Phase { at, workload }).collect(),
        repeat: None,
        changes: Vec::new(),
    }
}

/// What the clients ask for until `end`, if each answer takes `service`.
fn asked_of(volume: &VolumeScenario, end: Span, service: Span) -> Vec<(Span, Asked)> {
    let mut client = Client::phased(volume, Seed(1));
    let (mut answers, mut asked) = (BTreeMap::<Instant, u32>::new(), Vec::new());
    loop {
        let answer = answers.keys().next().copied().unwrap_or(Instant::FAR_FUTURE);
        let now = client.next_at().min(answer);
        if now >= Instant::ORIGIN + end {
            return asked;
        }
        for _ in 0..answers.remove(&now).unwrap_or(0) {
            client.on_answer(now, true);
        }
        while let Some(request) = client.ask(now) {
            asked.push((now.since(Instant::ORIGIN), request));
            *answers.entry(now + service).or_default() += u32::from(request.by_thread);
        }
    }
}

/// What clients with this workload ask for in 100 s.
fn asked(workload: Workload) -> Vec<(Span, Asked)> {
    asked_of(&volume(vec![(Span::ZERO, Some(workload))]), Span::from_secs(100), Span::ZERO)
}

fn in_window(asked: &[(Span, Asked)], from: Span, to: Span) -> usize {
    asked.iter().filter(|(at, _)| (from..to).contains(at)).count()
}

#[test]
fn poisson_arrivals_have_their_rate_and_their_noise() {
    let asked = asked(workload(Arrivals::Poisson(iops(200.0))));
    // 20,000 arrivals, give or take three times the root of that.
    assert!((19_576..20_424).contains(&asked.len()), "{}", asked.len());
    let counts = (0..1_000).map(|i| in_window(&asked, ms(100 * i), ms(100 * i + 100)) as f64);
    let variance = counts.map(|count| (count - 20.0).powi(2)).sum::<f64>() / 1_000.0;
    assert!((17.0..23.0).contains(&variance), "variance {variance}, and not 20");
}

#[test]
fn constant_arrivals_have_no_noise_and_do_not_drift() {
    let asked = asked(workload(Arrivals::Constant(iops(300.0))));
    assert_eq!(asked.len(), 30_000);
    assert!((0..100).all(|i| in_window(&asked, ms(1_000 * i), ms(1_000 * (i + 1))) == 300));
}

#[test]
fn each_thread_asks_waits_and_thinks() {
    let volume = volume(vec![(Span::ZERO, Some(workload(closed(3, ms(6)))))]);
    let asked = asked_of(&volume, Span::from_secs(1), ms(4));
    assert_eq!(asked.len(), 300);
    assert!(asked.iter().all(|(at, asked)| at.as_nanos() % 10_000_000 == 0 && asked.by_thread));
}

#[test]
fn a_thread_waits_after_an_error_even_if_it_does_not_think() {
    let volume = volume(vec![(Span::ZERO, Some(workload(closed(1, Span::ZERO))))]);
    let mut client = Client::phased(&volume, Seed(1));
    assert!(client.ask(Instant::ORIGIN).is_some());
    client.on_answer(Instant::ORIGIN, false);
    assert_eq!(client.next_at(), Instant::ORIGIN + ms(10));
}

#[test]
fn reads_and_sizes_come_in_their_shares() {
    let sizes = vec![(4096, 3.0), (8192, 1.0)];
    let asked = asked(Workload { sizes, ..workload(Arrivals::Constant(iops(1_000.0))) });
    let share = |of: fn(&Asked) -> bool| {
        asked.iter().filter(|(_, asked)| of(asked)).count() as f64 / asked.len() as f64
    };
    let (reads, small) = (share(|asked| asked.kind == IoKind::Read), share(|asked| asked.length == 4096));
    assert!((reads - 0.67).abs() < 0.005, "{reads}");
    assert!((small - 0.75).abs() < 0.005, "{small}");
    assert!(asked.iter().all(|(_, asked)| asked.offset % u64::from(asked.length) == 0));
}

#[test]
fn uniform_requests_go_everywhere_alike() {
    let asked = asked(workload(Arrivals::Constant(iops(1_000.0))));
    let mut hits = [0_u32; 10];
    for (_, Asked { offset, .. }) in asked {
        hits[usize::try_from(offset / (400 * 4096)).unwrap()] += 1;
    }
    assert!(hits.iter().all(|count| (9_700..10_300).contains(count)), "{hits:?}");
}

#[test]
fn zipf_requests_go_to_the_place_of_rank_k_as_often_as_one_kth_of_the_first() {
    let locality = Locality::Zipf(1.0);
    let asked = asked(Workload { locality, ..workload(Arrivals::Constant(iops(2_000.0))) });
    let mut hits = BTreeMap::new();
    for (_, asked) in &asked {
        *hits.entry(asked.offset).or_insert(0_u32) += 1;
    }
    let mut hits: Vec<u32> = hits.into_values().collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    let harmonic: f64 = (1..=4_000).map(|rank| 1.0 / f64::from(rank)).sum();
    for rank in [1_u32, 2, 3, 10] {
        let expected = 200_000.0 / harmonic / f64::from(rank);
        let found = f64::from(hits[rank as usize - 1]);
        assert!((found / expected - 1.0).abs() < 0.05, "rank {rank}: {found}, and not {expected}");
    }
}

#[test]
fn runs_are_sequential_and_begin_anywhere() {
    let locality = Locality::Runs(8);
    let asked = asked(Workload { locality, ..workload(Arrivals::Constant(iops(100.0))) });
    let follows = asked.windows(2).filter(|pair| pair[1].1.offset == pair[0].1.offset + 4096).count();
    // 7 of 8, except for the few runs that reach the end of the volume.
    assert!((8_700..8_760).contains(&follows), "{follows}");
}

#[test]
fn phases_begin_on_time_and_anew() {
    let busy = |rate| Some(workload(Arrivals::Constant(iops(rate))));
    let phases = vec![(Span::ZERO, busy(100.0)), (ms(300), None), (ms(500), busy(400.0))];
    let volume = VolumeScenario { repeat: Some(Span::from_secs(1)), ..volume(phases) };
    let asked = asked_of(&volume, Span::from_secs(3), Span::ZERO);
    for round in [0, 1_000, 2_000] {
        let counts = [(0, 300), (300, 500), (500, 1_000)];
        let counts = counts.map(|(from, to)| in_window(&asked, ms(round + from), ms(round + to)));
        assert_eq!(counts, [30, 0, 200]);
        assert_eq!(in_window(&asked, ms(round + 500), ms(round + 500) + Span::from_nanos(1)), 1);
    }
}

#[test]
fn a_volume_whose_first_phase_is_not_at_the_start_begins_idle() {
    let volume = volume(vec![(ms(200), Some(workload(Arrivals::Constant(iops(100.0)))))]);
    let asked = asked_of(&volume, ms(400), Span::ZERO);
    assert_eq!((asked.len(), asked[0].0), (20, ms(200)));
}

#[test]
fn threads_go_on_into_the_next_phase_and_only_as_many_as_it_has() {
    let threads = |threads| Some(workload(closed(threads, Span::ZERO)));
    let phases = vec![(Span::ZERO, threads(4)), (ms(15), threads(1)), (ms(35), threads(2))];
    let asked = asked_of(&volume(phases), ms(60), ms(10));
    let times: Vec<u64> = asked.iter().map(|(at, _)| at.as_micros() / 1_000).collect();
    assert_eq!(times, [0, 0, 0, 0, 10, 10, 10, 10, 20, 30, 35, 40, 45, 50, 55]);
}

#[test]
fn another_mix_leaves_the_arrivals_as_they_were() {
    let arrivals = Arrivals::Poisson(iops(500.0));
    let times = |workload| asked(workload).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    let sizes = vec![(4096, 1.0), (16_384, 1.0)];
    assert_eq!(times(workload(arrivals)), times(Workload { reads: 0.1, sizes, ..workload(arrivals) }));
}

#[test]
fn a_trace_is_folded_into_the_volume_and_clipped_at_its_end() {
    let request = |at, offset, length| TraceRequest { at: ms(at), kind: IoKind::Read, offset, length };
    let trace = [request(0, 4096, 4096), request(5, 10_240, 4096), request(3, 7_680, 4096), request(9, 0, 0)];
    let mut client = Client::traced(Box::new(trace.into_iter()), 8192);
    let mut seen = Vec::new();
    while client.next_at() < Instant::FAR_FUTURE {
        let now = client.next_at();
        let Asked { offset, length, .. } = client.ask(now).unwrap();
        seen.push((now.since(Instant::ORIGIN), offset, length));
    }
    assert_eq!(seen, [(ms(0), 4096, 4096), (ms(5), 2048, 4096), (ms(5), 7_680, 512), (ms(9), 0, 512)]);
}

#[test]
fn after_so_many_writes_comes_a_flush_in_the_place_of_a_request() {
    let flushed = Workload { reads: 0.0, flush_every: NonZeroU32::new(2), ..workload(closed(1, Span::ZERO)) };
    let asked = asked_of(&volume(vec![(Span::ZERO, Some(flushed))]), ms(59), ms(10));
    let kinds: Vec<_> = asked.iter().map(|(_, asked)| asked.kind).collect();
    let (write, flush) = (IoKind::Write, IoKind::Flush);
    assert_eq!(kinds, [write, write, flush, write, write, flush]);
    assert!(asked.iter().all(|(_, asked)| asked.kind != flush || asked.length == 0));
}
