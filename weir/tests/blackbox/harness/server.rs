//! A test's own `weir serve`, `weir record` or `weir controller`.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Outcome, Program, Transcript};

/// A running server. Killed when dropped; its log is shown if the test is failing.
pub(crate) struct Server {
    child: Child,
    config: PathBuf,
    said: Transcript,
    logged: Transcript,
    /// `host:port`.
    pub(crate) tcp: String,
    /// Path of the Unix socket.
    pub(crate) socket: String,
    /// URL of the metrics; of a controller, of its status.
    pub(crate) metrics: String,
}

impl Server {
    /// Starts a server and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn start(config: &Path) -> Self {
        Self::launch(config, Command::new(env!("CARGO_BIN_EXE_weir")).arg("serve").arg(config), "serving")
    }

    /// Starts a server that may have at most `most` files open, and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn start_with_open_files(config: &Path, most: u32) -> Self {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {most} && exec \"$0\" serve \"$1\"");
        command.arg("-c").arg(limited).arg(env!("CARGO_BIN_EXE_weir")).arg(config);
        Self::launch(config, &mut command, "serving")
    }

    /// Starts a server that records into the directory `out`, and waits until it serves.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn record(config: &Path, out: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        Self::launch(config, command.arg("record").arg(config).arg("--out").arg(out), "serving")
    }

    /// Starts a controller and waits until gateways can connect.
    ///
    /// # Panics
    /// If they cannot.
    pub(crate) fn controller(config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        Self::launch(config, command.arg("controller").arg(config), "controlling")
    }

    fn launch(config: &Path, command: &mut Command, started: &str) -> Self {
        let mut child = command
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary under test runs");
        let said = Transcript::of(child.stdout.take().expect("piped"));
        let logged = Transcript::of(child.stderr.take().expect("piped"));
        let Some(line) = said.wait_for(0, &format!("weir: {started}")) else {
            let _ = child.wait();
            panic!("the server did not start:\n{}", logged.to_end());
        };
        let (_, addresses) = line.split_once(" on ").expect("the line tells the addresses");
        let mut server = Self {
            child,
            config: config.to_owned(),
            said,
            logged,
            tcp: String::new(),
            socket: String::new(),
            metrics: String::new(),
        };
        for address in addresses.split(", ") {
            match address.strip_prefix("unix:") {
                Some(path) => path.clone_into(&mut server.socket),
                None if address.starts_with("http://") => address.clone_into(&mut server.metrics),
                None => address.clone_into(&mut server.tcp),
            }
        }
        server
    }

    /// The export `name` over the Unix socket, as an NBD URI.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("nbd+unix:///{name}?socket={}", self.socket)
    }

    /// The export `name` over TCP, as an NBD URI.
    pub(crate) fn tcp_uri(&self, name: &str) -> String {
        format!("nbd://{}/{name}", self.tcp)
    }

    /// Replaces the configuration by `text` (without `[listen]`, which stays) and has it reloaded. Returns
    /// the server's answer: `Ok` if it reloaded, otherwise the lines of its refusal.
    pub(crate) fn reload(&self, text: &str) -> Result<(), String> {
        let before = std::fs::read_to_string(&self.config).expect("the configuration is there");
        let is_next_table = |(i, line): &(usize, &str)| *i > 0 && line.starts_with('[');
        let listen = before.lines().enumerate().take_while(|line| !is_next_table(line));
        let listen: String = listen.map(|(_, line)| format!("{line}\n")).collect();
        std::fs::write(&self.config, format!("{listen}{text}")).expect("the configuration can be written");
        let (said, logged) = (self.said.length(), self.logged.length());
        self.signal(Signal::HUP);
        // Both streams are looked at each time: one of them gets the answer.
        super::wait_until("the server tells what became of the reload", || {
            self.said.length() > said || self.logged_since(logged).contains("weir: not reloaded")
        });
        if self.said.length() > said {
            return Ok(());
        }
        let headline = self.logged_since(logged).lines().position(|line| line.contains("weir: not reloaded"));
        self.logged.wait_for_lines(logged + headline.expect("it was there just now") + 2);
        Err(self.logged_since(logged))
    }

    /// Its log from line `from` on.
    pub(crate) fn logged_since(&self, from: usize) -> String {
        self.logged.text().lines().skip(from).collect::<Vec<_>>().join("\n")
    }

    /// How many lines it has logged.
    pub(crate) fn log_length(&self) -> usize {
        self.logged.length()
    }

    /// Waits for a line with `text` in its log, from line `from` on.
    pub(crate) fn wait_for_log(&self, from: usize, text: &str) {
        self.logged
            .wait_for(from, text)
            .unwrap_or_else(|| panic!("the server ended before it logged {text:?}"));
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the server runs");
    }

    /// Kills the process, as if only its power failed. Returns when it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the server runs");
        let status = self.child.wait().expect("a child can be waited for");
        assert_eq!(status.signal(), Some(9), "it died of something else before: {status}");
    }

    /// Waits for its end. Returns its exit status and its log.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        self.said.to_end();
        let log = self.logged.to_end();
        (self.child.wait().expect("a child can be waited for"), log)
    }

    /// Stops it with SIGTERM.
    ///
    /// # Panics
    /// If it does not end with exit code 0.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let (status, log) = self.wait();
        assert_eq!(status.code(), Some(0), "{log}");
    }

    /// Kibibytes of memory that it has resident.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("the server runs");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has a VmRSS");
        line.trim().trim_end_matches(" kB").parse().expect("VmRSS is a number")
    }

    /// Nanoseconds of processor time of its threads. Other programs do not count.
    pub(crate) fn computed_nanos(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("the server runs");
        let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        };
        threads.filter_map(of_thread).sum()
    }

    /// Descriptors that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("the server runs").count()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.child.try_wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let state =
                if let Ok(Some(status)) = ended { format!("ended: {status}") } else { "ran".to_owned() };
            eprintln!("--- the server {state}\n{}\n{}\n---", self.said.text(), self.logged.text());
        }
    }
}

/// Runs `weir serve` on a file that it must refuse. Returns the lines of the refusal.
///
/// # Panics
/// Unless it ends with exit code 64 and writes nothing on standard output.
pub(crate) fn expect_refusal(config: &Path) -> Vec<String> {
    let Outcome { code, out, log } = Program::weir().arg("serve").arg(config.display()).outcome();
    assert_eq!(code, Some(64), "{out}{log}");
    assert_eq!(out, "", "nothing was started, and so nothing is announced");
    log.lines().map(str::to_owned).collect()
}
