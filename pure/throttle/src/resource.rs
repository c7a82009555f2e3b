//! Which devices share a resource.
//!
//! A resource is what gets slow for all of its users at once: the disks of a volume group, or a disk. From
//! the device behind a LUN, the search goes down to what that device stands on, and ends at the first of
//! these:
//!
//! 1. A logical volume: the resource is its volume group, whose volumes share the disks.
//! 2. An md array, a multipath device, or any device that stands on several others: it is the resource
//!    itself. A degraded array and a multipath device with one path left stand on one device, and are still
//!    the same resource as before.
//! 3. A device that stands on nothing: a disk. A loop device is one too, unless the survey says what it
//!    stands on.
//!
//! So a partition leads to its disk, and an encrypted volume to what it was encrypted on. A device that the
//! survey does not list is a resource of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::survey::{Device, DeviceNumber};

/// The most levels of devices below a LUN. Beyond them, where the survey has a circle, the search ends.
const MOST_LEVELS: usize = 16;
/// Hexadecimal digits and letters that name a volume group in a logical volume's UUID.
const GROUP_UUID: usize = 32;

/// What names a resource for as long as it exists: a volume group's UUID, a mapped device's UUID, or a disk's
/// name. Device numbers are not part of it, because they change when a device comes back.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ResourceId(Arc<str>);

impl ResourceId {
    fn new(kind: &str, name: &str) -> Self {
        Self(format!("{kind}:{name}").into())
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What devices share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Resource {
    /// What names it.
    pub(crate) id: ResourceId,
    /// What people call it: a volume group's name, a mapped device's name, or a disk's name.
    pub(crate) name: String,
}

/// The resource of the device behind a LUN.
pub(crate) fn resource_of(lun: DeviceNumber, devices: &BTreeMap<DeviceNumber, Device>) -> Resource {
    let mut at = lun;
    for _ in 0..MOST_LEVELS {
        let Some(device) = devices.get(&at) else { return unlisted(at) };
        if let Some(group) = volume_group(device) {
            return group;
        }
        match one_below(device) {
            Some(below) if !is_one_by_itself(device, devices.get(&below)) => at = below,
            _ => return itself(device),
        }
    }
    devices.get(&at).map_or_else(|| unlisted(at), itself)
}

/// The volume group of a logical volume; `None` for any other device.
fn volume_group(device: &Device) -> Option<Resource> {
    let mapper = device.mapper.as_ref()?;
    let group = mapper.uuid.strip_prefix("LVM-")?.get(..GROUP_UUID)?;
    Some(Resource { id: ResourceId::new("vg", group), name: group_name(&mapper.name) })
}

/// The group in `GROUP-VOLUME`, where each `-` within a name is doubled. No volume's name begins with `-`.
fn group_name(mapper_name: &str) -> String {
    let mut group = String::new();
    let mut letters = mapper_name.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '-' && letters.next_if_eq(&'-').is_none() {
            break;
        }
        group.push(letter);
    }
    group
}

/// The only device that `device` stands on, if it is the only one.
fn one_below(device: &Device) -> Option<DeviceNumber> {
    let mut below = device.below.iter();
    below.next().copied().filter(|_| below.next().is_none())
}

/// Whether a device is a resource even while it stands on one device only: an array or a multipath device.
fn is_one_by_itself(device: &Device, below: Option<&Device>) -> bool {
    let multipath = device.mapper.as_ref().is_some_and(|mapper| mapper.uuid.starts_with("mpath-"));
    let array = device.name.starts_with("md") && !below.is_some_and(|below| is_partition(device, below));
    multipath || array
}

/// Whether `device` is a partition of `disk`, by their names: `md0p1` of `md0`.
fn is_partition(device: &Device, disk: &Device) -> bool {
    let rest = device.name.strip_prefix(&disk.name).and_then(|rest| rest.strip_prefix('p'));
    rest.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()))
}

fn itself(device: &Device) -> Resource {
    let Some(mapper) = &device.mapper else {
        return Resource { id: ResourceId::new("dev", &device.name), name: device.name.clone() };
    };
    let unique = if mapper.uuid.is_empty() { &mapper.name } else { &mapper.uuid };
    Resource { id: ResourceId::new("dm", unique), name: mapper.name.clone() }
}

