//! The mounted file systems. Source: `man 5 proc_pid_mountinfo`.

use std::path::{Path, PathBuf};

/// A file system that is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// Its type, such as `ext4`.
    pub kind: String,
    /// The device or whatever else is mounted.
    pub source: PathBuf,
}

/// The file system where `path` is, by the lines of `mountinfo`. A line that is none is passed over. The last
/// of several mounts at one place is the one that is seen.
pub fn mounted_at(path: &Path, mountinfo: &str) -> Option<Mounted> {
    let mut found: Option<(usize, Mounted)> = None;
    for line in mountinfo.lines() {
        // "36 35 0:33 /@ /srv rw,noatime shared:1 - btrfs /dev/sda2 rw": fields, of which any number are
        // optional, then "-", the type and the source.
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(place) = before.split(' ').nth(4).map(unescaped) else { continue };
        let mut after = after.split(' ');
        let (Some(kind), Some(source)) = (after.next(), after.next().map(unescaped)) else { continue };
        let depth = place.components().count();
        if path.starts_with(&place) && found.as_ref().is_none_or(|(deepest, _)| depth >= *deepest) {
            found = Some((depth, Mounted { kind: kind.to_owned(), source }));
        }
    }
    found.map(|(_, mounted)| mounted)
}

/// The kernel writes a space, a tab, a line end and a backslash as `\040` and so on.
fn unescaped(text: &str) -> PathBuf {
    let mut plain = text.to_owned();
    for (escaped, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        plain = plain.replace(escaped, character);
    }
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_last_mount_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 0:33 /@ /srv/my\\040disks rw shared:1 master:2 - btrfs /dev/sdb rw\n\
            broken\n - \n\
            3 1 0:40 / /run rw - tmpfs tmpfs rw\n4 3 8:5 / /run rw - ext4 /dev/sda5 rw\n";
        let source = |path: &str| mounted_at(Path::new(path), mounts).map(|mounted| mounted.source);
        assert_eq!(source("/etc/passwd"), Some("/dev/sda1".into()));
        assert_eq!(source("/srv/my disks/a.img"), Some("/dev/sdb".into()));
        assert_eq!(source("/srv/my disks2/a.img"), Some("/dev/sda1".into()));
        assert_eq!(source("/run/x"), Some("/dev/sda5".into()));
        let kind = |path: &str| mounted_at(Path::new(path), mounts).map(|mounted| mounted.kind);
        assert_eq!([kind("/srv/my disks"), kind("/run/x")].map(Option::unwrap), ["btrfs", "ext4"]);
        assert_eq!(mounted_at(Path::new("/x"), ""), None);
    }
}
