//! x
mod credentials;
mod error;
mod file;
mod http;
mod location;
mod name;
mod node;
mod s3;
mod sftp;
mod thread;
mod webdav;

pub use credentials::{Credentials, CredentialsError};
pub use error::{ErrorKind, NodeError};
pub use location::{Location, LocationError};
pub use name::{NameError, Note, ObjectName, PartialId};
pub use node::{Node, Reader, Writer};
