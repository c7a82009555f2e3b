//! An attack on the controller of the good client's gateway, by another gateway whose certificate is good.
//!
//! Controller and attacker get what the good client leaves of its core: in earnest they run on other hosts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, ensure};

use super::super::bed::{TestBed, build};
use super::super::certificates::Certificates;
use super::super::clients::Running;
use super::super::cores::End;
use super::super::servers::{Server, free_port};
use super::{ONSET, Round, SERVED_ALONE, good_client};

const HOST: &str = "127.0.0.1";

/// The gateway of the good client, and the one that attacks.
const GOOD: &str = "a";
const ATTACKER: &str = "b";

/// The controller's line about a gateway that it accepts.
const ACCEPTED: &str = "a gateway has come";

/// Builds the attacker, which is in `io/cluster/examples`; where it is.
///
/// # Errors
/// If the build fails.
pub(super) fn build_attacker() -> anyhow::Result<PathBuf> {
    build(&["--package", "weir-cluster", "--example", "flooding_gateway"])
}

/// Starts the controller, then the gateway; measures without the attack, then beside it.
///
/// # Errors
/// If a program does not start, the client fails without the attack, or the attack does not come through.
pub(super) fn measure_once(bed: &TestBed, attacker: &Path, seconds: u32) -> anyhow::Result<Round> {
    let directory = bed.scratch("hostile-certificates");
    let certificates = Certificates::make(&directory, &["controller", GOOD, ATTACKER], &[HOST.to_owned()])?;
    let (address, status) = (free_port()?, free_port()?);

    let text = format!(
        "[controller]\nlisten = \"{address}\"\nstatus = \"{status}\"\ncontrol = \"unix:{}\"\n{}\
         [gateway.{GOOD}]\n[gateway.{ATTACKER}]\n[pool.p]\ntotal_concurrency = 32\ncontrol_interval = \"500ms\"\n\
         [volume.good]\npool = \"p\"\ntarget = {{ iops = 1000 }}\n",
        bed.scratch("hostile-controller.sock").display(),
        certificates.keys("controller"),
    );
    let mut command = beside(bed, bed.weir());
    command.arg("controller");
    let controller = Server::of_file(bed, "controller", command, &text, status)?;
    let pool = format!(
        "[cluster]\nname = \"{GOOD}\"\n{}[pool.p]\ncontrol = \"maestro\"\ncontrol_interval = \"500ms\"\n\
         controller = \"{address}\"\n[volume.good]\npool = \"p\"\nbackend = \"memory\"\nsize = \"64MiB\"\n",
        certificates.keys(GOOD),
    );
    let server = Server::weir_with(bed, "hostile", &pool, "good")?;

    let alone_us = good_client(bed, &server, seconds)?.context(SERVED_ALONE)?;
    let lost = || Ok::<_, anyhow::Error>(server.logged()?.matches("no controller").count());
    let lost_before = lost()?;
    let mut command = beside(bed, attacker);
    command.arg(address.to_string()).arg(ATTACKER).args(certificates.files(ATTACKER));
    let attack = Running::start(&mut command)?;
    thread::sleep(ONSET);
    let beside_us = good_client(bed, &server, seconds)?;
    drop(attack);
    // Both halves of the attack: the stream that is accepted, and those that are refused.
    let (log, name) = (controller.logged()?, format!("gateway=\"{ATTACKER}\""));
    let accepted = log.lines().any(|line| line.contains(ACCEPTED) && line.contains(&name));
    let refused = log.lines().any(|line| line.contains(&format!("refused: gateway {ATTACKER} ")));
    ensure!(accepted && refused, "the attack did not come through to the controller:\n{log}");
    Ok(Round { alone_us, beside_us, controller_lost: Some(u32::try_from(lost()? - lost_before)?) })
}

/// A command that runs `program` on what the client leaves of its core.
fn beside(bed: &TestBed, program: &Path) -> Command {
    let mut command = bed.cores().command(End::Client, "nice");
    command.arg("--adjustment=19").arg(program);
    command
}
