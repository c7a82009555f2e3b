//! The problems of a configuration file, one line for each.
//!
//! A message of the TOML or serde crates spans several lines, and says what the parser wanted. An operator
//! needs the place, the key, the value in the file, and the accepted values. So every rule of this module
//! makes a [`Problem`] out of exactly these four.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How many problems are shown. A file of another kind may have a hundred thousand, and nobody mends more
/// than these at a time.
const MOST_SHOWN: usize = 100;

/// Why a file is no configuration.
#[derive(Debug)]
pub(crate) struct ConfigError {
    /// Empty if there is no file.
    path: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Unreadable(io::Error),
    /// Nothing to read again: the arguments of the command said everything.
    NoFile,
    /// At least one, in the order of their lines.
    Invalid(Vec<Problem>),
}

/// One problem, at one place of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// The line, counted from one; zero for a value that was set while serving.
    pub(super) line: usize,
    /// The full path, such as `volume.db.slo[1].read`; empty if the text is no TOML, so that there is no key.
    pub(super) key: String,
    /// The value in the file.
    pub(super) found: String,
    /// The values that would be accepted.
    pub(super) accepted: String,
}

impl ConfigError {
    pub(super) fn unreadable(path: &Path, cause: io::Error) -> Self {
        Self { path: path.to_owned(), cause: Cause::Unreadable(cause) }
    }

    pub(super) fn without_file() -> Self {
        Self { path: PathBuf::new(), cause: Cause::NoFile }
    }

    pub(super) fn invalid(path: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.line);
        Self { path: path.to_owned(), cause: Cause::Invalid(problems) }
    }
}

impl std::error::Error for ConfigError {}

/// Formats each problem as a line, without a line end after the last.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.cause {
            Cause::Unreadable(error) => write!(f, "{path}: found {error}; accepted: a readable TOML file"),
            Cause::NoFile => f.write_str(
                "there is no file to read again, as it was started without one; to change settings while it \
                 runs, start it with a file",
            ),
            Cause::Invalid(problems) => {
                for (i, problem) in problems.iter().take(MOST_SHOWN).enumerate() {
                    let line_end = if i == 0 { "" } else { "\n" };
                    match problem.line {
                        0 => write!(f, "{line_end}{problem}")?,
                        line => write!(f, "{line_end}{path}:{line}: {problem}")?,
                    }
                }
                match problems.len().saturating_sub(MOST_SHOWN) {
                    0 => Ok(()),
                    more => write!(f, "\n{path}: and {more} problems more"),
                }
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        let [key, found, accepted] = [&self.key, &self.found, &self.accepted].map(|text| one_line(text));
        write!(f, "{key}{colon}found {found}; accepted: {accepted}")
    }
}

/// The text without line ends and other control characters. The operator's text goes into logs, where each
/// problem must stay one line.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.replace(char::is_control, " "))
    } else {
        Cow::Borrowed(text)
    }
}
