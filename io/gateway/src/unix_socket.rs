//! A Unix socket that is listened on: it takes the path of a dead server and of nobody else, and leaves none behind.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use tokio::net::{UnixListener, UnixStream};

use crate::listen::{Address, ListenError};

/// A bound Unix socket. Dropping it removes its path.
#[derive(Debug)]
pub struct UnixSocket {
    path: PathBuf,
    inode: u64,
    listener: UnixListener,
}

impl UnixSocket {
    /// Binds `path`, for everybody whom its folder and the umask let in. A socket that a dead server left behind is
    /// replaced; nothing else ever is.
    pub(crate) fn bind(path: &Path) -> Result<Self, ListenError> {
        Self::bind_with(path, Mode::from_raw_mode(0o777))
    }

    /// The same, for the user of this process and root alone.
    ///
    /// # Errors
    /// If the path is in use, not permitted, or taken by something else.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O enabled.
    pub fn bind_private(path: &Path) -> Result<Self, ListenError> {
        Self::bind_with(path, Mode::RUSR | Mode::WUSR)
    }

    /// The next connection.
    ///
    /// # Errors
    /// As the system has them; a later call may succeed.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn bind_with(path: &Path, mode: Mode) -> Result<Self, ListenError> {
        let refused = |source| ListenError::Refused { address: Address::Unix(path.into()), source };
        clear_stale_socket(path)?;
        let bound = || {
            let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
            // The path gets the mode of the socket: set before it is there, it is never open to anybody else.
            fchmod(&socket, mode)?;
            socket.set_nonblocking(true)?;
            socket.bind(&socket2::SockAddr::unix(path)?)?;
            socket.listen(1024)?;
            let listener = UnixListener::from_std(socket.into())?;
            Ok(Self { path: path.to_owned(), inode: fs::metadata(path)?.ino(), listener })
        };
        bound().map_err(refused)
    }
}

fn clear_stale_socket(path: &Path) -> Result<(), ListenError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ListenError::NotASocket(path.into()));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|source| ListenError::Refused { address: Address::Unix(path.into()), source }),
        // Connected, or refused for want of permission or backlog: somebody is there.
        _ => Err(ListenError::TakenByLiveServer(path.into())),
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        // Another server may have replaced the path since; its socket is not ours to remove.
        if fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
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
