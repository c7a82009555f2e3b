//! Certificates and keys, from files.
//!
//! This module parses the files before tonic does. tonic's errors would name neither the file nor the part
//! that is missing in it.
//!
//! A key that users other than its owner can read is no secret. It is refused, as ssh refuses one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};

use crate::error::{ClusterError, line};

/// The largest file: thousands of certificates.
const LARGEST: u64 = 1 << 20;

/// The bits of a mode that are about users other than the owner.
const OTHERS: u32 = 0o077;

/// The longest that a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where certificates and keys are, as PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The authority that has signed the certificates of the controller and of all gateways. It is the
    /// operator's own: every certificate that it has signed is trusted.
    pub authority: PathBuf,
    /// Our certificate, and the certificates between it and the authority.
    pub certificate: PathBuf,
    /// The key of our certificate.
    pub key: PathBuf,
}

/// The certificate that one side shows, and the authority that it trusts.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    authority: Certificate,
    identity: Identity,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read or has another content than it should, or if users other than its owner can
    /// read the key.
    pub fn read(files: TlsFiles) -> Result<Self, ClusterError> {
        let authority = read("authority", &files.authority, open)?;
        let certificate = read("certificate", &files.certificate, open)?;
        let key = read("key", &files.key, open_secret)?;
        let certificates =
            [("authority", &files.authority, &authority), ("certificate", &files.certificate, &certificate)];
        for (what, path, pem) in certificates {
            let found = CertificateDer::pem_slice_iter(pem).next().is_some_and(|found| found.is_ok());
            found.then_some(()).ok_or_else(|| ClusterError::Pem {
                what,
                path: path.clone(),
                pem: "certificate",
            })?;
        }
        PrivateKeyDer::from_pem_slice(&key).map_err(|_| ClusterError::Pem {
            what: "key",
            path: files.key.clone(),
            pem: "private key",
        })?;
        let (authority, identity) = (Certificate::from_pem(authority), Identity::from_pem(certificate, key));
        Ok(Self { files, authority, identity })
    }

    /// A server that shows our certificate, and accepts clients with a certificate of the authority.
    ///
    /// # Errors
    /// If the certificate, the key and the authority do not go together.
    pub fn server(&self) -> Result<Server, ClusterError> {
        let tls =
            ServerTlsConfig::new().identity(self.identity.clone()).client_ca_root(self.authority.clone());
        let tls = tls.timeout(HANDSHAKE_TIMEOUT);
        Server::builder().tls_config(tls).map_err(|error| self.wrong(&error))
    }

    /// A client that shows our certificate, and accepts a server with a certificate of the authority for
    /// `name`.
    ///
    /// # Errors
    /// If the certificate, the key and the authority do not go together.
    pub fn client(&self, endpoint: Endpoint, name: &str) -> Result<Endpoint, ClusterError> {
        let tls =
            ClientTlsConfig::new().identity(self.identity.clone()).ca_certificate(self.authority.clone());
        let tls = tls.domain_name(name).timeout(HANDSHAKE_TIMEOUT);
        endpoint.tls_config(tls).map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, error: &tonic::transport::Error) -> ClusterError {
        ClusterError::Tls { certificate: self.files.certificate.clone(), why: line(error) }
    }
}

impl std::fmt::Debug for Tls {
    /// The files, and never the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

/// The content of a file, if it is no larger than certificates or keys can be.
fn read(
    what: &'static str,
    path: &Path,
    open: fn(&Path) -> io::Result<File>,
) -> Result<Vec<u8>, ClusterError> {
    let bytes = || {
        let mut bytes = Vec::new();
        open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        let fits = bytes.len() as u64 <= LARGEST;
        fits.then_some(bytes).ok_or_else(|| {
            io::Error::other(format!("found more than {LARGEST} bytes; accepted: fewer, as PEM"))
        })
    };
    bytes().map_err(|source| ClusterError::File { what, path: path.to_owned(), source })
}

/// Opens a regular file. A pipe is refused: reading it would wait for its writer.
fn open(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let is_file = file.metadata()?.is_file();
    is_file
        .then_some(file)
        .ok_or_else(|| io::Error::other("found something that is no regular file; accepted: a PEM file"))
}

/// Opens a file that only its owner can read. The mode is that of the open file, whatever the path leads to
/// later.
fn open_secret(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    (mode & OTHERS == 0).then_some(file).ok_or_else(|| {
        io::Error::other(format!(
            "found mode {mode:04o}, by which others than its owner may use it; accepted: 0600 or 0400"
        ))
    })
}
