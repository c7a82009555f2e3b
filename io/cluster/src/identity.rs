//! Checks that a gateway may use the name that it gives.

use rustls_pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// Checks that the certificate of a peer names `gateway`. The handshake has verified the certificate's chain.
///
/// # Errors
/// If it does not; the text says why.
pub(crate) fn check(gateway: &str, certificates: Option<&[CertificateDer<'_>]>) -> Result<(), String> {
    let Some(certificate) = certificates.and_then(<[_]>::first) else {
        return Err(format!("gateway {gateway:?} shows no certificate"));
    };
    let name = ServerName::try_from(gateway)
        .ok()
        .filter(|name| matches!(name, ServerName::DnsName(_)))
        .ok_or_else(|| format!("gateway {gateway:?}: the name of a gateway must be a DNS name"))?;
    let wrong =
        |error: webpki::Error| format!("gateway {gateway:?} is not the owner of its certificate: {error}");
    EndEntityCert::try_from(certificate)
        .and_then(|certificate| certificate.verify_is_valid_for_subject_name(&name))
        .map_err(wrong)
}
