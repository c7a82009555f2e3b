//! Storage nodes: a directory, a WebDAV collection, an S3 bucket and a directory over SFTP, behind one small
//! interface.
//!
//! A bulk transfer goes directly between a client and a storage node. Which node, and when, is decided
//! elsewhere; this crate moves the bytes. Three things hold for every sort of node:
//!
//! - An object that is not whole is never visible under its name. Until it is whole, it is a *partial*.
//! - A [`finish`](Writer::finish) that returns without an error has made the object durable, as far as the
//!   protocol can ask for it, and never replaces another object.
//! - Another process can go on with a partial. It needs the writer's *notes*, and WebDAV cannot do it.
//!
//! ```no_run
//! # use bytes::Bytes;
//! # use weir_node::{Location, Node, NodeError, Note, ObjectName, PartialId};
//! # fn keep(notes: Vec<Note>) {}
//! # async fn put(location: Location, name: ObjectName, id: PartialId, mut pieces: Vec<Bytes>)
//! # -> Result<(), NodeError> {
//! let node = Node::open(location, None)?;
//! let mut writer = node.begin(&name, &id, None).await?;
//! keep(writer.take_notes());
//! for piece in pieces {
//!     let written = writer.write(piece).await;
//!     keep(writer.take_notes()); // also if the write has failed
//!     written?;
//! }
//! writer.finish().await
//! # }
//! ```
//!
//! | | file | WebDAV | S3 | SFTP |
//! |---|---|---|---|---|
//! | partial | a file in `.weir-partial` | a file in `.weir-partial` | an upload in parts | a file in `.weir-partial` |
//! | goes on behind | its last byte | never | its last noted part | its last 4 MiB |
//! | durable by | `fsync` of file and folders | the server | the server | `fsync@openssh.com`, where offered |
//! | becomes visible by | `renameat2`, which refuses to replace | `MOVE` with `Overwrite: F` | completing the upload | `rename`, which OpenSSH refuses to replace with |
//! | a name that is taken meanwhile | is never replaced | is never replaced | may be replaced, if larger than one part | may be replaced, on servers other than OpenSSH's |
//!
//! # The libraries, and why these
//!
//! - **S3: `object_store`.** It has uploads whose id and parts the caller sees (`MultipartStore`), so that
//!   another process can go on with them. OpenDAL's writer hides the id.
//! - **WebDAV: a small client of our own on `reqwest`.** The WebDAV writers of `object_store` and OpenDAL
//!   take an object as one buffer in memory. Here the body is a stream.
//! - **SFTP: the program `ssh`, and `russh-sftp` over its pipes.** ssh knows the user's keys, agent, known
//!   hosts and configuration; no library knows them all. `russh-sftp` (Apache-2.0) speaks the protocol over
//!   any stream. Its raw session lets the caller send requests ahead of their answers. It reads the server's
//!   handles as text, which OpenSSH's are; a server whose handles are not UTF-8 fails. `openssh-sftp-client`
//!   (MIT) is another library over the same pipes.
//! - **TLS: `rustls` with `ring`**, as everywhere in weir. The authorities are those of the host.
//!
//! # What bounds what a node can make grow
//!
//! A node's answers are read up to 4 KiB if they are errors, 64 KiB if S3's, and 9 MiB if they are pieces of
//! objects. An error's text has at most 600 characters. A writer holds 4 pieces of the caller's (file,
//! WebDAV), 4 parts of 8 MiB and one that is being filled (S3; larger parts only above 80 GB), or 16 requests
//! of 255 KiB (SFTP). A reader holds 4 MiB (file), 32 MiB (S3) or 4 MiB (SFTP). A node that makes no progress
//! for 30 seconds is [`Stalled`](ErrorKind::Stalled).

mod credentials;
mod error;
mod file;
mod http;
mod location;
mod name;
mod node;
mod passed;
mod s3;
mod sftp;
mod thread;
mod webdav;

pub use credentials::{Credentials, CredentialsError};
pub use error::{ErrorKind, NodeError};
pub use location::{Location, LocationError};
pub use name::{NameError, Note, ObjectName, PartialId};
pub use node::{Node, Reader, Writer};
pub use passed::Passed;
pub use s3::Tags;
