//! How the program fails: by the operator's doing, or by the world's.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::ExitCode;

/// `EX_USAGE` of `sysexits.h`: what was asked for cannot be done as it was asked.
pub(crate) const EX_USAGE: u8 = 64;

/// Why a verb ended before its time.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Arguments, the configuration, or something that it names: nothing was started. Exit code 64.
    Usage(String),
    /// Something went wrong on the way. Exit code 1.
    Runtime(anyhow::Error),
}

impl Failure {
    /// A failure that the operator can mend.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// The failure of what a configuration file asks for, with the file's name.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Usage(message) => Self::Usage(format!("{}: {message}", file.display())),
            runtime => runtime,
        }
    }

    /// Says what happened, and gives the exit code for it.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                eprintln!("{message}");
                ExitCode::from(EX_USAGE)
            }
            Self::Runtime(error) => {
                eprintln!("weir: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Runtime(error) => write!(f, "{error:#}"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}
