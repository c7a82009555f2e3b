//! `weir status` and `weir top`: what a running server reports about itself.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use weir_api::{STATUS_PATH, Server};
use weir_status::{ArrayStatus, GatewayStatus, ThrottleStatus, TransfersStatus};

use crate::ask;
use crate::failure::Failure;
use crate::say;
use crate::terminal::printable;

/// Prints the table once.
///
/// # Errors
/// If `source` is no server that answers.
pub(crate) async fn status(source: &str) -> Result<(), Failure> {
    let answer = Answer::of(&ask::to_ask(source)?).await?;
    Ok(writeln!(say::out(), "{}", answer.render())?)
}

/// What a server reports about itself.
enum Answer {
    Gateway(GatewayStatus),
    Controller(ArrayStatus),
    Throttle(ThrottleStatus),
    Transfers(TransfersStatus),
}

/// Tells them apart: a gateway has pools, a controller one pool, an agent resources, and a coordinator of
/// transfers nodes. Serde does so too, in an untagged enum, but then no error says which field is wrong.
#[derive(Deserialize)]
struct Shape {
    pools: Option<IgnoredAny>,
    resources: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
}

impl Answer {
    async fn of(server: &Server) -> Result<Self, Failure> {
        let text = ask::text(server, STATUS_PATH).await?;
        let shape: Shape = ask::read(server, &text)?;
        match shape {
            Shape { pools: Some(_), .. } => ask::read(server, &text).map(Self::Gateway),
            Shape { resources: Some(_), .. } => ask::read(server, &text).map(Self::Throttle),
            Shape { nodes: Some(_), .. } => ask::read(server, &text).map(Self::Transfers),
            Shape { .. } => ask::read(server, &text).map(Self::Controller),
        }
    }

    fn render(&self) -> String {
        printable(&match self {
            Self::Gateway(status) => weir_table::render(status),
            Self::Controller(status) => weir_table::array(status),
            Self::Throttle(status) => weir_table::throttle(status),
            Self::Transfers(status) => weir_table::transfers(status),
        })
    }
}

/// What a gateway reports about itself. `source` is its configuration file, the URL of its metrics address or
/// its control socket.
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
        let table = Answer::of(&server).await?.render();
        let mut out = say::out();
        if io::stdout().is_terminal() {
            write!(out, "{}", weir_table::CLEAR)?;
        }
        writeln!(out, "{table}\n{server}, every second; ends with Ctrl-C")?;
    }
    Ok(())
}
