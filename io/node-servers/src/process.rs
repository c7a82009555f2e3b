//! A server as a process: started, waited for until it listens, and ended.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that ends when its standard input does.
pub(crate) struct Process(Child);

impl Process {
    /// Starts a server, and waits for the line of its output from which `port` reads the port.
    ///
    /// # Panics
    /// If the server ends before it listens.
    pub(crate) fn start(command: &mut Command, port: impl Fn(&str) -> Option<u16>) -> (Self, u16) {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Self(command.spawn().expect("the program of a server starts"));
        let mut output = BufReader::new(process.0.stdout.take().expect("the output is a pipe"));
        let (mut line, mut said) = (String::new(), String::new());
        loop {
            line.clear();
            if output.read_line(&mut line).expect("a server writes text") == 0 {
                panic!("{command:?} does not listen: {said}");
            }
            if let Some(port) = port(&line) {
                // Nobody reads what it says later, and it must not wait for that.
                std::thread::spawn(move || std::io::copy(&mut output.by_ref(), &mut std::io::sink()));
                return (process, port);
            }
            said.push_str(&line);
        }
    }

    /// Ends it at once, in the middle of whatever it does.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a child can be waited for");
    }

    pub(crate) fn stop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("a child can be waited for");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait(); // a test that failed has more to say
    }
}

/// Starts a Python program, which gets `folder` and prints the port.
pub(crate) fn python(package: &str, program: &str, folder: &Path) -> Result<(Process, u16), String> {
    let python = servers().join("bin/python");
    if !python.exists() {
        return Err(format!("no {package} in target/node-servers; `scripts/setup test` installs it"));
    }
    let mut command = Command::new(python);
    command.args(["-c", program]).arg(folder);
    Ok(Process::start(&mut command, |line| line.trim().strip_prefix("listening ")?.parse().ok()))
}

/// The folder of the Python packages: that of the current directory, or that of the tree which this was built
/// from.
fn servers() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let here = target.join("node-servers");
    if here.exists() { here } else { Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(here) }
}
