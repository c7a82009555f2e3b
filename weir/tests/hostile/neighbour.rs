//! A well-behaved client that works while somebody else misbehaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::harness::{RawClient, Server, block, wait_until};

/// Blocks of 4 KiB that it goes through.
const BLOCKS: u64 = 64;

/// A client of one volume that writes a block, reads it back, compares, and begins again. It flushes once
/// each time it has been through all its blocks.
pub(crate) struct Neighbour {
    rounds: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Connects to `export`, which has at least 256 KiB that nobody else writes to, and begins.
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

    /// Waits until it has been through `rounds` more rounds. A caller whose attack goes on until this returns
    /// has shown that the attack does not stop the neighbour.
    ///
    /// # Panics
    /// If it does not get through, or got a wrong answer.
    pub(crate) fn works_for(&self, rounds: u64) {
        let enough = self.rounds.load(Ordering::Acquire) + rounds;
        wait_until("the neighbour has worked on", || {
            let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
            assert!(!ended, "the neighbour got no answer, or a wrong one");
            self.rounds.load(Ordering::Acquire) >= enough
        });
    }

    /// Ends it, and shows that each of its requests was answered, and rightly.
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
