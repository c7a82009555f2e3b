//! The programs of a run: an array, a controller, and a gateway on each host.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::super::bed::{TestBed, output_of};
use super::super::certificates::Certificates;
use super::super::status::Status;
use super::network::{HOSTS, Network, array_address, host_address, on_host};

/// How long a program may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);

const NBD_PORT: u16 = 10809;
const METRICS_PORT: u16 = 9810;
const CONTROLLER_PORT: u16 = 7700;

/// A volume: its target, and its share of the array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) name: &'static str,
    /// The target as it stands in the controller's file, with the lines that follow it.
    pub(super) target: &'static str,
}

/// The export of the array: all of its disks. The volumes overlap, because the paper's loads are spread over
/// all disks.
const EXPORT: &str = "disks";
const EXPORT_GIB: u32 = 230;

/// A running site. The files that it has written are deleted with the test bed.
pub(super) struct Site<'a> {
    bed: &'a TestBed,
    name: &'static str,
    network: Network,
    certificates: Certificates,
    volumes: Vec<Volume>,
    total: u32,
    array: Option<Program>,
    controller: Option<Program>,
    gateways: Vec<Option<Program>>,
    /// The recordings of all gateways so far.
    recordings: Vec<PathBuf>,
}

/// A program that runs until it is dropped.
#[derive(Debug)]
struct Program {
    child: Child,
}

impl<'a> Site<'a> {
    /// Starts everything, in this order: array, controller, gateways.
    ///
    /// # Errors
    /// If something does not start.
    pub(super) fn start(
        bed: &'a TestBed,
        name: &'static str,
        volumes: &[Volume],
        total: u32,
    ) -> anyhow::Result<Self> {
        let gateways: Vec<_> = (0..HOSTS).map(gateway).collect();
        let names: Vec<_> = gateways.iter().map(String::as_str).chain(["controller"]).collect();
        let addresses: Vec<_> = (0..HOSTS).map(|host| array_address(host).to_string()).collect();
        let directory = bed.scratch(&format!("{name}-certificates"));
        let certificates = Certificates::make(&directory, &names, &addresses)?;
        let mut site = Self {
            bed,
            name,
            network: Network::make()?,
            certificates,
            volumes: volumes.to_vec(),
            total,
            array: None,
            controller: None,
            gateways: (0..HOSTS).map(|_| None).collect(),
            recordings: Vec::new(),
        };
        site.array = Some(site.start_array()?);
        site.start_controller()?;
        (0..HOSTS).try_for_each(|host| site.start_gateway(host))?;
        Ok(site)
    }

    pub(super) const fn network(&self) -> &Network {
        &self.network
    }

    /// # Errors
    /// If it does not start.
    pub(super) fn start_controller(&mut self) -> anyhow::Result<()> {
        let mut file = format!(
            "[controller]\nlisten = \"0.0.0.0:{CONTROLLER_PORT}\"\nstatus = \"127.0.0.1:{METRICS_PORT}\"\ncontrol = \"unix:{}\"\n{}\n",
            self.control_socket().display(),
            self.certificates.keys("controller"),
        );
        for host in 0..HOSTS {
            file += &format!("[gateway.{}]\n", gateway(host));
        }
        file += &format!("\n[pool.array]\ncontrol = \"maestro\"\ntotal_concurrency = {}\n", self.total);
        for Volume { name, target } in &self.volumes {
            file += &format!("\n[volume.{name}]\npool = \"array\"\ntarget = {target}\n");
        }
        let path = self.write("controller.toml", &file)?;
        let mut command = Command::new(self.bed.weir());
        command.arg("controller").arg(path);
        let address = format!("127.0.0.1:{METRICS_PORT}");
        self.controller = Some(self.program("controller", command, &address)?);
        Ok(())
    }

    /// Kills the controller.
    pub(super) fn kill_controller(&mut self) {
        self.controller = None;
    }

    /// # Errors
    /// If it does not start.
    pub(super) fn start_gateway(&mut self, host: usize) -> anyhow::Result<()> {
        let (here, array) = (host_address(host), array_address(host));
        let mut file = format!(
            "[listen]\nnbd = [\"{here}:{NBD_PORT}\"]\nmetrics = \"{here}:{METRICS_PORT}\"\n\n[cluster]\nname = \"{}\"\n{}\n\
             [pool.array]\ncontrol = \"maestro\"\ncontroller = \"{array}:{CONTROLLER_PORT}\"\n",
            gateway(host),
            self.certificates.keys(&gateway(host)),
        );
        for Volume { name, .. } in &self.volumes {
            file += &format!(
                "\n[volume.{name}]\npool = \"array\"\nbackend = \"nbd://{array}:{NBD_PORT}/{EXPORT}\"\n"
            );
        }
        let number = self.recordings.len();
        let path = self.write(&format!("gateway-{host}.toml"), &file)?;
        let recording = self.bed.scratch(&format!("{}-recording-{number}", self.name));
        let mut command = on_host(host, &self.bed.weir().display().to_string());
        command.arg("record").arg(path).arg("--out").arg(&recording);
        self.recordings.push(recording);
        self.gateways[host] =
            Some(self.program(&format!("gateway-{host}"), command, &format!("{here}:{NBD_PORT}"))?);
        Ok(())
    }

