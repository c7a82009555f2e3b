//! Every comparison with another server, and its bar. The rest of the speed benchmark works through this
//! table.

use std::fmt;

use serde::Serialize;

use super::report::Bar;

/// The share of a bar's strictness that counts over TCP loopback. Over a unix socket the whole bar counts.
const TCP_ALLOWANCE: f64 = 0.9;

/// One load, put on weir and on a rival in turn.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Case {
    pub(super) rival: Rival,
    pub(super) store: Store,
    pub(super) transport: Transport,
    pub(super) load: Load,
    pub(super) bars: Bars,
}

/// The rival of weir, which runs with control and an SLO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rival {
    /// The same program with `control = "none"`.
    WeirWithoutControl,
    QemuNbd,
    Nbdkit,
    /// Another build of the same program, in the same configuration. It shows the cost of a change.
    OtherBuild,
}

/// Where the volume keeps its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Store {
    File,
    Memory,
}

/// The transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transport {
    Unix,
    Tcp,
}

/// The client's load: random requests in a closed loop, over one connection.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Load {
    pub(super) client: Client,
    pub(super) access: Access,
    pub(super) kib: u32,
    pub(super) depth: u32,
}

/// The client. fio is common, but becomes the limit itself above some 250,000 IO/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Client {
    Fio,
    WeirLoad,
}

/// The kind of the requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Access {
    Read,
    Write,
}

/// The bars of a comparison. A figure without a bar is only reported.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Bars {
    /// For the ratio of the rates.
    pub(super) rate: Option<Bar>,
    /// For the ratio of the server's CPU times for each request.
    pub(super) cpu: Option<Bar>,
    /// For the difference of the server's CPU times for each request, in microseconds.
    pub(super) extra_cpu_us: Option<Bar>,
    /// For the ratio of the median latencies.
    pub(super) p50: Option<Bar>,
}

/// All of them, in the order in which they are measured.
pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for transport in [Transport::Unix, Transport::Tcp] {
        cases.extend(against_qemu_nbd(transport));
        cases.push(against_nbdkit_file(transport));
    }
    cases.extend([(32, 3.0), (128, 4.0)].map(|(depth, rate)| Case {
        rival: Rival::Nbdkit,
        store: Store::Memory,
        transport: Transport::Unix,
        load: Load { client: Client::WeirLoad, access: Access::Read, kib: 4, depth },
        bars: Bars { rate: Some(Bar::AtLeast(rate)), ..Bars::default() },
    }));
    cases.extend(price_of_control());
    cases
}

fn against_qemu_nbd(transport: Transport) -> impl Iterator<Item = Case> {
    let at_least = |ratio| Some(Bar::AtLeast(ratio));
    let at_most = |ratio| Some(Bar::AtMost(ratio));
    let loads = [
        (4, 32, Bars { rate: at_least(1.15), cpu: at_most(0.5), ..Bars::default() }),
        (4, 128, Bars { rate: at_least(1.4), ..Bars::default() }),
        (4, 1, Bars { p50: at_most(1.0), ..Bars::default() }),
        (128, 32, Bars { rate: at_least(0.95), cpu: at_most(0.6), ..Bars::default() }),
    ];
    loads.into_iter().flat_map(move |(kib, depth, bars)| {
        [Access::Read, Access::Write].map(|access| Case {
            rival: Rival::QemuNbd,
            store: Store::File,
            transport,
            load: Load { client: Client::Fio, access, kib, depth },
            bars: bars.over(transport),
        })
    })
}

fn against_nbdkit_file(transport: Transport) -> Case {
    let bars = Bars { rate: Some(Bar::AtLeast(1.8)), ..Bars::default() };
    Case {
        rival: Rival::Nbdkit,
        store: Store::File,
        transport,
        load: Load { client: Client::Fio, access: Access::Read, kib: 4, depth: 32 },
        bars: bars.over(transport),
    }
}

