//! A plain directory that is as slow as its node is to be: a file system in user space before another
//! directory.
//!
//! It has what `weir_node`'s directories need, and no more.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{CWD, Mode, OFlags};
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::shaper::{Allowance, Shaper};

/// The most bytes of a write that the kernel hands over.
const WRITE: u32 = 16 << 10;
/// The most bytes of a write or a read that are done. With direct I/O, a file system may do less than was
/// asked for, and then the client counts what was done. Objects are smaller here than in the experiment. A
/// client's usual 128 KiB would be a second of a stream, so that a sample had one of them, or none, or two.
const PIECE: usize = 8 << 10;
/// What is done whole is followed by the rest of the client's request, and counts with that.
const _: () = assert!(WRITE as usize > PIECE);
/// Nothing is remembered by the kernel: the directory behind may change.
const FRESH: Duration = Duration::ZERO;

/// A directory that is mounted until it is dropped.
pub(super) struct Directory {
    // In this order: first it is unmounted.
    _session: BackgroundSession,
    mount: TempDir,
    _behind: TempDir,
}

impl Directory {
    /// Mounts a directory below `folder`, as the node at this place.
    ///
    /// # Errors
    /// If this machine lets nobody mount a file system of user space.
    pub(super) fn mount(shaper: Shaper, node: usize, folder: &Path) -> anyhow::Result<Self> {
        let made = || tempfile::tempdir_in(folder).context("a directory for a node");
        let (mount, behind) = (made()?, made()?);
        let paths = [(INodeNo::ROOT.0, behind.path().to_owned())].into();
        let slow = Slow {
            shaper,
            node,
            runtime: Handle::current(),
            known: Mutex::new(Known { paths, files: BTreeMap::new(), last: INodeNo::ROOT.0 }),
        };
        let session = fuser::spawn_mount(slow, mount.path(), &Config::default());
        let session = session.context("mounting a file system of user space (/dev/fuse)")?;
        Ok(Self { _session: session, mount, _behind: behind })
    }

    /// Where it is mounted.
    pub(super) fn path(&self) -> &Path {
        self.mount.path()
    }
}

struct Slow {
    shaper: Shaper,
    node: usize,
    runtime: Handle,
    known: Mutex<Known>,
}

/// What the kernel knows by number.
struct Known {
    paths: BTreeMap<u64, PathBuf>,
    files: BTreeMap<u64, Arc<Open>>,
    /// The last number.
    last: u64,
}

struct Open {
    file: File,
    allowance: Allowance,
}

impl Slow {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, inode: INodeNo) -> io::Result<PathBuf> {
        self.known().paths.get(&inode.0).cloned().ok_or_else(|| io::Error::from(rustix::io::Errno::STALE))
    }

    fn below(&self, parent: INodeNo, name: &OsStr) -> io::Result<PathBuf> {
        Ok(self.path(parent)?.join(name))
    }

    /// What is at a path, with its number.
    fn found(&self, path: PathBuf) -> io::Result<FileAttr> {
        let metadata = fs::symlink_metadata(&path)?;
        let mut known = self.known();
        let number = known.paths.iter().find(|(_, known)| **known == path).map(|(number, _)| *number);
        let number = number.unwrap_or_else(|| {
            known.last += 1;
            let number = known.last;
            known.paths.insert(number, path);
            number
        });
        Ok(attributes(number, &metadata))
    }

    fn open(&self, path: &Path, flags: i32, mode: u32) -> io::Result<FileHandle> {
        let flags = OFlags::from_bits_retain(flags.cast_unsigned()) | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(mode))?);
        let open = Arc::new(Open { file, allowance: self.shaper.open(self.node) });
        let mut known = self.known();
        known.last += 1;
        let number = known.last;
        known.files.insert(number, open);
        Ok(FileHandle(number))
    }

    fn file(&self, handle: FileHandle) -> io::Result<Arc<Open>> {
        self.known().files.get(&handle.0).cloned().ok_or_else(|| io::Error::from(rustix::io::Errno::BADF))
    }
}

