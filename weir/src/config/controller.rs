//! The file of a controller: the array that several gateways serve, the volumes on it, and the gateways.
//!
//! Under Maestro's law, targets, priorities and limits stand here and nowhere else. If each gateway had its
//! own, a change would have to reach all of them at once, and each gateway would enforce a limit for itself
//! alone.
//!
//! Under the law of promises, each gateway keeps the promises of its own volumes, so they stand in its own
//! file. The controller shares out nothing, and needs no volumes.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use weir_model::{Bandwidth, Iops, Priority, Span, Target};
use weir_status::ControlKind;

use super::accepts::{self, Accepts};
use super::listen::{self, TcpAddress};
use super::origin::Resolved;
use super::pool::{self, TotalConcurrency};
use super::reader::{Document, Section};
use super::{check_name, objective};

pub(super) const KEYS: &[&str] = &["controller", "gateway", "pool", "volume"];
pub(super) const CONTROLLER_KEYS: &[&str] = &["listen", "status", "control", "ca", "certificate", "key"];
const GATEWAY_KEYS: &[&str] = &[];
const POOL_KEYS: &[&str] = &["control", "total_concurrency", "control_interval"];
const VOLUME_KEYS: &[&str] = &["pool", "target", "priority", "max_iops", "max_bandwidth", "max_concurrency"];

/// The laws of a controller.
const LAWS: &[(&str, ControlKind)] = &[
    (ControlKind::Maestro.name(), ControlKind::Maestro),
    (ControlKind::Promise.name(), ControlKind::Promise),
];

/// The keys of the PEM files with which a controller and its gateways identify themselves.
pub(super) const TLS_KEYS: [&str; 3] = ["ca", "certificate", "key"];

/// A valid configuration of a controller.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ControllerConfig {
    /// The address for gateways.
    pub(crate) listen: Resolved<TcpAddress>,
    /// The address of its status; absent: none.
    pub(crate) status: Resolved<Option<TcpAddress>>,
    /// The Unix socket for `weir set`; absent: none.
    pub(crate) control: Resolved<Option<PathBuf>>,
    /// The certificate that it shows, and the authority that it trusts.
    pub(crate) tls: TlsConfig,
    /// The names of its gateways, at least one.
    pub(crate) gateways: Vec<String>,
    /// The name of the pool that they share.
    pub(crate) pool: String,
    /// What the controller does for the pool.
    pub(crate) law: Resolved<ControllerLaw>,
    /// The volumes, by name. There are none under the law of promises.
    pub(crate) volumes: BTreeMap<String, ControlledVolume>,
}

/// What a controller does for its pool.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ControllerLaw {
    /// It shares the array out among the gateways, by Maestro's law.
    Maestro(SharedOut),
    /// It tells each gateway how the promises of the others stand.
    Promise,
}

/// What Maestro's law shares out.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SharedOut {
    /// How many requests the gateways may have at the array together.
    pub(crate) total_concurrency: Resolved<TotalConcurrency>,
    /// How often the controller shares them out.
    pub(crate) control_interval: Resolved<Span>,
}

impl ControllerLaw {
    /// The law's word in the file.
    pub(crate) const fn kind(&self) -> ControlKind {
        match self {
            Self::Maestro(_) => ControlKind::Maestro,
            Self::Promise => ControlKind::Promise,
        }
    }
}

/// The certificate that one side of a connection shows, and the authority that it trusts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TlsConfig {
    /// The operator's own authority.
    pub(crate) ca: Resolved<PathBuf>,
    /// This side's certificate.
    pub(crate) certificate: Resolved<PathBuf>,
    /// Its key.
    pub(crate) key: Resolved<PathBuf>,
}

/// A volume, with the same settings through all gateways.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ControlledVolume {
    /// Its target.
    pub(crate) target: Resolved<Option<Target>>,
    /// How much that target counts.
    pub(crate) priority: Resolved<Priority>,
    /// The request rate that it never exceeds, through all gateways together.
    pub(crate) max_iops: Resolved<Option<Iops>>,
    /// The byte rate that it never exceeds, through all gateways together.
    pub(crate) max_bandwidth: Resolved<Option<Bandwidth>>,
    /// The most requests at the array at a time, through all gateways together.
    pub(crate) max_concurrency: Resolved<Option<NonZeroU32>>,
}

/// Resolves every table. The result is only valid if no problem was noted on the way.
pub(super) fn resolve<'d>(document: &'d Document<'d>, table: &'d toml::de::DeTable<'d>) -> ControllerConfig {
    let root = Section::root(document, table, KEYS);
    let (listen, status, control, tls) = resolve_controller(&root);
    let gateways: Vec<String> = root
        .named("gateway", GATEWAY_KEYS)
        .into_iter()
        .map(|(name, section)| {
            check_name(&section, &name);
            name
        })
        .collect();
    if gateways.is_empty() {
        root.refuse_found("gateway", "nothing", "a table [gateway.NAME] for each gateway");
    }
    let pools = root.named("pool", POOL_KEYS);
    let (pool, law) = resolve_pool(&root, &pools);
    let mut volumes = BTreeMap::new();
    let sections = root.named("volume", VOLUME_KEYS);
    for (name, section) in &sections {
        check_name(section, name);
        volumes.insert(name.clone(), resolve_volume(section, &pool, gateways.len()));
    }
    match (&law.value, pools.first()) {
        (ControllerLaw::Promise, _) if !sections.is_empty() => {
            let found = "a volume of a pool with control = \"promise\"";
            root.refuse_found(
                "volume",
                found,
                "nothing; what it is promised stands in the files of its gateways",
            );
        }
        (ControllerLaw::Maestro(_), _) if sections.is_empty() => {
            root.refuse_found("volume", "nothing", "at least one table [volume.NAME]");
        }
        (ControllerLaw::Maestro(shared), Some((_, section))) => {
            check_total(section, shared.total_concurrency.value, volumes.len(), gateways.len());
        }
        _ => {}
    }
    ControllerConfig { listen, status, control, tls, gateways, pool, law, volumes }
}

