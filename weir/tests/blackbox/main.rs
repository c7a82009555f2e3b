//! Tests of the `weir` binary from outside: configuration files in, real clients on its sockets, exit codes
//! out.
//!
//! All tests are one program, because each integration-test file is linked on its own. Each test has a
//! directory and a server of its own and no fixed port, so that tests run side by side. No test synchronises
//! by sleeping. It blocks on a line, a reply or the end of a process, and fails after a limit. It polls the
//! few figures that nobody announces, see `harness::wait_until`.

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
mod node_agent;
mod odd_requests;
mod packaging;
mod pages;
mod pid;
mod printing;
mod promise;
mod promises_of_gateways;
mod push_back;
mod record;
mod reload;
mod replay;
mod shutdown;
mod surface;
mod throttle;
mod transfers;
mod transfers_report;
mod transfers_status;
mod unread;
mod upstream;
mod verified_load;
#[path = "../vm/mod.rs"]
mod vm;
mod what_if;
mod why;
