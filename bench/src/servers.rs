//! Starts and stops the servers that are compared: weir, qemu-nbd, nbdkit.
//!
//! Each server has the options that serve it best: files past the page cache on io_uring if the server can do
//! that; nbdkit has its own plugins.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::bed::{TestBed, output_of};
use super::cases::{Rival, Store, Transport};
use super::cores::End;

/// How long a server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of a volume in memory.
pub(super) const MEMORY_MIB: u64 = 256;

/// The limits of weir: all clients of a benchmark come from one address, to one volume.
const ALL_FROM_HERE: &str = "[limits]\nconnections_per_address = 10500\nconnections_per_volume = 10500\n\n";

/// An SLO that every load keeps. So the law works, and never holds anything back.
const EASY_SLO: &str = r#"slo = [{ up_to = "10000000iops", read = "500ms", write = "500ms" }]"#;

/// The file of the weir that every rival is compared with.
const WEIR_IMAGE: &str = "weir.img";

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: Address,
    export: &'static str,
    metrics: Option<SocketAddr>,
    control: Option<PathBuf>,
    log: PathBuf,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Server {
    /// weir with control and an SLO that is kept: the subject of every comparison.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn weir(bed: &TestBed, store: Store, transport: Transport) -> anyhow::Result<Self> {
        weir_alone(bed, bed.weir(), "weir", &controlled(bed, store, WEIR_IMAGE)?, transport)
    }

    /// The rival of a comparison.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn rival(
        bed: &TestBed,
        rival: Rival,
        store: Store,
        transport: Transport,
    ) -> anyhow::Result<Self> {
        match (rival, store) {
            (Rival::WeirWithoutControl, _) => {
                let volume = volume(bed, store, rival.image(), "")?;
                let rest = format!("control = \"none\"\n{volume}");
                weir_alone(bed, bed.weir(), "without", &rest, transport)
            }
            (Rival::OtherBuild, _) => {
                let rest = controlled(bed, store, rival.image())?;
                weir_alone(bed, bed.other_build()?, "other", &rest, transport)
            }
            (Rival::QemuNbd, Store::File) => qemu_nbd(bed, &bed.image(rival.image())?, transport),
            (Rival::QemuNbd, Store::Memory) => bail!("qemu-nbd serves no memory"),
            (Rival::Nbdkit, Store::File) => {
                let image = bed.image(rival.image())?;
                nbdkit(bed, &["file".to_owned(), image.display().to_string()], transport)
            }
            (Rival::Nbdkit, Store::Memory) => {
                nbdkit(bed, &["memory".to_owned(), format!("{MEMORY_MIB}M")], transport)
            }
        }
    }

    /// weir with the caller's pools and volumes, on a unix socket. `name` names its files.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn weir_with(
        bed: &TestBed,
        name: &str,
        pools: &str,
        export: &'static str,
    ) -> anyhow::Result<Self> {
        start_weir(bed, bed.weir(), name, pools, Transport::Unix, export)
    }

    /// A controller or a coordinator, with the file `text`, which `command` gets as its last argument. It is
    /// ready when it answers at `status`. `name` names its files.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn of_file(
        bed: &TestBed,
        name: &str,
        mut command: Command,
        text: &str,
        status: SocketAddr,
    ) -> anyhow::Result<Self> {
        let file = bed.scratch(&format!("{name}.toml"));
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        command.arg(file);
        let mut server = start(bed, name, command, Address::Tcp(status), "")?;
        server.metrics = Some(status);
        Ok(server)
    }

    /// Another server, which listens at the socket `at` once `command` runs. `name` names its log.
    ///
    /// # Errors
    /// If it does not start.
    pub(super) fn of_socket(bed: &TestBed, name: &str, command: Command, at: &Path) -> anyhow::Result<Self> {
        start(bed, name, command, Address::Unix(at.to_owned()), "")
    }

    /// Changes a running weir by `weir set`.
    ///
    /// # Errors
    /// If it has no control socket, or refuses.
    pub(super) fn set(&self, bed: &TestBed, volume: &str, change: &str) -> anyhow::Result<()> {
        let control = self.control.as_deref().context("weir with a control socket")?;
        let mut command = Command::new(bed.weir());
        command.args(["set", "volume", volume, change, "--server"]);
        command.arg(format!("unix:{}", control.display()));
        output_of(&mut command, &format!("weir set volume {volume} {change}"))?;
        Ok(())
    }

    /// What it has logged.
    ///
    /// # Errors
    /// If its log cannot be read.
    pub(super) fn logged(&self) -> anyhow::Result<String> {
        fs::read_to_string(&self.log).with_context(|| self.log.display().to_string())
    }

    /// The URI of the export for a client.
    pub(super) fn uri(&self) -> String {
        self.uri_of(self.export)
    }

    /// The URI of another export of the server for a client.
    pub(super) fn uri_of(&self, export: &str) -> String {
        match &self.address {
            Address::Unix(path) => format!("nbd+unix:///{export}?socket={}", path.display()),
            Address::Tcp(address) => format!("nbd://{address}/{export}"),
        }
    }

    /// The name of the export.
    pub(super) const fn export(&self) -> &'static str {
        self.export
    }

    /// The path of its socket, if it has one.
    pub(super) fn socket(&self) -> Option<&Path> {
        match &self.address {
            Address::Unix(path) => Some(path),
            Address::Tcp(_) => None,
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address of weir's status and metrics; `None` for other servers.
    pub(super) const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }
}

