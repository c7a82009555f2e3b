//! The file of a coordinator of bulk transfers: its storage nodes, and how it shares them out.
//!
//! Only the url of a node has no default. The policies static, sm-r1 and sm-r2 compare with a node's peak. A
//! node without one is no mistake all the same: its peak can be measured later, and a file that had to name
//! one would make the operator guess.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytesize::ByteSize;
use toml::de::DeValue;
use weir_coordinator::SensorUrl;
use weir_model::Bandwidth;
use weir_node::Location;
use weir_transfer::{Class, PolicyName};

use super::accepts::{self, Accepts, quoted};
use super::controller::{TLS_KEYS, TlsConfig};
use super::listen::{self, TcpAddress};
use super::origin::{Origin, Resolved};
use super::reader::{Document, Section};
use super::{NAMES, check_name, is_name};

pub(super) const KEYS: &[&str] = &["transfers", "node"];
pub(super) const TRANSFERS_KEYS: &[&str] =
    &["policy", "state", "address", "ca", "certificate", "key", "metrics", "classes", "rate"];
pub(super) const NODE_KEYS: &[&str] =
    &["url", "credentials", "peak_read", "peak_write", "class", "cost", "capacity", "domain", "sensor"];

/// The most nodes of a coordinator.
const MOST_NODES: usize = 1000;

/// The most classes. The number of each fits a [`Class`].
const MOST_CLASSES: usize = 16;

/// The highest cost of a node.
const HIGHEST_COST: u64 = 1_000_000;

/// The largest capacity of a node: more than any storage has, and far from the end of the numbers.
const LARGEST_CAPACITY: ByteSize = ByteSize::pb(1000);

/// The longest path of the directory, in bytes. A Unix socket in it has a path of at most 107, with its own
/// name.
const LONGEST_STATE: usize = 90;

/// The directory of a coordinator, unless its file has another one.
const USUAL_STATE: &str = "/var/lib/weir/transfers";

/// The address where a coordinator tells its state, unless its file has another one: beside an agent's.
const USUAL_METRICS: u16 = 9812;

/// The classes, unless the file has others; rising.
const USUAL_CLASSES: [&str; 3] = ["bronze", "silver", "gold"];

/// The rate of a transfer that asks for none, unless the file has another one.
const USUAL_RATE: Bandwidth = Bandwidth::new(10_000_000).expect("above zero");

/// A valid configuration of a coordinator of transfers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TransfersConfig {
    /// Which node a transfer goes to, and when.
    pub(crate) policy: Resolved<PolicyName>,
    /// The directory of its catalogue and its socket; an absolute path.
    pub(crate) state: Resolved<PathBuf>,
    /// The address for clients of other machines; absent: only clients of this machine are served.
    pub(crate) address: Resolved<Option<TcpAddress>>,
    /// The certificate that it shows, and the authority that it trusts; there exactly if `address` is.
    pub(crate) tls: Option<TlsConfig>,
    /// The address of `/metrics` and of its status.
    pub(crate) metrics: Resolved<TcpAddress>,
    /// The names of the classes, from the least important on: the first is `Class(0)`. None is there twice.
    pub(crate) classes: Vec<Resolved<String>>,
    /// The rate of a transfer that asks for none.
    pub(crate) rate: Resolved<Bandwidth>,
    /// The nodes, by name; at least one.
    pub(crate) nodes: BTreeMap<String, NodeConfig>,
}

/// A storage node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NodeConfig {
    /// Where its objects are.
    pub(crate) url: Resolved<Location>,
    /// The file with the secret that opens it. A relative path begins at the directory of the process.
    pub(crate) credentials: Resolved<Option<PathBuf>>,
    /// The most that it reads.
    pub(crate) peak_read: Resolved<Option<Bandwidth>>,
    /// The most that it writes.
    pub(crate) peak_write: Resolved<Option<Bandwidth>>,
    /// The lowest class whose transfers it takes; one of `classes`.
    pub(crate) class: Resolved<Option<Class>>,
    /// What it costs to store something there, in the operator's own unit.
    pub(crate) cost: Resolved<u64>,
    /// The most that the objects of weir may take there.
    pub(crate) capacity: Resolved<Option<ByteSize>>,
    /// What it fails with. Replicas of an object lie in different domains.
    pub(crate) domain: Resolved<String>,
    /// Where its `weir node agent` is; absent: nothing is known of the loads of others.
    pub(crate) sensor: Resolved<Option<SensorUrl>>,
}

impl TransfersConfig {
    /// The name of a class; empty if it is none of this file.
    pub(crate) fn class_name(&self, class: Class) -> &str {
        self.classes.get(usize::from(class.0)).map_or("", |name| &name.value)
    }

    /// Stands for a configuration whose own table is missing.
    fn placeholder(nodes: BTreeMap<String, NodeConfig>) -> Self {
        Self {
            policy: Resolved::placeholder(PolicyName::Deadline),
            state: Resolved::placeholder(PathBuf::new()),
            address: Resolved::placeholder(None),
            tls: None,
            metrics: Resolved::placeholder(usual_metrics()),
            classes: Vec::new(),
            rate: Resolved::placeholder(USUAL_RATE),
            nodes,
        }
    }
}