/// The cost of control: at most 3 % of the rate of a file, 15 % of the rate of memory, and 0.3 us of a core
/// for each request.
fn price_of_control() -> impl Iterator<Item = Case> {
    let cases = [
        (Store::File, Client::Fio, Access::Read, 32, 0.97),
        (Store::File, Client::Fio, Access::Write, 32, 0.97),
        (Store::Memory, Client::WeirLoad, Access::Read, 128, 0.85),
    ];
    cases.into_iter().map(|(store, client, access, depth, rate)| Case {
        rival: Rival::WeirWithoutControl,
        store,
        transport: Transport::Unix,
        load: Load { client, access, kib: 4, depth },
        bars: Bars {
            rate: Some(Bar::AtLeast(rate)),
            extra_cpu_us: Some(Bar::AtMost(0.3)),
            ..Bars::default()
        },
    })
}

/// The same load on two builds. A change may cost 2 % of the rate and of the CPU time for each request.
pub(super) fn against_other_build() -> Vec<Case> {
    let loads = [
        (Store::File, Client::Fio, Access::Read, 32, Transport::Unix),
        (Store::File, Client::Fio, Access::Write, 32, Transport::Unix),
        (Store::Memory, Client::WeirLoad, Access::Read, 1, Transport::Unix),
        (Store::Memory, Client::WeirLoad, Access::Read, 128, Transport::Unix),
        (Store::Memory, Client::WeirLoad, Access::Write, 128, Transport::Unix),
        (Store::Memory, Client::WeirLoad, Access::Read, 32, Transport::Tcp),
    ];
    let case = |(store, client, access, depth, transport)| Case {
        rival: Rival::OtherBuild,
        store,
        transport,
        load: Load { client, access, kib: 4, depth },
        bars: Bars { rate: Some(Bar::AtLeast(0.98)), cpu: Some(Bar::AtMost(1.02)), ..Bars::default() },
    };
    loads.map(case).to_vec()
}

impl Case {
    /// Its name, such as `file-read-4k-d32-unix-qemu-nbd`.
    pub(super) fn name(&self) -> String {
        let Self { rival, store, transport, load, .. } = self;
        format!("{store}-{}-{}k-d{}-{transport}-{rival}", load.access, load.kib, load.depth)
    }

    /// The number of rounds: twice as many if a few percent decide.
    pub(super) fn rounds(&self, usual: u32) -> u32 {
        match self.rival {
            Rival::WeirWithoutControl | Rival::OtherBuild => 2 * usual,
            Rival::QemuNbd | Rival::Nbdkit => usual,
        }
    }
}

impl Bars {
    /// The same bar, eased for TCP.
    fn over(self, transport: Transport) -> Self {
        if transport == Transport::Unix {
            return self;
        }
        let ease = |bar: Option<Bar>| bar.map(|bar| bar.eased(TCP_ALLOWANCE));
        Self {
            rate: ease(self.rate),
            cpu: ease(self.cpu),
            p50: ease(self.p50),
            extra_cpu_us: self.extra_cpu_us,
        }
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WeirWithoutControl => "without-control",
            Self::QemuNbd => "qemu-nbd",
            Self::Nbdkit => "nbdkit",
            Self::OtherBuild => "other-build",
        })
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Memory => "memory",
        })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unix => "unix",
            Self::Tcp => "tcp",
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_case_has_a_name_of_its_own_and_a_bar() {
        let cases = || all().into_iter().chain(against_other_build());
        let names: BTreeSet<String> = cases().map(|case| case.name()).collect();
        assert_eq!(names.len(), cases().count());
        assert!(names.contains("file-read-4k-d32-unix-qemu-nbd"));
        assert!(names.contains("memory-read-4k-d128-unix-without-control"));
        for case in cases() {
            let Bars { rate, cpu, extra_cpu_us, p50 } = case.bars;
            assert!([rate, cpu, extra_cpu_us, p50].iter().any(Option::is_some), "{}", case.name());
        }
    }

    #[test]
    fn tcp_may_be_a_tenth_worse_in_each_direction() {
        let bars = Bars { rate: Some(Bar::AtLeast(2.0)), p50: Some(Bar::AtMost(0.9)), ..Bars::default() };
        let eased = bars.over(Transport::Tcp);
        assert_eq!(eased.rate, Some(Bar::AtLeast(1.8)));
        assert_eq!(eased.p50, Some(Bar::AtMost(1.0)));
        assert_eq!(bars.over(Transport::Unix).rate, bars.rate);
    }
}
