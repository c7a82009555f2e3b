//! `weir status` and `weir top`: what a running server tells about itself.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use weir_gateway::GatewayStatus;

use crate::config::Config;
use crate::failure::Failure;
use crate::table;

/// Clears the terminal and goes to its top left corner.
pub(crate) const CLEAR: &str = "\x1b[2J\x1b[H";

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Prints the table once.
///
/// # Errors
/// If `source` is no server that answers.
pub(crate) fn status(source: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout(), "{}", table::render(&ask_once(source)?))?)
}

/// What a server tells about itself, which is named by its configuration file or the URL of its metrics address.
///
/// # Errors
/// If `source` is no server that answers.
pub(crate) fn ask_once(source: &str) -> Result<GatewayStatus, Failure> {
    ask(&status_url(source)?)
}

/// Prints the table every second until interrupted, or `times` times.
///
/// # Errors
/// If `source` is no server that answers, or stops answering.
pub(crate) async fn top(source: &str, times: Option<u64>) -> Result<(), Failure> {
    let url = status_url(source)?;
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..times.unwrap_or(u64::MAX) {
        every_second.tick().await;
        let table = table::render(&ask(&url)?);
        let mut out = std::io::stdout().lock();
        if out.is_terminal() {
            write!(out, "{CLEAR}")?;
        }
        writeln!(out, "{table}\n{url}, every second; ends with Ctrl-C")?;
    }
    Ok(())
}

/// The address of the status: of a server by its URL, or by the configuration that it serves.
fn status_url(source: &str) -> Result<String, Failure> {
    if source.starts_with("http://") {
        return Ok(format!("{}{}", source.trim_end_matches('/'), weir_api::STATUS_PATH));
    }
    let config = Config::load(Path::new(source)).map_err(Failure::usage)?;
    let Some(address) = config.listen.metrics.value else {
        return Err(Failure::usage(format!(
            "{source}: listen.metrics: found nothing; accepted: the address to ask"
        )));
    };
    Ok(format!("http://{address}{}", weir_api::STATUS_PATH))
}

fn ask(url: &str) -> Result<GatewayStatus, Failure> {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(ANSWER_TIMEOUT)).build().into();
    let mut answer =
        agent.get(url).call().with_context(|| format!("{url}: no answer; is the server running?"))?;
    let text = answer.body_mut().read_to_string().with_context(|| format!("{url}: the answer broke off"))?;
    Ok(serde_json::from_str(&text).with_context(|| format!("{url}: the answer is no status of weir"))?)
}
