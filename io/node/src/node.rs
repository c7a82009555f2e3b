//! A node of any sort, its writers and its readers: who calls which driver, and what holds for all drivers.

use std::ffi::OsString;
use std::sync::Arc;

use bytes::Bytes;

use crate::credentials::{Credentials, Secret};
use crate::error::{ErrorKind, NodeError};
use crate::location::Location;
use crate::name::{Note, ObjectName, PartialId};
use crate::passed::Passed;
use crate::s3::Tags;
use crate::{file, s3, sftp, webdav};

/// A storage node. Clones share what is behind it.
#[derive(Clone)]
pub struct Node(Arc<Driver>);

enum Driver {
    File(file::Directory),
    WebDav(webdav::Collection),
    S3(Arc<s3::Bucket>),
    Sftp(sftp::Host),
}

/// An object that is being written, as a partial.
///
/// The caller hands over pieces of about 1 MiB; smaller ones cost time, and larger ones memory. If a writer
/// is dropped, its partial stays, and [`Node::resume`] goes on with it.
pub struct Writer {
    driver: WriterDriver,
    /// The next byte to come.
    position: u64,
    /// The bytes of the whole object, if they are known.
    bytes: Option<u64>,
    /// Whether an earlier piece could not be written.
    has_failed: bool,
}

enum WriterDriver {
    File(file::Writer),
    WebDav(Box<webdav::Writer>),
    S3(Box<s3::Writer>),
    Sftp(Box<sftp::Writer>),
}

/// An object, or a part of it, that is being read in order.
pub struct Reader {
    driver: ReaderDriver,
    /// The bytes that are still to come.
    left: u64,
    /// The bytes of the pieces that were handed out.
    delivered: Passed,
}

enum ReaderDriver {
    File(file::Reader),
    WebDav(webdav::Reader),
    S3(s3::Reader),
    Sftp(sftp::Reader),
}

impl Node {
    /// The node at a place. It does no I/O, but that TLS reads the certificates of this host's authorities.
    ///
    /// # Errors
    /// If the node needs credentials and there are none, if they are of another sort, or if TLS cannot be set
    /// up.
    pub fn open(location: Location, credentials: Option<&Credentials>) -> Result<Self, NodeError> {
        Self::open_with_ssh(location, credentials, "ssh".into())
    }

    /// Like [`open`](Self::open), with another program for ssh. Tests use it: ssh looks for its configuration
    /// in the user's own directory and nowhere else.
    ///
    /// # Errors
    /// As `open`.
    #[doc(hidden)]
    pub fn open_with_ssh(
        location: Location,
        credentials: Option<&Credentials>,
        ssh: OsString,
    ) -> Result<Self, NodeError> {
        let secret = credentials.map(|credentials| &credentials.0);
        let wrong = |accepted| {
            let found = match secret {
                None => "no credentials",
                Some(Secret::S3 { .. }) => "credentials for S3",
                Some(Secret::WebDav { .. }) => "credentials for WebDAV",
            };
            Err(NodeError::new(ErrorKind::Denied, "node", found, accepted))
        };
        let driver = match (location, secret) {
            (Location::File { root }, None) => Driver::File(file::Directory::new(root)),
            (Location::File { .. }, Some(_)) => return wrong("none, for a directory"),
            (Location::Sftp { user, host, port, root }, None) => {
                let root = root.trim_end_matches('/').to_owned();
                Driver::Sftp(sftp::Host { program: ssh, user, host, port, root })
            }
            (Location::Sftp { .. }, Some(_)) => return wrong("none: SFTP uses ssh's own keys"),
            (Location::WebDav { url }, None) => Driver::WebDav(webdav::Collection::new(url, None)?),
            (Location::WebDav { url }, Some(Secret::WebDav { user, password })) => {
                Driver::WebDav(webdav::Collection::new(url, Some((user, password)))?)
            }
            (Location::WebDav { .. }, Some(_)) => return wrong("user and password, or none"),
            (Location::S3 { .. }, None | Some(Secret::WebDav { .. })) => {
                return wrong("access_key_id and secret_access_key");
            }
            (
                Location::S3 { bucket, prefix, endpoint, region },
                Some(Secret::S3 { access_key_id: id, secret_access_key: secret, session_token: token }),
            ) => {
                let keys = s3::Keys { id, secret, token: token.as_deref() };
                Driver::S3(Arc::new(s3::Bucket::new(&endpoint, &region, &bucket, &prefix, &keys)?))
            }
        };
        Ok(Self(Arc::new(driver)))
    }

