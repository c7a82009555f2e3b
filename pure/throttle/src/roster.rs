//! A survey, arranged for those who decide: which initiator uses which resource, through which connections.
//!
//! Names are looked up here once a second, and not ten times: whatever works at each interval finds a
//! resource by its leaf's number.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::initiators::{Initiator, Initiators};
use crate::kernel::LeafId;
use crate::limits::{LeftOut, MOST_CONNECTIONS, MOST_DEVICES, MOST_SESSIONS};
use crate::reachable::{Connections, Reachable, canonical, on_the_wire};
use crate::resource::{Resource, resource_of};
use crate::survey::{Connection, Device, DeviceNumber, Framework, Session, Survey, Target};

/// An initiator at a target. If it has several sessions there, they are one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Login {
    pub(crate) framework: Framework,
    pub(crate) target: Arc<str>,
    pub(crate) initiator: Initiator,
}

/// What an initiator has at a target.
#[derive(Debug)]
pub(crate) struct Use {
    /// The device of each LUN for which the target counts what this initiator writes, and the counter.
    pub(crate) counted: BTreeMap<u64, (DeviceNumber, u64)>,
    /// The devices that it may use, if the target counts nothing for it.
    pub(crate) uncounted: BTreeSet<DeviceNumber>,
    /// Its addresses, as far as the target tells.
    pub(crate) addresses: BTreeSet<IpAddr>,
    /// Its connections. None if no delay can reach the target's initiators.
    pub(crate) reachable: Option<Reachable>,
}

/// A device behind a LUN.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Lun {
    pub(crate) leaf: LeafId,
    /// What the kernel says of the device, to notice when its number belongs to another one.
    pub(crate) device: Device,
}

/// A survey, arranged.
#[derive(Default, Debug)]
pub(crate) struct Roster {
    /// In order.
    pub(crate) logins: Vec<(Login, Use)>,
    /// The place in `logins` of each session, in the survey's order.
    seats: Vec<usize>,
    initiators: Initiators,
    pub(crate) luns: BTreeMap<DeviceNumber, Lun>,
    /// All connections at portals, with the interface of each.
    pub(crate) connections: BTreeMap<Connection, Option<String>>,
    /// The targets that no delay can reach, and why.
    pub(crate) out_of_reach: BTreeMap<String, String>,
    pub(crate) left_out: LeftOut,
}

impl Roster {
    /// Arranges a survey, after the one before. `leaf_of` gives each resource the number of its leaf; the
    /// devices of a resource that gets none are left out.
    pub(crate) fn new(
        survey: &Survey,
        before: &Self,
        mut leaf_of: impl FnMut(Resource) -> Option<LeafId>,
    ) -> Self {
        let mut roster = Self { initiators: Initiators::after(&before.initiators), ..Self::default() };
        roster.take_devices(survey, &mut leaf_of);
        roster.take_connections(survey);
        roster.take_sessions(survey, &before.initiators);
        roster
    }

    /// Takes the counters of a survey that is the same as before but for them.
    pub(crate) fn take_counters(&mut self, survey: &Survey) {
        for (_, used) in &mut self.logins {
            used.counted.values_mut().for_each(|(_, bytes)| *bytes = 0);
        }
        let sessions = survey.targets.iter().flat_map(|target| &target.sessions);
        for (session, &seat) in sessions.zip(&self.seats) {
            let Some((_, used)) = self.logins.get_mut(seat) else { continue };
            for (lun, &bytes) in &session.written {
                if let Some((_, most)) = used.counted.get_mut(lun) {
                    *most = bytes.max(*most);
                }
            }
        }
    }

