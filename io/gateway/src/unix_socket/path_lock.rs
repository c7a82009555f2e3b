//! One server at a time looks at a socket's path and changes it.
//!
//! A socket file cannot be locked, and no system call replaces a name only if it leads to a certain file.
//! Without a lock, two servers that start at once both find the socket of a dead server. The second server
//! then removes the socket that the first has just bound. A socket that is bound and not yet listened on also
//! looks like that of a dead server.
//!
//! The lock is a file beside the socket, `PATH.lock`, for the moment in which a server needs it. The server
//! that holds the lock removes the file. So a server that gets a lock checks whether the file still has its
//! name, and otherwise tries again.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// The time between two looks at a lock that another server holds, and how often to look. A server holds it
/// for less than a millisecond, unless it was stopped in that moment.
const PAUSE: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(super) struct PathLock {
    path: PathBuf,
    file: File,
}

impl PathLock {
    /// Takes the lock of a socket's path.
    ///
    /// # Errors
    /// If the file cannot be made, or if another server holds it for five seconds. The latter error is of the
    /// kind `WouldBlock`.
    pub(super) fn take(socket: &Path) -> io::Result<Self> {
        let mut name = OsString::from(socket);
        name.push(".lock");
        let path = PathBuf::from(name);
        for _ in 0..LOOKS {
            let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits()).unwrap_or_default();
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .custom_flags(flags)
                .open(&path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, &path) => return Ok(Self { path, file }),
                Ok(()) => {} // the server that had it before has removed it
                Err(Errno::WOULDBLOCK | Errno::INTR) => thread::sleep(PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the name still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(found)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (found.dev(), found.ino())
}
