//! Which crate may depend on which: the rings of ARCHITECTURE.md.
//!
//! The crates that decide (`pure/`) must not know the crates that touch the world (`io/`). Otherwise they
//! could no longer run in simulated time. The simulator and the gateway must not know each other, or each
//! would get its own engine. There are two exceptions for the simulator's models: a backend drives a
//! simulated array by the clock, as a device, and the lab runs experiments.

use super::finding::Finding;
use super::tree::Member;

/// The crates under `pure/`, and which of them each may link. A new crate needs a line here, as a decision on
/// purpose.
const PURE: &[(&str, &[&str])] = &[
    ("weir-model", &[]),
    ("weir-sched", &["weir-model"]),
    ("weir-control", &["weir-model"]),
    ("weir-engine", &["weir-model", "weir-sched", "weir-control"]),
    ("weir-leases", &["weir-model", "weir-control"]),
    ("weir-status", &["weir-model", "weir-control"]),
    ("weir-table", &["weir-status"]),
    (
        "weir-sim",
        &[
            "weir-model",
            "weir-sched",
            "weir-control",
            "weir-engine",
            "weir-leases",
            "weir-throttle",
            "weir-transfer",
        ],
    ),
    ("weir-newcomers", &[]),
    ("weir-nbd", &["weir-model"]),
    ("weir-throttle", &["weir-model", "weir-control"]),
    ("weir-iscsi", &["weir-model"]),
    ("weir-transfer", &["weir-model"]),
    ("weir-testkit", &["weir-model", "weir-sched", "weir-control", "weir-engine"]),
];

/// A crate for tests only: its oracles are naive on purpose.
const TESTKIT: &str = "weir-testkit";

/// The fuzz targets: they may use every crate, because they try all code that reads outside data. Only tests
/// use this crate.
const FUZZ: &str = "weir-fuzz";

/// The simulator: no crate under `io/` that serves knows it.
const SIM: &str = "weir-sim";

/// The crates under `io/` that may use the simulator: a simulated array is one of the devices, the lab runs
/// experiments, and the test bed makes real nodes as fast as the model of an experiment.
const SIM_USERS: &[&str] = &["weir-backend", "weir-lab", "weir-testbed"];

/// Crates that wait, or call the kernel. No crate that decides may link one.
const RUNTIMES: &[&str] =
    &["tokio", "async-std", "smol", "async-io", "futures-executor", "mio", "io-uring", "rustix", "socket2"];

/// Checks that the rings allow every dependency between weir's crates.
pub(super) fn dependencies(members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        for dependency in &member.dependencies {
            let Some(other) = members.iter().find(|other| other.name == dependency.name) else { continue };
            if let Some(instead) = refusal(member, other, dependency.dev) {
                let kind = if dependency.dev { "dev-dependency" } else { "dependency" };
                let what = format!("{} has the {kind} {}", member.name, other.name);
                findings.push(Finding::new(&member.manifest, 1, what, instead));
            }
        }
    }
    findings
}

/// Checks that no crate under `pure/` links a runtime, at any depth.
pub(super) fn runtimes(members: &[Member]) -> Vec<Finding> {
    let pure = members.iter().filter(|member| ring(member) == "pure");
    pure.flat_map(|member| {
        let linked = RUNTIMES.iter().filter(|runtime| member.linked.contains(**runtime));
        linked.map(|runtime| {
            let what = format!("{} links {runtime}", member.name);
            Finding::new(&member.manifest, 1, what, "time, input and output as arguments and results")
        })
    })
    .collect()
}

/// What to do instead, if `member` must not depend on `other`; `None` if it may.
fn refusal(member: &Member, other: &Member, dev: bool) -> Option<String> {
    if member.name == FUZZ {
        return None;
    }
    if other.name == FUZZ {
        return (!dev || ring(member) == "pure")
            .then(|| "a dev-dependency, of no crate under pure/".to_owned());
    }
    if other.name == TESTKIT {
        return (!dev).then(|| "a dev-dependency: the testkit is for tests only".to_owned());
    }
    match (ring(member), ring(other)) {
        ("xtask", _) => Some("no crate of the product: it must build when they do not".to_owned()),
        ("bench", _) => {
            Some("no crate of the product: it measures programs, other builds and servers too".to_owned())
        }
        (_, "weir" | "bench" | "xtask") => Some("what both need, in a crate below both".to_owned()),
        ("pure", "pure") if dev => None,
        ("pure", "pure") => match PURE.iter().find(|(name, _)| *name == member.name) {
            Some((_, allowed)) if allowed.contains(&other.name.as_str()) => None,
            Some((_, [])) => Some("no crate of ours".to_owned()),
            Some((_, allowed)) => Some(format!("only {}", allowed.join(", "))),
            None => Some("a line for it in xtask/src/tidy/rings.rs".to_owned()),
        },
        ("pure", _) => Some("what decides knows nothing that touches the world".to_owned()),
        ("io", _) if other.name == SIM && !SIM_USERS.contains(&member.name.as_str()) => {
            let users = SIM_USERS.join(", ");
            Some(format!(
                "a hook in the engine, which both worlds drive (only {users} know models of devices)"
            ))
        }
        _ => None,
    }
}

