//! Certificates for the controller and the gateways of a run, made by openssl, as an operator would make
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::bed::output_of;

/// A directory with an authority, and with a certificate and key for each name.
#[derive(Debug)]
pub(super) struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// Makes an authority, and a certificate for each of `names` that holds at each of `addresses`.
    ///
    /// # Errors
    /// If openssl fails.
    pub(super) fn make(directory: &Path, names: &[&str], addresses: &[String]) -> anyhow::Result<Self> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let certificates = Self { directory: directory.to_owned() };
        certificates.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench -keyout ca.key -out ca.pem",
        )?;
        names.iter().try_for_each(|name| certificates.issue(name, addresses))?;
        Ok(certificates)
    }

    /// The lines of a configuration for the process of this name.
    pub(super) fn keys(&self, name: &str) -> String {
        let [authority, certificate, key] = self.files(name).map(|path| path.display().to_string());
        format!("ca = \"{authority}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n")
    }

    /// The authority's certificate, and the certificate and the key of `name`.
    pub(super) fn files(&self, name: &str) -> [PathBuf; 3] {
        ["ca.pem", &format!("{name}.pem"), &format!("{name}.key")].map(|file| self.directory.join(file))
    }

    fn issue(&self, name: &str, addresses: &[String]) -> anyhow::Result<()> {
        let addresses: String = addresses.iter().map(|address| format!(",IP:{address}")).collect();
        let extensions = self.directory.join(format!("{name}.ext"));
        fs::write(&extensions, format!("subjectAltName=DNS:{name}{addresses}\n"))
            .with_context(|| extensions.display().to_string())?;
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {name}.ext -out {name}.pem"
        ))
    }

    fn openssl(&self, arguments: &str) -> anyhow::Result<()> {
        let mut command = Command::new("openssl");
        command.current_dir(&self.directory).args(arguments.split_whitespace());
        output_of(&mut command, &format!("openssl {arguments}")).map(drop)
    }
}
