//! What an operator decides: thresholds, write limits, who is never delayed and who always is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use thiserror::Error;
use weir_control::{OneSidedPidConfig, PidProblem};
use weir_model::{Bandwidth, Span};

use crate::resource::{Resource, resource_of};
use crate::survey::Survey;
use crate::who::Who;

/// The shortest timer that the delayed packets of an initiator's connection can let run out: open-iscsi drops
/// a connection when its ping has no answer for 5 s (`node.conn[0].timeo.noop_out_timeout` in `iscsid.conf`).
/// The answer is one of the packets that are delayed.
pub const SHORTEST_TIMER: Span = Span::from_secs(5);
/// The longest delay that can be a ceiling: half of the timer is left for the network, the target and a
/// second packet that is delayed.
pub const HIGHEST_CEILING: Span = Span::from_millis(2_500);

/// All settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The read wait that a resource must not exceed.
    pub threshold: Span,
    /// The bytes a second above which an initiator that writes to a resource is a member there. 1 MiB/s by
    /// default: a database's log passes, a copy does not. LIO counts in MiB, so a lower limit would judge a
    /// single step of its counter.
    pub write_limit: Bandwidth,
    /// The time constant of the EWMA of write rates. 1 s by default: a writer of five times the limit is a
    /// member at the next decision, and a burst of half a second is not.
    pub rate_smoothing: Span,
    /// Which packets to members are delayed.
    pub packets: Packets,
    /// How the law is tuned. It has the ceiling, and the interval of the counters.
    pub law: OneSidedPidConfig,
    /// What differs for single resources, by their names.
    pub resources: BTreeMap<String, ResourceSettings>,
    /// The initiators that are never delayed.
    pub exempt: BTreeSet<Who>,
    /// The initiators that are delayed however little they write.
    pub forced: BTreeSet<Who>,
}

/// Which packets to a member are delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packets {
    /// All of them: the answers to reads and writes, and the requests for the data of writes.
    All,
    /// Acknowledgements without payload: the paper's throttle of writes (section 3.3). It slows a write only
    /// while the initiator's congestion window is shorter than the write.
    Acks,
    /// Packets with payload: the paper's throttle of reads.
    Payload,
}

impl Packets {
    /// Each of them.
    pub const EACH: [Self; 3] = [Self::All, Self::Acks, Self::Payload];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Acks => "acks",
            Self::Payload => "payload",
        }
    }
}

/// What differs for a resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ResourceSettings {
    /// Its threshold.
    pub threshold: Option<Span>,
    /// Its write limit.
    pub write_limit: Option<Bandwidth>,
}

/// Settings that cannot be.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SettingsError {
    /// A threshold that no read keeps.
    #[error("{}a threshold of zero; accepted: above zero, such as \"15ms\"", of(.resource.as_deref()))]
    ThresholdZero {
        /// The resource; `None` for the threshold of all others.
        resource: Option<String>,
    },
    /// A ceiling that may let a timer of an initiator run out.
    #[error(
        "a ceiling of {0}; accepted: at most {HIGHEST_CEILING}, half of the time after which open-iscsi drops a \
         connection without an answer (noop_out_timeout, {SHORTEST_TIMER})"
    )]
    Ceiling(Span),
    /// The law cannot work so.
    #[error(transparent)]
    Law(#[from] PidProblem),
    /// An initiator is always delayed, and never.
    #[error("{forced} is forced, and {exempt} exempts it; accepted: one of the two")]
    ForcedAndExempt {
        /// Who is forced.
        forced: Who,
        /// What covers it.
        exempt: Who,
    },
}

fn of(resource: Option<&str>) -> String {
    resource.map(|name| format!("resource {name:?}: ")).unwrap_or_default()
}

/// Settings that mean nothing on a host as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Error)]
pub enum Unknown {
    /// No LUN stands on a resource of that name.
    #[error("there is no resource {0:?} behind a LUN of this host: its settings mean nothing")]
    Resource(String),
    /// No initiator of that name is logged in, and none has such an address.
    #[error("no initiator {0} is logged in now: it is exempt or forced as soon as it is")]
    Initiator(Who),
}