/// Writes the missing files of a comparison. Do this before any measurement, because the disk is busy for a
/// while afterwards.
///
/// # Errors
/// If there is no room.
pub(super) fn write_images(bed: &TestBed, rival: Rival) -> anyhow::Result<()> {
    bed.image(WEIR_IMAGE)?;
    bed.image(rival.image())?;
    Ok(())
}

impl Rival {
    /// Its file.
    const fn image(self) -> &'static str {
        match self {
            Self::WeirWithoutControl => "without.img",
            Self::QemuNbd => "qemu.img",
            Self::Nbdkit => "nbdkit.img",
            Self::OtherBuild => "other.img",
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is lost: nobody needs the bytes that were written to the files.
        let killed = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = killed {
            eprintln!("process {}: cannot be stopped: {error}", self.child.id());
        }
        if let Address::Unix(path) = &self.address {
            let _ = fs::remove_file(path); // gone already, or gone with the directory
        }
    }
}

/// The one volume on which the speed of weir is measured. `slo` is its line for an SLO, or empty.
fn volume(bed: &TestBed, store: Store, image: &str, slo: &str) -> anyhow::Result<String> {
    let backend = match store {
        Store::File => format!("backend = \"file:{}\"", bed.image(image)?.display()),
        Store::Memory => format!("backend = \"memory\"\nsize = \"{MEMORY_MIB}MiB\""),
    };
    Ok(format!("[volume.v]\npool = \"p\"\n{backend}\n{slo}\n"))
}

/// A pool under control, with a volume that has an SLO.
fn controlled(bed: &TestBed, store: Store, image: &str) -> anyhow::Result<String> {
    Ok(format!("control = \"facade\"\n{}", volume(bed, store, image, EASY_SLO)?))
}

fn weir_alone(
    bed: &TestBed,
    program: &Path,
    name: &str,
    rest: &str,
    transport: Transport,
) -> anyhow::Result<Server> {
    start_weir(bed, program, name, &format!("[pool.p]\n{rest}"), transport, "v")
}

