//! `[cluster]`: the gateway's identity towards the controllers of its pools.

use super::accepts::Accepts;
use super::controller::TlsConfig;
use super::is_name;
use super::origin::Resolved;
use super::reader::Section;

pub(super) const KEYS: &[&str] = &["name", "ca", "certificate", "key"];

/// The gateway's identity.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cluster {
    /// Its name: one of the names in its certificate, and in the controllers' files.
    pub(crate) name: Resolved<String>,
    /// The certificate that it shows, and the authority that it trusts.
    pub(crate) tls: TlsConfig,
}

/// The identity. It must be in the file if a pool has a controller, and only then.
pub(super) fn resolve(root: &Section<'_>, pools: &[(String, Section<'_>)]) -> Option<Cluster> {
    let controlled = pools.iter().find(|(_, pool)| pool.has("controller"));
    if !root.has("cluster") {
        if let Some((name, _)) = controlled {
            let accepted = "a table [cluster] with name, ca, certificate and key";
            root.refuse_found("cluster", format!("nothing, and pool {name:?} has a controller"), accepted);
        }
        return None;
    }
    let section = root.section("cluster", KEYS)?;
    if controlled.is_none() {
        let found = "who the gateway is to a controller, and no pool has one";
        root.refuse_found("cluster", found, "nothing, or a pool with controller = \"host:port\"");
    }
    let name = Accepts::text("a name of the certificate, of A-Z a-z 0-9 . _ -", |text| {
        is_name(text).then(|| text.to_owned())
    });
    let name = section.required("name", &name).unwrap_or_else(|| Resolved::placeholder(String::new()));
    Some(Cluster { name, tls: TlsConfig::resolve(&section) })
}
