//! A listening Unix socket. It takes the path of a dead server, never that of any other, and leaves no path
//! behind.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use tokio::net::{UnixListener, UnixStream};
use weir_newcomers::Origin;

use crate::address::{Address, ListenError};

mod path_lock;

use path_lock::PathLock;

/// A bound Unix socket. Dropping it removes its path.
#[derive(Debug)]
pub struct UnixSocket {
    path: PathBuf,
    /// The device and the number of the path's inode.
    inode: (u64, u64),
    listener: UnixListener,
}

impl UnixSocket {
    /// Binds `path`. Every user may connect whom its folder and the umask let in. Replaces a socket that a
    /// dead server left behind, and nothing else.
    pub(crate) fn bind(path: &Path) -> Result<Self, ListenError> {
        Self::bind_with(path, Mode::from_raw_mode(0o777))
    }

    /// As `bind`, for the user of this process and root alone.
    ///
    /// # Errors
    /// If the path is in use or not permitted, or if another file has it.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind_private(path: &Path) -> Result<Self, ListenError> {
        Self::bind_with(path, Mode::RUSR | Mode::WUSR)
    }

    /// The next connection, and the origin to which it is counted: the user that has connected.
    ///
    /// # Errors
    /// If the system reports one; a later call may succeed.
    pub async fn accept(&self) -> io::Result<(UnixStream, Origin)> {
        let (stream, _) = self.listener.accept().await?;
        let origin = stream.peer_cred().map_or(Origin::Unknown, |peer| Origin::User(peer.uid()));
        Ok((stream, origin))
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn bind_with(path: &Path, mode: Mode) -> Result<Self, ListenError> {
        let refused = |source| ListenError::Refused { address: Address::Unix(path.into()), source };
        let _lock = PathLock::take(path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => ListenError::Locked(path.into()),
            _ => refused(error),
        })?;
        clear_stale_socket(path)?;
        let bound = || {
            let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
            // The path gets the mode of the socket: set before it is there, it is never open to anybody else.
            fchmod(&socket, mode)?;
            socket.set_nonblocking(true)?;
            socket.bind(&socket2::SockAddr::unix(path)?)?;
            socket.listen(1024)?;
            let listener = UnixListener::from_std(socket.into())?;
            Ok(Self { path: path.to_owned(), inode: inode(path)?, listener })
        };
        bound().map_err(refused)
    }
}

fn clear_stale_socket(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.into()));
    }
    let refused = |source| ListenError::Refused { address: Address::Unix(path.into()), source };
    // Without waiting: a server whose backlog is full, or that is stopped, may never take the connection.
    let connect = || {
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        Ok((socket2::SockAddr::unix(path)?, socket))
    };
    let (address, socket) = connect().map_err(refused)?;
    match socket.connect(&address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(refused)
        }
        // Connected, or refused for want of permission or backlog: somebody is there.
        _ => Err(ListenError::TakenByLiveServer(path.into())),
    }
}

/// The device and the number of a path's inode.
fn inode(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Somebody may have removed the path, and another server may have taken it since: its socket is not
        // ours to remove. Without the lock it could be taken between the look and the removal. A path left
        // behind harms nobody.
        let Ok(_lock) = PathLock::take(&self.path) else { return };
        if inode(&self.path).is_ok_and(|found| found == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn a_socket_of_a_live_server_is_not_taken_and_one_of_a_dead_server_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nbd.sock");
        let live = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(matches!(UnixSocket::bind(&path), Err(ListenError::TakenByLiveServer(_))));
        drop(live); // leaves the path behind, as a killed server does
        let socket = UnixSocket::bind(&path).unwrap();
        drop(socket);
        assert!(!path.exists(), "a socket removes its path");
    }

    /// Whether the path leads to this socket.
    async fn leads_to(path: &Path, socket: &UnixSocket) -> bool {
        let Ok(_client) = std::os::unix::net::UnixStream::connect(path) else { return false };
        // The connection is there at once, or leads elsewhere.
        let accepted = tokio::time::timeout(std::time::Duration::from_secs(10), socket.accept()).await;
        accepted.is_ok_and(|accepted| accepted.is_ok())
    }

    #[tokio::test]
    async fn of_servers_that_start_at_once_one_has_the_path_and_keeps_it() {
        const SERVERS: usize = 8;
        let dir = tempfile::tempdir().unwrap();
        for round in 0..100 {
            let path = dir.path().join(format!("{round}.sock"));
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // as a killed server leaves it behind
            let (runtime, start) = (tokio::runtime::Handle::current(), std::sync::Barrier::new(SERVERS));
            let race = || {
                let _runtime = runtime.enter();
                start.wait();
                UnixSocket::bind(&path)
            };
            let bound: Vec<_> = std::thread::scope(|scope| {
                let starting: Vec<_> = (0..SERVERS).map(|_| scope.spawn(race)).collect();
                starting.into_iter().map(|server| server.join().unwrap()).collect()
            });
            let (won, lost): (Vec<_>, Vec<_>) = bound.into_iter().partition(Result::is_ok);
            assert_eq!(won.len(), 1, "in round {round}");
            assert!(lost.into_iter().all(|error| matches!(error, Err(ListenError::TakenByLiveServer(_)))));
            assert!(
                leads_to(&path, won[0].as_ref().unwrap()).await,
                "the path of round {round} leads nowhere"
            );
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "neither a socket nor a lock is left behind: {left:?}");
    }

    #[tokio::test]
    async fn a_server_whose_backlog_is_full_is_alive_and_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nbd.sock");
        let address = socket2::SockAddr::unix(&path).unwrap();
        let socket = || socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        let live = socket();
        live.bind(&address).unwrap();
        live.listen(0).unwrap();
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let client = socket();
                client.set_nonblocking(true).unwrap();
                let _ = client.connect(&address);
                client
            })
            .collect();
        assert!(matches!(UnixSocket::bind(&path), Err(ListenError::TakenByLiveServer(_))));
        drop(clients);
    }

    #[tokio::test]
    async fn a_file_in_the_way_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(UnixSocket::bind(&path), Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn a_private_socket_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let _socket = UnixSocket::bind_private(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
