//! Where a value comes from, kept beside the value.
//!
//! `weir check` says for every setting in force whether somebody wrote it or why it is what it is. Worked out
//! afterwards, from the file and the values, that answer would drift away from the code that sets defaults.

use std::fmt;

/// A value and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<T> {
    /// What is in force.
    pub(crate) value: T,
    /// Who said so.
    pub(crate) origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// It stands in the file, in this line, counted from one.
    File {
        /// The line of the value.
        line: usize,
    },
    /// It was set while the file was served.
    Set,
    /// It does not stand in the file; the value is what it is for this reason.
    Default(&'static str),
}

impl Origin {
    /// The line, counted from one; zero is behind the file, where values stand that were set since.
    pub(super) const fn at(line: usize) -> Self {
        if line == 0 { Self::Set } else { Self::File { line } }
    }
}

impl<T> Resolved<T> {
    /// Stands in for a value that is missing or wrong, so that the rest of the file is read too. The problem
    /// was noted, and a configuration with a problem is never handed out.
    pub(super) fn placeholder(value: T) -> Self {
        Self { value, origin: Origin::Default("a placeholder") }
    }
}

/// Two settings are equal if the same is in force: one more comment in the file is no change to reload.
impl<T: PartialEq> PartialEq for Resolved<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line } => write!(f, "line {line}"),
            Self::Set => f.write_str("set while serving"),
            Self::Default(reason) => write!(f, "default: {reason}"),
        }
    }
}
