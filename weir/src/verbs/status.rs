//! `weir status` and `weir top`: what a running server reports about itself.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use weir_api::{STATUS_PATH, Server};
use weir_status::{ArrayStatus, GatewayStatus, ThrottleStatus, TransfersStatus};

use crate::answer::{Form, json_line};
use crate::ask;
use crate::failure::Failure;
use crate::named::{self, ServerArgument, Usual};
use crate::say;
use crate::terminal::{self, printable};

/// Which server, and how.
#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    server: ServerArgument,
    #[command(flatten)]
    form: Form,
}

/// Which server, how, and how often.
#[derive(Args, Debug)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    server: ServerArgument,
    /// Stop after this number of tables
    #[arg(long)]
    times: Option<u64>,
    #[command(flatten)]
    form: Form,
}

/// Prints the table once.
///
/// # Errors
/// If there is no server that answers.
pub(crate) async fn status(StatusArguments { server, form }: StatusArguments) -> Result<(), Failure> {
    form.print(&Answer::of(&server.to_ask(Usual::GATEWAY)?).await?, Answer::shown)
}

/// What a server reports about itself. As JSON, it is what the server has answered.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
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
    pub(super) async fn of(server: &Server) -> Result<Self, Failure> {
        let text = ask::text(server, STATUS_PATH).await?;
        let shape: Shape = ask::read(server, &text)?;
        match shape {
            Shape { pools: Some(_), .. } => ask::read(server, &text).map(Self::Gateway),
            Shape { resources: Some(_), .. } => ask::read(server, &text).map(Self::Throttle),
            Shape { nodes: Some(_), .. } => ask::read(server, &text).map(Self::Transfers),
            Shape { .. } => ask::read(server, &text).map(Self::Controller),
        }
    }

    /// What it is, for who wanted another one.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Gateway(_) => "a gateway",
            Self::Controller(_) => "a controller",
            Self::Throttle(_) => "a packet-delay agent",
            Self::Transfers(_) => "a coordinator of transfers",
        }
    }

    fn shown(&self) -> String {
        let width = terminal::width();
        match self {
            Self::Gateway(status) => weir_table::render(status, width),
            Self::Controller(status) => weir_table::array(status, width),
            Self::Throttle(status) => weir_table::throttle(status, width),
            Self::Transfers(status) => weir_table::transfers(status, width),
        }
    }
}

/// What a gateway reports about itself. `server` names it as `--server` does.
///
/// # Errors
/// If it is no gateway that answers.
pub(crate) async fn ask_once(server: &str) -> Result<GatewayStatus, Failure> {
    ask::get(&named::to_ask(server)?, STATUS_PATH).await
}

/// Prints the table every second until interrupted, or so many times. As JSON, each is a line.
///
/// # Errors
/// If there is no server that answers, or it stops answering.
pub(crate) async fn top(TopArguments { server, times, form }: TopArguments) -> Result<(), Failure> {
    let server = server.to_ask(Usual::GATEWAY)?;
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    for _ in 0..times.unwrap_or(u64::MAX) {
        every_second.tick().await;
        let answer = Answer::of(&server).await?;
        let mut out = say::out();
        if form.json {
            writeln!(out, "{}", json_line(&answer)?)?;
            continue;
        }
        if io::stdout().is_terminal() {
            write!(out, "{}", weir_table::CLEAR)?;
        }
        writeln!(out, "{}\n{server}, every second; ends with Ctrl-C", printable(&answer.shown()))?;
    }
    Ok(())
}
