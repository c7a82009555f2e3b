//! The clients of all volumes, and which of them acts next.
//!
//! A flat array has one instant for each volume. With the few volumes of a pool, a search through it is
//! cheaper than a heap, and most turns touch only one volume.

use weir_model::Instant;

use crate::workload::{Asked, Client};

#[derive(Debug)]
pub(super) struct Clients {
    clients: Vec<Client>,
    /// By volume: when its clients act next.
    next: Vec<Instant>,
    /// The volume whose clients act first.
    first: usize,
}

impl Clients {
    pub(super) fn new(clients: Vec<Client>) -> Self {
        let next: Vec<Instant> = clients.iter().map(Client::next_at).collect();
        let mut clients = Self { clients, next, first: 0 };
        clients.find_first();
        clients
    }

    /// When the first client acts.
    pub(super) fn next_at(&self) -> Instant {
        self.next.get(self.first).copied().unwrap_or(Instant::FAR_FUTURE)
    }

    /// The next request that is due, and its volume.
    pub(super) fn ask(&mut self, now: Instant) -> Option<(usize, Asked)> {
        while self.next_at() <= now {
            let volume = self.first;
            let asked = self.clients[volume].ask(now);
            self.refresh(volume);
            if let Some(asked) = asked {
                return Some((volume, asked));
            }
        }
        None
    }

    /// A thread's request was answered, with success or not.
    pub(super) fn on_answer(&mut self, now: Instant, volume: usize, ok: bool) {
        self.clients[volume].on_answer(now, ok);
        self.refresh(volume);
    }

    /// Stops the clients of a volume: they ask for nothing any more.
    pub(super) fn stop(&mut self, volume: usize) {
        self.clients[volume] = Client::Stopped;
        self.refresh(volume);
    }

    fn refresh(&mut self, volume: usize) {
        let at = self.clients[volume].next_at();
        self.next[volume] = at;
        if volume == self.first {
            self.find_first();
        } else if at < self.next[self.first] {
            self.first = volume;
        }
    }

    fn find_first(&mut self) {
        let earliest = self.next.iter().enumerate().min_by_key(|(_, at)| **at);
        self.first = earliest.map_or(0, |(volume, _)| volume);
    }
}
