//! Recorded loads against nbdkit.

use std::future::{Future, pending, ready};

use weir_load::{LoadError, ReplayRequest, ReplaySpec, Replayed, replay};
use weir_model::{Direction, Span};

use super::real::Server;

const MIB: u64 = 1 << 20;

fn spec(server: &Server, duration: Span) -> ReplaySpec {
    ReplaySpec { target: server.target(""), depth: 1_024, duration, drain_limit: Span::from_secs(60) }
}

fn run(
    spec: &ReplaySpec,
    requests: Vec<ReplayRequest>,
    cancel: impl Future<Output = ()>,
) -> Result<Replayed, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay(spec, requests.into_iter(), cancel, |_| {}))
}

/// Every third request is a write. Lengths go from 512 bytes to more than the payload buffer, over all of 64
/// MiB.
fn requests(count: u64, every: Span) -> Vec<ReplayRequest> {
    let request = |n: u64| ReplayRequest {
        at: every.saturating_mul(n),
        direction: if n.is_multiple_of(3) { Direction::Write } else { Direction::Read },
        offset: n * 7_919 * 512 % (63 * MIB),
        length: u32::try_from((n % 300 + 1) * 512).unwrap(),
    };
    (0..count).map(request).collect()
}

#[test]
fn every_request_of_a_recording_is_sent_once_and_measured_by_its_kind() {
    let server = Server::nbdkit(&["memory", "64M"]);
    let recording = requests(3_000, Span::from_micros(100));
    let replayed = run(&spec(&server, Span::from_millis(300)), recording, pending()).unwrap();
    assert_eq!((replayed.offered, replayed.unsent, replayed.unanswered), (3_000, 0, 0));
    assert_eq!((replayed.read_ns.len(), replayed.write_ns.len()), (2_000, 1_000));
    assert!(replayed.errors.is_empty() && replayed.elapsed >= Span::from_millis(300));
    assert_eq!(replayed.export_bytes, 64 * MIB);
}

#[test]
fn nothing_is_sent_at_or_after_the_end() {
    let server = Server::nbdkit(&["memory", "64M"]);
    let recording = requests(3_000, Span::from_millis(1));
    let replayed = run(&spec(&server, Span::from_millis(50)), recording, pending()).unwrap();
    assert_eq!((replayed.offered, replayed.unsent, replayed.unanswered), (50, 0, 0));
}

#[test]
fn latencies_count_from_the_time_of_a_request_also_if_it_has_to_wait_for_room() {
    let server = Server::nbdkit(&["--filter=delay", "memory", "64M", "delay-read=20ms"]);
    let all_at_once = requests(12, Span::ZERO)
        .into_iter()
        .map(|request| ReplayRequest { direction: Direction::Read, ..request });
    let spec = ReplaySpec { depth: 1, ..spec(&server, Span::from_millis(1)) };
    let replayed = run(&spec, all_at_once.collect(), pending()).unwrap();
    assert!(replayed.offered == 12 && replayed.late + replayed.unsent == 11, "{replayed:?}");
    assert_eq!(replayed.read_ns.len(), 12 - replayed.unsent);
}

#[test]
fn a_request_that_the_export_cannot_take_is_named() {
    let server = Server::nbdkit(&["memory", "64M"]);
    let mut recording = requests(3, Span::ZERO);
    recording[2].offset = 64 * MIB;
    let error = run(&spec(&server, Span::from_millis(1)), recording, pending()).unwrap_err().to_string();
    assert!(error.contains("request 3 of the replay is 1536 bytes at 67108864"), "{error}");
    assert!(error.contains("within its 67108864 bytes"), "{error}");
}

#[test]
fn who_does_not_wait_gets_no_replay() {
    let server = Server::nbdkit(&["memory", "64M"]);
    let outcome = run(&spec(&server, Span::from_secs(1)), requests(3, Span::ZERO), ready(()));
    assert!(matches!(outcome, Err(LoadError::Cancelled)) || outcome.is_ok());
    let without_depth = ReplaySpec { depth: 0, ..spec(&server, Span::from_secs(1)) };
    let error = run(&without_depth, Vec::new(), pending()).unwrap_err().to_string();
    assert_eq!(error, "depth is 0; accepted: 1 to 65536");
}
