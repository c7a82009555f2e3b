//! A well-behaved client that works while another peer misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::harness::{RawClient, Server, block, wait_until};

/// The number of its blocks of 4 KiB.
const BLOCKS: u64 = 64;

/// A client of one volume that writes a block, reads it back, compares, and goes on with the next block. It
/// flushes after its last block, and then starts again.
pub(crate) struct Neighbour {
    rounds: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Connects to `export`, and begins. No other client may write to the export's first 256 KiB.
    pub(crate) fn start(server: &Server, export: &str) -> Self {
        let mut client = RawClient::connect(server, export);
        let (rounds, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (done, ended) = (Arc::clone(&rounds), Arc::clone(&stop));
        let work = move || {
            for round in 0.. {
                let (number, data) = (round % BLOCKS, block(round % BLOCKS, round));
                client.write(number * 4096, &data);
                assert_eq!(client.read(number * 4096, 4096), data, "block {number} in round {round}");
                if number == BLOCKS - 1 {
                    client.flush();
                }
                done.store(round + 1, Ordering::Release);
                if ended.load(Ordering::Acquire) {
                    return;
                }
            }
        };
        Self { rounds, stop, thread: Some(thread::spawn(work)) }
    }

    /// Waits for `rounds` more rounds. If the caller's attack goes on meanwhile, this shows that the attack
    /// does not stop the neighbour.
    ///
    /// # Panics
    /// If the neighbour is stopped, or got a wrong answer.
    pub(crate) fn works_for(&self, rounds: u64) {
        let enough = self.rounds.load(Ordering::Acquire) + rounds;
        wait_until("the neighbour has worked on", || {
            let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!ended, "the neighbour got no answer, or a wrong one");
            self.rounds.load(Ordering::Acquire) >= enough
        });
    }

    /// Ends the client, and shows that each of its requests got the right answer.
    pub(crate) fn finish(mut self) {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it is finished once");
        thread.join().expect("each request of the neighbour is answered, and rightly");
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

#[test]
fn a_neighbour_works_where_nobody_misbehaves() {
    let scene = crate::harness::Scene::new();
    let server = scene.serve_memory("1MiB");
    let neighbour = Neighbour::start(&server, "v");
    neighbour.works_for(100);
    neighbour.finish();
}