    /// Asks whether the node is there and lets this user in; for at most some seconds.
    ///
    /// # Errors
    /// `Unreachable` or `Denied`. A node that lets this user read and not write passes.
    pub async fn probe(&self) -> Result<(), NodeError> {
        match &*self.0 {
            Driver::File(node) => node.probe().await,
            Driver::WebDav(node) => node.probe().await,
            Driver::S3(node) => node.probe().await,
            Driver::Sftp(node) => node.probe().await,
        }
    }

    /// The size of an object in bytes, or `None` if no object has this name. A partial is no object.
    ///
    /// # Errors
    /// If the node cannot say.
    pub async fn size(&self, name: &ObjectName) -> Result<Option<u64>, NodeError> {
        match &*self.0 {
            Driver::File(node) => node.size(name).await,
            Driver::WebDav(node) => node.size(name).await,
            Driver::S3(node) => node.size(name).await,
            Driver::Sftp(node) => node.size(name).await,
        }
    }

    /// The notes that suffice to [`discard`](Node::discard) what [`begin`](Node::begin) makes with this id.
    /// Who keeps them before leaves nothing behind if it ends in the middle. S3 has none: its ids are the
    /// server's.
    #[must_use]
    pub fn notes_before(&self, id: &PartialId) -> Vec<Note> {
        match &*self.0 {
            Driver::File(_) | Driver::WebDav(_) | Driver::Sftp(_) => vec![Note::file(id)],
            Driver::S3(_) => Vec::new(),
        }
    }

    /// Begins a partial that is to become the object `name`, of `bytes` bytes if that is known.
    ///
    /// A known size lets S3 choose its parts, and lets WebDAV announce the body. No other writer may ever
    /// have used the id on this node; S3 has ids of its own.
    ///
    /// # Errors
    /// `Exists` if the id is in use, where the node can tell. Whether the name is taken shows at
    /// [`finish`](Writer::finish).
    pub async fn begin(
        &self,
        name: &ObjectName,
        id: &PartialId,
        bytes: Option<u64>,
    ) -> Result<Writer, NodeError> {
        let driver = match &*self.0 {
            Driver::File(node) => WriterDriver::File(node.begin(name, id).await?),
            Driver::WebDav(node) => WriterDriver::WebDav(Box::new(node.begin(name, id, bytes).await?)),
            Driver::S3(node) => WriterDriver::S3(Box::new(node.begin(name, bytes)?)),
            Driver::Sftp(node) => WriterDriver::Sftp(Box::new(node.begin(name, id).await?)),
        };
        Ok(Writer { driver, position: 0, bytes, has_failed: false })
    }

    /// Goes on with a partial, whose notes are given in their order, behind its [`offset`](Writer::offset).
    ///
    /// # Errors
    /// `Gone` if the partial is not there any more, or has more than `bytes` bytes; always for WebDAV, which
    /// cannot resume. `Other` if another writer has it.
    pub async fn resume(
        &self,
        name: &ObjectName,
        notes: &[Note],
        bytes: Option<u64>,
    ) -> Result<Writer, NodeError> {
        let driver = match &*self.0 {
            Driver::File(node) => WriterDriver::File(node.resume(name, notes).await?),
            Driver::WebDav(_) => {
                return Err(NodeError::gone(format_args!("object {name}"), "WebDAV, which cannot resume"));
            }
            Driver::S3(node) => WriterDriver::S3(Box::new(node.resume(name, notes, bytes).await?)),
            Driver::Sftp(node) => WriterDriver::Sftp(Box::new(node.resume(name, notes).await?)),
        };
        let mut writer = Writer { driver, position: 0, bytes, has_failed: false };
        writer.position = writer.offset();
        match bytes {
            Some(bytes) if bytes < writer.position => {
                let found = format!("a partial of {} bytes, more than {bytes}", writer.position);
                Err(NodeError::gone(format_args!("object {name}"), found))
            }
            _ => Ok(writer),
        }
    }

    /// Reads an object from byte `from` to its end. At most its size may be `from`.
    ///
    /// # Errors
    /// `NotFound` if no object has this name.
    pub async fn read(&self, name: &ObjectName, from: u64) -> Result<Reader, NodeError> {
        let driver = match &*self.0 {
            Driver::File(node) => ReaderDriver::File(node.read(name, from).await?),
            Driver::WebDav(node) => ReaderDriver::WebDav(node.read(name, from).await?),
            Driver::S3(node) => ReaderDriver::S3(node.read(name, from).await?),
            Driver::Sftp(node) => ReaderDriver::Sftp(node.read(name, from).await?),
        };
        Ok(Reader::new(driver, from))
    }

