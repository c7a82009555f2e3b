//! `weir status` and `weir top`: what a running server tells about itself.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde::Deserialize;
use weir_api::{ArrayStatus, STATUS_PATH};
use weir_gateway::GatewayStatus;

use crate::ask;
use crate::failure::Failure;
use crate::table;

/// Clears the terminal and goes to its top left corner.
pub(crate) const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints the table once.
///
/// # Errors
/// If `source` is no server that answers.
pub(crate) async fn status(source: &str) -> Result<(), Failure> {
    let answer: Answer = ask::get(&ask::to_ask(source)?, STATUS_PATH).await?;
    Ok(writeln!(std::io::stdout(), "{}", answer.render())?)
}

/// What whoever is asked tells about itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Gateway(GatewayStatus),
    Controller(ArrayStatus),
}

impl Answer {
    fn render(&self) -> String {
        match self {
            Self::Gateway(status) => table::render(status),
            Self::Controller(status) => table::array(status),
        }
    }
}

/// What a gateway tells about itself, which is named by its configuration file, the URL of its metrics
/// address or its control socket.
///
/// # Errors
/// If `source` is no gateway that answers.
pub(crate) async fn ask_once(source: &str) -> Result<GatewayStatus, Failure> {
    ask::get(&ask::to_ask(source)?, STATUS_PATH).await
}

/// Prints the table every second until interrupted, or `times` times.
///
/// # Errors
/// If `source` is no server that answers, or stops answering.
pub(crate) async fn top(source: &str, times: Option<u64>) -> Result<(), Failure> {
    let server = ask::to_ask(source)?;
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..times.unwrap_or(u64::MAX) {
        every_second.tick().await;
        let answer: Answer = ask::get(&server, STATUS_PATH).await?;
        let table = answer.render();
        let mut out = std::io::stdout().lock();
        if out.is_terminal() {
            write!(out, "{CLEAR}")?;
        }
        writeln!(out, "{table}\n{server}, every second; ends with Ctrl-C")?;
    }
    Ok(())
}
