//! An authority that signs whatever a test wants.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{Tls, TlsFiles};

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The certificate of whom those trust to whom this one gives certificates.
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

    /// Those whom this one signs trust `other`.
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
        Tls::read(files).unwrap()
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
    let error = |key| Tls::read(files(key)).unwrap_err().to_string();
    assert!(error("empty.pem").ends_with("empty.pem: found no private key in it; accepted: PEM"));
    assert!(error("none.pem").starts_with("key ") && error("none.pem").contains("No such file"));
}

#[test]
fn a_key_is_never_shown() {
    let shown = format!("{:?}", Authority::new().issue("gateway1"));
    assert!(shown.contains("key.pem") && !shown.contains("PRIVATE"), "{shown}");
}
