//! All events of a run as one number. Equal runs have equal numbers, and different runs nearly always have
//! different ones.

use weir_engine::{Event, WindowReport, WindowTraffic};
use weir_model::{Bandwidth, Instant, QueueDepth, Span, Verdict};

use super::Observer;

/// An observer that hashes every event with its time. It is cheaper than the text of the events. It is also
/// the same on every machine and with every compiler; a derived hash is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of no events.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The number.
    pub const fn value(&self) -> u64 {
        self.0
    }

    const fn add(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn add_span(&mut self, span: Option<Span>) {
        self.add(span.map_or(u64::MAX, Span::as_nanos));
    }

    fn add_traffic(&mut self, traffic: &WindowTraffic) {
        let WindowTraffic { offered, answered, mean_latency } = *traffic;
        for word in [offered.reads, offered.writes, offered.over.as_nanos(), answered] {
            self.add(word);
        }
        self.add_span(mean_latency);
    }

    fn add_window(&mut self, window: &WindowReport) {
        let WindowReport { offered, completed, mean_latency, target, verdict } = *window;
        for word in [offered.reads, offered.writes, offered.over.as_nanos(), completed] {
            self.add(word);
        }
        self.add_span(mean_latency);
        self.add_span(target);
        self.add(match verdict {
            Verdict::Met => 0,
            Verdict::Missed => 1,
            Verdict::OutOfContract => 2,
            Verdict::Idle => 3,
            Verdict::NoSlo => 4,
        });
    }
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for Fingerprint {
    fn on_event(&mut self, now: Instant, event: &Event) {
        self.add(now.as_nanos());
        match *event {
            Event::Finished { volume, kind, length, ok, queued, device, total } => {
                self.add(u64::from(volume.0) << 32 | u64::from(length));
                self.add((kind.index() as u64) << 1 | u64::from(ok));
                for span in [queued, device, total] {
                    self.add(span.as_nanos());
                }
            }
            Event::Aborted { volume, kind } => {
                self.add(1 << 62 | u64::from(volume.0) << 8 | kind.index() as u64);
            }
            Event::Controlled { depth, peak } => {
                self.add(1 << 63 | u64::from(depth.get()) << 31 | u64::from(peak));
            }
            Event::Granted { volume, grant, .. } => {
                self.add(5 << 61 | u64::from(volume.0) << 32 | u64::from(grant.concurrency.get()));
                self.add(grant.max_iops.map_or(0, |limit| limit.get()));
                self.add(grant.max_bandwidth.map_or(0, Bandwidth::get));
            }
            Event::Throttled { delay, wait } => {
                self.add(1 << 61 | delay.as_nanos());
                self.add(wait.as_nanos());
            }
            Event::Weighed { worst, strain, others_are_lost } => {
                self.add(3 << 60 | u64::from(worst.map_or(u32::MAX, |volume| volume.0)));
                self.add(strain.to_bits());
                self.add(others_are_lost.into());
            }
            Event::OutOfReach(shortfall) => {
                self.add(5 << 60 | u64::from(shortfall.map_or(u32::MAX, |shortfall| shortfall.volume.0)));
                self.add(shortfall.map_or(0, |shortfall| shortfall.times.to_bits()));
            }
            Event::Allowed(knobs) => {
                self.add(1 << 60 | u64::from(knobs.most));
                self.add(u64::from(knobs.share.millionths()));
                self.add(knobs.least.as_nanos());
            }
            Event::InOrder(most) => {
                self.add(11 << 59 | u64::from(most.map_or(u32::MAX, QueueDepth::get)));
            }
            Event::Covered { volume, covered } => {
                self.add(13 << 59 | u64::from(volume.0));
                self.add(covered.iops.map_or(0, |iops| iops.get().to_bits()));
                self.add(covered.bandwidth.map_or(0, Bandwidth::get));
            }
            Event::Stands(standing) => {
                self.add(9 << 59 | u64::from(standing.cuts) << 3);
                self.add(
                    u64::from(standing.backgrounds) << 2
                        | u64::from(standing.is_there) << 1
                        | u64::from(standing.is_in_the_way),
                );
                self.add(standing.strain.map_or(0, |strain| strain.window.to_bits()));
            }
            Event::TakingTurns { quantum } => {
                self.add(5 << 60);
                self.add(quantum.map_or(u64::MAX, Span::as_nanos));
            }
            Event::Allocated { volume, reasoning } => {
                self.add(7 << 61 | u64::from(volume.0));
                self.add(reasoning.allotted.to_bits());
            }
            Event::WindowEnded { volume, ref traffic } => {
                self.add(9 << 60 | u64::from(volume.0));
                self.add_traffic(traffic);
            }
            Event::WindowClosed { volume, ref window } => {
                self.add(3 << 62 | u64::from(volume.0));
                self.add_window(window);
            }
        }
    }
}