/// What an operator says of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Listed {
    Exempt,
    Forced,
    Not,
}

impl Settings {
    /// The defaults, with the one value that has none.
    pub fn new(threshold: Span) -> Self {
        Self {
            threshold,
            write_limit: DEFAULT_WRITE_LIMIT,
            rate_smoothing: Span::from_secs(1),
            packets: Packets::All,
            law: OneSidedPidConfig::default(),
            resources: BTreeMap::new(),
            exempt: BTreeSet::new(),
            forced: BTreeSet::new(),
        }
    }

    /// Whether anything can be done by these settings, on whatever host.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), SettingsError> {
        check_threshold(None, self.threshold)?;
        for (name, settings) in &self.resources {
            settings.threshold.map_or(Ok(()), |threshold| check_threshold(Some(name), threshold))?;
        }
        self.law.check()?;
        if self.law.ceiling > HIGHEST_CEILING {
            return Err(SettingsError::Ceiling(self.law.ceiling));
        }
        let covering = |forced: &Who| self.exempt.iter().find(|exempt| exempt.covers(forced)).cloned();
        match self.forced.iter().find_map(|forced| Some((forced.clone(), covering(forced)?))) {
            Some((forced, exempt)) => Err(SettingsError::ForcedAndExempt { forced, exempt }),
            None => Ok(()),
        }
    }

    /// What means nothing on a host where the survey found this: mistakes, or what is not there now.
    pub fn unknown_in(&self, survey: &Survey) -> Vec<Unknown> {
        let luns = survey.targets.iter().flat_map(|target| target.luns.values());
        let known: BTreeSet<String> =
            luns.map(|&lun| resource_of(lun, &survey.devices)).map(|Resource { name, .. }| name).collect();
        let resources = self.resources.keys().filter(|&name| !known.contains(name));
        let sessions: Vec<_> = survey.targets.iter().flat_map(|target| &target.sessions).collect();
        let is_there = |who: &Who| {
            sessions.iter().any(|session| {
                who.is_named(&session.initiator)
                    || session.addresses.iter().any(|address| who.is_at(address.to_canonical()))
            }) || survey.connections.iter().any(|connection| who.is_at(connection.peer.ip().to_canonical()))
        };
        let initiators = self.exempt.union(&self.forced).filter(|who| !is_there(who));
        resources
            .map(|name| Unknown::Resource(name.clone()))
            .chain(initiators.map(|who| Unknown::Initiator(who.clone())))
            .collect()
    }

    /// The threshold of a resource.
    pub(crate) fn threshold_of(&self, resource: &str) -> Span {
        self.resources.get(resource).and_then(|own| own.threshold).unwrap_or(self.threshold)
    }

    /// The write limit of a resource, in bytes a second.
    pub(crate) fn write_limit_of(&self, resource: &str) -> u64 {
        self.resources.get(resource).and_then(|own| own.write_limit).unwrap_or(self.write_limit).get()
    }

    /// What the operator says of the initiator of that name, which has these addresses. One address that is
    /// exempt exempts it with all of its addresses.
    pub(crate) fn listed(&self, name: &str, addresses: &[IpAddr]) -> Listed {
        let has = |list: &BTreeSet<Who>| {
            list.iter().any(|who| who.is_named(name) || addresses.iter().any(|&address| who.is_at(address)))
        };
        if has(&self.exempt) {
            Listed::Exempt
        } else if has(&self.forced) {
            Listed::Forced
        } else {
            Listed::Not
        }
    }

    /// What the operator says of an address.
    pub(crate) fn listed_at(&self, address: IpAddr) -> Listed {
        self.listed("", &[address])
    }
}

/// Refuses a threshold that no read keeps.
fn check_threshold(resource: Option<&str>, threshold: Span) -> Result<(), SettingsError> {
    let resource = resource.map(String::from);
    if threshold.is_zero() { Err(SettingsError::ThresholdZero { resource }) } else { Ok(()) }
}