    fn take_devices(&mut self, survey: &Survey, leaf_of: &mut impl FnMut(Resource) -> Option<LeafId>) {
        let devices: BTreeSet<_> =
            survey.targets.iter().flat_map(|target| target.luns.values().copied()).collect();
        self.left_out.devices = devices.len().saturating_sub(MOST_DEVICES);
        for number in devices.into_iter().take(MOST_DEVICES) {
            match leaf_of(resource_of(number, &survey.devices)) {
                Some(leaf) => {
                    let device = survey.devices.get(&number).cloned().unwrap_or_default();
                    self.luns.insert(number, Lun { leaf, device });
                }
                None => self.left_out.devices += 1,
            }
        }
    }

    fn take_connections(&mut self, survey: &Survey) {
        self.left_out.connections = survey.connections.len().saturating_sub(MOST_CONNECTIONS);
        let taken = survey.connections.iter().take(MOST_CONNECTIONS);
        let with_interface =
            |connection| (on_the_wire(connection), survey.interfaces.get(connection).cloned());
        self.connections = taken.map(with_interface).collect();
    }

    fn take_sessions(&mut self, survey: &Survey, before: &Initiators) {
        let mut connections = Connections::new(&self.connections.keys().copied().collect(), &survey.targets);
        let sessions: usize = survey.targets.iter().map(|target| target.sessions.len()).sum();
        self.left_out.sessions = sessions.saturating_sub(MOST_SESSIONS);
        let mut logins: BTreeMap<Login, Use> = BTreeMap::new();
        let mut order = Vec::new();
        for target in &survey.targets {
            if let Some(why) = &target.out_of_reach {
                self.out_of_reach.insert(target.name.clone(), why.clone());
            }
            let name: Arc<str> = target.name.as_str().into();
            for session in target.sessions.iter().take(MOST_SESSIONS - order.len()) {
                let initiator = self.initiators.named(&session.initiator, before);
                let login = Login { framework: target.framework, target: Arc::clone(&name), initiator };
                order.push(login.clone());
                let used = self.use_of(target, session, &mut connections);
                match logins.get_mut(&login) {
                    Some(first) => first.join(used),
                    None => {
                        logins.insert(login, used);
                    }
                }
            }
        }
        self.logins = logins.into_iter().collect();
        let seat_of = |login| self.logins.partition_point(|(earlier, _)| earlier < login);
        self.seats = order.iter().map(seat_of).collect();
    }

    fn use_of(&self, target: &Target, session: &Session, connections: &mut Connections) -> Use {
        let device =
            |lun: &u64| target.luns.get(lun).filter(|device| self.luns.contains_key(device)).copied();
        let counters = session.written.iter().filter_map(|(lun, &bytes)| Some((*lun, (device(lun)?, bytes))));
        let uncounted = match session.written.is_empty() {
            true => target.luns.keys().filter_map(device).collect(),
            false => BTreeSet::new(),
        };
        Use {
            counted: counters.collect(),
            uncounted,
            addresses: canonical(&session.addresses).collect(),
            reachable: target.out_of_reach.is_none().then(|| connections.of(target, session)),
        }
    }
}

impl Use {
    /// The leaves of the resources that it uses.
    pub(crate) fn leaves(&self, luns: &BTreeMap<DeviceNumber, Lun>) -> BTreeSet<LeafId> {
        let counted = self.counted.values().map(|(device, _)| device);
        counted.chain(&self.uncounted).filter_map(|device| Some(luns.get(device)?.leaf)).collect()
    }

    /// Another session of the same initiator. A counter that both have is one counter of the target's, which
    /// counts for the initiator.
    fn join(&mut self, other: Self) {
        for (lun, (device, bytes)) in other.counted {
            let most = self.counted.entry(lun).or_insert((device, bytes));
            most.1 = most.1.max(bytes);
        }
        self.uncounted.extend(other.uncounted);
        self.addresses.extend(other.addresses);
        match (&mut self.reachable, other.reachable) {
            (Some(ours), Some(more)) if !Arc::ptr_eq(&ours.connections, &more.connections) => {
                Arc::make_mut(&mut ours.connections).extend(more.connections.iter());
                ours.certain &= more.certain;
            }
            _ => {}
        }
    }
}
