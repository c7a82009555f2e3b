//! The sensor of a storage node on a tree of files that looks like `/sys`. The directory that it watches is a
//! real one; the tree has a disk of the number that the kernel says for it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};

use super::super::tree::Tree;
use super::*;

const OTHER: DeviceNumber = DeviceNumber { major: 8, minor: 200 };

/// The number of the device on which the tree itself is.
fn own(tree: &Tree) -> DeviceNumber {
    let device = fs::metadata(tree.at("")).unwrap().dev();
    DeviceNumber { major: major(device), minor: minor(device) }
}

fn roots(tree: &Tree) -> Roots {
    Roots { sys: tree.sys(), proc: tree.proc(), run: tree.at("run"), tgtadm: tree.at("tgtadm") }
}

/// The counters of a device: so many sectors read and written.
fn stat(tree: &Tree, device: &str, read: u64, written: u64) {
    let text = format!("3 0 {read} 0 4 0 {written} 0 0 1500 0\n");
    tree.write(&format!("sys/devices/block/{device}/stat"), text);
}

/// A sensor of a directory of the tree, which is on the disk `sda`.
fn on_a_disk() -> (Tree, StorageSensor) {
    let tree = Tree::new();
    tree.disk("sda", own(&tree));
    stat(&tree, "sda", 10, 20);
    tree.folder("objects");
    let watched = Watched::directory(&tree.at("objects")).unwrap();
    let sensor = StorageSensor::open(roots(&tree), vec![watched]).unwrap();
    (tree, sensor)
}

#[test]
fn a_directory_tells_what_its_disk_has_done() {
    let (tree, mut sensor) = on_a_disk();
    stat(&tree, "sda", 100, 200);
    let totals =
        DeviceTotals { read_bytes: 51_200, written_bytes: 102_400, reads: 3, writes: 4, busy_ms: 1500 };
    let path = Some(tree.at("objects").display().to_string());
    let device = WatchedDevice { path, device: "sda".to_owned(), totals: Some(totals) };
    assert_eq!(sensor.read(), NodeAgentStatus { devices: vec![device] });
}

#[test]
fn a_partition_counts_as_its_disk_and_a_mirror_as_itself() {
    let tree = Tree::new();
    tree.disk("sda", OTHER);
    tree.partition("sda", "sda1", own(&tree));
    stat(&tree, "sda", 7, 7);
    let watched = || vec![Watched::directory(&tree.at("")).unwrap()];
    let device = |roots| StorageSensor::open(roots, watched()).unwrap().read().devices[0].device.clone();
    assert_eq!(device(roots(&tree)), "sda");

    let mirror = Tree::new();
    mirror.disk("sda", OTHER);
    mirror.disk("sdb", DeviceNumber { minor: 201, ..OTHER });
    mirror.mapped("md0", DeviceNumber { minor: 202, ..OTHER }, "md0", "", &["sda", "sdb"]);
    mirror.mapped("dm-1", own(&mirror), "vg-a", "LVM-x", &["md0"]);
    for device in ["sda", "sdb", "md0", "dm-1"] {
        stat(&mirror, device, 1, 1);
    }
    assert_eq!(device(roots(&mirror)), "md0", "below it, each byte is written twice");
}

#[test]
fn a_device_that_vanishes_is_absent_and_is_found_again_when_it_comes_back() {
    let (tree, mut sensor) = on_a_disk();
    let number = own(&tree);
    tree.remove(&format!("sys/dev/block/{}:{}", number.major, number.minor));
    for _ in 0..2 {
        let devices = sensor.read().devices;
        assert_eq!((devices[0].totals, &*devices[0].device), (None, "sda"), "the name stays");
    }
    tree.disk("sdc", number);
    stat(&tree, "sdc", 1, 0);
    let devices = sensor.read().devices;
    assert_eq!((devices[0].totals.unwrap().read_bytes, &*devices[0].device), (512, "sdc"));
}

#[test]
fn a_directory_that_has_become_a_file_is_on_no_device() {
    let (tree, mut sensor) = on_a_disk();
    let Watched::Directory(path) = sensor.watched[0].what.clone() else { panic!("it watches a directory") };
    let elsewhere = tree.at("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(sensor.read().devices[0].totals, None);
    fs::remove_file(&path).unwrap();
    fs::rename(&elsewhere, &path).unwrap();
    assert!(sensor.read().devices[0].totals.is_some());
}

#[test]
fn a_device_is_watched_by_its_name_and_odd_counters_count_as_none() {
    let tree = Tree::new();
    tree.disk("sda", OTHER);
    tree.link("sys/class/block/sda", "../../devices/block/sda");
    stat(&tree, "sda", 1, 2);
    let mut sensor = StorageSensor::open(roots(&tree), vec![Watched::device("sda").unwrap()]).unwrap();
    let device = sensor.read().devices.remove(0);
    assert_eq!((device.path, device.totals.unwrap().written_bytes), (None, 1024));
    tree.write("sys/devices/block/sda/stat", "what");
    assert_eq!(sensor.read().devices[0].totals, None);
}

#[test]
fn what_is_on_no_block_device_is_refused_with_what_it_is_on() {
    let tree = Tree::new();
    tree.folder("objects");
    let root = tree.at("").canonicalize().unwrap();
    let mount = format!("1 0 0:40 / {} rw - tmpfs tmpfs rw\n", root.display());
    tree.write("proc/self/mountinfo", mount);
    let refused = |watched: Vec<Watched>| StorageSensor::open(roots(&tree), watched).unwrap_err().to_string();
    let directory = Watched::directory(&tree.at("objects")).unwrap();
    let line = refused(vec![directory]);
    assert!(line.starts_with("--path /"), "{line}");
    assert!(line.contains("found a directory on tmpfs, which is on no block device of this host"), "{line}");
    assert!(line.contains("accepted: a directory on a block device"), "{line}");
    let line = refused(vec![Watched::device("sdz").unwrap()]);
    assert_eq!(
        line,
        "--device sdz: found no block device of this name; accepted: a name in /sys/class/block, such as sda"
    );

    tree.disk("sda", OTHER);
    tree.link("sys/class/block/sda", "../../devices/block/sda");
    stat(&tree, "sda", 1, 2);
    let line = refused(vec![Watched::device("sda").unwrap(), Watched::device("sda").unwrap()]);
    assert_eq!(line, "--device sda: found it twice; accepted: each directory and each device once");
}

#[test]
fn what_can_be_no_directory_and_no_name_of_a_device_is_refused() {
    let tree = Tree::new();
    tree.write("file", "");
    let refused = |path: &str| Watched::directory(&tree.at(path)).unwrap_err().to_string();
    assert!(refused("file").contains("found no directory; accepted: "), "{}", refused("file"));
    assert!(refused("none").contains("found nothing that can be used ("), "{}", refused("none"));
    let odd = tree.at("odd").join(OsStr::from_bytes(b"\xff"));
    fs::create_dir_all(&odd).unwrap();
    let line = Watched::directory(&odd).unwrap_err().to_string();
    assert!(line.contains("found a path that is no UTF-8; accepted: "), "{line}");
    for odd in ["", "/dev/sda", "../x", ".", "a\nb"] {
        let line = Watched::device(odd).unwrap_err().to_string();
        assert!(line.contains("accepted: a name in /sys/class/block"), "{line}");
        assert_eq!(line.lines().count(), 1);
    }
}
