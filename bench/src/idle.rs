//! The cost of an idle connection: thousands of them are held while another client does its work.
//!
//! Each round has a server of its own. A closed connection gives its memory back to the allocator, which
//! would make the next connections look free.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::bed::TestBed;
use super::cases::{Access, Client, Load, Store, Transport};
use super::clients;
use super::cpu::resident_kib;
use super::effort::Effort;
use super::handshake::negotiate;
use super::progress::Progress;
use super::report::{Bar, Figure, Row, Unit};
use super::servers::Server;
use super::statistics::median;
use super::status::Status;

/// The name for `--only`.
pub(super) const NAME: &str = "idle-connections";

/// The number of connections to hold.
const CONNECTIONS: u32 = 10_000;

/// The most memory that each may take.
const KIB_PER_CONNECTION: Bar = Bar::AtMost(64.0);

/// The most rounds. More rounds would show the same memory again.
const MOST_ROUNDS: u32 = 3;

/// Descriptors for everything else that this process has open.
const OTHER_DESCRIPTORS: u64 = 200;

/// The load of the client that is not idle.
const WORK: Load = Load { client: Client::WeirLoad, access: Access::Read, kib: 4, depth: 32 };

/// One round with one server.
struct Round {
    rate_without: f64,
    rate_with: f64,
    kib_per_connection: f64,
    held: u32,
}

/// The number of measurements.
pub(super) fn measurements(effort: Effort) -> u32 {
    2 * effort.rounds.min(MOST_ROUNDS)
}

/// Measures idle connections.
///
/// # Errors
/// If the server or the client fails, or the server refuses a connection.
pub(super) fn measure(bed: &TestBed, effort: Effort, progress: &mut Progress) -> anyhow::Result<Vec<Row>> {
    let connections = allowed_connections()?;
    let mut rounds = Vec::new();
    for number in 1..=effort.rounds.min(MOST_ROUNDS) {
        let round = measure_once(bed, connections, effort.seconds)?;
        let cost = format!("{:.1} KiB each of {connections}", round.kib_per_connection);
        progress.advance(2, &format!("{NAME}, round {number}: {cost}"));
        rounds.push(round);
    }
    let over = |unit, of: fn(&Round) -> f64| Figure { value: median(rounds.iter().map(of)), unit };
    let row = |what: &str, weir, bar| Row::alone(NAME.to_owned(), what.to_owned(), weir, bar);
    let held = over(Unit::Count, |round| round.held.into());
    let memory = over(Unit::Kibibytes, |round| round.kib_per_connection);
    let rate = Row {
        other: Some(over(Unit::Iops, |round| round.rate_without)),
        compared: Some(over(Unit::Ratio, |round| round.rate_with / round.rate_without)),
        ..row("rate beside them; other: without them", over(Unit::Iops, |round| round.rate_with), None)
    };
    Ok(vec![
        row("connections held", held, Some(Bar::AtLeast(CONNECTIONS.into()))),
        row("memory for each", memory, Some(KIB_PER_CONNECTION)),
        rate,
    ])
}

#[allow(clippy::cast_precision_loss)] // far below 2^53 KiB
fn measure_once(bed: &TestBed, connections: u32, seconds: u32) -> anyhow::Result<Round> {
    let server = Server::weir(bed, Store::File, Transport::Unix)?;
    // This comes first, so that memory that the work allocates does not count as the cost of a connection.
    let without = clients::measure(bed, &server, WORK, seconds)?;
    let before = resident_kib(server.pid())?;
    let socket = server.socket().context("a server on a unix socket")?;
    let idle = (0..connections)
        .map(|number| connect(socket, server.export(), number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let after = resident_kib(server.pid())?;
    let with = clients::measure(bed, &server, WORK, seconds)?;
    let status = Status::read(server.metrics().context("weir with a status")?)?;
    let held = idle.iter().filter(|stream| is_open(stream)).count();
    ensure!(
        status.connections >= held as u64,
        "the server knows of {} connections of {held}",
        status.connections
    );
    Ok(Round {
        rate_without: without.iops,
        rate_with: with.iops,
        kib_per_connection: after.saturating_sub(before) as f64 / f64::from(connections),
        held: u32::try_from(held)?,
    })
}

fn connect(socket: &Path, export: &str, number: u32) -> anyhow::Result<UnixStream> {
    const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));
    let attempt = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(PATIENCE)?;
        negotiate(&mut stream, export)?;
        stream.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(stream)
    };
    attempt().with_context(|| format!("idle connection {number}"))
}

/// Whether the server still holds the connection. Then there is nothing to read, not even the end.
fn is_open(mut stream: &UnixStream) -> bool {
    let read = std::io::Read::read(&mut stream, &mut [0]);
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// The wanted number of connections, or as many as the limit on descriptors allows.
fn allowed_connections() -> anyhow::Result<u32> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("the limit on open files")?;
    let allowed = maximum.map_or(u64::MAX, |most| most.saturating_sub(OTHER_DESCRIPTORS));
    let connections = u32::try_from(allowed).unwrap_or(u32::MAX).min(CONNECTIONS);
    ensure!(connections > 0, "the limit on open files leaves none for idle connections");
    if connections < CONNECTIONS {
        eprintln!("{NAME}: the limit on open files allows {connections} of {CONNECTIONS}");
    }
    Ok(connections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_open_until_the_other_end_closes_it() {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        assert!(is_open(&here));
        drop(there);
        assert!(!is_open(&here));
    }
}
