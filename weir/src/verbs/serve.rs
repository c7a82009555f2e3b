//! `weir serve FILE`: serves volumes until a signal stops it.

use std::path::Path;

use weir_gateway::Recorders;

use crate::config::Source;
use crate::daemon;
use crate::failure::Failure;
use crate::server::Server;

/// Serves the configuration in `file` until SIGTERM or SIGINT, recorded if there are `recorders`.
///
/// # Errors
/// If it cannot start.
pub(crate) async fn serve(file: &Path, recorders: Option<Recorders>) -> Result<(), Failure> {
    daemon::run(|| Source::read(file), async |config| Server::start(config, recorders).await).await
}
