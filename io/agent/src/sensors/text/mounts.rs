//! The mounted file systems. Source: `man 5 proc_pid_mountinfo`.

use std::path::{Path, PathBuf};

/// The device or whatever else is mounted where `path` is, by the lines of `mountinfo`. A line that is none
/// is passed over. The last of several mounts at one place is the one that is seen.
pub fn source_of(path: &Path, mountinfo: &str) -> Option<PathBuf> {
    let mut found: Option<(usize, PathBuf)> = None;
    for line in mountinfo.lines() {
        // "36 35 0:33 /@ /srv rw,noatime shared:1 - btrfs /dev/sda2 rw": fields, of which any number are
        // optional, then "-", the type and the source.
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(place) = before.split(' ').nth(4).map(unescaped) else { continue };
        let Some(source) = after.split(' ').nth(1).map(unescaped) else { continue };
        let depth = place.components().count();
        if path.starts_with(&place) && found.as_ref().is_none_or(|(deepest, _)| depth >= *deepest) {
            found = Some((depth, source));
        }
    }
    found.map(|(_, source)| source)
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
        let source = |path: &str| source_of(Path::new(path), mounts);
        assert_eq!(source("/etc/passwd"), Some("/dev/sda1".into()));
        assert_eq!(source("/srv/my disks/a.img"), Some("/dev/sdb".into()));
        assert_eq!(source("/srv/my disks2/a.img"), Some("/dev/sda1".into()));
        assert_eq!(source("/run/x"), Some("/dev/sda5".into()));
        assert_eq!(source_of(Path::new("/x"), ""), None);
    }
}
