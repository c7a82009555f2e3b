//! The findings of the rules: places of the tree that break one.

use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Finding {
    path: String,
    line: usize,
    what: String,
    instead: String,
}

impl Finding {
    /// `line` of `path`, counted from one, is `what`; `instead` says how it should be.
    pub(super) fn new(
        path: impl Into<String>,
        line: usize,
        what: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, what: what.into(), instead: instead.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, instead } = self;
        write!(f, "{path}:{line}: {what}; instead: {instead}")
    }
}
