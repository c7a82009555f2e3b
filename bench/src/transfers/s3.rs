//! A server of S3 on this machine, as the tests of `io/node` use it, and the rival's command for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::bed::TestBed;
use crate::cores::End;

/// The server: `moto`, with the bucket `bulk`.
const SERVER: &str = include_str!("../../../io/node-servers/src/s3.py");

/// Any keys do.
const KEYS: [&str; 2] = ["weir", "of-the-benchmark"];

/// A server that runs until it is dropped.
pub(super) struct S3 {
    child: Child,
    port: u16,
    credentials: PathBuf,
    aws: PathBuf,
}

impl S3 {
    /// Starts it. Otherwise, what is missing on this machine.
    ///
    /// # Errors
    /// If it is there and does not start.
    pub(super) fn start(bed: &TestBed) -> anyhow::Result<Result<Self, String>> {
        let programs = bed.target().join("node-servers/bin");
        let (python, aws) = (programs.join("python"), programs.join("aws"));
        for (program, package) in [(&python, "moto"), (&aws, "awscli")] {
            if !program.exists() {
                return Ok(Err(format!(
                    "no {package} in target/node-servers; `scripts/setup bench` installs it"
                )));
            }
        }
        let credentials = bed.scratch("s3-credentials.toml");
        let [id, secret] = KEYS;
        let text = format!("access_key_id = \"{id}\"\nsecret_access_key = \"{secret}\"\n");
        write_secret(&credentials, &text).with_context(|| credentials.display().to_string())?;
        let mut command = bed.cores().command(End::Server, &python);
        command.args(["-c", SERVER]).arg(bed.scratch("s3"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("moto cannot be run")?;
        let said = child.stdout.take().context("its output is a pipe")?;
        let line = BufReader::new(said)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.trim().strip_prefix("listening ").and_then(|port| port.parse().ok()));
        let server = |port| Self { child, port, credentials, aws };
        match line {
            Some(port) => Ok(Ok(server(port))),
            None => bail!("moto ended before it listened"),
        }
    }

    /// The URL of the node.
    pub(super) fn url(&self) -> String {
        format!("s3://bulk/bench?endpoint={}", self.endpoint())
    }

    /// The file of the node's credentials.
    pub(super) fn credentials(&self) -> &Path {
        &self.credentials
    }

    /// `aws s3 cp`, without its source and its target. `client` makes the command of a client.
    pub(super) fn aws(&self, client: impl FnOnce(&Path) -> Command) -> Command {
        let mut command = client(&self.aws);
        let [id, secret] = KEYS;
        command.env("AWS_ACCESS_KEY_ID", id).env("AWS_SECRET_ACCESS_KEY", secret);
        // No file of the user's counts.
        command.env("AWS_CONFIG_FILE", "/dev/null").env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
        command.env("AWS_DEFAULT_REGION", "us-east-1");
        command.args(["--endpoint-url", &self.endpoint(), "s3", "cp", "--quiet"]);
        command
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// What the rival calls an object of the node.
pub(super) fn key(name: &str) -> String {
    format!("s3://bulk/bench/{name}")
}

impl Drop for S3 {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait(); // it ends with its standard input
    }
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
