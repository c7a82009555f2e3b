//! Which block device is behind a path: the device itself, or the one on which a file's file system is.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{major, minor};
use weir_throttle::DeviceNumber;

use super::reading::{Reader, Remark, errno, is_gone};
use super::text::mounts::mounted_at;

/// The block device behind `path`; none if a file is on no block device of this host, such as tmpfs or NFS.
pub(super) fn device_of(sys: &Path, proc: &Path, path: &Path, reader: &mut Reader) -> Option<DeviceNumber> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_gone(errno(&error)) => return None,
        Err(error) => {
            reader.remark(Remark::Unreadable { path: path.to_owned(), error: errno(&error) });
            return None;
        }
    };
    if metadata.file_type().is_block_device() {
        return Some(number(metadata.rdev()));
    }
    let of_its_file_system = number(metadata.dev());
    if is_known(sys, of_its_file_system) {
        return Some(of_its_file_system);
    }
    // A file on btrfs says a number that belongs to no device. The list of mounts has the device's path.
    let mounts = reader.text(&proc.join("self/mountinfo"))?;
    let source = mounted_at(&path.canonicalize().ok()?, &mounts)?.source;
    let source = std::fs::metadata(source).ok()?;
    source.file_type().is_block_device().then(|| number(source.rdev()))
}

/// Whether sysfs has a block device of this number.
fn is_known(sys: &Path, number: DeviceNumber) -> bool {
    sys.join(format!("dev/block/{}:{}", number.major, number.minor)).exists()
}

fn number(device: u64) -> DeviceNumber {
    DeviceNumber { major: major(device), minor: minor(device) }
}