    /// Makes an object durable that another writer may have written, as far as the node can: a file with its
    /// folder. What a server of HTTP shows is its own to keep.
    ///
    /// # Errors
    /// If there is no such object, or the node cannot do it.
    pub async fn make_durable(&self, name: &ObjectName) -> Result<(), NodeError> {
        match &*self.0 {
            Driver::File(node) => node.make_durable(name).await,
            Driver::Sftp(node) => node.make_durable(name).await,
            Driver::WebDav(_) | Driver::S3(_) => Ok(()),
        }
    }

    /// Removes an object. The folders that it lies in stay.
    ///
    /// # Errors
    /// If the node cannot do it. That no object has this name is no error.
    pub async fn remove(&self, name: &ObjectName) -> Result<(), NodeError> {
        match &*self.0 {
            Driver::File(node) => node.remove(name).await,
            Driver::WebDav(node) => node.remove(name).await,
            Driver::S3(node) => node.remove(name).await,
            Driver::Sftp(node) => node.remove(name).await,
        }
    }

    /// Removes a partial whose notes are given. No writer may be at work on it. Whether it was there: then
    /// nothing of it is visible under its object's name, and what has that name is somebody else's. S3 cannot
    /// tell, and says no.
    ///
    /// # Errors
    /// If the node cannot do it. That the partial is not there is no error, and neither is a list without
    /// notes.
    pub async fn discard(&self, notes: &[Note]) -> Result<bool, NodeError> {
        match &*self.0 {
            Driver::File(node) => node.discard(notes).await,
            Driver::WebDav(node) => node.discard(notes).await,
            Driver::S3(node) => node.discard(notes).await.map(|()| false),
            Driver::Sftp(node) => node.discard(notes).await,
        }
    }
}

impl Writer {
    /// The bytes of the partial that are on the node, without a gap from the first. After
    /// [`begin`](Node::begin) it is 0. After [`resume`](Node::resume) it is where the caller goes on. While
    /// pieces are being written it grows, somewhat behind them.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match &self.driver {
            WriterDriver::File(writer) => writer.offset(),
            WriterDriver::WebDav(writer) => writer.offset(),
            WriterDriver::S3(writer) => writer.offset(),
            WriterDriver::Sftp(writer) => writer.offset(),
        }
    }

    /// A count of the bytes of the object that have left for the node, those from before included. It grows
    /// while a write goes on, and somewhat ahead of [`offset`](Self::offset): it shows how fast the node
    /// takes data, also where a piece waits in this process before it is sent.
    #[must_use]
    pub fn sent(&self) -> Passed {
        match &self.driver {
            WriterDriver::File(writer) => writer.sent(),
            WriterDriver::WebDav(writer) => writer.sent(),
            WriterDriver::S3(writer) => writer.sent(),
            WriterDriver::Sftp(writer) => writer.sent(),
        }
    }

    /// The notes that have arisen since the last call. Who wants to resume or to discard the partial keeps
    /// them all, in this order, where they outlive the process.
    ///
    /// Notes may arise in `begin` and in each `write`, also in one that fails.
    #[must_use]
    pub fn take_notes(&mut self) -> Vec<Note> {
        match &mut self.driver {
            WriterDriver::File(writer) => writer.take_notes(),
            WriterDriver::WebDav(writer) => writer.take_notes(),
            WriterDriver::S3(writer) => writer.take_notes(),
            WriterDriver::Sftp(writer) => writer.take_notes(),
        }
    }

    /// Reads the partial from byte `from` to its [`offset`](Self::offset), so that a caller can compute a
    /// hash over what is there. `None` for S3 and WebDAV, which let nobody read a partial.
    ///
    /// # Errors
    /// If `from` is behind the offset.
    pub fn read_back(&self, from: u64) -> Result<Option<Reader>, NodeError> {
        let driver = match &self.driver {
            WriterDriver::File(writer) => ReaderDriver::File(writer.read_back(from)?),
            WriterDriver::Sftp(writer) => ReaderDriver::Sftp(writer.read_back(from)?),
            WriterDriver::WebDav(_) | WriterDriver::S3(_) => return Ok(None),
        };
        Ok(Some(Reader::new(driver, from)))
    }

    /// The tags of the parts that were there before a [`resume`](Node::resume), to compare them with the
    /// source. `None` but for S3.
    #[must_use]
    pub fn tags(&self) -> Option<Tags> {
        match &self.driver {
            WriterDriver::S3(writer) => Some(writer.tags()),
            WriterDriver::File(_) | WriterDriver::Sftp(_) | WriterDriver::WebDav(_) => None,
        }
    }

    /// Writes the next bytes. It may return before they are on the node, so an error may be about an earlier
    /// piece. After an error, the writer can only be dropped.
    ///
    /// # Errors
    /// If the node fails or stalls, or there are more bytes than were announced.
    pub async fn write(&mut self, data: Bytes) -> Result<(), NodeError> {
        if self.has_failed {
            return Err(NodeError::ended("writer"));
        }
        let position = self.position.saturating_add(data.len() as u64);
        if self.bytes.is_some_and(|bytes| bytes < position) {
            self.has_failed = true;
            return Err(self.other_size(position));
        }
        // If the caller drops this call in the middle of it, nobody knows which bytes were taken.
        self.has_failed = true;
        match &mut self.driver {
            WriterDriver::File(writer) => writer.write(data).await?,
            WriterDriver::WebDav(writer) => writer.write(data).await?,
            WriterDriver::S3(writer) => writer.write(data).await?,
            WriterDriver::Sftp(writer) => writer.write(data).await?,
        }
        self.position = position;
        self.has_failed = false;
        Ok(())
    }

    /// Makes the object durable, as far as the node can, and then visible under its name.
    ///
    /// # Errors
    /// `Exists` if the name is taken: nothing is ever overwritten. `Other` if there are fewer bytes than were
    /// announced. The partial stays after an error, for [`resume`](Node::resume) or
    /// [`discard`](Node::discard). If no answer came, the object may be visible; [`size`](Node::size) says.
    pub async fn finish(self) -> Result<(), NodeError> {
        if self.has_failed {
            return Err(NodeError::ended("writer"));
        }
        if self.bytes.is_some_and(|bytes| bytes != self.position) {
            return Err(self.other_size(self.position));
        }
        match self.driver {
            WriterDriver::File(writer) => writer.finish().await,
            WriterDriver::WebDav(writer) => writer.finish().await,
            WriterDriver::S3(writer) => writer.finish().await,
            WriterDriver::Sftp(writer) => writer.finish().await,
        }
    }

    fn other_size(&self, found: u64) -> NodeError {
        let accepted = format!("{}, as announced", self.bytes.unwrap_or_default());
        NodeError::new(ErrorKind::Other, "writer", format_args!("{found} bytes"), accepted)
    }
}

