//! What all verbs about transfers share: the coordinator of a file, the arguments of a transfer, and the text
//! that people see.

pub(crate) mod asked;
pub(crate) mod bars;
pub(crate) mod shapes;
pub(crate) mod text;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Args, Command};
use weir_clock::Clock;
use weir_cluster::Tls;
use weir_coordinator::{Address, Client, ClientError};
use weir_node::{Credentials, Node};

use crate::compose::tls_files;
use crate::config::{Source, TransfersConfig};
use crate::failure::Failure;
use crate::named::{Named, named, variable};

/// Which coordinator, and which nodes.
#[derive(Args, Clone, Debug)]
pub(crate) struct CoordinatorArgument {
    /// The coordinator: its configuration file, which also has the nodes, as clients move the data themselves
    #[arg(long, value_name = "FILE", env = variable("WEIR_TRANSFERS"), global = true)]
    #[arg(default_value = "/etc/weir/transfers.toml", value_parser = CoordinatorsFile)]
    server: PathBuf,
}

impl CoordinatorArgument {
    /// The file.
    pub(crate) fn file(&self) -> &std::path::Path {
        &self.server
    }

    /// A client of the coordinator.
    ///
    /// # Errors
    /// If the file, a credential or a certificate cannot be used.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let config =
            Source::read(&self.server).and_then(|source| source.transfers()).map_err(Failure::usage)?;
        let in_file = |failure: Failure| failure.in_file(&self.server);
        let nodes = nodes(&config).map_err(in_file)?.into_iter().collect::<BTreeMap<_, _>>();
        let address = match (&config.address.value, &config.tls) {
            (Some(address), Some(tls)) => {
                let tls = Tls::read(tls_files(tls)).map_err(|error| in_file(Failure::usage(error)))?;
                Address::Remote(address.to_string(), tls)
            }
            _ => Address::State(config.state.value.clone()),
        };
        Client::new(Clock::new(), address, nodes).map_err(failure)
    }
}

/// The file that names a coordinator.
#[derive(Clone, Debug)]
struct CoordinatorsFile;

/// Refuses what names a server otherwise. An address does not tell where the nodes are. It says so itself,
/// because clap repeats the value in its own message, and a URL may have a password.
impl TypedValueParser for CoordinatorsFile {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, value: &OsStr) -> Result<PathBuf, clap::Error> {
        let text = value.to_string_lossy();
        match named(&text) {
            Ok(Named::File(file)) => Ok(file),
            // What cannot be read is told when it is read.
            Err(_) if !text.contains(':') => Ok(value.into()),
            _ => {
                let refused = "server: found an address or a URL; accepted: the configuration file of the \
                               coordinator, which has its nodes\n";
                Err(clap::Error::raw(ErrorKind::ValueValidation, refused).with_cmd(command))
            }
        }
    }
}

/// The nodes of a file, by name.
///
/// # Errors
/// If a credential cannot be used.
pub(crate) fn nodes(config: &TransfersConfig) -> Result<Vec<(String, Node)>, Failure> {
    let open = |(name, node): (&String, &crate::config::NodeConfig)| {
        let wrong =
            |key: &str, error: &dyn std::fmt::Display| Failure::usage(format!("node.{name}.{key}: {error}"));
        let credentials = match &node.credentials.value {
            Some(path) => Some(Credentials::read(path).map_err(|error| wrong("credentials", &error))?),
            None => None,
        };
        let opened = Node::open(node.url.value.clone(), credentials.as_ref());
        Ok((name.clone(), opened.map_err(|error| wrong("credentials", &error))?))
    };
    config.nodes.iter().map(open).collect()
}

/// The failure for an error of a client: a mistake of the operator's, or not.
pub(crate) fn failure(error: ClientError) -> Failure {
    // Its text names its cause already, and a failure would name each cause again.
    if error.is_usage() { Failure::usage(error) } else { Failure::Runtime(anyhow!("{error}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_what_names_a_coordinator_is_not_shown() {
        for text in
            ["http://user:hunter2@host:9812", "user:hunter2@host:9812", "http://user:hun/hunter2@host"]
        {
            let command = Command::new("weir");
            let refused =
                CoordinatorsFile.parse_ref(&command, None, OsStr::new(text)).unwrap_err().to_string();
            assert!(refused.contains("accepted: the configuration file of the coordinator"), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
