//! Certificates for the controller and the gateways of a run, made by openssl, as an operator would make
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::super::bed::output_of;

/// A directory with an authority, and with a certificate and key for each name.
#[derive(Debug)]
pub(super) struct Certificates {
    directory: PathBuf,
}

impl Certificates {
    /// Makes an authority, and certificates for the controller and every gateway.
    ///
    /// # Errors
    /// If openssl fails.
    pub(super) fn make(directory: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let certificates = Self { directory: directory.to_owned() };
        certificates.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench -keyout ca.key -out ca.pem",
        )?;
        let hosts = (0..super::network::HOSTS).map(|host| format!("gateway-{host}"));
        hosts.chain(["controller".to_owned()]).try_for_each(|name| certificates.issue(&name))?;
        Ok(certificates)
    }

    /// The lines of a configuration for the process of this name.
    pub(super) fn keys(&self, name: &str) -> String {
        let path = |file: &str| self.directory.join(file).display().to_string();
        format!(
            "ca = \"{}\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
            path("ca.pem"),
            path(&format!("{name}.pem")),
            path(&format!("{name}.key"))
        )
    }

    fn issue(&self, name: &str) -> anyhow::Result<()> {
        let addresses = (0..super::network::HOSTS).map(super::network::array_address);
        let addresses: String = addresses.map(|address| format!(",IP:{address}")).collect();
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
