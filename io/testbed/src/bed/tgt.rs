//! tgtd, a target that is a daemon.

use super::Host;
use crate::shell::{Steps, shell};

const ASK: &str = "tgtadm --lld iscsi --op";

/// Serves the volume of each host as LUN 1 of its target.
///
/// It does without the page cache. Otherwise tgtd would answer writes from memory, and the kernel would write
/// them to the disk in bursts, half a minute later.
pub(super) fn serve(steps: &mut Steps, hosts: &[Host]) -> anyhow::Result<()> {
    let portals: Vec<_> = hosts.iter().map(|host| format!("portal={}", host.portal())).collect();
    let start = format!(
        "tgtd --iscsi {}
         for n in $(seq 100); do {ASK} show --mode sys >/dev/null 2>&1 && break; sleep 0.1; done",
        portals.join(",")
    );
    let stop = format!(
        "if pidof tgtd >/dev/null; then
           for n in $(seq {}); do {ASK} delete --force --mode target --tid $n || true; done
           {ASK} delete --mode system
           for n in $(seq 50); do pidof tgtd >/dev/null || break; sleep 0.1; done
         fi",
        hosts.len()
    );
    steps.take(&start, &stop)?;
    for (host, number) in hosts.iter().zip(1..) {
        let (target, volume) = (host.target(), host.volume());
        let immediate = if host.r2t { "No" } else { "Yes" };
        shell(&format!(
            "{ASK} new --mode target --tid {number} -T {target}
             {ASK} update --mode target --tid {number} --name ImmediateData --value {immediate}
             {ASK} new --mode logicalunit --tid {number} --lun 1 -b {volume} --bsoflags direct
             {ASK} bind --mode target --tid {number} -Q {}",
            host.initiator()
        ))?;
    }
    Ok(())
}