/// The values of `[controller]`.
type Own = (Resolved<TcpAddress>, Resolved<Option<TcpAddress>>, Resolved<Option<PathBuf>>, TlsConfig);

fn resolve_controller(root: &Section<'_>) -> Own {
    let Some(section) = root.section("controller", CONTROLLER_KEYS) else {
        if !root.has("controller") {
            let accepted = "a table [controller] with listen, ca, certificate and key";
            root.refuse_found("controller", "nothing", accepted);
        }
        return (
            Resolved::placeholder(TcpAddress { host: String::new(), port: 0 }),
            Resolved::placeholder(None),
            Resolved::placeholder(None),
            TlsConfig::placeholder(),
        );
    };
    let address = || listen::tcp("10.0.0.1:7700");
    let nowhere = Resolved::placeholder(TcpAddress { host: String::new(), port: 0 });
    (
        section.required("listen", &address()).unwrap_or(nowhere),
        section.optional("status", &address(), "only the control socket, if there is one, tells its state"),
        section.optional(
            "control",
            &listen::control_socket(),
            "nothing but a reload changes what is shared out",
        ),
        TlsConfig::resolve(&section),
    )
}

impl TlsConfig {
    /// The values of a table with [`TLS_KEYS`].
    pub(super) fn resolve(section: &Section<'_>) -> Self {
        let file = |key: &str| {
            let path = Accepts::text("the absolute path of a PEM file", |text| {
                text.starts_with('/').then(|| PathBuf::from(text))
            });
            section.required(key, &path).unwrap_or_else(|| Resolved::placeholder(PathBuf::new()))
        };
        let [ca, certificate, key] = TLS_KEYS.map(file);
        Self { ca, certificate, key }
    }

    fn placeholder() -> Self {
        let none = || Resolved::placeholder(PathBuf::new());
        Self { ca: none(), certificate: none(), key: none() }
    }
}

fn resolve_pool(root: &Section<'_>, pools: &[(String, Section<'_>)]) -> (String, Resolved<ControllerLaw>) {
    let [(name, section)] = pools else {
        let found = if pools.is_empty() { "nothing".to_owned() } else { format!("{} tables", pools.len()) };
        root.refuse_found("pool", found, "one table [pool.NAME]: a controller has one array");
        let unknown = SharedOut {
            total_concurrency: Resolved::placeholder(TotalConcurrency::Auto),
            control_interval: Resolved::placeholder(Span::from_secs(2)),
        };
        return (String::new(), Resolved::placeholder(ControllerLaw::Maestro(unknown)));
    };
    check_name(section, name);
    let reason = "sharing an array out is what a controller does if nothing else is said";
    let word = section.or_default("control", &accepts::word(LAWS), ControlKind::Maestro, reason);
    let law = if word.value == ControlKind::Promise {
        for key in ["total_concurrency", "control_interval"].into_iter().filter(|key| section.has(key)) {
            section.refuse_found(
                key,
                "a setting of control = \"maestro\"",
                "nothing, or control = \"maestro\"",
            );
        }
        ControllerLaw::Promise
    } else {
        let (total_concurrency, control_interval) = pool::resolve_shares(section);
        ControllerLaw::Maestro(SharedOut { total_concurrency, control_interval })
    };
    (name.clone(), Resolved { value: law, origin: word.origin })
}

fn resolve_volume(section: &Section<'_>, pool: &str, gateways: usize) -> ControlledVolume {
    let known = pool.to_owned();
    let accepted = format!("{pool:?}, the pool of this controller");
    // If the file does not have exactly one pool, that is the problem, not each volume's pool.
    let name = Accepts::text(accepted, move |text| (known.is_empty() || text == known).then_some(()));
    section.required("pool", &name);
    let volume = ControlledVolume {
        target: objective::resolve_target(section),
        priority: objective::resolve_priority(section),
        max_iops: section.optional("max_iops", &accepts::iops(), "no cap"),
        max_bandwidth: section.optional("max_bandwidth", &accepts::bandwidth(), "no cap"),
        max_concurrency: section.optional("max_concurrency", &accepts::count(65_536), "no cap"),
    };
    if volume.max_concurrency.value.is_some_and(|limit| (limit.get() as usize) < gateways) {
        section.refuse("max_concurrency", &format!("at least {gateways}, one for each gateway"));
    }
    volume
}

/// Checks that the total is large enough. Each volume needs a request at each gateway. A gateway that is away
/// keeps half of an equal share, and that must suffice, too. So the least total is two for each volume at
/// each gateway.
fn check_total(section: &Section<'_>, total: TotalConcurrency, volumes: usize, gateways: usize) {
    let Some(total) = total.requests() else { return };
    let least = 2 * volumes * gateways;
    if (total.get() as usize) < least {
        let found = format!("{total} requests for {volumes} volumes at {gateways} gateways");
        let accepted = format!(
            "at least {least}: two for each volume at each gateway, of which one is always left for it"
        );
        section.refuse_found("total_concurrency", found, &accepted);
    }
}
