//! A thread where the surveyor looks.
//!
//! A look takes milliseconds as a rule, but a second where tgtd hangs, and as long as the kernel wants where
//! the kernel does: LIO answers nothing about a target while it takes it down. In the meantime the delays
//! must follow the reads, and the guard must hear that the agent is alive.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use weir_model::Instant;

use crate::sensors::Surveyor;

/// The thread, and the surveyor while it is not under way.
pub(crate) struct Lookout {
    here: Option<Surveyor>,
    sends: Sender<(Surveyor, Instant)>,
    returns: Receiver<Surveyor>,
}

impl Lookout {
    /// Starts the thread, which ends with this.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(crate) fn start(surveyor: Surveyor) -> io::Result<Self> {
        Self::looking(surveyor, |surveyor, now| {
            surveyor.look(now);
        })
    }

    fn looking(
        surveyor: Surveyor,
        mut look: impl FnMut(&mut Surveyor, Instant) + Send + 'static,
    ) -> io::Result<Self> {
        let (sends, sent) = channel::<(Surveyor, Instant)>();
        let (give_back, returns) = channel();
        let looks = move || {
            while let Ok((mut surveyor, now)) = sent.recv() {
                look(&mut surveyor, now);
                if give_back.send(surveyor).is_err() {
                    return; // the agent has ended in the meantime
                }
            }
        };
        thread::Builder::new().name("weir-lookout".to_owned()).spawn(looks)?;
        Ok(Self { here: Some(surveyor), sends, returns })
    }

    /// Sends the surveyor to look, unless it is under way. `anew`: it is to read everything. Says whether it
    /// was sent.
    pub(crate) fn send(&mut self, now: Instant, anew: bool) -> bool {
        let Some(mut surveyor) = self.here.take() else { return false };
        if anew {
            surveyor.read_again();
        }
        self.sends.send((surveyor, now)).is_ok()
    }

    /// The surveyor, when it has come back since the last call.
    pub(crate) fn poll(&mut self) -> Option<&Surveyor> {
        self.here = Some(self.returns.try_recv().ok()?);
        self.here.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensors::Roots;

    #[test]
    fn a_target_that_does_not_answer_holds_up_only_the_thread_that_looks() {
        let (answer, answers) = channel::<()>();
        let surveyor = Surveyor::new(Roots::default()).expect("a socket for questions to the kernel");
        let look = move |_: &mut Surveyor, _| answers.recv().expect("the target answers in the end");
        let mut lookout = Lookout::looking(surveyor, look).expect("a thread");
        assert!(lookout.send(Instant::ORIGIN, false));
        assert!(lookout.poll().is_none());
        assert!(!lookout.send(Instant::ORIGIN, false), "it is under way");
        answer.send(()).expect("the thread waits for it");
        while lookout.poll().is_none() {
            thread::yield_now();
        }
        assert!(lookout.send(Instant::ORIGIN, false));
        answer.send(()).expect("the thread waits for it");
    }
}
