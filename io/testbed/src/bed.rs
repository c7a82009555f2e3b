//! The bed: a slow disk for each volume group, an iSCSI target with a volume for each initiator, and a host
//! for each initiator.
//!
//! **The disk** serves one request at a time, in the order of their coming: a null_blk that finishes each by
//! a timer. With its single place, it makes the thread that submits a second request wait. LIO submits the
//! requests of a connection from one thread, so an initiator with four requests would have one of them at the
//! disk. A loop device on the null_blk takes all requests at once, and submits them one after the other.
//! Linux's own throttling of writes (WBT) is off there: it lets fewer writes through while reads wait, as the
//! agent does, and the paper's kernel had no such thing.
//!
//! **An initiator** is a network namespace with a link to the target's host. The link has a queue for each
//! processor, and two of them would reorder what the target sends in order. The wire of a network card does
//! not, so one processor handles all that an end receives.

mod lio;
mod tgt;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;

use anyhow::Context;
use weir_model::Span;
use weir_throttle::Connection;

use crate::shell::{Steps, shell};

/// How the names of everything in the bed begin.
const PREFIX: &str = "weirbed";
/// The size of a disk and of a volume, in MiB. A disk keeps what is written in memory.
const DISK_MIB: u32 = 1024;
const VOLUME_MIB: u32 = 64;
/// The ports from which an initiator's host connects. With few of them, a delay can be set for all
/// connections that may come.
const PORTS: RangeInclusive<u16> = 40_000..=40_099;
/// LVM makes the nodes of devices itself, looks at nothing but the bed's disks, and keeps no copies.
const LVM: &str = "activation{udev_sync=0 udev_rules=0} backup{backup=0 archive=0} \
                   devices{use_devicesfile=0 obtain_device_list_from_udev=0}";

/// Which program serves the volumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framework {
    /// The kernel's own target.
    Lio,
    /// tgtd, a daemon.
    Tgt,
}

/// What a bed consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) framework: Framework,
    /// How long a disk takes for each request.
    pub(crate) service: Span,
    pub(crate) hosts: Vec<Host>,
}

/// The host of an initiator, with a target of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    /// The number of the host, which its addresses and devices have.
    pub(crate) number: u8,
    /// The name of the initiator.
    pub(crate) name: String,
    /// The volume group of its volume.
    pub(crate) group: String,
    /// Whether the target asks for the data of each write. Otherwise they come with the command.
    pub(crate) r2t: bool,
}

/// The bed. All of it goes when this goes.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) shape: Shape,
    steps: Steps,
}

impl Bed {
    /// Makes a bed. If this machine lacks something, all is as it was.
    pub(crate) fn make(shape: Shape) -> anyhow::Result<Self> {
        let mut steps = Steps::default();
        for host in &shape.hosts {
            link(&mut steps, host).with_context(|| format!("the host of {}", host.name))?;
        }
        let groups: BTreeSet<_> = shape.hosts.iter().map(Host::group_name).collect();
        for group in &groups {
            let hosts = shape.hosts.iter().filter(|host| host.group_name() == *group);
            disk(&mut steps, group, shape.service).context("the disk")?;
            volumes(&mut steps, group, hosts).context("the volume group")?;
        }
        match shape.framework {
            Framework::Lio => lio::serve(&mut steps, &shape.hosts),
            Framework::Tgt => tgt::serve(&mut steps, &shape.hosts),
        }
        .context("the target")?;
        // Where there is a udevd, it looks at new devices.
        shell("! command -v udevadm >/dev/null || udevadm settle --timeout=60 || true")?;
        Ok(Self { shape, steps })
    }

    /// Undoes the bed, and says what is left of it.
    pub(crate) fn undo(mut self) -> anyhow::Result<()> {
        self.steps.undo()
    }
}

impl Host {
    /// The network namespace.
    pub(crate) fn space(&self) -> String {
        format!("{PREFIX}{}", self.number)
    }

    /// The interface of the target's host that leads to it.
    pub(crate) fn link(&self) -> String {
        format!("{PREFIX}{}", self.number)
    }

    /// Its address.
    fn address(&self) -> IpAddr {
        Ipv4Addr::new(10, 9, self.number, 2).into()
    }

    /// The portal of its target.
    pub(crate) fn portal(&self) -> SocketAddr {
        (Ipv4Addr::new(10, 9, self.number, 1), 3260).into()
    }

    /// All connections that it may have to its target.
    pub(crate) fn connections(&self) -> BTreeSet<Connection> {
        let peer = |port| SocketAddr::new(self.address(), port);
        PORTS.map(|port| Connection { local: self.portal(), peer: peer(port) }).collect()
    }

    /// The iSCSI name of the initiator.
    pub(crate) fn initiator(&self) -> String {
        format!("iqn.2026-01.example:{}", self.name)
    }

    /// The iSCSI name of its target.
    fn target(&self) -> String {
        format!("iqn.2026-01.example:{PREFIX}.{}", self.name)
    }

