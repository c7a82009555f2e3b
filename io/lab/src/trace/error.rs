//! Why a trace cannot be read: where, what was found, what is accepted.

use std::io;

use thiserror::Error;

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// There is no such file, or it may not be read.
    #[error("{file}: cannot open the trace: {source}")]
    Open {
        /// Its name, as it was given.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// Reading broke off: the disk, or what was compressed is damaged.
    #[error("{file}:{line}: cannot read on: {source}")]
    Read {
        /// Its name, as it was given.
        file: String,
        /// The line that could not be read, from one.
        line: u64,
        /// What the system or the decompression says.
        source: io::Error,
    },
    /// No line at its beginning is of a known format.
    #[error("{file}:1: found {found}, and nothing below it that would be a trace; accepted: {accepted}")]
    Format {
        /// Its name, as it was given.
        file: String,
        /// Its first line.
        found: String,
        /// The formats.
        accepted: String,
    },
    /// A line is none of the format.
    #[error("{file}:{line}: found {found}; accepted: {accepted}")]
    Line {
        /// The name of the file, as it was given.
        file: String,
        /// The line, from one.
        line: u64,
        /// What it holds, or which field of it holds what.
        found: String,
        /// What it could hold.
        accepted: String,
    },
}
