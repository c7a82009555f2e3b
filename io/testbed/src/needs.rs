//! What a machine must have for a bed. It is looked at before anything is changed.

use std::fs;

use anyhow::{Context, ensure};

use crate::bed::Framework;
use crate::shell::shell;

/// Programs, each with the Debian package that brings it.
const PROGRAMS: [(&str, &str); 11] = [
    ("bash", "bash"),
    ("ip", "iproute2"),
    ("lvm", "lvm2"),
    ("losetup", "mount"),
    ("modprobe", "kmod"),
    ("xargs", "findutils"),
    ("pidof", "sysvinit-utils"),
    ("qemu-img", "qemu-utils"),
    ("qemu-nbd", "qemu-utils"),
    ("fio", "fio"),
    ("seq", "coreutils"),
];
/// Modules of the kernel.
const MODULES: &str = "null_blk loop dm_mod veth sch_htb sch_netem nf_tables";
const LIO: &str = "iscsi_target_mod target_core_iblock";

/// What of that this machine lacks is an error of one line.
pub(crate) fn check(framework: Framework) -> anyhow::Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "found an ordinary user; accepted: root");
    let has = |program: &str| shell(&format!("command -v {program}")).is_ok();
    let lacking = PROGRAMS.iter().filter(|(program, _)| !has(program));
    let lacking: Vec<_> =
        lacking.map(|(program, package)| format!("{program} (package {package})")).collect();
    ensure!(lacking.is_empty(), "found no {}", lacking.join(", no "));
    let asked = shell("qemu-img info iscsi://127.0.0.1:1/no/0 2>&1 || true")?;
    ensure!(!asked.contains("Unknown protocol"), "found no iSCSI in qemu-img (package qemu-block-extra)");
    let modules = match framework {
        Framework::Lio => format!("{MODULES} {LIO}"),
        Framework::Tgt => MODULES.to_owned(),
    };
    ensure!(framework == Framework::Lio || has("tgtd"), "found no tgtd (package tgt)");
    let missing = modules.split(' ').filter(|name| shell(&format!("modprobe --dry-run {name}")).is_err());
    let missing: Vec<_> = missing.collect();
    ensure!(missing.is_empty(), "the kernel has no module {}", missing.join(", "));
    let mounts = fs::read_to_string("/proc/mounts").context("/proc/mounts")?;
    let has_configfs = mounts.lines().any(|line| line.split(' ').nth(1) == Some("/sys/kernel/config"));
    ensure!(has_configfs, "found no configfs at /sys/kernel/config; accepted: mounted there");
    Ok(())
}