/// Resolves every table. The result is only valid if no problem was noted on the way.
pub(super) fn resolve<'d>(document: &'d Document<'d>, table: &'d toml::de::DeTable<'d>) -> TransfersConfig {
    let root = Section::root(document, table, KEYS);
    let Some(section) = root.section("transfers", TRANSFERS_KEYS) else {
        if !root.has("transfers") {
            let accepted = "a table [transfers]; each of its keys has a default";
            root.refuse_found("transfers", "nothing", accepted);
        }
        return TransfersConfig::placeholder(resolve_nodes(&root, &class(None)));
    };
    let classes = classes(&section);
    let nodes = resolve_nodes(&root, &class(classes.as_deref()));
    let metrics = section.or_default(
        "metrics",
        &listen::tcp("127.0.0.1:9812"),
        usual_metrics(),
        "beside a gateway's 9810 and an agent's 9811",
    );
    let (address, tls) = resolve_address(&section, &metrics.value);
    TransfersConfig {
        policy: section.or_default(
            "policy",
            &policy(),
            PolicyName::Deadline,
            "as many transfers at a node as it serves in time",
        ),
        state: section.or_default("state", &state(), PathBuf::from(USUAL_STATE), "where services keep state"),
        address,
        tls,
        metrics,
        classes: classes.unwrap_or_default(),
        rate: section.or_default(
            "rate",
            &accepts::bandwidth(),
            USUAL_RATE,
            "about ten such transfers fit on one disk",
        ),
        nodes,
    }
}

/// The address for clients of other machines, and the certificate to show there. They go together.
fn resolve_address(
    section: &Section<'_>,
    metrics: &TcpAddress,
) -> (Resolved<Option<TcpAddress>>, Option<TlsConfig>) {
    let accepts = listen::tcp("backup.example:9830");
    let address = section.optional("address", &accepts, "only clients of this machine are served");
    if !section.has("address") {
        for key in TLS_KEYS.into_iter().filter(|key| section.has(key)) {
            let found = "a file of transfers.address, which is not there";
            section.refuse_found(key, found, "nothing, or address = \"host:port\"");
        }
        return (address, None);
    }
    if address.value.as_ref().is_some_and(|address| address.port != 0 && address == metrics) {
        section.refuse("address", "an address that is not transfers.metrics");
    }
    (address, Some(TlsConfig::resolve(section)))
}

fn resolve_nodes(root: &Section<'_>, class: &Accepts<Class>) -> BTreeMap<String, NodeConfig> {
    let mut nodes = BTreeMap::new();
    let Some(tables) = root.entries("node", "tables [node.NAME]") else {
        if !root.has("node") {
            root.refuse_found("node", "nothing", "at least one table [node.NAME]");
        }
        return nodes;
    };
    if !(1..=MOST_NODES).contains(&tables.len()) {
        let accepted = format!("1 to {MOST_NODES} tables [node.NAME]");
        root.refuse_found("node", format!("{} nodes", tables.len()), &accepted);
    }
    for (name, element) in &tables {
        let Some(section) = element.section(NODE_KEYS) else { continue };
        check_name(&section, name);
        let Some(node) = resolve_node(&section, name, class) else { continue };
        let has_same = |(_, other): &(&String, &NodeConfig)| other.url.value == node.url.value;
        if let Some((other, _)) = nodes.iter().find(has_same) {
            // Two replicas of an object would be one file.
            section.refuse_found("url", format!("that of node.{other}"), "another url for each node");
        }
        nodes.insert(name.clone(), node);
    }
    nodes
}

/// The node. If it has no url, `None` and a noted problem; the other keys are read all the same.
fn resolve_node(section: &Section<'_>, name: &str, class: &Accepts<Class>) -> Option<NodeConfig> {
    let peak = |key: &str| section.optional(key, &accepts::bandwidth(), "not known until it is measured");
    let size = accepts::size(ByteSize::b(1)..=LARGEST_CAPACITY);
    let url = url_of_node(section);
    let credentials = section.optional("credentials", &credentials(), "no secret is shown");
    let (peak_read, peak_write) = (peak("peak_read"), peak("peak_write"));
    let class = section.optional("class", class, "transfers of every class");
    let cost = section.or_default("cost", &accepts::whole(0..=HIGHEST_COST), 0, "no bound leaves it out");
    let capacity = section.optional("capacity", &size, "as much as the storage takes");
    let domain = section.or_default("domain", &plain_name(), name.to_owned(), "it fails on its own");
    let sensor = sensor(section);
    Some(NodeConfig { url: url?, credentials, peak_read, peak_write, class, cost, capacity, domain, sensor })
}

/// The url of the node's sensor.
fn sensor(section: &Section<'_>) -> Resolved<Option<SensorUrl>> {
    let url = Accepts::text(SensorUrl::ACCEPTED, |text| text.parse().ok());
    let default = "nothing is known of the loads of others";
    if tells_a_password(section, "sensor", |text| text.parse::<SensorUrl>().is_ok()) {
        section.refuse_found("sensor", A_PASSWORD, SensorUrl::ACCEPTED);
        return Resolved { value: None, origin: Origin::Default(default) };
    }
    section.optional("sensor", &url, default)
}