fn attributes(number: u64, metadata: &fs::Metadata) -> FileAttr {
    let at = |seconds: i64| UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let kind = if metadata.is_dir() { FileType::Directory } else { FileType::RegularFile };
    FileAttr {
        ino: INodeNo(number),
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: at(metadata.atime()),
        mtime: at(metadata.mtime()),
        ctime: at(metadata.ctime()),
        crtime: UNIX_EPOCH,
        kind,
        perm: u16::try_from(metadata.permissions().mode() & 0o7777).unwrap_or(0),
        nlink: u32::try_from(metadata.nlink()).unwrap_or(u32::MAX),
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

/// Answers with what was done, or with why not.
macro_rules! answer {
    ($reply:expr, $done:expr, |$value:pat_param| $then:expr) => {
        match $done {
            Ok($value) => $then,
            Err(error) => $reply.error(Errno::from(io::Error::from(error))),
        }
    };
}

impl Filesystem for Slow {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(WRITE); // a kernel that wants more sends more
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.below(parent, name).and_then(|path| self.found(path));
        answer!(reply, found, |found| reply.entry(&FRESH, &found, Generation(0)));
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.path(inode).and_then(|path| self.found(path));
        answer!(reply, found, |found| reply.attr(&FRESH, &found));
    }

    #[rustfmt::skip]
    fn setattr(
        &self, _: &Request, inode: INodeNo, _: Option<u32>, _: Option<u32>, _: Option<u32>, size: Option<u64>,
        _: Option<TimeOrNow>, _: Option<TimeOrNow>, _: Option<SystemTime>, _: Option<FileHandle>,
        _: Option<SystemTime>, _: Option<SystemTime>, _: Option<SystemTime>, _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = self.path(inode).and_then(|path| {
            if let Some(size) = size {
                File::options().write(true).open(&path)?.set_len(size)?;
            }
            self.found(path)
        });
        answer!(reply, set, |found| reply.attr(&FRESH, &found));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let made = self.below(parent, name).and_then(|path| {
            fs::create_dir(&path)?;
            self.found(path)
        });
        answer!(reply, made, |found| reply.entry(&FRESH, &found, Generation(0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let removed = self.below(parent, name).and_then(|path| {
            fs::remove_file(&path)?;
            self.known().paths.retain(|_, known| *known != path);
            Ok(())
        });
        answer!(reply, removed, |()| reply.ok());
    }

    #[rustfmt::skip]
    fn rename(
        &self, _: &Request, parent: INodeNo, name: &OsStr, to_parent: INodeNo, to_name: &OsStr,
        flags: RenameFlags, reply: ReplyEmpty,
    ) {
        let renamed = || {
            let (from, to) = (self.below(parent, name)?, self.below(to_parent, to_name)?);
            let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
            rustix::fs::renameat_with(CWD, &from, CWD, &to, flags)?;
            let mut known = self.known();
            known.paths.retain(|_, path| *path != to);
            if let Some(path) = known.paths.values_mut().find(|path| **path == from) {
                *path = to;
            }
            io::Result::Ok(())
        };
        answer!(reply, renamed(), |()| reply.ok());
    }

    fn open(&self, _: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = self.path(inode).and_then(|path| self.open(&path, flags.0, 0));
        answer!(reply, opened, |handle| reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO));
    }

    #[rustfmt::skip]
    fn create(
        &self, _: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, flags: i32, reply: ReplyCreate,
    ) {
        let made = || {
            let path = self.below(parent, name)?;
            let handle = self.open(&path, flags | OFlags::CREATE.bits().cast_signed(), mode)?;
            io::Result::Ok((self.found(path)?, handle))
        };
        answer!(reply, made(), |(found, handle)| {
            reply.created(&FRESH, &found, Generation(0), handle, FopenFlags::FOPEN_DIRECT_IO);
        });
    }

    #[rustfmt::skip]
    fn read(
        &self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, size: u32, _: OpenFlags,
        _: Option<LockOwner>, reply: ReplyData,
    ) {
        answer!(reply, self.file(handle), |open| {
            self.runtime.spawn(async move {
                let mut data = vec![0; PIECE.min(size as usize)];
                let read = open.file.read_at(&mut data, offset);
                if let Ok(length) = read {
                    open.allowance.take_all(length).await;
                    data.truncate(length);
                }
                answer!(reply, read, |_| reply.data(&data));
            });
        });
    }

    #[rustfmt::skip]
    fn write(
        &self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, data: &[u8], _: WriteFlags,
        _: OpenFlags, _: Option<LockOwner>, reply: ReplyWrite,
    ) {
        let data = data.get(..PIECE).unwrap_or(data).to_vec();
        answer!(reply, self.file(handle), |open| {
            self.runtime.spawn(async move {
                open.allowance.take_all(data.len()).await;
                let written = open.file.write_all_at(&data, offset);
                answer!(reply, written, |()| reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)));
            });
        });
    }

    fn access(&self, _: &Request, _: INodeNo, _: fuser::AccessFlags, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    #[rustfmt::skip]
    fn release(
        &self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, _: Option<LockOwner>, _: bool,
        reply: ReplyEmpty,
    ) {
        self.known().files.remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self.file(handle).and_then(|open| open.file.sync_all());
        answer!(reply, synced, |()| reply.ok());
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self.path(inode).and_then(File::open).and_then(|folder| folder.sync_all());
        answer!(reply, synced, |()| reply.ok());
    }
}
