//! Claims about arrivals: rates, spread, lateness.

use rand::SeedableRng;

use super::*;

fn arrivals(kind: Arrival, rate: f64, index: u32, of: u32) -> Arrivals {
    let rng = Pcg64::seed_from_u64(7 + u64::from(index));
    Arrivals::new(kind, Iops::new(rate).unwrap(), Share { index, of }, at_micros(1_000), rng)
}

fn at_micros(micros: u64) -> Instant {
    Instant::ORIGIN + Span::from_micros(micros)
}

fn first(mut arrivals: Arrivals, count: usize) -> Vec<Instant> {
    std::iter::from_fn(|| {
        let next = arrivals.peek();
        arrivals.advance();
        next
    })
    .take(count)
    .collect()
}

#[test]
fn constant_arrivals_are_exact_also_after_a_billion() {
    let mut sequence = arrivals(Arrival::Constant, 3.0, 0, 1);
    let thirds: Vec<u64> = first(sequence.clone(), 4).iter().map(|at| at.as_nanos() - 1_000_000).collect();
    assert_eq!(thirds, [0, 333_333_333, 666_666_667, 1_000_000_000]);
    sequence.passed = 3_000_000_000 - 1;
    sequence.advance();
    assert_eq!(sequence.peek(), Some(at_micros(1_000) + Span::from_secs(1_000_000_000)));
}

#[test]
fn connections_take_turns_in_constant_arrivals() {
    let micros = |index| {
        first(arrivals(Arrival::Constant, 1_000.0, index, 4), 2)
            .iter()
            .map(|at| at.as_nanos() / 1_000)
            .collect::<Vec<_>>()
    };
    assert_eq!((micros(0), micros(1)), (vec![1_000, 5_000], vec![2_000, 6_000]));
    assert_eq!((micros(2), micros(3)), (vec![3_000, 7_000], vec![4_000, 8_000]));
}

#[test]
fn poisson_arrivals_have_the_mean_and_the_spread_of_the_distribution() {
    let count = 100_000;
    let sequence = first(arrivals(Arrival::Poisson, 10_000.0, 0, 2), count + 1);
    let gaps: Vec<f64> = sequence.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / to_f64(count as u64);
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / to_f64(count as u64);
    let expected = 2.0 / 10_000.0; // half of the rate for each of two connections
    // Five standard errors: sigma / sqrt(n) for the mean; sigma^2 sqrt(8 / n) for the variance of an
    // exponential.
    assert!((mean / expected - 1.0).abs() < 5.0 / to_f64(count as u64).sqrt(), "mean {mean}");
    assert!((variance / expected.powi(2) - 1.0).abs() < 5.0 * (8.0 / to_f64(count as u64)).sqrt());
}

#[test]
fn equal_seeds_give_equal_arrivals() {
    let poisson = || arrivals(Arrival::Poisson, 500.0, 0, 1);
    assert_eq!(first(poisson(), 100), first(poisson(), 100));
}

#[test]
fn a_request_counts_from_when_it_was_meant_to_be_sent_and_is_late_after_a_millisecond() {
    let mut pacer = Pacer::new(arrivals(Arrival::Constant, 1_000.0, 0, 1));
    assert_eq!(pacer.take(at_micros(999)), None);
    let due = |micros, late: Option<u64>| {
        Some(Due { intended: at_micros(micros), late: late.map(Span::from_micros) })
    };
    assert_eq!(pacer.take(at_micros(1_000)), due(1_000, None));
    assert_eq!(pacer.take(at_micros(1_000)), None);
    assert_eq!(pacer.due_at(), Some(at_micros(2_000)));
    // A stall until 4,500 us: three come at once, each with the time at which it was meant to be sent.
    assert_eq!(pacer.take(at_micros(4_500)), due(2_000, Some(2_500)));
    assert_eq!(pacer.take(at_micros(4_500)), due(3_000, Some(1_500)));
    assert_eq!(pacer.take(at_micros(4_500)), due(4_000, None));
    assert_eq!(pacer.take(at_micros(4_500)), None);
}

#[test]
fn what_is_offered_counts_whether_it_could_be_sent_or_not() {
    let mut pacer = Pacer::new(arrivals(Arrival::Poisson, 1_000.0, 0, 1));
    let mut reference = pacer.sent.clone();
    let mut before = |instant| {
        while reference.peek().unwrap() < instant {
            reference.advance();
        }
        reference.passed()
    };
    // Nothing is sent in the first second, half of it in the second, everything in the third.
    let seconds: Vec<Instant> = (1..=3).map(|s| Instant::ORIGIN + Span::from_secs(s)).collect();
    assert_eq!(pacer.offered_before(seconds[0]), before(seconds[0]));
    for _ in 0..500 {
        pacer.take(seconds[0]).unwrap();
    }
    assert_eq!(pacer.offered_before(seconds[1]), before(seconds[1]));
    while pacer.take(seconds[2]).is_some() {}
    assert_eq!(pacer.offered_before(seconds[2]), before(seconds[2]));
    assert_eq!(pacer.taken(), before(seconds[2]));
}

#[test]
fn arrivals_end_at_an_instant_or_after_a_number_that_leaves_the_warm_up_out() {
    let mut pacer = Pacer::new(arrivals(Arrival::Constant, 1_000.0, 0, 1));
    pacer.end_at(at_micros(3_000));
    assert!(pacer.take(at_micros(9_000)).is_some() && pacer.take(at_micros(9_000)).is_some());
    assert_eq!((pacer.take(at_micros(9_000)), pacer.due_at()), (None, None));

    let mut sequence = arrivals(Arrival::Constant, 1_000.0, 0, 1);
    sequence.end_after(at_micros(3_000), 2);
    let all = first(sequence, 10);
    assert_eq!(all, [1_000, 2_000, 3_000, 4_000].map(at_micros));
}

#[test]
fn bursts_keep_the_rate_and_leave_three_quarters_of_the_time_empty() {
    let count = 10_000;
    let since_start = |at: &Instant| at.as_nanos() - 1_000_000;
    let sequence = first(arrivals(Arrival::Bursts, 1_000.0, 0, 1), count);
    assert!(sequence.iter().all(|at| since_start(at) % 200_000_000 < 50_000_000));
    let seconds = Span::from_nanos(since_start(sequence.last().unwrap())).as_secs_f64();
    assert!((seconds - 10.0).abs() < 0.4, "10,000 arrivals at 1,000 a second took {seconds} s");
}
