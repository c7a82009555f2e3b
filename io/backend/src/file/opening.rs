//! Opens, creates, locks and sizes a file, and finds out what it can do.
//!
//! All of this happens before anything is served, and the changes can be taken back. So a start-up that fails
//! elsewhere leaves the disk as it was.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat};
use rustix::fs::{fadvise, flock, fstat, ftruncate, seek};
use rustix::io::{Errno, pread};

use crate::OpenError;
use crate::buffer::{ALIGNMENT, Buffer};
use crate::reactor::{Abilities, Descriptors};

/// A file that is open, locked and of the right size.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) descriptors: Descriptors,
    pub(crate) abilities: Abilities,
    /// In bytes, above zero.
    pub(crate) size: u64,
    before: Before,
}

/// The state of the file before it was opened.
#[derive(Clone, Copy, Debug)]
enum Before {
    Nothing,
    Shorter(u64),
    Same,
}

/// Opens the file at `path`. [`open()`](crate::open()) explains `size`.
pub(crate) fn open(path: &Path, size: Option<u64>) -> Result<OpenFile, OpenError> {
    match fs::metadata(path) {
        Ok(_) => open_existing(path, size),
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path, size),
        Err(error) => Err(refused(path, "look at it", error)),
    }
}

impl OpenFile {
    /// The same file, read and written through the page cache only.
    pub(crate) fn through_the_page_cache(mut self) -> Self {
        self.descriptors.direct = None;
        self.abilities.direct = false;
        self
    }

    /// Logs a warning if opening made the file longer: something may have cut it off before. Call this when
    /// the file is served, because a start-up that fails takes the change back.
    pub(crate) fn tell_if_longer(&self) {
        if let Before::Shorter(before @ 1..) = self.before {
            let (path, size) = (self.descriptors.path.display(), self.size);
            // No peer: once, when a volume is first served.
            tracing::warn!(%path, before, size, "the file was shorter than its size; what it was made longer by reads as zeroes");
        }
    }

    /// Takes back the changes of opening: removes a file that it created, cuts off the bytes that it added.
    pub(crate) fn discard(self) {
        // An error here is ignored: the start-up has already failed, and reports why.
        let _ = match self.before {
            Before::Nothing => fs::remove_file(&self.descriptors.path),
            Before::Shorter(size) => ftruncate(&*self.descriptors.buffered, size).map_err(io::Error::from),
            Before::Same => Ok(()),
        };
    }
}

fn open_existing(path: &Path, size: Option<u64>) -> Result<OpenFile, OpenError> {
    let metadata = fs::metadata(path).map_err(|error| refused(path, "look at it", error))?;
    let file_type = FileType::from_raw_mode(std::os::unix::fs::MetadataExt::mode(&metadata));
    // An exclusive open of a block device, without creating one, fails if it is mounted or otherwise taken.
    let flags = match file_type {
        FileType::RegularFile => OFlags::empty(),
        FileType::BlockDevice => OFlags::EXCL,
        other => return Err(OpenError::WrongType { path: path.to_owned(), found: name(other) }),
    };
    let lock = match open_descriptor(path, flags) {
        Err(Errno::BUSY) => return Err(OpenError::InUse { path: path.to_owned() }),
        other => other.map_err(|errno| refused(path, "open it to read and write", errno))?,
    };
    take(path, &lock)?;
    let block_device = file_type == FileType::BlockDevice;
    let (size, before) =
        if block_device { device_size(path, &lock, size)? } else { file_size(path, &lock, size)? };
    let file = finish(path, lock, size, before, block_device)?;
    if let Before::Shorter(_) = before {
        ftruncate(&file.descriptors.lock, size).map_err(|errno| refused(path, "make it larger", errno))?;
    }
    Ok(file)
}

fn create(path: &Path, size: Option<u64>) -> Result<OpenFile, OpenError> {
    let size = match size {
        None => return Err(OpenError::Missing { path: path.to_owned() }),
        Some(0) => return Err(OpenError::Empty { path: path.to_owned() }),
        Some(size) => size,
    };
    let flags = OFlags::CREATE | OFlags::EXCL;
    let lock = open_descriptor(path, flags).map_err(|errno| refused(path, "create it", errno))?;
    let opened = take(path, &lock)
        .and_then(|()| ftruncate(&lock, size).map_err(|errno| refused(path, "give it its size", errno)))
        .and_then(|()| sync_directory(path).map_err(|error| refused(path, "make its name durable", error)))
        .and_then(|()| finish(path, lock, size, Before::Nothing, false));
    if opened.is_err() {
        let _ = fs::remove_file(path); // the first error is the one to tell
    }
    opened
}

