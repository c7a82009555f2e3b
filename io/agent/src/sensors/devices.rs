//! Block devices by sysfs: what they are called, what they stand on, and what device-mapper knows of them.
//!
//! `lvs` would say which volume group a device belongs to, but it wants root and takes locks. sysfs says it
//! to everybody: the UUID of a logical volume begins with that of its group.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weir_throttle::{Device, DeviceNumber, Mapper};

use super::reading::Reader;
use super::text::{Unfit, block, name};

/// The most devices of a survey.
const MOST_DEVICES: usize = 4096;

/// These devices, and all below them.
pub(super) fn below(
    sys: &Path,
    uppermost: impl IntoIterator<Item = DeviceNumber>,
    reader: &mut Reader,
) -> BTreeMap<DeviceNumber, Device> {
    let mut devices = BTreeMap::new();
    let mut next: BTreeSet<DeviceNumber> = uppermost.into_iter().collect();
    while let Some(number) = next.pop_first() {
        if devices.len() == MOST_DEVICES {
            let unfit = Unfit::new("more than 4096 devices", "at most 4096 devices below the LUNs");
            reader.unfit(&sys.join("dev/block"), unfit);
            break;
        }
        if let Some(device) = device(sys, number, reader) {
            next.extend(device.below.iter().filter(|below| !devices.contains_key(*below)));
            devices.insert(number, device);
        }
    }
    devices
}

/// The device of this number.
fn device(sys: &Path, number: DeviceNumber, reader: &mut Reader) -> Option<Device> {
    let folder = sys.join(format!("dev/block/{}:{}", number.major, number.minor));
    // The kernel's name is that of the folder to which the link leads: `../../devices/…/block/sda/sda1`.
    let target = std::fs::canonicalize(&folder).ok()?;
    let last = target.file_name()?.to_string_lossy().into_owned();
    let name = reader.fit(&folder, name(&last))?;
    let mut below = BTreeSet::new();
    for slave in reader.names(&target.join("slaves")) {
        below.extend(number_in(&target.join("slaves").join(slave), reader));
    }
    if target.join("partition").exists() {
        below.extend(target.parent().and_then(|disk| number_in(disk, reader)));
    }
    let of_mapper = |file: &str, reader: &mut Reader| reader.text(&target.join("dm").join(file));
    let mapper = of_mapper("name", reader).map(|name| Mapper {
        name: name.trim_end().to_owned(),
        uuid: of_mapper("uuid", reader).unwrap_or_default().trim_end().to_owned(),
    });
    Some(Device { name, below, mapper })
}

/// The number of the device with this folder.
fn number_in(folder: &Path, reader: &mut Reader) -> Option<DeviceNumber> {
    let path = folder.join("dev");
    let text = reader.text(&path)?;
    reader.fit(&path, block::number(&text))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    fn number(major: u32, minor: u32) -> DeviceNumber {
        DeviceNumber { major, minor }
    }

    #[test]
    fn a_volume_stands_on_a_partition_which_stands_on_a_disk() {
        let tree = Tree::new();
        tree.disk("sda", number(8, 0));
        tree.partition("sda", "sda1", number(8, 1));
        tree.mapped("dm-3", number(253, 3), "vg-a", "LVM-abc", &["sda/sda1"]);
        let found = below(&tree.sys(), [number(253, 3)], &mut tree.reader());
        let names: Vec<_> = found.values().map(|device| &*device.name).collect();
        assert_eq!(names, ["sda", "sda1", "dm-3"]);
        assert_eq!(found[&number(253, 3)].below, [number(8, 1)].into());
        assert_eq!(found[&number(8, 1)].below, [number(8, 0)].into());
        assert_eq!(found[&number(8, 0)], Device { name: "sda".to_owned(), ..Device::default() });
        let mapper = Mapper { name: "vg-a".to_owned(), uuid: "LVM-abc".to_owned() };
        assert_eq!(found[&number(253, 3)].mapper, Some(mapper));
    }

    #[test]
    fn devices_that_vanish_or_are_odd_are_left_out() {
        let tree = Tree::new();
        tree.mapped("dm-0", number(253, 0), "vg-a", "LVM-abc", &["sdx", "sdy"]);
        tree.write("sys/devices/block/sdy/dev", "not:a:number");
        tree.remove("sys/devices/block/dm-0/dm/uuid");
        let mut reader = tree.reader();
        let found = below(&tree.sys(), [number(253, 0), number(253, 9)], &mut reader);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&number(253, 0)].below, BTreeSet::new());
        let remarks = reader.take_remarks();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].to_string().contains("sdy"), "{}", remarks[0]);
    }

    #[test]
    fn a_circle_of_devices_ends() {
        let tree = Tree::new();
        tree.mapped("dm-0", number(253, 0), "a", "", &["dm-1"]);
        tree.mapped("dm-1", number(253, 1), "b", "", &["dm-0"]);
        assert_eq!(below(&tree.sys(), [number(253, 0)], &mut tree.reader()).len(), 2);
    }
}
