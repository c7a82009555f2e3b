//! Questions about allocation, asked without end. Each question blocks a thread.

use std::thread;

use crate::harness::{Flags, RawClient, Scene, bytes, command, python, wait_until};

/// More than a server with four clients and one file needs, and far fewer than one for each question.
const MOST_DESCRIPTORS: usize = 100;

/// Each of four clients asks 1,024 questions before it reads the answers. Every second piece of the volume
/// has data; the others are holes (1) that read as zeroes (2).
const QUESTIONS: &str = r"
PIECE, PIECES = 65536, 64
answers = []
clients = [connect() for _ in range(4)]
for h in clients:
    for question in range(1024):
        first = question % PIECES
        def take(context, offset, entries, error, first=first):
            assert error.value == 0 and offset == first * PIECE, (error.value, offset)
            pieces = [word for number in range(first, PIECES) for word in (PIECE, number % 2 * 3)]
            assert entries == pieces, (first, entries)
            answers.append(first)
            return 0
        def done(error):
            assert error.value == 0, error.value
            return 1
        h.aio_block_status((PIECES - first) * PIECE, first * PIECE, take, done)
assert sum(h.aio_in_flight() for h in clients) > 3000
for h in clients:
    while h.aio_in_flight() > 0:
        h.poll(-1)
assert len(answers) == 4 * 1024, len(answers)
";

#[test]
fn thousands_of_questions_at_once_are_all_answered_with_few_descriptors() {
    let scene = Scene::new();
    let backend = scene.backend("v.img");
    let server = scene
        .serve(&format!("[pool.p]\n[volume.v]\npool = \"p\"\nbackend = \"{backend}\"\nsize = \"4MiB\"\n"));
    let mut client = RawClient::connect(&server, "v");
    let piece = bytes(1, 64 * 1024);
    for number in (0..64).step_by(2) {
        assert_eq!(client.ask(command::WRITE, Flags::FUA, number * 65_536, 65_536, &piece).error, 0);
    }
    let mut most = 0;
    thread::scope(|scope| {
        let uri = server.uri("v");
        let script = scope.spawn(move || python(&uri, QUESTIONS));
        wait_until("all questions are answered", || {
            most = most.max(server.descriptors());
            script.is_finished()
        });
        script.join().expect("every answer is right");
    });
    assert!(most < MOST_DESCRIPTORS, "{most} descriptors were open at once");
    assert_eq!(client.read(0, 65_536), piece, "another client goes on");
    server.stop();
}