/// The url of the node. A message about it does not repeat a password, as messages go into logs.
fn url_of_node(section: &Section<'_>) -> Option<Resolved<Location>> {
    if tells_a_password(section, "url", |text| text.parse::<Location>().is_ok()) {
        let accepted = "a url without a password, and credentials = \"PATH\" of a file with it";
        section.refuse_found("url", A_PASSWORD, accepted);
        return None;
    }
    section.required("url", &url())
}

/// What is found in a url that tells a password.
const A_PASSWORD: &str = "a url with a password";

/// Whether there is a url with a password under `key`, or what may be one with a mistake in it. Example: the
/// password of `sftp://u:a/b@host/` has a `/`, so the host ends before the `@`.
fn tells_a_password(section: &Section<'_>, key: &str, is_accepted: fn(&str) -> bool) -> bool {
    let tells = move |text: &str| {
        // In the endpoint of an S3 url, both characters may be encoded.
        let plain = text.replace("%40", "@").replace("%3A", ":").replace("%3a", ":");
        has_password(text) || !is_accepted(text) && before_at(&plain).contains(':')
    };
    let tells = Accepts::value("", move |value| Some(value.as_str().is_some_and(tells)));
    section.optional(key, &tells, "").value == Some(true)
}

/// A rate as an argument.
///
/// # Errors
/// If it is none, in words for the operator.
pub(crate) fn bandwidth_argument(text: &str) -> Result<Bandwidth, String> {
    let bandwidth = accepts::bandwidth();
    bandwidth.read(&DeValue::String(text.into())).ok_or_else(|| format!("accepted: {}", bandwidth.words()))
}

fn url() -> Accepts<Location> {
    let words = "file:///ROOT, s3://BUCKET?endpoint=http://HOST, webdav://HOST/PATH, webdavs://HOST/PATH or \
                 sftp://HOST/ROOT";
    Accepts::text(words, |text| text.parse().ok())
}

/// Whether there is a password before the host of a url: `scheme://user:password@host`, with or without a
/// scheme.
fn has_password(url: &str) -> bool {
    before_at(without_scheme(url).split(['/', '?', '#']).next().unwrap_or_default()).contains(':')
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// What stands before the last `@` and behind the scheme.
fn before_at(url: &str) -> &str {
    without_scheme(url).rsplit_once('@').map_or("", |(before, _)| before)
}

fn policy() -> Accepts<PolicyName> {
    Accepts::text(format!("one of {}", quoted(PolicyName::ALL)), |text| text.parse().ok())
}

fn state() -> Accepts<PathBuf> {
    let words = format!("the absolute path of a directory, at most {LONGEST_STATE} bytes");
    Accepts::text(words, |text| {
        let fits = text.starts_with('/') && text.len() <= LONGEST_STATE && !text.contains('\0');
        fits.then(|| PathBuf::from(text))
    })
}

fn credentials() -> Accepts<PathBuf> {
    Accepts::text("the path of a file", |text| {
        (!text.is_empty() && !text.contains('\0')).then(|| PathBuf::from(text))
    })
}

fn plain_name() -> Accepts<String> {
    Accepts::text(NAMES, |text| is_name(text).then(|| text.to_owned()))
}

/// One of the classes. If these are wrong themselves, any name: then the classes are the problem.
fn class(classes: Option<&[Resolved<String>]>) -> Accepts<Class> {
    let names: Option<Vec<String>> =
        classes.map(|classes| classes.iter().map(|class| class.value.clone()).collect());
    let known = names.as_ref().map_or(String::new(), |names| format!(": {}", quoted(names)));
    let words = format!("one of transfers.classes{known}");
    Accepts::text(words, move |text| match &names {
        Some(names) => {
            names.iter().position(|name| name == text).and_then(|i| u8::try_from(i).ok()).map(Class)
        }
        None => Some(Class::default()),
    })
}

/// The classes. If anything in them is wrong, `None` and noted problems.
fn classes(section: &Section<'_>) -> Option<Vec<Resolved<String>>> {
    if !section.has("classes") {
        let usual = |name: &str| Resolved {
            value: name.to_owned(),
            origin: Origin::Default("three are enough for most"),
        };
        return Some(USUAL_CLASSES.map(usual).into());
    }
    let accepted = format!("an array of 1 to {MOST_CLASSES} names, the least important class first");
    let elements = section.elements("classes", &accepted);
    if elements.len() > MOST_CLASSES {
        section.refuse_found("classes", format!("{} classes", elements.len()), &accepted);
        return None;
    }
    let mut classes: Vec<Resolved<String>> = Vec::new();
    for element in &elements {
        let Some(found) = element.read(&plain_name()) else { continue };
        if classes.contains(&found) {
            element.refuse("each class once");
        } else {
            classes.push(found);
        }
    }
    (!classes.is_empty() && classes.len() == elements.len()).then_some(classes)
}

fn usual_metrics() -> TcpAddress {
    TcpAddress { host: "127.0.0.1".to_owned(), port: USUAL_METRICS }
}
