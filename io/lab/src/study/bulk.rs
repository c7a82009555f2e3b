//! The words for bulk transfers.
//!
//! - The **rate** of a transfer is its bytes over the time from its start to its end. The time in which it
//!   waited for its start does not count: that is the paper's *average transfer rate*.
//! - The **total** is the bytes of all transfers over the time from the first start to the last end.
//! - A transfer is **below** if its rate is less than it asked for. One that never ended is below.
//! - A transfer that was refused counts nowhere else.

use crate::bulk::{BulkRecord, BulkTransfer};
use crate::float::float;
use crate::study::{least, percent};

impl BulkTransfer {
    /// MB/s; `None` if it did not end.
    pub fn rate(&self) -> Option<f64> {
        let took = self.ended_us?.checked_sub(self.started_us?).filter(|took| *took > 0)?;
        Some(float(self.bytes) / float(took))
    }
}

impl BulkRecord {
    /// The transfers that were not refused.
    fn accepted(&self) -> impl Iterator<Item = &BulkTransfer> {
        self.transfers.iter().filter(|transfer| transfer.refused.is_none())
    }

    /// The total, in MB/s; `None` if a transfer did not end.
    pub fn total(&self) -> Option<f64> {
        let ends: Option<Vec<u64>> = self.accepted().map(|transfer| transfer.ended_us).collect();
        let from = self.accepted().filter_map(|transfer| transfer.started_us).min()?;
        let took = ends?.into_iter().max()?.checked_sub(from).filter(|took| *took > 0)?;
        let bytes: u64 = self.accepted().map(|transfer| transfer.bytes).sum();
        Some(float(bytes) / float(took))
    }

    /// Percent of the transfers that are below.
    pub fn below(&self) -> Option<f64> {
        let asked = float(self.rate) / 1e6;
        let is_below = |transfer: &&BulkTransfer| transfer.rate().is_none_or(|rate| rate < asked);
        percent(self.accepted().filter(is_below).count(), self.accepted().count())
    }

    /// The lowest rate, in percent of the rate that was asked for.
    pub fn slowest(&self) -> Option<f64> {
        let rates: Option<Vec<_>> = self.accepted().map(BulkTransfer::rate).collect();
        Some(100.0 * least(rates?)? / (float(self.rate) / 1e6))
    }

    /// How many transfers went to a node.
    pub fn on(&self, node: &str) -> Option<f64> {
        let place = self.nodes.iter().position(|name| name == node)?;
        let there = self.transfers.iter().filter(|transfer| transfer.node == Some(place)).count();
        u32::try_from(there).ok().map(f64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 MB that start and end at these seconds.
    fn transfer(started: u64, ended: Option<u64>) -> BulkTransfer {
        BulkTransfer {
            bytes: 100_000_000,
            started_us: Some(started * 1_000_000),
            ended_us: ended.map(|ended| ended * 1_000_000),
            node: Some(0),
            ..BulkTransfer::default()
        }
    }

    #[test]
    fn totals_and_rates_are_those_of_the_transfers_that_were_not_refused() {
        let refused = BulkTransfer { refused: Some("no replica".into()), ..BulkTransfer::default() };
        let mut record = BulkRecord {
            nodes: vec!["vm1".into()],
            rate: 10_000_000,
            transfers: vec![transfer(1, Some(6)), refused, transfer(6, Some(26))],
        };
        assert_eq!(record.total(), Some(8.0), "200 MB in 25 s");
        assert_eq!((record.below(), record.slowest()), (Some(50.0), Some(50.0)), "20 and 5 MB/s");
        assert_eq!((record.on("vm1"), record.on("vm2")), (Some(2.0), None));
        record.transfers.push(transfer(9, None));
        assert_eq!((record.total(), record.slowest()), (None, None));
        assert!(record.below().is_some_and(|below| below > 66.0));
    }
}
