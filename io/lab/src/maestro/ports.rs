//! §5.2, figure 8: two workloads at four ports. One after the other, each leaves two of the ports and moves
//! all of its load to the other two.

use super::{SETTLING, application, between};
use crate::study::application::throughput;
use crate::study::{Figure, Records, greatest};

/// When the second workload leaves two ports, when the first does, and the end; in seconds.
const CHANGES: [f64; 3] = [140.0, 280.0, 420.0];
/// The share of both workloads' clients at each port, in percent: before the changes, and from each on.
const SHARES: [[f64; 4]; 3] = [[25.0; 4], [37.5, 12.5, 37.5, 12.5], [50.0, 0.0, 50.0, 0.0]];
/// How long the allocation may take to follow: five intervals.
const FOLLOWED: f64 = 10.0;
const INTERVAL: f64 = 2.0;

/// The figures of the claim.
pub(super) fn study(records: &Records) -> Vec<Figure> {
    let of_phase =
        |number: usize| off_by(records, CHANGES[number - 1] + FOLLOWED, CHANGES[number], SHARES[number]);
    let (first, second) = (moved(records, "light1"), moved(records, "light2"));
    vec![
        Figure::new("share-off-1", off_by(records, SETTLING, CHANGES[0], SHARES[0])),
        Figure::new("share-off-2", of_phase(1)),
        Figure::new("share-off-3", of_phase(2)),
        Figure::new("light1-moved", first),
        Figure::new("light2-moved", second),
    ]
}

/// The most by which the share of any port in the bounds of both workloads ever differs from the port's share
/// of their clients, in points.
fn off_by(records: &Records, from: f64, to: f64, shares: [f64; 4]) -> Option<f64> {
    let both = [application(records, "maestro", "light1")?, application(records, "maestro", "light2")?];
    let instants = std::iter::successors(Some(from), |at| Some(at + INTERVAL)).take_while(|at| *at < to);
    let off = instants.flat_map(|at| {
        let [first, second] = [both[0].bounds_at(at), both[1].bounds_at(at)];
        let ports: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
        let all: f64 = ports.iter().sum();
        shares.into_iter().zip(ports).map(move |(share, port)| (100.0 * port / all - share).abs())
    });
    greatest(off)
}

/// The change of a workload's throughput from the first part to the second or the third, in percent; the
/// greater of the two.
fn moved(records: &Records, volume: &str) -> Option<f64> {
    let of = |from, to| throughput(&between(records, "maestro", volume, from, to));
    let before = of(SETTLING, CHANGES[0])?;
    let off = |after: f64| 100.0 * (after / before - 1.0).abs();
    greatest([off(of(CHANGES[0], CHANGES[1])?), off(of(CHANGES[1], CHANGES[2])?)])
}
