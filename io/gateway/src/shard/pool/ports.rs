//! A pool in which each listener is a port. Several volumes of the engine are then one volume to clients and
//! operators.
//!
//! To the engine, each port of a volume is a volume of its own, with a bound of its own. The volume has one
//! device and one set of counters, and clients see one volume, whatever listener a request came through.

use weir_engine::{VolumeConfig, WindowTraffic};
use weir_model::{Instant, Offered, Span, VolumeId};
use weir_status::GrantStatus;

use super::{Pool, Volume};

impl Pool {
    /// Adds a volume to the engine for each further port of the volume `first`. Returns the engine's volumes
    /// for all ports, `first` included.
    pub(super) fn add_ports(&mut self, now: Instant, first: VolumeId) -> Vec<VolumeId> {
        let other = VolumeConfig { port_of: Some(first), ..VolumeConfig::default() };
        let others = self.ports.iter().skip(1).map(|_| self.engine.add_volume(now, other.clone()));
        let ports: Vec<_> = [first].into_iter().chain(others).collect();
        for port in &ports {
            let index = port.0 as usize;
            if self.first_ports.len() <= index {
                self.first_ports.resize(index + 1, first);
            }
            self.first_ports[index] = first;
        }
        ports
    }

    /// Removes the engine's volumes for all ports of a volume.
    pub(super) fn remove_ports(&mut self, now: Instant, ports: &[VolumeId]) {
        ports.iter().rev().for_each(|port| self.engine.remove_volume(now, *port));
    }

    /// The volume of which the engine's volume is a port, which may be itself.
    pub(super) fn first_port(&self, port: VolumeId) -> VolumeId {
        self.first_ports[port.0 as usize]
    }

    /// The volume of which the engine's volume is a port, unless the volume has gone.
    pub(super) fn volume_at(&mut self, port: VolumeId) -> Option<&mut Volume> {
        let first = self.first_port(port);
        self.volumes[first.0 as usize].as_mut()
    }

    /// Whether every request at every port of the volume with this number is answered.
    pub(super) fn is_idle_at(&self, volume: VolumeId) -> bool {
        self.volumes[volume.0 as usize].as_ref().is_some_and(|volume| self.is_idle(volume))
    }

    /// Whether every request at every port of the volume is answered.
    pub(super) fn is_idle(&self, volume: &Volume) -> bool {
        volume.ports.iter().all(|port| self.engine.outstanding(*port) == 0)
    }

    /// Whether exactly one request of the volume is outstanding.
    pub(super) fn is_alone(&self, id: VolumeId) -> bool {
        let ports = self.volumes.get(id.0 as usize).and_then(Option::as_ref).map(|volume| &volume.ports);
        ports.into_iter().flatten().map(|port| self.engine.outstanding(*port)).sum::<u32>() == 1
    }

    /// The bounds of a volume at each port.
    pub(super) fn grants(&self, volume: &Volume) -> Vec<GrantStatus> {
        let name = |i: usize| self.ports.get(i).filter(|_| self.ports.len() > 1).cloned();
        let granted = volume.ports.iter().enumerate();
        granted.filter_map(|(i, port)| Some(GrantStatus::new(name(i), self.engine.grant(*port)?))).collect()
    }
}

impl Volume {
    /// Adds a window of one port that has ended. The windows of all ports end together, and have this
    /// `length` unless the gateway stood still.
    pub(super) fn end_window(&mut self, now: Instant, traffic: WindowTraffic, length: Span) {
        self.ended.push(traffic);
        if self.ended.len() >= self.ports.len() {
            self.stats.end_window(now, &together(&self.ended), length);
            self.ended.clear();
        }
    }
}

/// Adds up what came and went at all ports of a volume.
fn together(ports: &[WindowTraffic]) -> WindowTraffic {
    let sum = |of: fn(&WindowTraffic) -> u64| ports.iter().map(of).sum::<u64>();
    let answered = sum(|port| port.answered);
    let spent: u128 = ports
        .iter()
        .filter_map(|port| Some(u128::from(port.mean_latency?.as_nanos()) * u128::from(port.answered)))
        .sum();
    let mean = spent.checked_div(u128::from(answered)).and_then(|mean| u64::try_from(mean).ok());
    WindowTraffic {
        offered: Offered {
            reads: sum(|port| port.offered.reads),
            writes: sum(|port| port.offered.writes),
            over: ports[0].offered.over,
        },
        answered,
        mean_latency: mean.map(Span::from_nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_of_two_ports_add_up_and_their_mean_is_that_of_all_requests() {
        let window = |reads, answered, mean| WindowTraffic {
            offered: Offered { reads, writes: 1, over: Span::from_secs(1) },
            answered,
            mean_latency: Some(Span::from_millis(mean)),
        };
        let both = together(&[window(10, 9, 10), window(30, 1, 20)]);
        assert_eq!((both.offered.total(), both.answered), (42, 10));
        assert_eq!(both.mean_latency, Some(Span::from_millis(11)));
        let idle = WindowTraffic { answered: 0, mean_latency: None, ..window(0, 0, 0) };
        assert_eq!(together(&[idle, idle]).mean_latency, None);
    }
}
