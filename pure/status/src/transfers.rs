//! What a coordinator of bulk transfers reports: its storage nodes, and the transfers that wait or run.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of a coordinator.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TransfersStatus {
    /// Which node a transfer goes to, and when: the value of the configuration's key `policy`.
    pub policy: String,
    /// How many transfers wait.
    pub waiting: u64,
    /// How many transfers run.
    pub running: u64,
    /// How many of those that run are below the rate that they asked for: see [`TransferStatus::is_below`].
    pub running_below: u64,
    /// What has become of transfers since the coordinator's start.
    pub ended: EndedTransfers,
    /// The nodes, in order of name.
    pub nodes: Vec<NodeStatus>,
    /// The transfers that run, and after them those that wait; each in order of number.
    pub transfers: Vec<TransferStatus>,
    /// Transfers that wait or run and are not in the list, because it is full.
    pub left_out: u64,
}

/// What has become of transfers since the coordinator's start: counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EndedTransfers {
    /// Those that have moved everything.
    pub done: u64,
    /// Those that failed, the ones that nobody continued included.
    pub failed: u64,
    /// Those that somebody cancelled, or whose object was removed or replaced.
    pub cancelled: u64,
    /// How often a client has gone before its transfer ended. A transfer that goes on later counts once more.
    pub interrupted: u64,
    /// Those among `done` that were below the rate that they asked for.
    pub below: u64,
}

/// The state of a storage node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Where it is, without credentials.
    pub url: String,
    /// Why it is down; `None`: it is up.
    pub down: Option<String>,
    /// How long ago the last probe of the node ended, in seconds; `None` before the first one.
    pub probed_age_s: Option<f64>,
    /// What sees the other loads of its device; `None`: the node has no sensor.
    pub sensor: Option<SensorStatus>,
    /// What is read from it.
    pub reads: DirectionStatus,
    /// What is written to it.
    pub writes: DirectionStatus,
    /// The lowest class that it takes.
    pub class: String,
    /// What it costs to store an object there, in the operator's own unit.
    pub cost: u64,
    /// What it fails with.
    pub domain: String,
    /// The most that replicas may take there, in bytes; `None`: as much as the storage takes.
    pub capacity_bytes: Option<u64>,
    /// What the replicas there take, in bytes.
    pub stored_bytes: u64,
    /// How many replicas are there, each of another object.
    pub objects: u64,
}

/// What a node does in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DirectionStatus {
    /// How many transfers it has.
    pub active: u32,
    /// The rate of the last second, in bytes a second.
    pub rate_bytes_per_s: u64,
    /// The rate of the last ten seconds on average, in bytes a second.
    pub average_bytes_per_s: u64,
    /// The sum of the rates that its transfers asked for, in bytes a second.
    pub reserved_bytes_per_s: u64,
    /// The most that it does; `None`: nobody knows.
    pub peak: Option<PeakStatus>,
    /// What was moved since the coordinator's start, in bytes: a counter.
    pub moved_bytes: u64,
    /// What others than the transfers move at the node's device, in bytes a second, as an average of ten
    /// seconds; `None`: nobody knows, as there is no sensor or it is stale.
    pub external_bytes_per_s: Option<u64>,
}

/// What sees the other loads of a node: its `weir node agent`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SensorStatus {
    /// How long ago its last good answer came, in seconds; `None` before the first.
    pub age_s: Option<f64>,
    /// Why it is stale, so that nothing of it is used; `None`: it is fresh.
    pub stale: Option<String>,
}

/// The most that a node does in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeakStatus {
    /// In bytes a second.
    pub bytes_per_s: u64,
    /// Whether a client has measured it; otherwise the operator has given it.
    pub is_measured: bool,
}

