//! `weir check FILE`: prints every value in force and its origin, or every mistake.

use std::path::Path;

use crate::answer::Form;
use crate::config::{Source, check_report, controller_report, throttle_report, transfers_report};
use crate::failure::Failure;

/// Prints the values in force by the file of a gateway, a controller, a packet-delay agent or a coordinator
/// of transfers.
///
/// # Errors
/// If there is a mistake in it, or it cannot be read.
pub(crate) fn check(file: &Path, form: Form) -> Result<(), Failure> {
    let source = Source::read(file).map_err(Failure::usage)?;
    let report = if source.is_of_controller() {
        source.controller().map(|config| controller_report(&config))
    } else if source.is_of_throttle() {
        source.throttle().map(|config| throttle_report(&config))
    } else if source.is_of_transfers() {
        source.transfers().map(|config| transfers_report(&config))
    } else {
        source.config().map(|config| check_report(&config))
    };
    form.print(&report.map_err(Failure::usage)?, ToString::to_string)
}
