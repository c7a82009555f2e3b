//! An authority that signs a certificate for any name.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::{Tls, TlsFiles};

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The authority that holders of this authority's certificates trust.
    trusted: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let trusted = issuer.pem();
        Self { issuer, trusted }
    }

    /// From now on, holders of this authority's certificates trust `other`.
    pub(super) fn trusting(self, other: &Self) -> Self {
        Self { trusted: other.trusted.clone(), ..self }
    }

    /// A certificate for a name or an address, and its key.
    pub(super) fn issue(&self, name: &str) -> Tls {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let folder = TempDir::new().unwrap();
        let write = |file: &str, pem: String| {
            let path = folder.path().join(file);
            fs::write(&path, pem).unwrap();
            path
        };
        let files = TlsFiles {
            authority: write("authority.pem", self.trusted.clone()),
            certificate: write("certificate.pem", certificate.pem()),
            key: write("key.pem", key.serialize_pem()),
        };
        keep_secret(&files.key);
        Tls::read(files).unwrap()
    }
}

fn keep_secret(key: &Path) {
    fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_key_that_others_can_use_is_refused_with_its_mode() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("key.pem");
    let authority = folder.path().join("authority.pem");
    fs::write(&authority, Authority::new().trusted).unwrap();
    fs::write(&path, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let read = |mode| {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let files =
            TlsFiles { authority: authority.clone(), certificate: authority.clone(), key: path.clone() };
        Tls::read(files).map(drop).map_err(|error| error.to_string())
    };
    for mode in [0o644, 0o640, 0o604, 0o660, 0o602] {
        let line = format!(
            "key {}: found mode {mode:04o}, by which others than its owner may use it; accepted: 0600 or 0400",
            path.display()
        );
        assert_eq!(read(mode), Err(line));
    }
    assert_eq!((read(0o600), read(0o400)), (Ok(()), Ok(())));
}

#[test]
fn a_pipe_or_a_directory_in_the_place_of_a_key_is_refused_without_waiting() {
    let folder = TempDir::new().unwrap();
    let pipe = folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for path in [pipe, folder.path().to_owned()] {
        let files = TlsFiles { authority: path.clone(), certificate: path.clone(), key: path.clone() };
        let error = Tls::read(files).unwrap_err().to_string();
        assert!(error.contains("found something that is no regular file; accepted: a PEM file"), "{error}");
    }
}

#[test]
fn a_file_that_holds_something_else_is_named() {
    let folder = TempDir::new().unwrap();
    let files = |key: &str| TlsFiles {
        authority: folder.path().join("authority.pem"),
        certificate: folder.path().join("authority.pem"),
        key: folder.path().join(key),
    };
    fs::write(folder.path().join("authority.pem"), Authority::new().trusted).unwrap();
    fs::write(folder.path().join("empty.pem"), "").unwrap();
    keep_secret(&folder.path().join("empty.pem"));
    let error = |key| Tls::read(files(key)).unwrap_err().to_string();
    assert!(error("empty.pem").ends_with("empty.pem: found no private key in it; accepted: PEM"));
    assert!(error("none.pem").starts_with("key ") && error("none.pem").contains("No such file"));
}

#[test]
fn a_key_is_never_shown() {
    let shown = format!("{:?}", Authority::new().issue("gateway1"));
    assert!(shown.contains("key.pem") && !shown.contains("PRIVATE"), "{shown}");
}
