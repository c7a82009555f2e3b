//! What became of the transfers of a run: a file of JSON lines, the first of which is the header.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::delay::MeasuredHeader;
use crate::json_lines;

/// The transfers of a run. All instants are counted from the start of the run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BulkRecord {
    /// The names of the nodes. Everywhere else stands their place in this list.
    pub nodes: Vec<String>,
    /// The rate that each transfer asks for, in bytes a second.
    pub rate: u64,
    /// The transfers, in the order in which they were asked for.
    pub transfers: Vec<BulkTransfer>,
}

/// A transfer.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct BulkTransfer {
    /// Its bytes.
    pub bytes: u64,
    /// The nodes that may serve it.
    pub nodes: Vec<usize>,
    /// When it was asked for.
    pub asked_us: u64,
    /// Why it was refused, if it was.
    pub refused: Option<String>,
    /// Where it went.
    pub node: Option<usize>,
    /// When it started.
    pub started_us: Option<u64>,
    /// When it was done.
    pub ended_us: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Header(MeasuredHeader),
    Node(String),
    Transfer(BulkTransfer),
    /// The last line: the rate that each transfer asks for.
    Rate(u64),
}

impl BulkRecord {
    /// What the record at `path` holds, and its header.
    ///
    /// # Errors
    /// If there is no such file, or it is no whole record.
    pub fn read(path: &Path) -> anyhow::Result<(MeasuredHeader, Self)> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    /// The text of the record's file.
    pub(crate) fn to_text(&self, header: &MeasuredHeader) -> String {
        let nodes = self.nodes.iter().cloned().map(Line::Node);
        let transfers = self.transfers.iter().cloned().map(Line::Transfer);
        let head = [Line::Header(header.clone())].into_iter();
        json_lines::to_text(head.chain(nodes).chain(transfers).chain([Line::Rate(self.rate)]))
    }

    fn parse(text: &str) -> anyhow::Result<(MeasuredHeader, Self)> {
        let (mut header, mut record, mut is_whole) = (None, Self::default(), false);
        for line in json_lines::parse(text) {
            match line? {
                Line::Header(found) => header = Some(found),
                Line::Node(name) => record.nodes.push(name),
                Line::Transfer(transfer) => record.transfers.push(transfer),
                Line::Rate(rate) => (record.rate, is_whole) = (rate, true),
            }
        }
        let header = header.context("found no header; accepted: a record that `weir lab run` wrote")?;
        anyhow::ensure!(is_whole, "found no end; accepted: a whole record");
        Ok((header, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_half_a_record_is_refused() {
        let header = MeasuredHeader {
            experiment: "transfer-r3".into(),
            run: "r3".into(),
            seed: 1,
            bench: "simulated".into(),
            commit: String::new(),
            program: String::new(),
            hash: String::new(),
            configuration: String::new(),
        };
        let transfer =
            BulkTransfer { bytes: 5, nodes: vec![0], started_us: Some(7), ..BulkTransfer::default() };
        let record = BulkRecord { nodes: vec!["vm1".into()], rate: 10, transfers: vec![transfer] };
        let text = record.to_text(&header);
        assert_eq!(BulkRecord::parse(&text).unwrap(), (header, record));
        let half = text.rsplit_once("{\"rate\"").unwrap().0;
        assert!(BulkRecord::parse(half).unwrap_err().to_string().contains("found no end"));
    }
}