/// Makes the file's name in its directory durable. Without the name, even durable bytes of the file are lost.
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

fn open_descriptor(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY | flags, mode)
}

/// Locks the file, so that it is not served twice. The lock goes with the descriptor, however the process
/// ends.
fn take(path: &Path, file: impl AsFd) -> Result<(), OpenError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(errno) => Err(refused(path, "lock it", errno)),
    }
}

/// The size that a regular file will have, and its state before.
fn file_size(path: &Path, file: &OwnedFd, wanted: Option<u64>) -> Result<(u64, Before), OpenError> {
    let found = stat(path, file)?.st_size;
    let found =
        u64::try_from(found).map_err(|error| refused(path, "find its size", io::Error::other(error)))?;
    match wanted.unwrap_or(found) {
        size if size < found => Err(OpenError::FileLarger { path: path.to_owned(), found, size }),
        0 => Err(OpenError::Empty { path: path.to_owned() }),
        size if size == found => Ok((size, Before::Same)),
        size => Ok((size, Before::Shorter(found))),
    }
}

/// The size of a block device, or the smaller size that was asked for.
fn device_size(path: &Path, device: &OwnedFd, wanted: Option<u64>) -> Result<(u64, Before), OpenError> {
    let found = seek(device, SeekFrom::End(0)).map_err(|errno| refused(path, "find its size", errno))?;
    match wanted.unwrap_or(found) {
        0 => Err(OpenError::Empty { path: path.to_owned() }),
        size if size > found => Err(OpenError::DeviceSmaller { path: path.to_owned(), found, size }),
        size => Ok((size, Before::Same)),
    }
}

fn finish(
    path: &Path,
    lock: OwnedFd,
    size: u64,
    before: Before,
    block_device: bool,
) -> Result<OpenFile, OpenError> {
    let buffered = open_again(path, &lock, OFlags::empty())?;
    let direct = open_direct(path, &lock, size)?;
    if direct.is_some() {
        // See the header of `file`. A file system without `fadvise` has no read-ahead to turn off.
        let _ = fadvise(&buffered, 0, None, Advice::Random);
    } else {
        // No peer: once, when a volume is opened.
        tracing::info!(path = %path.display(), "no direct I/O here; requests go through the page cache");
    }
    let abilities = Abilities {
        direct: direct.is_some(),
        block_device,
        punch_hole: true,
        zero_range: true,
        size,
        end: size,
    };
    let descriptors = Descriptors { buffered: Arc::new(buffered), direct, lock, path: path.to_owned() };
    Ok(OpenFile { descriptors, abilities, size, before })
}

/// A descriptor for direct I/O, if the file allows it in blocks of 4096. Some file systems refuse the flag,
/// others only the first request, so this function tries one.
fn open_direct(path: &Path, first: &OwnedFd, size: u64) -> Result<Option<OwnedFd>, OpenError> {
    let direct = match open_again(path, first, OFlags::DIRECT) {
        Err(OpenError::Refused { source, .. }) if Errno::from_io_error(&source) == Some(Errno::INVAL) => {
            return Ok(None);
        }
        other => other?,
    };
    let mut block = Buffer::zeroed(ALIGNMENT);
    let works = size < ALIGNMENT as u64 || pread(&direct, &mut block[..], 0) != Err(Errno::INVAL);
    Ok(works.then_some(direct))
}

/// Another descriptor for the file of `first`.
fn open_again(path: &Path, first: &OwnedFd, flags: OFlags) -> Result<OwnedFd, OpenError> {
    let what = "open it once more";
    let again = open_descriptor(path, flags).map_err(|errno| refused(path, what, errno))?;
    let (one, other) = (stat(path, first)?, stat(path, &again)?);
    if (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino) {
        let replaced = io::Error::other("another file was put in its place just now");
        return Err(refused(path, what, replaced));
    }
    Ok(again)
}

fn stat(path: &Path, file: &OwnedFd) -> Result<Stat, OpenError> {
    fstat(file).map_err(|errno| refused(path, "look at it", errno))
}

fn refused(path: &Path, what: &'static str, source: impl Into<io::Error>) -> OpenError {
    OpenError::Refused { path: path.to_owned(), what, source: source.into() }
}

fn name(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Directory => "directory",
        FileType::CharacterDevice => "character device",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "file of another type",
    }
}

#[cfg(test)]
mod tests;
