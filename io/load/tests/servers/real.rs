//! nbdkit and qemu-nbd, each test with a server of its own on a unix socket in a directory of its own.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use weir_load::{Arrival, LoadError, LoadSpec, Pace, Pattern, Target, Until};
use weir_model::{Iops, Span};

use super::load;

/// A server process that ends with the test.
pub(super) struct Server {
    process: Child,
    socket: PathBuf,
    _dir: TempDir,
}

impl Server {
    pub(super) fn nbdkit(arguments: &[&str]) -> Self {
        Self::start(|dir| {
            let mut command = Command::new("nbdkit");
            command
                .args(["--foreground", "--exit-with-parent", "--log=null", "--unix"])
                .arg(dir.path().join("socket"));
            command.args(arguments);
            command
        })
    }

    /// A sparse file of 16 MiB as the export `disk`.
    fn qemu() -> Self {
        Self::start(|dir| {
            let image = dir.path().join("disk.img");
            File::create(&image).unwrap().set_len(16 << 20).unwrap();
            let mut command = Command::new("qemu-nbd");
            command.args(["--persistent", "--shared=8", "--format=raw", "--export-name=disk", "--socket"]);
            command.arg(dir.path().join("socket")).arg(image);
            command
        })
    }

    fn start(command: impl FnOnce(&TempDir) -> Command) -> Self {
        let dir = TempDir::new().unwrap();
        let socket = dir.path().join("socket");
        let mut process = command(&dir).stdout(Stdio::null()).spawn().expect("the server is installed");
        while UnixStream::connect(&socket).is_err() {
            assert_eq!(process.try_wait().unwrap(), None, "the server ended");
            std::thread::yield_now();
        }
        Self { process, socket, _dir: dir }
    }

    pub(super) fn target(&self, export: &str) -> Target {
        format!("nbd+unix:///{export}?socket={}", self.socket.display()).parse().unwrap()
    }