fn unlisted(device: DeviceNumber) -> Resource {
    let name = format!("{}:{}", device.major, device.minor);
    Resource { id: ResourceId::new("dev", &name), name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Mapper;

    const GROUP: &str = "aaaaaabbbbbbbbbbccccccccccdddddd";

    fn number(minor: u32) -> DeviceNumber {
        DeviceNumber { major: 8, minor }
    }

    fn device(name: &str, below: &[u32]) -> Device {
        Device { name: name.into(), below: below.iter().map(|&minor| number(minor)).collect(), mapper: None }
    }

    fn mapped(name: &str, below: &[u32], mapper: &str, uuid: &str) -> Device {
        let mapper = Some(Mapper { name: mapper.into(), uuid: uuid.into() });
        Device { mapper, ..device(name, below) }
    }

    /// The resource of device 0 of these, which are numbered from 0: its name and its id.
    fn resource(devices: &[Device]) -> [String; 2] {
        let devices = (0..).map(number).zip(devices.iter().cloned()).collect();
        let resource = resource_of(number(0), &devices);
        [resource.name, resource.id.to_string()]
    }

    #[test]
    fn logical_volumes_of_one_group_share_it_whatever_they_stand_on() {
        for (name, volume) in [("vg--fast-db", "1"), ("vg--fast-web--2", "2")] {
            let uuid = format!("LVM-{GROUP}{volume:0>32}");
            let found =
                resource(&[mapped("dm-3", &[1, 2], name, &uuid), device("sda1", &[]), device("sdb", &[])]);
            assert_eq!(found, ["vg-fast".to_string(), format!("vg:{GROUP}")]);
        }
    }

    #[test]
    fn a_hyphen_in_a_groups_name_is_told_from_the_one_before_the_volume() {
        for (mapper, group) in
            [("a-b", "a"), ("a--b-c", "a-b"), ("a---b", "a-"), ("a--b--c-d--e", "a-b-c"), ("plain", "plain")]
        {
            assert_eq!(group_name(mapper), group, "{mapper}");
        }
    }

    #[test]
    fn a_partition_leads_to_its_disk() {
        assert_eq!(resource(&[device("sda1", &[1]), device("sda", &[])]), ["sda", "dev:sda"]);
        assert_eq!(resource(&[device("md0p1", &[1]), device("md0", &[2]), device("sda", &[])])[0], "md0");
    }

    #[test]
    fn an_encrypted_volume_leads_to_the_group_of_the_volume_below() {
        let uuid = format!("LVM-{GROUP}{GROUP}");
        let devices = [mapped("dm-1", &[1], "secret", "CRYPT-LUKS2-x"), mapped("dm-0", &[2], "vg0-a", &uuid)];
        assert_eq!(resource(&devices)[0], "vg0");
    }

    #[test]
    fn an_array_and_a_multipath_device_stay_the_same_resource_with_one_device_left() {
        let paths = [device("sda", &[]), device("sdb", &[])];
        for below in [&[1, 2][..], &[1]] {
            let multipath = mapped("dm-0", below, "mpatha", "mpath-3600a");
            assert_eq!(
                resource(&[&[multipath][..], &paths].concat()),
                ["mpatha", "dm:mpath-3600a"],
                "{below:?}"
            );
            assert_eq!(resource(&[&[device("md12", below)][..], &paths].concat()), ["md12", "dev:md12"]);
        }
        assert_eq!(resource(&[device("md12", &[1]), device("md1", &[])])[0], "md12", "no partition of md1");
    }

    #[test]
    fn a_device_that_stands_on_several_is_the_resource() {
        let striped = mapped("dm-0", &[1, 2], "stripe", "");
        assert_eq!(resource(&[striped, device("sda", &[]), device("sdb", &[])]), ["stripe", "dm:stripe"]);
    }

    #[test]
    fn a_device_that_the_survey_does_not_list_is_a_resource_of_its_own() {
        assert_eq!(resource(&[]), ["8:0", "dev:8:0"]);
        assert_eq!(resource(&[device("loop0", &[])]), ["loop0", "dev:loop0"]);
        assert_eq!(resource(&[device("sda1", &[7])]), ["8:7", "dev:8:7"]);
    }

    #[test]
    fn a_circle_of_devices_ends_the_search() {
        let found = resource(&[device("a", &[1]), device("b", &[0])]);
        assert!(["a", "b"].contains(&found[0].as_str()), "{found:?}");
    }
}
