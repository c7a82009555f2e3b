//! The law on arrays that are one formula.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

/// An array, and clients that keep a number of requests outstanding.
struct Plant {
    probe: TotalProbe,
    /// The share of its full throughput that a number of requests extracts.
    extracted: fn(f64, f64) -> f64,
    servers: f64,
    clients: f64,
    /// Bytes of a request.
    size: f64,
    /// Whether a server is limited in bytes a second; otherwise, in requests a second.
    is_bound_by_bytes: bool,
    random: Pcg64Mcg,
}

/// Fully busy once there are as many requests as servers.
fn servers(requests: f64, servers: f64) -> f64 {
    (requests / servers).min(1.0)
}

/// Each request goes to a random disk.
fn disks(requests: f64, disks: f64) -> f64 {
    requests / (requests + disks - 1.0)
}

impl Plant {
    fn new(extracted: fn(f64, f64) -> f64, servers: f64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(3);
        let probe = TotalProbe::new();
        Self { probe, extracted, servers, clients: 1e6, size: 16384.0, is_bound_by_bytes: false, random }
    }

    fn from(mut self, total: u32) -> Self {
        self.probe.base = total;
        self
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn interval(&mut self) -> u32 {
        let at_device = f64::from(self.probe.total().get()).min(self.clients);
        let noise = 1.0 + self.random.random_range(-0.005..0.005);
        let work = 200.0 * self.servers * (self.extracted)(at_device, self.servers) * noise;
        let answered = if self.is_bound_by_bytes { work * 16384.0 / self.size } else { work };
        let seen = ProbeObservation {
            over: Span::from_secs(1),
            answered: answered as u64,
            answered_bytes: (answered * self.size) as u64,
            at_device,
            least: 4,
        };
        self.probe.step(Instant::ORIGIN, &seen).get()
    }

    /// Lets intervals pass. Returns the least and the highest total of their second half, and the total
    /// between tries at the end.
    fn settle(&mut self, intervals: u32) -> (f64, f64, f64) {
        let totals: Vec<u32> = (0..intervals).map(|_| self.interval()).collect();
        let last = &totals[totals.len() / 2..];
        let ends = (f64::from(*last.iter().min().unwrap()), f64::from(*last.iter().max().unwrap()));
        (ends.0, ends.1, f64::from(self.probe.base))
    }
}

/// Asserts that the total is within a factor of two of what extracts 95 % of the throughput of `k` servers.
fn assert_fits(settled: (f64, f64, f64), k: f64) {
    let ideal = 0.95 * k;
    assert!(settled.2 >= ideal / 2.0 && settled.2 <= ideal * 2.0, "{settled:?} for {k}");
}

#[test]
fn an_array_of_servers_is_found_from_below_and_from_above() {
    for k in [8.0, 40.0, 160.0, 1000.0] {
        for from in [4, 32, 512, 4096] {
            let settled = Plant::new(servers, k).from(from).settle(400);
            assert_fits(settled, k);
            assert!(settled.0 >= 0.7 * k && settled.1 <= 1.6 * k, "{settled:?} for {k} from {from}");
        }
    }
}

#[test]
fn disks_that_are_asked_at_random_get_three_or_four_requests_each() {
    let (.., base) = Plant::new(disks, 40.0).settle(400);
    assert!((100.0..=200.0).contains(&base), "{base}");
}

#[test]
fn the_total_follows_an_array_that_grows_and_one_that_shrinks() {
    let mut plant = Plant::new(servers, 40.0);
    plant.settle(200);
    for k in [160.0, 20.0] {
        plant.servers = k;
        let settled = plant.settle(300);
        assert_fits(settled, k);
    }
}

#[test]
fn a_total_that_nobody_feels_stays() {
    let mut plant = Plant::new(servers, 160.0);
    plant.clients = 10.0;
    assert_eq!(plant.settle(200), (32.0, 32.0, 32.0));
}

#[test]
fn a_change_of_the_request_size_is_no_gain() {
    for is_bound_by_bytes in [false, true] {
        let mut plant = Plant { is_bound_by_bytes, ..Plant::new(servers, 40.0) };
        plant.settle(200);
        for i in 0..60 {
            plant.size = if i % 2 == 0 { 4096.0 } else { 65536.0 };
            plant.settle(7);
        }
        plant.size = 16384.0;
        assert_fits(plant.settle(300), 40.0);
    }
}

#[test]
fn the_total_is_never_less_than_what_the_ports_need_nor_more_than_there_is_a_use_for() {
    let mut probe = TotalProbe::new();
    let seen = |least, answered| ProbeObservation {
        over: Span::from_secs(1),
        answered,
        answered_bytes: answered,
        at_device: 1e9,
        least,
    };
    assert_eq!(probe.step(Instant::ORIGIN, &seen(100, 1)).get(), 100);
    for answered in (0..1000).map(|i| 1 << (i / 8).min(60)) {
        assert!((100..=4096).contains(&probe.step(Instant::ORIGIN, &seen(100, answered)).get()));
    }
    assert_eq!(probe.step(Instant::ORIGIN, &seen(5000, 1)).get(), 5000);
    let nothing = ProbeObservation { at_device: f64::NAN, ..ProbeObservation::default() };
    assert!((0..100).all(|_| probe.step(Instant::ORIGIN, &nothing).get() >= 1));
}
