//! A session: the program ssh, and SFTP over its pipes.
//!
//! ssh finds the user's keys, agent, known hosts and configuration by itself. `BatchMode` makes it fail where
//! it would ask. What it writes to its standard error says why there is no session.

use std::pin::Pin;
use std::process::Stdio;
use std::task::Poll;
use std::time::Duration;

use russh_sftp::client::error::Error;
use russh_sftp::client::rawsession::Limits;
use russh_sftp::client::{Config, RawSftpSession};
use russh_sftp::extensions::{FSYNC, LIMITS};
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::watch;

use super::Host;
use crate::error::{ErrorKind, NodeError, PATIENCE};

/// How many requests may wait for their answers.
pub(super) const WINDOW: usize = 16;
/// The bytes of a read or write, if the server does not say how many it takes: what every server takes.
const SMALL: u64 = 32 << 10;
/// The most bytes of a read or write: what fits into a packet of OpenSSH.
const LARGE: u64 = 255 << 10;
/// The longest packet that a server may send.
const LONGEST_PACKET: u32 = 256 << 10;
/// How long ssh may take to end after its connection has.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a server may take to make a file durable.
const SYNC: Duration = Duration::from_secs(15 * 60);
/// The most bytes of ssh's standard error that are kept.
const LONGEST_SAID: usize = 2 << 10;
/// With less than this left, in bytes, a failure to write is taken to be for want of space.
const NO_SPACE: u64 = 1 << 20;

/// A request that has been sent, and is to be waited for.
pub(super) type InFlight<T> = Pin<Box<dyn Future<Output = Result<T, NodeError>> + Send>>;

/// An open session. ssh ends when it is dropped.
pub(super) struct Session {
    raw: RawSftpSession,
    /// The most bytes of a write and of a read.
    write: u64,
    read: u64,
    can_sync: bool,
    /// What ssh has written to its standard error, once that is closed.
    said: watch::Receiver<Option<String>>,
    _ssh: Child,
}

impl Session {
    pub(super) async fn connect(host: &Host) -> Result<Self, NodeError> {
        let mut ssh = Command::new(&host.program);
        ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR", "-s"]);
        if let Some(port) = host.port {
            ssh.args(["-p", &port.to_string()]);
        }
        let user = host.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        ssh.args(["--", &format!("{user}{}", host.host), "sftp"]);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut ssh = ssh.spawn().map_err(|error| {
            NodeError::line(ErrorKind::Other, &format!("the program ssh: {error}; accepted: ssh in PATH"))
        })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (ssh.stdin.take(), ssh.stdout.take(), ssh.stderr.take())
        else {
            return Err(NodeError::ended("ssh"));
        };
        let (sender, said) = watch::channel(None);
        tokio::spawn(listen(stderr, sender));
        let config = Config {
            request_timeout_secs: PATIENCE.as_secs(),
            max_packet_len: LONGEST_PACKET,
            ..Config::default()
        };
        let raw = RawSftpSession::new_with_config(tokio::io::join(stdout, stdin), config);
        let mut session = Self { raw, write: SMALL, read: SMALL, can_sync: false, said, _ssh: ssh };
        let version = session.raw.init().await;
        let version = session.checked("connection", version).await?;
        session.can_sync = version.extensions.contains_key(FSYNC);
        if version.extensions.contains_key(LIMITS) {
            let limits = session.raw.limits().await;
            let limits: Limits = session.checked("connection", limits).await?.into();
            session.write = limits.write_len.unwrap_or(SMALL).min(LARGE);
            session.read = limits.read_len.unwrap_or(SMALL).min(LARGE);
        }
        Ok(session)
    }

    /// The most bytes of a write, and of a read.
    pub(super) fn lengths(&self) -> (u64, u64) {
        (self.write, self.read)
    }

    /// The most bytes that writes in flight may have.
    pub(super) fn window(&self) -> u64 {
        self.write * WINDOW as u64
    }