    fn spec(&self, export: &str) -> LoadSpec {
        LoadSpec { until: Until::Requests(2_000), ..LoadSpec::new(self.target(export)) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn open(rate: f64, arrivals: Arrival) -> Pace {
    Pace::Open { rate: Iops::new(rate).unwrap(), arrivals }
}

#[test]
fn a_closed_loop_does_exactly_the_requests_that_were_asked_for() {
    let server = Server::nbdkit(&["memory", "64M"]);
    for (pattern, connections) in [(Pattern::Random, 1), (Pattern::Sequential, 3)] {
        let spec = LoadSpec {
            connections,
            pattern,
            read_percent: 50,
            flush_every: 8.try_into().ok(),
            until: Until::Requests(5_000),
            ..server.spec("")
        };
        let (report, _) = load(&spec).unwrap();
        assert_eq!((report.completed, report.offered, report.errors), (5_000, 5_000, 0));
        assert_eq!((report.unsent, report.unanswered, report.late), (0, 0, 0));
        let writes = report.write.unwrap().completed;
        assert_eq!(report.read.unwrap().completed + writes, 5_000);
        let flushes = report.flush.unwrap().completed;
        assert!(
            flushes <= writes / 8 && flushes + u64::from(connections) > writes / 8,
            "{flushes} for {writes}"
        );
    }
}

#[test]
fn both_kinds_of_reply_are_understood_from_both_servers() {
    let (nbdkit, qemu) = (Server::nbdkit(&["memory", "16M"]), Server::qemu());
    for (server, export) in [(&nbdkit, ""), (&qemu, "disk")] {
        for structured_replies in [false, true] {
            let (report, _) =
                load(&LoadSpec { structured_replies, read_percent: 70, ..server.spec(export) }).unwrap();
            assert_eq!(report.structured_replies, structured_replies);
            assert_eq!((report.completed, report.errors), (2_000, 0));
        }
    }
}

#[test]
fn large_blocks_fill_the_socket_and_still_all_arrive() {
    let server = Server::nbdkit(&["memory", "64M"]);
    let spec =
        LoadSpec { block_bytes: 1 << 20, read_percent: 50, until: Until::Requests(200), ..server.spec("") };
    assert_eq!(load(&spec).unwrap().0.completed, 200);
}

#[test]
fn servers_without_go_or_without_options_are_understood() {
    let server = Server::nbdkit(&["--mask-handshake=0", "memory", "1M"]);
    let (report, _) = load(&LoadSpec { structured_replies: true, ..server.spec("") }).unwrap();
    assert_eq!((report.completed, report.structured_replies, report.export_bytes), (2_000, false, 1 << 20));
}

#[test]
fn an_open_loop_sends_what_arrives() {
    let server = Server::nbdkit(&["memory", "64M"]);
    for arrivals in [Arrival::Constant, Arrival::Poisson] {
        let pace = open(20_000.0, arrivals);
        let (report, _) = load(&LoadSpec { pace, connections: 2, ..server.spec("") }).unwrap();
        assert_eq!((report.offered, report.completed, report.unsent), (2_000, 2_000, 0));
        assert_eq!(report.target_rate_iops, Some(20_000.0));
    }
}

#[test]
fn the_time_that_requests_wait_for_a_slow_server_counts() {
    let server = Server::nbdkit(&["--filter=delay", "memory", "1M", "rdelay=5ms"]);
    // The server answers one request at a time, in 5 ms, and a request arrives each millisecond. The 40th was
    // meant to be sent at 39 ms and is answered at 200 ms or later.
    let spec = LoadSpec {
        pace: open(1_000.0, Arrival::Constant),
        depth: 1,
        until: Until::Requests(40),
        ..server.spec("")
    };
    let (report, _) = load(&spec).unwrap();
    assert_eq!(report.completed, 40);
    assert!(report.read.unwrap().latency.max_us >= 161_000.0 * 0.999);
    assert!(report.late >= 38 && report.late_max_us >= 156_000.0);
}

#[test]
fn a_run_ends_with_its_time_and_what_could_not_be_sent_is_told() {
    let server = Server::nbdkit(&["--filter=delay", "memory", "1M", "rdelay=20ms"]);
    let spec = LoadSpec {
        pace: open(10_000.0, Arrival::Constant),
        depth: 1,
        warm_up: Span::from_millis(20),
        until: Until::Elapsed(Span::from_millis(50)),
        drain_limit: Span::from_millis(100),
        ..server.spec("")
    };
    let (report, shown) = load(&spec).unwrap();
    assert_eq!(report.offered, 500);
    assert!(report.unsent > 600, "of 700 a server that needs 20 ms for each does a handful");
    assert!(shown.len() == 1 && report.elapsed_s >= 0.05);
}

#[test]
fn a_closed_loop_ends_with_its_time() {
    let server = Server::nbdkit(&["memory", "1M"]);
    let until = Until::Elapsed(Span::from_millis(50));
    let (report, _) = load(&LoadSpec { until, warm_up: Span::from_millis(10), ..server.spec("") }).unwrap();
    assert!(report.completed > 0 && report.unanswered == 0);
    assert!(report.elapsed_s >= 0.05);
}

#[test]
fn a_run_takes_its_time_also_if_its_last_request_comes_early() {
    let server = Server::nbdkit(&["memory", "1M"]);
    let until = Until::Elapsed(Span::from_millis(50));
    let clock = weir_clock::Clock::new();
    let (report, _) =
        load(&LoadSpec { until, pace: open(50.0, Arrival::Constant), ..server.spec("") }).unwrap();
    assert!(clock.now() >= weir_model::Instant::ORIGIN + Span::from_millis(50));
    assert_eq!((report.offered, report.completed), (3, 3), "at 0, 20 and 40 ms");
}

#[test]
fn errors_are_counted_by_their_name_and_do_not_end_the_run() {
    let server =
        Server::nbdkit(&["--filter=error", "memory", "1M", "error=ENOSPC", "error-pwrite-rate=100%"]);
    for structured_replies in [false, true] {
        let (report, _) =
            load(&LoadSpec { structured_replies, read_percent: 50, ..server.spec("") }).unwrap();
        assert_eq!(report.errors_by_name.keys().collect::<Vec<_>>(), ["ENOSPC"]);
        assert_eq!(report.errors + report.completed, 2_000);
        assert!(report.write.is_none(), "no write was answered without an error");
    }
}

#[test]
fn tcp_works_as_a_unix_socket_does() {
    let server = Server::nbdkit(&["memory", "1M"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = server.socket.clone();
    // The test needs a proxy: it cannot name a free port to a server without a race.
    let proxy = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = UnixStream::connect(socket).unwrap();
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let up = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(std::net::Shutdown::Write);
        });
        let _ = std::io::copy(&mut &server, &mut &client);
        let _ = client.shutdown(std::net::Shutdown::Both);
        up.join().unwrap();
    });
    let spec = LoadSpec { target: format!("nbd://127.0.0.1:{port}/").parse().unwrap(), ..server.spec("") };
    assert_eq!(load(&spec).unwrap().0.completed, 2_000);
    proxy.join().unwrap();
}

#[test]
fn an_export_that_does_not_exist_is_named_with_those_that_do() {
    let server = Server::qemu();
    let error = load(&server.spec("disc")).unwrap_err();
    assert!(error.to_string().ends_with(r#"there is no export "disc"; the server has "disk""#), "{error}");
}

#[test]
fn a_load_that_the_export_cannot_take_is_refused() {
    let server = Server::nbdkit(&["--readonly", "memory", "2K"]);
    let small = load(&server.spec("")).unwrap_err();
    assert!(small.to_string().contains("block_bytes is 4096; the export accepts at most 2048"), "{small}");
    let written = load(&LoadSpec { block_bytes: 512, read_percent: 0, ..server.spec("") }).unwrap_err();
    assert!(written.to_string().contains("read-only"), "{written}");
}

#[test]
fn nobody_listening_is_one_clear_line() {
    let dir = TempDir::new().unwrap();
    let uri = format!("nbd+unix:///?socket={}/none", dir.path().display());
    let error = load(&LoadSpec::new(uri.parse().unwrap())).unwrap_err();
    assert!(matches!(error, LoadError::Connect { .. }));
    assert!(
        error.to_string().starts_with(&format!("{uri}: cannot connect: "))
            && !error.to_string().contains('\n')
    );
}