    /// The volume group, which is the resource that an agent finds.
    pub(crate) fn group_name(&self) -> String {
        format!("{PREFIX}_{}", self.group)
    }

    /// What the kernel's device mapper calls its volume.
    pub(crate) fn mapped_name(&self) -> String {
        format!("{}-lv{}", self.group_name(), self.number)
    }

    /// Its volume.
    fn volume(&self) -> String {
        format!("/dev/{}/lv{}", self.group_name(), self.number)
    }

    /// The volume as the clients of qemu name it.
    pub(crate) fn image(&self, framework: Framework) -> String {
        let lun = match framework {
            Framework::Lio => 0,
            Framework::Tgt => 1, // LUN 0 is tgtd's own
        };
        let (portal, target, initiator) = (self.portal().ip(), self.target(), self.initiator());
        format!(
            "driver=raw,file.driver=iscsi,file.transport=tcp,file.portal={portal},file.target={target},\
             file.lun={lun},file.initiator-name={initiator}"
        )
    }
}

fn link(steps: &mut Steps, host: &Host) -> anyhow::Result<()> {
    let (space, link) = (host.space(), host.link());
    let (here, there) = (host.portal().ip(), host.address());
    let (first, last) = (PORTS.start(), PORTS.end());
    let make = format!(
        "ip netns add {space}
         ip link add {link} type veth peer name eth0 netns {space}
         ip addr add {here}/24 dev {link}; ip link set {link} up
         ip -n {space} addr add {there}/24 dev eth0; ip -n {space} link set eth0 up
         echo 1 >/sys/class/net/{link}/queues/rx-0/rps_cpus
         ip netns exec {space} sh -c 'echo 1 >/sys/class/net/eth0/queues/rx-0/rps_cpus
           echo {first} {last} >/proc/sys/net/ipv4/ip_local_port_range'"
    );
    let undo = format!(
        "[ ! -e /sys/class/net/{link} ] || ip link del {link}; [ ! -e /run/netns/{space} ] || ip netns del {space}"
    );
    steps.take(&make, &undo)?;
    Ok(())
}

fn disk(steps: &mut Steps, group: &str, service: Span) -> anyhow::Result<()> {
    let (name, nanos) = (disk_name(group), service.as_nanos());
    let disk = format!("/sys/kernel/config/nullb/{name}");
    let make = format!(
        "modprobe null_blk nr_devices=0; mkdir {disk}; cd {disk}
         echo {DISK_MIB} >size; echo 1 >memory_backed; echo 2 >irqmode; echo {nanos} >completion_nsec
         echo 1 >submit_queues; echo 1 >hw_queue_depth; echo 1 >power; {}",
        without_wbt(&name)
    );
    steps.take(&make, &format!("[ ! -d {disk} ] || {{ echo 0 >{disk}/power; rmdir {disk}; }}"))?;
    let queue = format!(
        "modprobe loop; d=$(losetup --find --show --direct-io=on /dev/{name}); {}",
        without_wbt("${d#/dev/}")
    );
    steps.take(
        &queue,
        &format!("losetup --associated /dev/{name} | cut -d: -f1 | xargs -r losetup --detach"),
    )?;
    Ok(())
}

fn without_wbt(device: &str) -> String {
    let file = format!("/sys/block/{device}/queue/wbt_lat_usec");
    format!("[ ! -e {file} ] || echo 0 >{file}")
}

/// Makes a volume group with a volume for each host. One lvm does all of it, because its start takes longest.
fn volumes<'h>(steps: &mut Steps, group: &str, hosts: impl Iterator<Item = &'h Host>) -> anyhow::Result<()> {
    let queue = shell(&format!("losetup --associated /dev/{} | cut -d: -f1", disk_name(group)))?;
    let (queue, folder) = (queue.trim(), format!("/run/{group}.lvm"));
    let filter = format!("devices{{global_filter=[\"a|^{queue}$|\",\"r|.*|\"]}}");
    let lvm = format!("LVM_SYSTEM_DIR={folder} lvm >{folder}/said 2>&1");
    let (mut commands, mut wanted) = (format!("vgcreate {group} {queue}\n"), String::new());
    for host in hosts {
        commands += &format!("lvcreate -y -Wn -Zn -n lv{} -L {VOLUME_MIB}M {group}\n", host.number);
        wanted += &format!(" -a -b {}", host.volume());
    }
    let make = format!(
        "modprobe dm_mod; mkdir {folder}; echo '{LVM} {filter}' >{folder}/lvm.conf
         {lvm} <<'END' || true\n{commands}END
         [ -d /run{wanted} ] || {{ cat {folder}/said >&2; exit 1; }}"
    );
    let undo = format!(
        "[ ! -d {folder} ] || {{
           ! ls /dev/mapper | grep -q ^{group}- || {lvm} <<<'vgremove -f {group}' || cat {folder}/said >&2
           rm -r {folder}
         }}"
    );
    steps.take(&make, &undo)?;
    Ok(())
}

/// The name of the disk of a volume group.
fn disk_name(group: &str) -> String {
    format!("{group}.disk")
}