    /// What a path leads to, if anything.
    pub(super) async fn stat(&self, what: &str, path: &str) -> Result<Option<FileAttributes>, NodeError> {
        let found = self.raw.stat(path).await;
        match self.checked(what, found).await {
            Ok(found) => Ok(Some(found.attrs)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn make(&self, what: &str, folder: &str) -> Result<(), NodeError> {
        let made = self.raw.mkdir(folder, FileAttributes::empty()).await;
        match self.checked(what, made).await {
            // Another writer may just have made it.
            Err(error) if error.kind() == ErrorKind::Other => match self.stat(what, folder).await? {
                Some(found) if found.is_dir() => Ok(()),
                _ => Err(error),
            },
            made => made.map(drop),
        }
    }

    pub(super) async fn sync_folder(&self, folder: &str) {
        // OpenSSH's server opens a folder like a file. Others refuse, and then there is nothing to do.
        let Ok(handle) = self.raw.open(folder, OpenFlags::READ, FileAttributes::empty()).await else {
            return;
        };
        let _ = self.raw.fsync(handle.handle.clone()).await;
        let _ = self.raw.close(handle.handle).await;
    }

    pub(super) async fn open(&self, what: &str, path: &str, flags: OpenFlags) -> Result<String, NodeError> {
        let opened = self.raw.open(path, flags, FileAttributes::empty()).await;
        self.checked(what, opened).await.map(|opened| opened.handle)
    }

    pub(super) async fn size(&self, what: &str, handle: &str) -> Result<u64, NodeError> {
        let found = self.raw.fstat(handle).await;
        size_of(what, &self.checked(what, found).await?.attrs)
    }

    pub(super) async fn read(
        &self,
        what: &str,
        handle: &str,
        at: u64,
        length: u32,
    ) -> Result<Vec<u8>, NodeError> {
        let read = self.raw.read(handle, at, length).await;
        self.checked(what, read).await.map(|read| read.data)
    }

    pub(super) async fn write(
        &self,
        what: &str,
        handle: &str,
        at: u64,
        data: Vec<u8>,
    ) -> Result<(), NodeError> {
        let written = self.raw.write(handle, at, data).await;
        self.checked(what, written).await.map(drop)
    }

    /// Makes a file durable, if the server can.
    pub(super) async fn sync(&self, what: &str, handle: &str) -> Result<(), NodeError> {
        if !self.can_sync {
            return Ok(());
        }
        self.raw.set_timeout(SYNC.as_secs());
        let synced = self.raw.fsync(handle).await;
        self.raw.set_timeout(PATIENCE.as_secs());
        self.checked(what, synced).await.map(drop)
    }

    pub(super) async fn close(&self, what: &str, handle: &str) -> Result<(), NodeError> {
        let closed = self.raw.close(handle).await;
        self.checked(what, closed).await.map(drop)
    }

    pub(super) async fn rename(&self, what: &str, from: &str, to: &str) -> Result<(), NodeError> {
        let renamed = self.raw.rename(from, to).await;
        self.checked(what, renamed).await.map(drop)
    }

    /// Removes a file. Whether it was there.
    pub(super) async fn remove(&self, what: &str, path: &str) -> Result<bool, NodeError> {
        let removed = self.raw.remove(path).await;
        match self.checked(what, removed).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|_| true),
        }
    }

    /// The error of a write that failed, which the protocol does not give a reason for.
    pub(super) async fn why(&self, error: NodeError, root: &str) -> NodeError {
        if error.kind() != ErrorKind::Other {
            return error;
        }
        match self.raw.statvfs(root).await {
            Ok(found) if found.blocks_avail.saturating_mul(found.fragment_size) < NO_SPACE => {
                NodeError::line(ErrorKind::Full, &format!("{error}; no space is left"))
            }
            _ => error,
        }
    }

    async fn checked<T>(&self, what: &str, result: Result<T, Error>) -> Result<T, NodeError> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        Err(match &error {
            Error::Timeout => NodeError::stalled(what),
            Error::Status(status) => {
                let kind = match status.status_code {
                    StatusCode::NoSuchFile => ErrorKind::NotFound,
                    StatusCode::PermissionDenied => ErrorKind::Denied,
                    StatusCode::NoConnection | StatusCode::ConnectionLost => ErrorKind::Unreachable,
                    _ => ErrorKind::Other,
                };
                NodeError::line(kind, &format!("{what}: the server says: {}", status.error_message))
            }
            Error::Limited(_) | Error::UnexpectedPacket => {
                NodeError::line(ErrorKind::Other, &format!("{what}: {error}"))
            }
            Error::IO(_) | Error::UnexpectedBehavior(_) => self.lost(what, &error).await,
        })
    }

    /// The error of a connection that has ended, with what ssh says about it.
    async fn lost(&self, what: &str, error: &Error) -> NodeError {
        let mut said = self.said.clone();
        let ended = tokio::time::timeout(FAREWELL, said.wait_for(Option::is_some)).await;
        let said = match &ended {
            Ok(Ok(said)) => said.as_deref().unwrap_or_default(),
            _ => "",
        };
        if said.is_empty() {
            return NodeError::line(
                ErrorKind::Unreachable,
                &format!("{what}: the connection has ended: {error}"),
            );
        }
        let is_denied =
            ["Permission denied", "Host key verification failed", "Too many authentication failures"]
                .iter()
                .any(|words| said.contains(words));
        let kind = if is_denied { ErrorKind::Denied } else { ErrorKind::Unreachable };
        NodeError::line(kind, &format!("{what}: ssh says: {said}"))
    }
}

/// The size of a regular file, in bytes.
pub(super) fn size_of(what: &str, found: &FileAttributes) -> Result<u64, NodeError> {
    match found.size {
        Some(size) if found.is_regular() => Ok(size),
        _ => {
            let found = "something that is no regular file";
            Err(NodeError::new(ErrorKind::Other, what, found, "a regular file"))
        }
    }
}

/// Sends a request, so that its answer is under way while the caller does something else. Requests are sent
/// in the order of these calls.
pub(super) async fn start<T: Send + 'static>(mut request: InFlight<T>) -> InFlight<T> {
    match std::future::poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await {
        Poll::Ready(done) => Box::pin(std::future::ready(done)),
        Poll::Pending => request,
    }
}

/// Keeps the first line that ssh writes to its standard error, and reads the rest, so that ssh never waits.
async fn listen(mut stderr: ChildStderr, said: watch::Sender<Option<String>>) {
    let (mut kept, mut buffer) = (Vec::new(), [0; 1 << 10]);
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let room = LONGEST_SAID - kept.len();
        kept.extend(buffer.iter().take(count.min(room)));
    }
    let kept = String::from_utf8_lossy(&kept);
    let line = kept.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    said.send_replace(Some(line.to_owned()));
}