/// A transfer that waits or runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TransferStatus {
    /// Its number.
    pub transfer: u64,
    /// What it does.
    pub kind: TransferKind,
    /// The name of its object.
    pub object: String,
    /// Whether it waits or runs.
    pub state: TransferState,
    /// Why it waits; `None`: it runs.
    pub why: Option<String>,
    /// The node where it runs; `None`: it waits.
    pub node: Option<String>,
    /// Its size in bytes; `None`: not known, as with a pipe.
    pub bytes: Option<u64>,
    /// What it has moved, in bytes.
    pub moved_bytes: u64,
    /// The average rate that it had while it ran, in bytes a second; `None`: it has not run yet.
    pub had_bytes_per_s: Option<u64>,
    /// The rate that it asked for, in bytes a second.
    pub asked_bytes_per_s: u64,
    /// The rate that it is held to while others are behind, in bytes a second; `None`: it is not held back.
    pub held_to_bytes_per_s: Option<u64>,
    /// Whether it runs, has run for three seconds, and had less on average than it asked for.
    pub is_below: bool,
    /// How long it has waited since its client asked, in seconds.
    pub waited_s: f64,
    /// How long it still takes at the rate that it had, in seconds; `None`: nobody can tell.
    pub left_s: Option<f64>,
}

/// What a transfer does. The words are those of the verbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferKind {
    /// It writes a new object.
    Put,
    /// It reads an object.
    Get,
    /// It reads a replica, to compare it with what was stored.
    Verify,
    /// It reads a file that a node has already, to make an object of it.
    Import,
    /// It writes one more replica of an object.
    Copy,
}

/// Whether a transfer waits or runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferState {
    /// It waits until a node can serve it.
    Waiting,
    /// A node serves it.
    Running,
}

impl NodeStatus {
    /// Its two directions, with the word for each: `read` and `write`.
    pub const fn directions(&self) -> [(&'static str, &DirectionStatus); 2] {
        [("read", &self.reads), ("write", &self.writes)]
    }
}

impl fmt::Display for TransferKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Verify => "verify",
            Self::Import => "import",
            Self::Copy => "copy",
        })
    }
}

impl fmt::Display for TransferState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_in_json_is_the_same_status_when_it_is_read_back() {
        let status = TransfersStatus {
            policy: "deadline".to_owned(),
            waiting: 1,
            running: 1,
            running_below: 1,
            ended: EndedTransfers { done: 4, failed: 3, cancelled: 2, interrupted: 1, below: 1 },
            nodes: vec![NodeStatus {
                name: "array".to_owned(),
                url: "file:///srv/array".to_owned(),
                down: Some("it does not answer".to_owned()),
                probed_age_s: Some(1.5),
                sensor: Some(SensorStatus { age_s: Some(0.5), stale: Some("no answer".to_owned()) }),
                reads: DirectionStatus::default(),
                writes: DirectionStatus {
                    active: 1,
                    peak: Some(PeakStatus { bytes_per_s: 120_000_000, is_measured: true }),
                    ..DirectionStatus::default()
                },
                class: "silver".to_owned(),
                cost: 2,
                domain: "rack1".to_owned(),
                capacity_bytes: None,
                stored_bytes: 5,
                objects: 1,
            }],
            transfers: vec![TransferStatus {
                transfer: 7,
                kind: TransferKind::Copy,
                object: "a".to_owned(),
                state: TransferState::Waiting,
                why: Some("no node".to_owned()),
                node: None,
                bytes: None,
                moved_bytes: 0,
                had_bytes_per_s: None,
                asked_bytes_per_s: 10_000_000,
                held_to_bytes_per_s: None,
                is_below: false,
                waited_s: 0.5,
                left_s: None,
            }],
            left_out: 9,
        };
        let json = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<TransfersStatus>(&json).unwrap(), status);
    }

    #[test]
    fn the_words_of_a_transfer_are_those_that_people_read() {
        for (json, word) in [
            (serde_json::to_string(&TransferKind::Put), TransferKind::Put.to_string()),
            (serde_json::to_string(&TransferKind::Get), TransferKind::Get.to_string()),
            (serde_json::to_string(&TransferKind::Verify), TransferKind::Verify.to_string()),
            (serde_json::to_string(&TransferKind::Import), TransferKind::Import.to_string()),
            (serde_json::to_string(&TransferKind::Copy), TransferKind::Copy.to_string()),
            (serde_json::to_string(&TransferState::Waiting), TransferState::Waiting.to_string()),
            (serde_json::to_string(&TransferState::Running), TransferState::Running.to_string()),
        ] {
            assert_eq!(json.unwrap(), format!("\"{word}\""));
        }
        assert!(serde_json::from_str::<TransferKind>("\"move\"").is_err());
    }
}