impl Reader {
    fn new(driver: ReaderDriver, from: u64) -> Self {
        let mut reader = Self { driver, left: 0, delivered: Passed::default() };
        reader.left = reader.size().saturating_sub(from);
        reader
    }

    /// What has arrived from the node, also of pieces that are not whole yet: a piece may take seconds.
    #[must_use]
    pub fn arrived(&self) -> Passed {
        match &self.driver {
            ReaderDriver::File(reader) => reader.arrived(),
            ReaderDriver::S3(reader) => reader.arrived(),
            // Their pieces are what arrives at a time.
            ReaderDriver::WebDav(_) | ReaderDriver::Sftp(_) => self.delivered.clone(),
        }
    }

    /// The bytes of the whole object, whatever byte the read began with. For a partial that is read back, its
    /// offset at that moment.
    #[must_use]
    pub fn size(&self) -> u64 {
        match &self.driver {
            ReaderDriver::File(reader) => reader.size(),
            ReaderDriver::WebDav(reader) => reader.size(),
            ReaderDriver::S3(reader) => reader.size(),
            ReaderDriver::Sftp(reader) => reader.size(),
        }
    }

    /// The next bytes, at least one; `None` at the end. Pieces have at most 8 MiB.
    ///
    /// # Errors
    /// If the node fails, stalls, or has another number of bytes than it said. After an error, the reader can
    /// only be dropped.
    pub async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        if self.left == 0 {
            return Ok(None);
        }
        let piece = match &mut self.driver {
            ReaderDriver::File(reader) => reader.next().await?,
            ReaderDriver::WebDav(reader) => reader.next().await?,
            ReaderDriver::S3(reader) => reader.next().await?,
            ReaderDriver::Sftp(reader) => reader.next().await?,
        };
        let length = piece.as_ref().map_or(0, Bytes::len) as u64;
        match self.left.checked_sub(length) {
            Some(left) if length > 0 => {
                self.left = left;
                self.delivered.add(length);
                Ok(piece)
            }
            _ => {
                let found = format!("{length} bytes in place of the last {}", self.left);
                Err(NodeError::new(ErrorKind::Other, "reader", found, "all bytes of the object"))
            }
        }
    }
}
