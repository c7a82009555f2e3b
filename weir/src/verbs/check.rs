//! `weir check FILE`: every value in force and where it comes from, or every mistake.

use std::io::Write;
use std::path::Path;

use crate::config::{Source, check_report, controller_report};
use crate::failure::Failure;

/// Prints what the configuration of a gateway or a controller in `file` comes to.
///
/// # Errors
/// If there is a mistake in it, or it cannot be read.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    let source = Source::read(file).map_err(Failure::usage)?;
    let report = if source.is_of_controller() {
        source.controller().map(|config| controller_report(&config))
    } else {
        source.config().map(|config| check_report(&config))
    };
    Ok(write!(std::io::stdout(), "{}", report.map_err(Failure::usage)?)?)
}
