//! Why a trace cannot be read: the place, what was found, and what is accepted.

use std::io;

use thiserror::Error;

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// There is no such file, or it may not be read.
    #[error("{file}: cannot open the trace: {source}")]
    Open {
        /// The file's name, as the caller gave it.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// Reading broke off: the disk failed, or the compressed data are damaged.
    #[error("{file}:{line}: cannot read on: {source}")]
    Read {
        /// The file's name, as the caller gave it.
        file: String,
        /// The line that could not be read, from one.
        line: u64,
        /// The error of the system or of the decompression.
        source: io::Error,
    },
    /// None of the first lines has a known format.
    #[error("{file}:1: found {found}, and nothing below it that would be a trace; accepted: {accepted}")]
    Format {
        /// The file's name, as the caller gave it.
        file: String,
        /// Its first line.
        found: String,
        /// The formats.
        accepted: String,
    },
    /// A line does not have the format.
    #[error("{file}:{line}: found {found}; accepted: {accepted}")]
    Line {
        /// The file's name, as the caller gave it.
        file: String,
        /// The line, from one.
        line: u64,
        /// The content of the line, or of the field that is wrong.
        found: String,
        /// The text that would be accepted there.
        accepted: String,
    },
}
