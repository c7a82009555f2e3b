//! The origin of a value, kept beside the value.
//!
//! `weir check` says for every setting in force in which line it stands, or why it has its default. If that
//! were worked out afterwards, from the file and the values, it would drift away from the code that sets the
//! defaults.

use std::fmt;

/// A value and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Resolved<T> {
    /// The value in force.
    pub(crate) value: T,
    /// Its origin.
    pub(crate) origin: Origin,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// The file, in this line, counted from one.
    File {
        /// The line of the value.
        line: usize,
    },
    /// A change while the file was served.
    Set,
    /// A default, for this reason.
    Default(&'static str),
}

impl Origin {
    /// The origin of a value in this line, counted from one. Line zero is behind the file, where changes
    /// stand.
    pub(super) const fn at(line: usize) -> Self {
        if line == 0 { Self::Set } else { Self::File { line } }
    }
}

impl<T> Resolved<T> {
    /// Stands for a value that is missing or wrong, so that the rest of the file is read too. The problem was
    /// noted, and a configuration with a problem is never used.
    pub(super) fn placeholder(value: T) -> Self {
        Self { value, origin: Origin::Default("a placeholder") }
    }
}

/// Two settings are equal if their values are. So one more comment in the file is no change to reload.
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
