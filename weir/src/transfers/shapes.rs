//! What verbs about transfers print as JSON: transfers, nodes and objects.
//!
//! The messages between the coordinator and its clients are no JSON, and zero stands for nothing in some of
//! them. So the JSON has a form of its own: nothing is `null`, and each key names its unit.

use serde::Serialize;
use weir_coordinator::proto;

use super::text;

/// A transfer.
#[derive(Serialize)]
pub(crate) struct Transfer {
    transfer: u64,
    kind: &'static str,
    object: String,
    state: &'static str,
    /// Why it waits, or why it has ended.
    why: Option<String>,
    node: Option<String>,
    bytes: Option<u64>,
    moved_bytes: u64,
    /// The rate that it had while it moved data.
    had_bytes_per_s: Option<u64>,
    asked_bytes_per_s: u64,
    class: String,
    deadline_unix_ms: Option<u64>,
    asked_unix_ms: u64,
    started_unix_ms: Option<u64>,
    first_byte_unix_ms: Option<u64>,
    ended_unix_ms: Option<u64>,
    moving_ms: u64,
}

/// The transfers that were asked for.
#[derive(Serialize)]
pub(crate) struct Transfers {
    transfers: Vec<Transfer>,
}

/// All nodes.
#[derive(Serialize)]
pub(crate) struct Nodes {
    policy: String,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Node {
    name: String,
    url: String,
    is_up: bool,
    /// Why it is down.
    why: Option<String>,
    reads: Direction,
    writes: Direction,
    class: String,
    cost: u64,
    domain: String,
    capacity_bytes: Option<u64>,
    stored_bytes: u64,
    objects: u64,
    has_sensor: bool,
    /// Why what it reads is not used.
    sensor_stale: Option<String>,
}

#[derive(Serialize)]
struct Direction {
    active: u32,
    rate_bytes_per_s: u64,
    average_bytes_per_s: u64,
    reserved_bytes_per_s: u64,
    external_bytes_per_s: Option<u64>,
    peak_bytes_per_s: Option<u64>,
    peak_is_measured: bool,
}

/// The objects that were asked for.
#[derive(Serialize)]
pub(crate) struct Objects {
    objects: Vec<Object>,
}

/// An object.
#[derive(Serialize)]
pub(crate) struct Object {
    object: String,
    bytes: u64,
    blake3: String,
    stored_unix_ms: Option<u64>,
    replicas_wanted: u32,
    replicas: Vec<Replica>,
}

#[derive(Serialize)]
struct Replica {
    node: String,
    is_good: bool,
    stored_unix_ms: Option<u64>,
    /// When it was last read whole and found good.
    verified_unix_ms: Option<u64>,
}

/// What a transfer of this command has moved.
#[derive(Serialize)]
pub(crate) struct Moved {
    pub(crate) object: String,
    pub(crate) node: String,
    pub(crate) bytes: u64,
    pub(crate) blake3: String,
    pub(crate) took_ms: u64,
    pub(crate) bytes_per_s: u64,
}

impl From<&proto::TransferInfo> for Transfer {
    fn from(info: &proto::TransferInfo) -> Self {
        Self {
            transfer: info.transfer,
            kind: text::kind(info.kind()),
            object: info.name.clone(),
            state: text::state(info.state()),
            why: some_text(&info.why),
            node: some_text(&info.node),
            bytes: info.bytes,
            moved_bytes: info.moved,
            had_bytes_per_s: some(info.moving_ms).map(|moving| text::rate_of(info.moved, moving)),
            asked_bytes_per_s: info.rate,
            class: info.class.clone(),
            deadline_unix_ms: info.deadline_ms,
            asked_unix_ms: info.asked_ms,
            started_unix_ms: some(info.started_ms),
            first_byte_unix_ms: some(info.first_byte_ms),
            ended_unix_ms: some(info.ended_ms),
            moving_ms: info.moving_ms,
        }
    }
}

impl Transfers {
    /// Those of the list.
    pub(crate) fn of(listed: &[proto::TransferInfo]) -> Self {
        Self { transfers: listed.iter().map(Transfer::from).collect() }
    }
}

impl From<&proto::NodeList> for Nodes {
    fn from(listed: &proto::NodeList) -> Self {
        Self { policy: listed.policy.clone(), nodes: listed.nodes.iter().map(Node::from).collect() }
    }
}

impl From<&proto::NodeInfo> for Node {
    fn from(info: &proto::NodeInfo) -> Self {
        Self {
            name: info.name.clone(),
            url: info.url.clone(),
            is_up: info.is_up,
            why: some_text(&info.why),
            reads: info.reads.unwrap_or_default().into(),
            writes: info.writes.unwrap_or_default().into(),
            class: info.class.clone(),
            cost: info.cost,
            domain: info.domain.clone(),
            capacity_bytes: info.capacity,
            stored_bytes: info.stored_bytes,
            objects: info.objects,
            has_sensor: info.sensor.is_some(),
            sensor_stale: info.sensor.as_ref().and_then(|sensor| some_text(&sensor.stale)),
        }
    }
}

impl From<proto::Direction> for Direction {
    fn from(direction: proto::Direction) -> Self {
        Self {
            active: direction.active,
            rate_bytes_per_s: direction.rate,
            average_bytes_per_s: direction.average,
            reserved_bytes_per_s: direction.reserved,
            external_bytes_per_s: direction.external,
            peak_bytes_per_s: some(direction.peak),
            peak_is_measured: direction.peak_measured,
        }
    }
}

impl Objects {
    /// Those of the list.
    pub(crate) fn of(listed: &[proto::Object]) -> Self {
        Self { objects: listed.iter().map(Object::from).collect() }
    }
}

impl From<&proto::Object> for Object {
    fn from(object: &proto::Object) -> Self {
        let replica = |replica: &proto::Replica| Replica {
            node: replica.node.clone(),
            is_good: replica.is_good,
            stored_unix_ms: some(replica.stored_ms),
            verified_unix_ms: some(replica.verified_ms),
        };
        Self {
            object: object.name.clone(),
            bytes: object.bytes,
            blake3: text::hexadecimal(&object.checksum),
            stored_unix_ms: some(object.stored_ms),
            replicas_wanted: object.replicas_wanted,
            replicas: object.replicas.iter().map(replica).collect(),
        }
    }
}

fn some(number: u64) -> Option<u64> {
    Some(number).filter(|number| *number > 0)
}

fn some_text(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_null_and_each_figure_names_its_unit() {
        let waiting = proto::TransferInfo {
            transfer: 7,
            name: "db".to_owned(),
            kind: proto::Kind::Put.into(),
            state: proto::State::Waiting.into(),
            rate: 10_000_000,
            class: "gold".to_owned(),
            asked_ms: 5,
            ..proto::TransferInfo::default()
        };
        let json = r#"{"transfer":7,"kind":"put","object":"db","state":"waiting","why":null,"node":null,
            "bytes":null,"moved_bytes":0,"had_bytes_per_s":null,"asked_bytes_per_s":10000000,"class":"gold",
            "deadline_unix_ms":null,"asked_unix_ms":5,"started_unix_ms":null,"first_byte_unix_ms":null,
            "ended_unix_ms":null,"moving_ms":0}"#;
        let json: String = json.split_whitespace().collect();
        assert_eq!(serde_json::to_string(&Transfer::from(&waiting)).unwrap(), json);
    }
}
