//! The database, made once on this machine: in the guest, whose processor is emulated, it would take ten
//! times as long.
//!
//! It is some 330 MB, ten times PostgreSQL's buffers. So most transactions read pages from the array.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use rustix::process::geteuid;

use super::super::bed::{TestBed, output_of};

/// The scale of pgbench: so many times 100,000 accounts.
const SCALE: u32 = 20;

/// The bytes of the file system.
const BYTES: u64 = 1 << 30;

const SETTINGS: &str = "shared_buffers = 32MB\nautovacuum = off\n";

/// The image of an ext4 with the database, made unless an earlier run has made it.
///
/// # Errors
/// If a program is missing or fails, or this user is not root.
pub(super) fn image(bed: &TestBed) -> anyhow::Result<PathBuf> {
    let image = bed.images().join("postgres.img");
    if image.exists() {
        return Ok(image);
    }
    ensure!(geteuid().is_root(), "this needs root, as the files of the database belong to the user postgres");
    eprintln!("making a database of {SCALE}00,000 accounts");
    let tree = tempfile::Builder::new().prefix("weir-postgres.").tempdir().context("a directory")?;
    let data = tree.path().join("pg");
    let id = |kind: &str| -> anyhow::Result<u32> {
        let text = output_of(Command::new("id").args([kind, "postgres"]), "id postgres")?;
        text.trim().parse().context("id postgres")
    };
    let (user, group) = (id("-u")?, id("-g")?);
    chown(tree.path(), Some(user), Some(group)).context("chown")?;
    fill(&data)?;
    let unfinished = bed.images().join("postgres.unfinished");
    fs::File::create(&unfinished)?.set_len(BYTES)?;
    let mut make = Command::new("/sbin/mkfs.ext4");
    make.args(["-q", "-F", "-d"]).arg(tree.path()).arg(&unfinished);
    output_of(&mut make, "mkfs.ext4")?;
    fs::rename(&unfinished, &image)?;
    Ok(image)
}

fn fill(data: &Path) -> anyhow::Result<()> {
    let programs = programs()?;
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]);
        command.arg(programs.join(program)).args(arguments).current_dir("/");
        output_of(&mut command, program)
    };
    let at = data.to_str().context("a path in UTF-8")?;
    let sockets = data.parent().and_then(Path::to_str).context("a path in UTF-8")?;
    run("initdb", &["-D", at, "--auth=trust"])?;
    let file = data.join("postgresql.conf");
    fs::write(&file, fs::read_to_string(&file)? + SETTINGS)?;
    let options = format!("-c fsync=off -c listen_addresses='' -c unix_socket_directories={sockets}");
    let log = format!("{sockets}/log");
    run("pg_ctl", &["-s", "-w", "-D", at, "-l", &log, "-o", &options, "start"])?;
    let filled = run("pgbench", &["-h", sockets, "-i", "-q", "-s", &SCALE.to_string(), "postgres"]);
    run("pg_ctl", &["-s", "-w", "-D", at, "-m", "fast", "stop"])?;
    filled.map(drop)
}

/// Where Debian puts the programs of the newest version of PostgreSQL.
fn programs() -> anyhow::Result<PathBuf> {
    const ROOT: &str = "/usr/lib/postgresql";
    let found = fs::read_dir(ROOT).with_context(|| format!("{ROOT}: is Debian's postgresql installed?"))?;
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = found.filter_map(|entry| Some(entry.ok()?.path())).max_by_key(version);
    Ok(newest.context("PostgreSQL has no version")?.join("bin"))
}
