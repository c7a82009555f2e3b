//! Tests of the `weir` binary from outside: configuration files in, real clients on its sockets, exit codes
//! out.
//!
//! One program for all of them, since every integration-test file is linked on its own. Each test has a
//! directory and a server of its own and no fixed port, so that they run side by side. Nothing is
//! synchronised by sleeping: a test blocks on what it waits for (a line, a reply, the end of a process), with
//! a limit beyond which it fails; the few figures that nobody announces are polled, see
//! `harness::wait_until`.

mod array;
mod bad_input;
mod block_status;
mod copying;
mod crash;
mod gateways;
mod harness;
#[path = "../hostile/mod.rs"]
mod hostile;
mod listing;
mod maestro;
mod memory;
mod metrics;
mod odd_requests;
mod pages;
mod push_back;
mod record;
mod reload;
mod replay;
mod shutdown;
mod unread;
mod upstream;
mod verified_load;
#[path = "../vm/mod.rs"]
mod vm;
mod what_if;
