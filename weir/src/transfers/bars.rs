//! Progress of transfers on standard error: a bar on a terminal, a line for each change of phase elsewhere.

use std::io::{IsTerminal, stderr};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use weir_coordinator::{Client, Phase, Progress, Watched};

use super::text;
use crate::say;
use crate::terminal::printable;

/// The bars of a verb.
pub(crate) struct Bars {
    all: Option<MultiProgress>,
    showing: Vec<JoinHandle<()>>,
}

impl Bars {
    /// Bars, if standard error is a terminal.
    pub(crate) fn new() -> Self {
        Self { all: stderr().is_terminal().then(MultiProgress::new), showing: Vec::new() }
    }

    /// What a transfer of this name tells its progress to.
    pub(crate) fn watched(&mut self, name: &str) -> Watched {
        let (watched, progress) = Client::watched();
        let name = printable(name);
        self.showing.push(match &self.all {
            Some(all) => {
                let bar = all.add(ProgressBar::new(0));
                tokio::task::spawn_local(draw(name, bar, progress))
            }
            None => tokio::task::spawn_local(tell(name, progress)),
        });
        watched
    }

    /// Waits until everything is shown. The transfers must have ended.
    pub(crate) async fn finish(self) {
        for showing in self.showing {
            let _ = showing.await; // it only shows
        }
    }
}

async fn draw(name: String, bar: ProgressBar, mut progress: watch::Receiver<Progress>) {
    let moving = ProgressStyle::with_template(
        "{prefix} [{bar:24}] {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {msg}, {eta} left",
    );
    let unsized_ =
        ProgressStyle::with_template("{prefix} {spinner} {decimal_bytes} {decimal_bytes_per_sec} {msg}");
    let waiting = ProgressStyle::with_template("{prefix} {spinner} {wide_msg}");
    let (Ok(moving), Ok(unsized_), Ok(waiting)) = (moving, unsized_, waiting) else { return };
    bar.set_prefix(name);
    bar.enable_steady_tick(std::time::Duration::from_millis(250));
    let mut phase = None;
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        if phase.as_ref() != Some(&now.phase) {
            match &now.phase {
                Phase::Moving(node) => {
                    bar.set_style(if now.bytes.is_some() { moving.clone() } else { unsized_.clone() });
                    bar.set_message(format!("on {} (asked {})", printable(node), text::rate(now.rate)));
                    bar.reset_eta();
                }
                other => {
                    bar.set_style(waiting.clone());
                    bar.set_message(words(other));
                }
            }
            phase = Some(now.phase.clone());
        }
        bar.set_length(now.bytes.unwrap_or(now.moved));
        bar.set_position(now.moved);
    }
    bar.finish_and_clear();
}

async fn tell(name: String, mut progress: watch::Receiver<Progress>) {
    let mut told = String::new();
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        let text = words(&now.phase);
        if text != told && !text.is_empty() {
            say::on_stderr(format_args!("weir: {name}: {text}"));
            told = text;
        }
    }
}

fn words(phase: &Phase) -> String {
    match phase {
        Phase::Waiting(why) if why.is_empty() => String::new(),
        Phase::Waiting(why) => format!("waits: {}", printable(why)),
        Phase::Moving(node) => format!("goes on at {}", printable(node)),
        Phase::Lost => "the coordinator does not answer; it is tried again".to_owned(),
        Phase::Done(_) => String::new(),
    }
}
