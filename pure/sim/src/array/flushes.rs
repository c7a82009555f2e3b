//! Flushes that wait for the writes before them.

use std::collections::VecDeque;

/// Writes between two flushes.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    writes: u32,
    /// The flush that ended it.
    flush: Option<u32>,
}

/// The writes under way, divided into epochs by the flushes between them.
#[derive(Debug)]
pub(super) struct Flushes {
    epochs: VecDeque<Epoch>,
    /// The number of the first epoch.
    first: u64,
}

impl Flushes {
    pub(super) fn new() -> Self {
        Self { epochs: VecDeque::from([Epoch { writes: 0, flush: None }]), first: 0 }
    }

    /// A write begins. Returns its epoch, which the caller gives back at its end.
    pub(super) fn write_begins(&mut self) -> u64 {
        self.open().writes += 1;
        self.first + self.epochs.len() as u64 - 1
    }

    /// A write of this epoch has ended. The caller then calls [`Flushes::poll`].
    pub(super) fn write_ends(&mut self, epoch: u64) {
        let place = usize::try_from(epoch - self.first).expect("few flushes wait");
        self.epochs[place].writes -= 1;
    }

    /// A flush comes. The caller then calls [`Flushes::poll`].
    pub(super) fn flush_comes(&mut self, request: u32) {
        self.open().flush = Some(request);
        self.epochs.push_back(Epoch { writes: 0, flush: None });
    }

    /// The next flush that waits for nothing.
    pub(super) fn poll(&mut self) -> Option<u32> {
        let flush = self.epochs.front().filter(|epoch| epoch.writes == 0)?.flush?;
        self.epochs.pop_front();
        self.first += 1;
        Some(flush)
    }

    fn open(&mut self) -> &mut Epoch {
        self.epochs.back_mut().expect("the last epoch is open")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_writes_before_it_and_for_no_other() {
        let mut flushes = Flushes::new();
        let (a, b) = (flushes.write_begins(), flushes.write_begins());
        flushes.flush_comes(1);
        let c = flushes.write_begins();
        flushes.flush_comes(2);
        flushes.write_ends(c);
        flushes.write_ends(a);
        assert_eq!(flushes.poll(), None);
        flushes.write_ends(b);
        assert_eq!([flushes.poll(), flushes.poll(), flushes.poll()], [Some(1), Some(2), None]);
        flushes.flush_comes(3);
        assert_eq!(flushes.poll(), Some(3));
    }
}
