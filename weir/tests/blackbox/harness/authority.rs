//! An operator's own authority. A controller and its gateways show each other its certificates.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

use super::Scene;

/// An authority that signs any certificate for a test.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// The authority's certificate that the holders of its certificates trust: its own, or another
    /// authority's.
    trusted: String,
}

impl Authority {
    /// A new authority, which nobody trusts yet.
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let trusted = issuer.pem();
        Self { issuer, trusted }
    }

    /// The same authority, but the holders of its certificates trust `other`.
    pub(crate) fn trusting(self, other: &Self) -> Self {
        Self { trusted: other.trusted.clone(), ..self }
    }

    /// Writes the files for a process with the name or address `name`. Returns the keys of the configuration
    /// with the paths of these files.
    pub(crate) fn issue(&self, scene: &Scene, name: &str) -> String {
        self.sign(scene, &CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// The same, with an expired certificate.
    pub(crate) fn issue_expired(&self, scene: &Scene, name: &str) -> String {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_after = date_time_ymd(2001, 1, 1);
        self.sign(scene, &params)
    }

    fn sign(&self, scene: &Scene, params: &CertificateParams) -> String {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files =
            [("ca", self.trusted.clone()), ("certificate", certificate.pem()), ("key", key.serialize_pem())];
        let line = |(key, pem): (&str, String)| {
            let path = scene.write(&format!("{key}.pem"), pem);
            set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            format!("{key} = \"{}\"\n", path.display())
        };
        files.into_iter().map(line).collect()
    }
}