    /// Kills a gateway.
    pub(super) fn kill_gateway(&mut self, host: usize) {
        self.gateways[host] = None;
    }

    /// The URI of a volume for the clients of a host.
    pub(super) fn uri(&self, host: usize, volume: &str) -> String {
        format!("nbd://{}:{NBD_PORT}/{volume}", host_address(host))
    }

    /// The URI of the array's own export, under the volumes.
    pub(super) fn uri_at_array(&self) -> String {
        format!("nbd://127.0.0.1:{NBD_PORT}/{EXPORT}")
    }

    /// The bytes that a volume has read and written, for each gateway.
    ///
    /// # Errors
    /// If a gateway does not answer.
    pub(super) fn bytes(&self, volume: &str) -> anyhow::Result<Vec<u64>> {
        let bytes = |host| {
            let status = Status::read(format!("{}:{METRICS_PORT}", host_address(host)).parse()?)?;
            Ok(status.volume(volume)?.bytes())
        };
        (0..HOSTS).map(bytes).collect()
    }

    /// Changes a setting of a volume at the controller.
    ///
    /// # Errors
    /// If the controller refuses.
    pub(super) fn set(&self, volume: &str, change: &str) -> anyhow::Result<()> {
        let mut command = Command::new(self.bed.weir());
        command.args(["set", "volume", volume, change]);
        command.arg("--server").arg(format!("unix:{}", self.control_socket().display()));
        output_of(&mut command, &format!("weir set volume {volume} {change}")).map(drop)
    }

    /// Ends all gateways in good order. Returns the bounds that they were granted, from their recordings, as
    /// CSV; and a text about the highest sum of bounds.
    ///
    /// # Errors
    /// If that sum was above the total.
    pub(super) fn grants(mut self) -> anyhow::Result<(String, String)> {
        for program in self.gateways.iter_mut().filter_map(Option::take) {
            program.end()?;
        }
        let total = format!("--total={}", self.total);
        Ok((self.weir_grants(&[])?, self.weir_grants(&[&total])?.trim().to_owned()))
    }

    fn weir_grants(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.bed.weir());
        command.arg("grants").args(arguments).args(&self.recordings);
        output_of(&mut command, "weir grants")
    }

    fn start_array(&self) -> anyhow::Result<Program> {
        let mut file = format!(
            "[listen]\nnbd = [\"0.0.0.0:{NBD_PORT}\"]\n\n[pool.array]\ncontrol = \"none\"\n\n{}",
            include_str!("array.toml")
        );
        let image = self.bed.images().join("ports.img");
        file += &format!(
            "\n[volume.{EXPORT}]\npool = \"array\"\nbackend = \"array:xp:{}\"\nsize = \"{EXPORT_GIB}GiB\"\n",
            image.display()
        );
        let path = self.write("array.toml", &file)?;
        let mut command = Command::new(self.bed.weir());
        command.arg("serve").arg(path);
        self.program("array", command, &format!("127.0.0.1:{NBD_PORT}"))
    }

    fn control_socket(&self) -> PathBuf {
        self.bed.scratch("controller.sock")
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.bed.scratch(&format!("{}-{name}", self.name));
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Starts `command` and waits until it answers.
    fn program(&self, name: &str, mut command: Command, address: &str) -> anyhow::Result<Program> {
        let log = self.bed.scratch(&format!("{}-{name}.log", self.name));
        let file = File::options().create(true).append(true).open(&log);
        let file = file.with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let line = format!("{command:?}");
        let child = command.spawn().with_context(|| format!("{line}: cannot be run"))?;
        let mut program = Program { child };
        let began = Instant::now();
        let said = || fs::read_to_string(&log).unwrap_or_default();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = program.child.try_wait()? {
                bail!("{line}: {status}: {}", said().trim());
            }
            if began.elapsed() > START_TIMEOUT {
                bail!("{line}: does not answer after {} s: {}", START_TIMEOUT.as_secs(), said().trim());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(program)
    }
}

/// The name of the gateway of a host.
fn gateway(host: usize) -> String {
    format!("gateway-{host}")
}

impl Program {
    /// Asks the program to end, and waits.
    fn end(mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "process {pid:?}: {status}");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program has ended already, or nothing that it holds is needed.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