fn start_weir(
    bed: &TestBed,
    program: &Path,
    name: &str,
    pools: &str,
    transport: Transport,
    export: &'static str,
) -> anyhow::Result<Server> {
    let address = address(bed, name, transport)?;
    let metrics = free_port()?;
    let listen = match &address {
        Address::Unix(path) => format!("unix:{}", path.display()),
        Address::Tcp(address) => address.to_string(),
    };
    // Another build may be of a commit without these keys. Both then have few connections, and need none.
    let limits = if bed.other_build().is_ok() { "" } else { ALL_FROM_HERE };
    let file = bed.scratch(&format!("{name}.toml"));
    let control = bed.scratch(&format!("{name}.control"));
    let config = format!(
        "[listen]\nnbd = [\"{listen}\"]\nmetrics = \"{metrics}\"\ncontrol = \"unix:{}\"\n\n{limits}{pools}",
        control.display()
    );
    fs::write(&file, config).with_context(|| file.display().to_string())?;
    let mut command = bed.cores().command(End::Server, program);
    command.arg("serve").arg(&file);
    let mut server = start(bed, name, command, address, export)?;
    server.metrics = Some(metrics);
    server.control = Some(control);
    Ok(server)
}

fn qemu_nbd(bed: &TestBed, image: &Path, transport: Transport) -> anyhow::Result<Server> {
    let address = address(bed, "qemu-nbd", transport)?;
    let mut command = bed.cores().command(End::Server, "qemu-nbd");
    command.args([
        "--format=raw",
        "--cache=none",
        "--aio=io_uring",
        "--discard=unmap",
        "--persistent",
        "--shared=64",
    ]);
    match &address {
        Address::Unix(path) => command.arg("--socket").arg(path),
        Address::Tcp(address) => {
            command.arg(format!("--bind={}", address.ip())).arg(format!("--port={}", address.port()))
        }
    };
    command.arg(image);
    start(bed, "qemu-nbd", command, address, "")
}

fn nbdkit(bed: &TestBed, plugin: &[String], transport: Transport) -> anyhow::Result<Server> {
    let address = address(bed, "nbdkit", transport)?;
    let mut command = bed.cores().command(End::Server, "nbdkit");
    command.args(["--foreground", "--exit-with-parent"]);
    match &address {
        Address::Unix(path) => command.arg("--unix").arg(path),
        Address::Tcp(address) => {
            command.arg(format!("--ipaddr={}", address.ip())).arg(format!("--port={}", address.port()))
        }
    };
    command.args(plugin);
    start(bed, "nbdkit", command, address, "")
}

/// Starts `command` and waits until it answers at `address`.
fn start(
    bed: &TestBed,
    name: &str,
    mut command: Command,
    address: Address,
    export: &'static str,
) -> anyhow::Result<Server> {
    let log = bed.scratch(&format!("{name}.log"));
    let file = File::create(&log).with_context(|| log.display().to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let line = format!("{command:?}");
    let child = command.spawn().with_context(|| format!("{line}: cannot be run"))?;
    let mut server = Server { child, address, export, metrics: None, control: None, log };
    let began = Instant::now();
    let said = |server: &Server| server.logged().unwrap_or_default();
    while !answers(&server.address) {
        if let Some(status) = server.child.try_wait()? {
            bail!("{line}: {status}: {}", said(&server).trim());
        }
        if began.elapsed() > START_TIMEOUT {
            bail!("{line}: does not answer after {} s: {}", START_TIMEOUT.as_secs(), said(&server).trim());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(server)
}

fn answers(address: &Address) -> bool {
    match address {
        Address::Unix(path) => UnixStream::connect(path).is_ok(),
        Address::Tcp(address) => TcpStream::connect(address).is_ok(),
    }
}

fn address(bed: &TestBed, name: &str, transport: Transport) -> anyhow::Result<Address> {
    Ok(match transport {
        Transport::Unix => Address::Unix(bed.scratch(&format!("{name}.sock"))),
        Transport::Tcp => Address::Tcp(free_port()?),
    })
}

/// An address with a free port. qemu-nbd does not say which port it took, so it is told one.
pub(super) fn free_port() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a free port")?;
    listener.local_addr().context("a free port")
}
