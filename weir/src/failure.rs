//! How the program fails: by a mistake of the operator, or for another reason.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::process::ExitCode;

use crate::say;

/// `EX_USAGE` of `sysexits.h`: the program cannot do what the operator asked for.
pub(crate) const EX_USAGE: u8 = 64;

/// Why a verb ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A mistake in the arguments, the configuration, or a file that it names. Nothing was started. Exit code
    /// 64.
    Usage(String),
    /// This host does not let the program work, whatever the arguments and the configuration are. Nothing was
    /// started. Exit code 64.
    Host(String),
    /// A failure during the work. Exit code 1.
    Runtime(anyhow::Error),
}

impl Failure {
    /// A failure that the operator can mend.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// The same failure with the name of the configuration file that caused it, in each of its lines.
    pub(crate) fn in_file(self, file: &Path) -> Self {
        match self {
            Self::Usage(message) => {
                let lines: Vec<_> =
                    message.lines().map(|line| format!("{}: {line}", file.display())).collect();
                Self::Usage(lines.join("\n"))
            }
            other => other,
        }
    }

    /// Prints what happened, and returns the exit code for it.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Usage(message) | Self::Host(message) => {
                say::on_stderr(message);
                ExitCode::from(EX_USAGE)
            }
            Self::Runtime(error) if say::is_unread(error) => ExitCode::FAILURE,
            Self::Runtime(error) => {
                say::on_stderr(format_args!("weir: {error:#}"));
                ExitCode::FAILURE
            }
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Host(message) => f.write_str(message),
            Self::Runtime(error) => write!(f, "{error:#}"),
        }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_file_has_caused_names_the_file_and_in_each_line() {
        let file = Path::new("/etc/weir.toml");
        let usage = Failure::usage("a: found 1\nb: found 2").in_file(file);
        assert_eq!(usage.to_string(), "/etc/weir.toml: a: found 1\n/etc/weir.toml: b: found 2");
        assert_eq!(Failure::Host("no right".to_owned()).in_file(file).to_string(), "no right");
    }
}
