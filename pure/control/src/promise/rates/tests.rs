//! Which rates are covered on a device that serves each volume by its weight.

use super::*;

/// What the device does in a second.
const CAPACITY: f64 = 2_000.0;

/// A volume that always has requests.
#[derive(Clone, Copy)]
struct Volume {
    priority: f64,
    rate: f64,
    /// How many requests it has at the device.
    weight: f64,
    /// The most that it can get, however little the others have.
    can: f64,
}

const fn volume(priority: f64, rate: f64, weight: f64) -> Volume {
    Volume { priority, rate, weight, can: CAPACITY }
}

fn priority(of: &Volume) -> Priority {
    Priority::new(of.priority).unwrap()
}

/// What volumes get that may have so much at most: each by its weight, and what one leaves is for the others.
fn served(volumes: &[Volume], most: &[f64]) -> Vec<f64> {
    let mut got = vec![0.0; volumes.len()];
    for _ in 0..volumes.len() {
        let open = |at: &usize| got[*at] < most[*at] - 1e-9;
        let takers: Vec<_> = (0..volumes.len()).filter(open).collect();
        let weight: f64 = takers.iter().map(|at| volumes[*at].weight).sum();
        let left = CAPACITY - got.iter().sum::<f64>();
        for at in takers {
            got[at] = (got[at] + left * volumes[at].weight / weight).min(most[at]);
        }
    }
    got
}

/// What volumes get in the end, and in how many of 2,400 periods rates were lowered.
fn after_two_minutes(volumes: &[Volume], is_last_resort: bool) -> (Vec<f64>, usize) {
    let (mut rates, mut times, mut lowered) = (Rates::default(), Vec::new(), 0);
    for _ in 0..2_400 {
        let most = |at: usize, volume: &Volume| {
            let covered = rates.covered(priority(volume), times.get(at).copied()) * volume.rate;
            covered.min(volume.can)
        };
        let most: Vec<_> = volumes.iter().enumerate().map(|(at, volume)| most(at, volume)).collect();
        let got = served(volumes, &most);
        // All requests take as long at the device.
        let all: f64 = got.iter().sum();
        let seen = |(volume, got): (&Volume, f64)| Got {
            times: got / volume.rate,
            waits: true,
            rate: volume.rate,
            part: got / all,
        };
        times = volumes.iter().zip(got).map(seen).collect();
        rates.step(is_last_resort, volumes.iter().map(priority).zip(times.iter().copied()));
        lowered += usize::from(rates.are_lowered());
    }
    (volumes.iter().zip(times).map(|(volume, got)| got.times * volume.rate).collect(), lowered)
}

#[test]
fn rates_that_fit_are_covered_with_a_tenth_to_spare() {
    let (got, lowered) = after_two_minutes(&[volume(1.0, 900.0, 16.0), volume(1.0, 300.0, 64.0)], true);
    assert!((got[0] - 990.0).abs() < 1.0 && (got[1] - 330.0).abs() < 1.0, "{got:?}");
    assert_eq!(lowered, 0);
}

#[test]
fn rates_that_only_just_fit_have_less_to_spare_and_are_kept() {
    let (got, _) = after_two_minutes(&[volume(1.0, 1_300.0, 4.0), volume(1.0, 600.0, 64.0)], true);
    assert!(got[0] > 1_300.0 && got[1] > 600.0, "{got:?}");
}

#[test]
fn shortfalls_are_as_priorities_the_other_way_round() {
    let (got, _) = after_two_minutes(&[volume(4.0, 1_400.0, 16.0), volume(1.0, 1_400.0, 64.0)], true);
    let [high, low] = [0, 1].map(|at| 1.0 - got[at] / 1_400.0);
    assert!((3.5..4.5).contains(&(low / high)), "{low} of {high}");
    assert!(got.iter().sum::<f64>() > 0.97 * CAPACITY, "the device stays busy: {got:?}");
}

#[test]
fn priorities_of_a_million_and_a_millionth_take_all_that_lacks_from_the_lowest() {
    let volumes = [volume(1e6, 1_200.0, 32.0), volume(1.0, 600.0, 32.0), volume(1e-6, 600.0, 32.0)];
    let (got, _) = after_two_minutes(&volumes, true);
    assert!(got[0] > 1_200.0 && got[1] > 600.0, "{got:?}");
    assert!(got[2] > 130.0, "and leave it the rest: {got:?}");
}

#[test]
fn a_rate_that_no_device_can_give_counts_as_what_this_one_can() {
    let alike = [volume(1.0, 1e6, 64.0), volume(1.0, 900.0, 16.0)];
    let (got, _) = after_two_minutes(&alike, true);
    assert!((430.0..500.0).contains(&got[1]), "a half, as of 3,000 and 900: {got:?}");
    let (got, _) = after_two_minutes(&[alike[0], Volume { priority: 1_000.0, ..alike[1] }], true);
    assert!(got[1] > 900.0, "{got:?}");
}

#[test]
fn what_helps_nobody_is_given_up_and_each_time_for_longer() {
    // One thread is promised more than a thread can get.
    let thread = Volume { can: 250.0, ..volume(4.0, 2_900.0, 1.0) };
    let volumes = [thread, volume(1.0, 300.0, 16.0), volume(1.0, 300.0, 64.0)];
    let (got, lowered) = after_two_minutes(&volumes, true);
    assert!(got[1] > 300.0 && got[2] > 300.0, "{got:?}");
    assert!((1..300).contains(&lowered), "{lowered} of 2,400 periods");
}

#[test]
fn nothing_is_lowered_while_background_volumes_could_give_way() {
    let (_, lowered) = after_two_minutes(&[volume(4.0, 1_400.0, 1.0), volume(1.0, 1_400.0, 1.0)], false);
    assert_eq!(lowered, 0);
}

#[test]
fn nothing_is_lowered_before_a_second_of_the_last_resort_was_seen() {
    let mut rates = Rates::default();
    let got = |times| Got { times, waits: true, rate: 100.0, part: 0.5 };
    let mut level_after = |periods| {
        let volumes = [(Priority::default(), got(0.5)), (Priority::default(), got(1.0))];
        (0..periods).for_each(|_| rates.step(true, volumes.into_iter()));
        rates.level
    };
    assert!((level_after(SECOND) - ALL).abs() < 1e-9);
    assert!(level_after(SECOND) < ALL);
}

#[test]
fn the_rate_of_a_volume_that_is_alone_is_not_lowered() {
    let (_, lowered) = after_two_minutes(&[volume(1.0, 2_900.0, 1.0)], true);
    assert_eq!(lowered, 0);
}

#[test]
fn a_lowered_rate_may_lack_a_twentieth_of_what_it_is_lowered_by() {
    let level_after = |times: f64| {
        let lately = [0.4; SECOND];
        let mut rates = Rates { level: 0.6, lately, last_resort: SECOND, ..Rates::default() };
        let got = Got { times, waits: true, rate: 100.0, part: 0.5 };
        rates.step(true, [(Priority::default(), got); 2].into_iter());
        rates.level
    };
    assert!(level_after(0.6 - SHORT - 0.019) > 0.6, "requests wait for the device, and that is well");
    assert!(level_after(0.6 - SHORT - 0.030) < 0.6, "the device cannot do that");
}
