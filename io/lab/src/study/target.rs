//! The words for initiators before an iSCSI target.
//!
//! - A **sample** is an interval of 100 ms. A sample belongs to a time if it ended in it.
//! - The **wait** is how long a read was at the disk, with its time in the queue: the mean over all reads.
//! - A **burst** is a time in which writers work. It is **settled** from 3 s after its begin on; a **pause**
//!   is the time from its end to the next burst.
//! - A sample **keeps** the threshold if the law's EWMA is at most the threshold.
//! - MB/s are 1,000,000 bytes a second.

use std::collections::BTreeSet;

use crate::delay::{Burst, Measured, Sample};
use crate::float::float;
use crate::study::percent;

/// For how long a burst is not settled, in microseconds.
const SETTLING_US: u64 = 3_000_000;

/// Instants, in microseconds after the start of the run.
pub type Time = std::ops::Range<u64>;

impl Measured {
    /// The place of an initiator.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.initiators.iter().position(|known| known == name)
    }

    /// The samples of a time.
    pub fn during(&self, time: Time) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| time.start < sample.at_us && sample.at_us <= time.end)
    }

    /// The MB/s that an initiator read and wrote in a time.
    pub fn rate(&self, initiator: usize, time: Time) -> f64 {
        let bytes: u64 =
            self.during(time.clone()).map(|sample| sample.read[initiator] + sample.written[initiator]).sum();
        float(bytes) / float(time.end - time.start)
    }

    /// The MB/s that all initiators wrote in some times.
    pub fn write_rate(&self, times: &[Time]) -> Option<f64> {
        let long: u64 = times.iter().map(|time| time.end - time.start).sum();
        let samples = times.iter().flat_map(|time| self.during(time.clone()));
        let bytes: u64 = samples.flat_map(|sample| &sample.written).sum();
        (long > 0).then(|| float(bytes) / float(long))
    }

    /// The mean wait in some times, in milliseconds.
    pub fn wait_ms(&self, times: &[Time]) -> Option<f64> {
        let (mut reads, mut took) = (0, 0);
        for sample in times.iter().flat_map(|time| self.during(time.clone())) {
            reads += sample.reads;
            took += sample.read_us;
        }
        (reads > 0).then(|| float(took) / float(reads) / 1e3)
    }

    /// The initiators that do not work all the time.
    pub fn bursty(&self) -> BTreeSet<usize> {
        let end = self.end_us();
        let pauses = |burst: &&Burst| burst.from_us > 0 || burst.to_us < end;
        self.worked.iter().filter(pauses).map(|burst| burst.initiator).collect()
    }

    /// The bursts, of all initiators together: they work at the same times.
    pub fn bursts(&self) -> Vec<Time> {
        let bursty = self.bursty();
        let bursts = self.worked.iter().filter(|burst| bursty.contains(&burst.initiator));
        let mut bursts: Vec<_> = bursts.map(|burst| (burst.from_us, burst.to_us)).collect();
        bursts.sort_unstable();
        bursts.dedup();
        bursts.into_iter().map(|(from, to)| from..to).collect()
    }

    /// The settled part of each burst.
    pub fn settled(&self) -> Vec<Time> {
        let bursts = self.bursts().into_iter();
        bursts.map(|burst| burst.start + SETTLING_US..burst.end).filter(|time| !time.is_empty()).collect()
    }

    /// The first part of each burst, until it is settled.
    pub fn unsettled(&self) -> Vec<Time> {
        self.bursts().into_iter().map(|burst| burst.start..burst.start + SETTLING_US).collect()
    }

    /// From the end of each burst to the beginning of the next.
    pub fn pauses(&self) -> Vec<Time> {
        let bursts = self.bursts();
        let next = bursts.iter().skip(1).map(|burst| burst.start).chain([self.end_us()]);
        bursts.iter().zip(next).map(|(burst, next)| burst.end..next).filter(|time| !time.is_empty()).collect()
    }

    /// Percent of the settled samples that keep the threshold.
    pub fn kept(&self) -> Option<f64> {
        self.share(&self.settled(), |sample| sample.ewma_us <= sample.threshold_us)
    }

    /// Percent of the samples of some times for which something is true.
    pub fn share(&self, times: &[Time], is_true: impl Fn(&Sample) -> bool) -> Option<f64> {
        let samples: Vec<_> = times.iter().flat_map(|time| self.during(time.clone())).collect();
        percent(samples.iter().filter(|sample| is_true(sample)).count(), samples.len())
    }

    /// By how much the EWMA is above the threshold at its worst before a burst is settled, in milliseconds.
    pub fn overshoot_ms(&self) -> Option<f64> {
        let times = self.unsettled();
        let samples = times.iter().flat_map(|time| self.during(time.clone()));
        samples
            .map(|sample| (float(sample.ewma_us) - float(sample.threshold_us)) / 1e3)
            .max_by(f64::total_cmp)
    }

    /// The mean delay in some times, in milliseconds.
    pub fn delay_ms(&self, times: &[Time]) -> Option<f64> {
        let samples = times.iter().flat_map(|time| self.during(time.clone()));
        crate::study::mean(samples.map(|sample| float(sample.delay_us) / 1e3))
    }

    /// The whole run.
    pub fn whole(&self) -> Time {
        0..self.end_us()
    }

    fn end_us(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.at_us)
    }
}
