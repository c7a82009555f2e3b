//! The base of the tests: servers, client programs, and a client that speaks the bare protocol.

mod authority;
mod http;
mod page;
mod pattern;
mod program;
mod raw;
mod scene;
mod server;
mod skipped;
mod transcript;

use std::thread::yield_now;
use std::time::Duration;

use weir_clock::Clock;
use weir_model::Span;

pub(crate) use authority::Authority;
pub(crate) use http::{get, status};
pub(crate) use page::{Block, blocks, page};
pub(crate) use pattern::{block, bytes};
pub(crate) use program::{Outcome, Program, Running, python};
pub(crate) use raw::{Flags, RawClient, command, connect_silently, ends};
pub(crate) use scene::Scene;
pub(crate) use server::{Server, expect_refusal};
pub(crate) use skipped::skipped;
pub(crate) use transcript::Transcript;

/// How long a test waits for anything that it expects. This measures no speed; it ends a test that hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Polls until `is_true` returns true, for values that nobody announces, such as a figure of the kernel or of
/// the metrics.
///
/// # Panics
/// If it stays false; the message names `what`.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let clock = Clock::new();
    let deadline = clock.now() + Span::from(PATIENCE);
    while !is_true() {
        assert!(clock.now() < deadline, "waited in vain until {what}");
        yield_now();
    }
}