const DEFAULT_WRITE_LIMIT: Bandwidth = match Bandwidth::new(1 << 20) {
    Some(limit) => limit,
    None => unreachable!(),
};

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::survey::{Connection, Device, DeviceNumber, Framework, Session, Target};

    fn settings() -> Settings {
        Settings::new(Span::from_millis(15))
    }

    fn mistake(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = settings();
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    }

    fn own(threshold: u64) -> ResourceSettings {
        ResourceSettings { threshold: Some(Span::from_millis(threshold)), write_limit: None }
    }

    #[test]
    fn the_defaults_need_a_threshold_only() {
        assert_eq!(settings().check(), Ok(()));
        assert_eq!(HIGHEST_CEILING.saturating_mul(2), SHORTEST_TIMER);
    }

    #[test]
    fn a_mistake_says_what_was_found_and_what_is_accepted() {
        assert_eq!(
            mistake(|settings| settings.threshold = Span::ZERO),
            "a threshold of zero; accepted: above zero, such as \"15ms\""
        );
        assert_eq!(
            mistake(|settings| settings.resources = [("vg0".into(), own(0))].into()),
            "resource \"vg0\": a threshold of zero; accepted: above zero, such as \"15ms\""
        );
        assert_eq!(
            mistake(|settings| settings.law.ceiling = Span::from_secs(3)),
            "a ceiling of 3s; accepted: at most 2.5s, half of the time after which open-iscsi drops a \
             connection without an answer (noop_out_timeout, 5s)"
        );
        let [who, network]: [Who; 2] = ["10.0.0.5", "10.0.0.0/28"].map(|who| who.parse().unwrap());
        assert_eq!(
            mistake(|settings| (settings.exempt, settings.forced) = ([network].into(), [who].into())),
            "10.0.0.5 is forced, and 10.0.0.0/28 exempts it; accepted: one of the two"
        );
        let gain = mistake(|settings| settings.law.proportional_gain = -1.0);
        assert!(gain.contains("a proportional gain of -1"), "{gain}");
    }

    #[test]
    fn a_resource_has_its_own_settings_or_those_of_all() {
        let mut settings = settings();
        settings.resources.insert("vg0".into(), own(10));
        assert_eq!(settings.threshold_of("vg0"), Span::from_millis(10));
        assert_eq!(settings.threshold_of("vg1"), Span::from_millis(15));
        assert_eq!(settings.write_limit_of("vg0"), 1 << 20);
    }

    #[test]
    fn what_a_survey_does_not_show_is_named() {
        let device = DeviceNumber { major: 8, minor: 0 };
        let initiator = Session {
            initiator: "iqn.2026-01.example:db".into(),
            addresses: BTreeSet::new(),
            written: BTreeMap::new(),
        };
        let target = Target {
            framework: Framework::Lio,
            name: "iqn.2026-01.example:a,1".into(),
            portals: BTreeSet::new(),
            luns: [(0, device)].into(),
            sessions: vec![initiator],
            out_of_reach: None,
        };
        let connection = Connection {
            local: SocketAddr::from(([10, 0, 0, 1], 3260)),
            peer: SocketAddr::from(([10, 0, 0, 11], 40_000)),
        };
        let survey = Survey {
            targets: vec![target],
            connections: [connection].into(),
            devices: [(device, Device { name: "sda".into(), ..Device::default() })].into(),
            ..Survey::default()
        };
        let mut settings = settings();
        settings.resources = [("sda".into(), own(10)), ("sdb".into(), own(10))].into();
        settings.exempt = ["iqn.2026-01.example:db", "10.0.0.12"].map(|who| who.parse().unwrap()).into();
        settings.forced = [("10.0.0.0/24").parse().unwrap()].into();
        assert_eq!(
            settings.unknown_in(&survey),
            [Unknown::Resource("sdb".into()), Unknown::Initiator("10.0.0.12".parse().unwrap())]
        );
        settings.resources.remove("sdb");
        settings.exempt.clear();
        assert_eq!(settings.unknown_in(&survey), []);
    }
}
