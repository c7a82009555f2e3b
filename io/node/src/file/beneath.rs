//! Paths below the root of a node, which cannot lead out of it.
//!
//! A name has no `..`, but a link in the directory may lead anywhere. To resolve a path first and to open it
//! then would leave time to change it in between. So the kernel resolves each path, and stays below the root
//! (`openat2`, Linux 5.6).

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, accessat, fstat, fsync, linkat, mkdirat, open,
    openat, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, Result};

use crate::error::{ErrorKind, NodeError};
use crate::name::{ObjectName, PARTIALS, PartialId};

/// How often the kernel may ask to try again, because somebody renames a folder meanwhile.
const ATTEMPTS: usize = 16;

/// The modes of new files and folders, before the user's mask.
const FILE: Mode = Mode::from_raw_mode(0o666);
const FOLDER: Mode = Mode::from_raw_mode(0o777);

/// The open root.
pub(super) struct Root(OwnedFd);

impl Root {
    pub(super) fn open(path: &Path) -> std::result::Result<Self, NodeError> {
        let what = format!("root {}", path.display());
        match open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(root) => Ok(Self(root)),
            // Not NotFound, which is about an object: the disk may not be mounted.
            Err(Errno::NOENT | Errno::NOTDIR) => {
                let accepted = "a directory that exists";
                Err(NodeError::new(ErrorKind::Unreachable, what, "no directory", accepted))
            }
            Err(error) => Err(NodeError::io(what, &error.into())),
        }
    }

    /// Checks that this user may look names up.
    pub(super) fn check(&self) -> std::result::Result<(), NodeError> {
        accessat(&self.0, ".", Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| NodeError::io("root", &error.into()))
    }

    /// Opens a path below the root.
    pub(super) fn beneath(&self, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 1..ATTEMPTS {
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
            opened = open();
        }
        opened
    }

    /// Opens the file of a partial. No link stands for it.
    pub(super) fn partial(
        &self,
        id: &PartialId,
        flags: OFlags,
        what: &str,
    ) -> std::result::Result<File, NodeError> {
        let create = flags.contains(OFlags::CREATE);
        let open =
            || openat(self.partials(create)?, id.as_str(), flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, FILE);
        open().map(File::from).map_err(|error| match error {
            Errno::EXIST => {
                NodeError::new(ErrorKind::Exists, what, "a partial with this id", "an id not in use")
            }
            error => NodeError::io(what, &error.into()),
        })
    }

    /// Whether the partial with this id is the open `file`.
    pub(super) fn is_partial(&self, id: &PartialId, file: &File) -> bool {
        let named =
            self.partials(false).and_then(|folder| statat(folder, id.as_str(), AtFlags::SYMLINK_NOFOLLOW));
        let (Ok(named), Ok(opened)) = (named, fstat(file)) else { return false };
        (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
    }

    /// Gives a partial its name, if nothing has it; durable at the return.
    pub(super) fn publish(&self, id: &PartialId, name: &ObjectName) -> std::result::Result<(), NodeError> {
        let (path, last) = name.split();
        let publish = || {
            let (partials, folder) = (self.partials(false)?, self.make_folders(name, path)?);
            match renameat_with(&partials, id.as_str(), &folder, last, RenameFlags::NOREPLACE) {
                // This file system cannot refuse to replace. A link to a file never replaces anything either.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                    linkat(&partials, id.as_str(), &folder, last, AtFlags::empty())?;
                    unlinkat(&partials, id.as_str(), AtFlags::empty())?;
                }
                renamed => renamed?,
            }
            fsync(&folder)?;
            fsync(&partials)
        };
        publish().map_err(|error: Errno| match error {
            // A component of the path may be an object.
            Errno::EXIST | Errno::NOTDIR => NodeError::taken(format_args!("object {name}")),
            error => NodeError::io(format_args!("object {name}"), &error.into()),
        })
    }

    pub(super) fn remove(&self, name: &ObjectName) -> std::result::Result<(), NodeError> {
        let (path, last) = name.split();
        let remove = || {
            let folder = self.folder(path)?;
            unlinkat(&folder, last, AtFlags::empty())?;
            fsync(&folder)
        };
        unless_missing(remove()).map_err(|error| NodeError::io(format_args!("object {name}"), &error.into()))
    }

    /// Makes an object and its name durable.
    pub(super) fn make_durable(&self, name: &ObjectName) -> std::result::Result<(), NodeError> {
        let (path, _) = name.split();
        let durable = || {
            fsync(self.beneath(name.as_str(), OFlags::RDONLY | OFlags::NONBLOCK)?)?;
            fsync(self.folder(path)?)
        };
        durable().map_err(|error: Errno| match error {
            Errno::NOENT | Errno::NOTDIR => NodeError::missing(format_args!("object {name}")),
            error => NodeError::io(format_args!("object {name}"), &error.into()),
        })
    }

    /// Removes a partial. Whether it was there, and had no second name.
    pub(super) fn discard(&self, id: &PartialId) -> std::result::Result<bool, NodeError> {
        let discard = || {
            let partials = self.partials(false)?;
            // On some file systems, an object is a link to its partial for a moment: see `publish`.
            let found = statat(&partials, id.as_str(), AtFlags::SYMLINK_NOFOLLOW)?;
            unlinkat(&partials, id.as_str(), AtFlags::empty()).map(|()| found.st_nlink == 1)
        };
        match discard() {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            discarded => {
                discarded.map_err(|error| NodeError::io(format_args!("partial {id}"), &error.into()))
            }
        }
    }

    /// The folder of the partials. A link in its place is refused.
    fn partials(&self, create: bool) -> Result<OwnedFd> {
        if create {
            make_folder(&self.0, PARTIALS)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.0, PARTIALS, flags, Mode::empty())
    }

    /// The folder with this path below the root; the root itself, if the path is empty.
    fn folder(&self, path: &str) -> Result<OwnedFd> {
        self.beneath(if path.is_empty() { "." } else { path }, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// The folder for an object, and all folders above it, made as needed and durable.
    fn make_folders(&self, name: &ObjectName, path: &str) -> Result<OwnedFd> {
        let missing = match self.folder(path) {
            Err(Errno::NOENT) => name.folders(),
            folder => return folder,
        };
        let mut above = self.folder("")?;
        for path in missing {
            make_folder(&above, path.rsplit('/').next().unwrap_or(path))?;
            above = self.folder(path)?;
        }
        Ok(above)
    }
}

/// Makes a folder that is durable, unless it is there.
fn make_folder(above: &OwnedFd, name: &str) -> Result<()> {
    match mkdirat(above, name, FOLDER) {
        Ok(()) => fsync(above),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removing what is not there has succeeded.
fn unless_missing(removed: Result<()>) -> Result<()> {
    match removed {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        removed => removed,
    }
}