/// The crate's folder at the root.
fn ring(member: &Member) -> &str {
    member.manifest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Dependency;
    use super::*;

    fn member(path: &str, dependencies: &[(&str, bool)]) -> Member {
        let folder = path.rsplit('/').next().unwrap();
        let is_program = ["weir", "xtask"].contains(&path);
        let name = if is_program { folder.to_owned() } else { format!("weir-{folder}") };
        let dependency = |(name, dev): &(&str, bool)| Dependency { name: (*name).to_owned(), dev: *dev };
        let dependencies = dependencies.iter().map(dependency).collect();
        Member { name, manifest: format!("{path}/Cargo.toml"), dependencies, ..Member::default() }
    }

    fn tree(checked: &Member) -> Vec<Member> {
        let others = [
            "pure/model",
            "pure/sched",
            "pure/sim",
            "pure/testkit",
            "io/clock",
            "io/gateway",
            "weir",
            "fuzz",
            "bench",
        ];
        let others = others.iter().map(|path| member(path, &[])).filter(|other| other.name != checked.name);
        others.chain([checked.clone()]).collect()
    }

    #[test]
    fn what_the_rings_allow_is_not_found() {
        for allowed in [
            member("pure/sched", &[("weir-model", false), ("weir-testkit", true), ("serde", false)]),
            member("io/gateway", &[("weir-sched", false), ("weir-clock", false)]),
            member("io/backend", &[("weir-sim", false)]),
            member("io/lab", &[("weir-sim", false)]),
            member("weir", &[("weir-gateway", false), ("weir-sim", false), ("weir-fuzz", true)]),
            member("fuzz", &[("weir", false), ("weir-testkit", false), ("weir-sim", false)]),
        ] {
            assert_eq!(dependencies(&tree(&allowed)), []);
        }
    }

    #[test]
    fn what_the_rings_do_not_allow_is_found() {
        for (checked, instead) in [
            (member("pure/control", &[("weir-sched", false)]), "only weir-model"),
            (member("pure/model", &[("weir-sched", false)]), "no crate of ours"),
            (member("pure/new", &[("weir-model", false)]), "a line for it"),
            (member("pure/sched", &[("weir-clock", false)]), "what decides knows nothing"),
            (member("pure/sched", &[("weir-clock", true)]), "what decides knows nothing"),
            (member("pure/sched", &[("weir-testkit", false)]), "a dev-dependency"),
            (member("io/gateway", &[("weir-sim", true)]), "a hook in the engine"),
            (member("io/load", &[("weir-sim", false)]), "only weir-backend, weir-lab, weir-testbed know"),
            (member("io/gateway", &[("weir", false)]), "what both need"),
            (member("xtask", &[("weir-model", false)]), "no crate of the product"),
            (member("bench", &[("weir-model", false)]), "it measures programs"),
            (member("io/load", &[("weir-bench", false)]), "what both need"),
            (member("weir", &[("weir-fuzz", false)]), "a dev-dependency"),
            (member("pure/sched", &[("weir-fuzz", true)]), "of no crate under pure/"),
        ] {
            let findings = dependencies(&tree(&checked));
            assert_eq!(findings.len(), 1, "{}", checked.name);
            assert!(findings[0].to_string().contains(instead), "{}", findings[0]);
        }
    }

    #[test]
    fn a_runtime_is_found_however_far_down() {
        let mut sched = member("pure/sched", &[]);
        assert_eq!(runtimes(&[sched.clone()]), []);
        sched.linked.insert("tokio".to_owned());
        assert_eq!(runtimes(&[sched.clone()]).len(), 1);
        sched.manifest = "io/sched/Cargo.toml".to_owned();
        assert_eq!(runtimes(&[sched]), []);
    }
}
