//! LIO, the kernel's own target. Each initiator has an access entry: without one, LIO counts nothing of what
//! an initiator writes.

use super::Host;
use crate::shell::Steps;

const CONFIG: &str = "/sys/kernel/config/target";

/// For how many seconds a client may owe the data that the target has asked for. LIO ends its session after
/// that. A client that is paused owes them for as long as the pause. 3 is the default, and 60 the most.
const DATA_TIMEOUT: u32 = 60;

/// How many bytes of a write come in one message. With LIO's 8 KiB, messages keep an emulated processor busy.
const PIECE: u32 = 256 << 10;

/// Serves the volume of each host as LUN 0 of its target.
pub(super) fn serve(steps: &mut Steps, hosts: &[Host]) -> anyhow::Result<()> {
    let load = format!("modprobe iscsi_target_mod; modprobe target_core_iblock; mkdir -p {CONFIG}/iscsi");
    steps.take(&load, "true")?;
    hosts.iter().try_for_each(|host| serve_one(steps, host))
}

fn serve_one(steps: &mut Steps, host: &Host) -> anyhow::Result<()> {
    let (target, space) = (format!("{CONFIG}/iscsi/{}", host.target()), host.space());
    let (group, device) = (format!("{target}/tpgt_1"), format!("{CONFIG}/core/iblock_0/{space}"));
    let (unit, entry) = (format!("{group}/lun/lun_0"), format!("{group}/acls/{}", host.initiator()));
    let portal = format!("{group}/np/{}", host.portal());
    let (volume, immediate) = (host.volume(), if host.r2t { "No" } else { "Yes" });
    let make = format!(
        "mkdir -p {device}; echo udev_path={volume} >{device}/control; echo 1 >{device}/enable
         mkdir {target}; mkdir {group}; echo 0 >{group}/attrib/authentication
         echo {immediate} >{group}/param/ImmediateData
         echo {PIECE} >{group}/param/MaxRecvDataSegmentLength
         mkdir {unit} {entry}; mkdir {entry}/lun_0 {portal}
         echo {DATA_TIMEOUT} >{entry}/attrib/dataout_timeout
         ln -s {device} {unit}/volume; ln -s {unit} {entry}/lun_0/volume; echo 1 >{group}/enable"
    );
    let undo = format!(
        "[ ! -e {group}/enable ] || echo 0 >{group}/enable
         rm -f {entry}/lun_0/volume {unit}/volume
         for d in {entry}/lun_0 {entry} {portal} {unit} {group} {target} {device}; do [ ! -d $d ] || rmdir $d; done"
    );
    steps.take(&make, &undo)?;
    Ok(())
}
