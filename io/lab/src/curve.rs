//! Latency against rate: the latency that an array gives a load that has the array to itself, and the promise
//! that is derived from it.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use weir_model::{Iops, Slo, SloPoint, Span};

/// A rate is reached if the array answers at least this share of the requests. Some requests still wait at
/// the end.
const REACHED: f64 = 0.95;

/// Latency against rate, as measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The seed.
    pub seed: u64,
    /// The commit that the program was built from.
    pub commit: String,
    /// The hash of the program.
    pub program: String,
    /// The hash of the configuration.
    pub hash: String,
    /// The points, by rising rate.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve. Latencies in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The requests a second that were asked for.
    pub offered_iops: f64,
    /// The requests a second that arrived: chance makes them a little more or fewer.
    pub arrived_iops: f64,
    /// The requests a second that were answered.
    pub answered_iops: f64,
    /// The mean latency of reads.
    pub read_us: f64,
    /// The mean latency of writes.
    pub write_us: f64,
    /// The mean latency of both.
    pub mean_us: f64,
}

impl CurvePoint {
    /// Whether the array keeps up with this rate.
    pub fn reached(&self) -> bool {
        self.answered_iops >= REACHED * self.arrived_iops
    }
}

impl Curve {
    /// The curve at `path`.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// The points up to the first rate that the array does not keep up with.
    pub fn reached(&self) -> impl Iterator<Item = &CurvePoint> {
        self.points.iter().take_while(|point| point.reached())
    }

    /// The promise of these latencies up to each rate. Where chance made a latency fall, the promise keeps
    /// the higher one of the rate before. `None` if no rate is reached.
    pub fn slo(&self) -> Option<Slo> {
        let (mut read_us, mut write_us) = (0.0_f64, 0.0_f64);
        let mut points = Vec::new();
        for point in self.reached() {
            (read_us, write_us) = (read_us.max(point.read_us), write_us.max(point.write_us));
            // If only reads or only writes were measured, both get the same promise.
            let span = |us: f64| Span::from_secs_f64(if us > 0.0 { us } else { read_us.max(write_us) } / 1e6);
            points.push(SloPoint {
                up_to: Iops::new(point.offered_iops)?,
                read: span(read_us),
                write: span(write_us),
            });
        }
        Slo::new(points).ok()
    }
}
