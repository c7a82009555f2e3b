//! BFQ with weights: both files on one block device with that scheduler, and a server for each in a cgroup.
//!
//! The block device is a loop device, so that nothing changes for the disk of this machine. A server for each
//! volume is what a user would have, too: the weight belongs to a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::super::super::bed::{TestBed, output_of};
use super::super::super::cores::End;
use super::super::super::images::IMAGE_BYTES;
use super::super::super::servers::Server;
use super::super::super::status::GatewayView;
use super::super::loads::Clients;
use super::super::phase::Phase;
use super::Case;

/// The volumes, with their weights: the highest that there is, and a hundredth of it.
const WEIGHTS: [(&str, u32); 2] = [("victim", 1000), ("hog", 10)];

/// The loop device and the cgroups. On drop they are gone.
#[derive(Debug)]
pub(super) struct Bfq {
    device: PathBuf,
    groups: [PathBuf; 2],
}

impl Bfq {
    /// Makes the device and the cgroups.
    ///
    /// # Errors
    /// If the kernel lacks BFQ or its cgroups, or this user may not.
    pub(super) fn prepare(bed: &TestBed) -> anyhow::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("/proc/self/mounts")?;
        let (root, weight) = cgroups(&mounts).context("no cgroups for block devices are mounted")?;
        let file = bed.file_of("bfq.img", 2 * IMAGE_BYTES)?;
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--direct-io=on"]).arg(file);
        let device = PathBuf::from(output_of(&mut losetup, "losetup")?.trim());
        let groups = WEIGHTS.map(|(volume, _)| root.join(format!("weir-bench-{volume}")));
        let bfq = Self { device, groups }; // from here on, it is taken down again whatever fails
        let name = bfq.device.file_name().context("a device has a name")?.to_string_lossy().into_owned();
        let scheduler = PathBuf::from(format!("/sys/block/{name}/queue/scheduler"));
        put(&scheduler, "bfq")?;
        if weight == V2_WEIGHT {
            put(&root.join("cgroup.subtree_control"), "+io")?;
        }
        for (group, (_, value)) in bfq.groups.iter().zip(WEIGHTS) {
            fs::create_dir_all(group).with_context(|| group.display().to_string())?;
            put(&group.join(weight), &value.to_string())?;
        }
        Ok(bfq)
    }

    /// A phase with a server for each volume.
    ///
    /// # Errors
    /// If a server or a client fails.
    pub(super) fn phase(&self, bed: &TestBed, case: &Case, seconds: u32) -> anyhow::Result<Phase> {
        let [victim, hog] = [0, 1].map(|number| self.serve(bed, number));
        let (victim, hog) = (victim?, hog?);
        let (victim_uri, hog_uri) = (victim.uri(), hog.uri());
        let duration = Duration::from_secs(seconds.into());
        let clients = Clients::start(bed, (case.victim, &victim_uri), Some((case.hog, &hog_uri)), duration)?;
        Ok(Phase::new(GatewayView::NONE, clients.finish()?))
    }

    /// The server of a volume. A shell enters the cgroup first, so that each thread of the server is in it.
    fn serve(&self, bed: &TestBed, number: usize) -> anyhow::Result<Server> {
        let socket = bed.scratch(&format!("bfq-{number}.sock"));
        let mut command = bed.cores().command(End::Server, "sh");
        command.args(["-c", r#"echo $$ > "$0" && exec "$@""#]).arg(self.groups[number].join("cgroup.procs"));
        command.args(["qemu-nbd", "--persistent", "--shared=64", "--image-opts"]);
        command.arg(format!(
            "driver=raw,offset={},size={IMAGE_BYTES},file.driver=host_device,file.filename={},\
             file.cache.direct=on,file.aio=io_uring",
            IMAGE_BYTES * number as u64,
            self.device.display()
        ));
        command.arg("--socket").arg(&socket);
        Server::of_socket(bed, &format!("bfq-{number}"), command, &socket)
    }
}

impl Drop for Bfq {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = fs::remove_dir(group); // it was not made
        }
        let detached = output_of(Command::new("losetup").arg("--detach").arg(&self.device), "losetup");
        if let Err(error) = detached {
            eprintln!("{}: cannot be detached: {error:#}", self.device.display());
        }
    }
}

const V1_WEIGHT: &str = "blkio.bfq.weight";
const V2_WEIGHT: &str = "io.bfq.weight";

/// Where the cgroups of block devices are, and the file with a weight. The first version has a tree of its
/// own for block devices; if there is none, the second version has them.
fn cgroups(mounts: &str) -> Option<(PathBuf, &'static str)> {
    let fields = || mounts.lines().map(|line| line.split(' ').skip(1).collect::<Vec<_>>());
    let find = |kind: &str, option: Option<&str>| {
        fields().find_map(|fields| {
            let [at, found, options, ..] = fields.as_slice() else { return None };
            let fits = option.is_none_or(|option| options.split(',').any(|other| other == option));
            (*found == kind && fits).then(|| PathBuf::from(at))
        })
    };
    let first = find("cgroup", Some("blkio")).map(|root| (root, V1_WEIGHT));
    first.or_else(|| find("cgroup2", None).map(|root| (root, V2_WEIGHT)))
}

fn put(file: &Path, value: &str) -> anyhow::Result<()> {
    fs::write(file, value).with_context(|| format!("{}: cannot be set to {value}", file.display()))?;
    let now = fs::read_to_string(file).unwrap_or_default();
    ensure!(now.contains(value.trim_start_matches('+')), "{}: is {now:?}, not {value}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_block_devices_are_found_in_both_versions() {
        let second = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(cgroups(second), Some((PathBuf::from("/sys/fs/cgroup"), V2_WEIGHT)));
        let both = "cgroup2 /c/unified cgroup2 rw 0 0\ncgroup /c/cpu cgroup rw,cpu 0 0\n\
                    cgroup /c/blkio cgroup rw,blkio 0 0\n";
        assert_eq!(cgroups(both), Some((PathBuf::from("/c/blkio"), V1_WEIGHT)));
        assert_eq!(cgroups("/dev/a / ext4 rw 0 0\n"), None);
    }
}
