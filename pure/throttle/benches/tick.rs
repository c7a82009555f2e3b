//! What the agent's decisions cost: 1,000 sessions on 50 resources, half of them members whose packets are
//! delayed. Budgets: 0.3 ms for an interval of 100 ms, counters and plan; 5 ms for a survey each second.

#![allow(missing_docs)] // criterion's macros make a function without

use std::collections::BTreeMap;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};

use criterion::measurement::{Measurement, WallTime};
use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use weir_model::{Instant, Span};
use weir_throttle::{
    BlockCounters, Command, Connection, Device, DeviceNumber, Framework, MEMBER_LASTS, Mapper, Present,
    Session, Settings, Survey, Target, Throttle, plan,
};

const SESSIONS: u32 = 1_000;
const RESOURCES: u32 = 50;
const TICK: Span = Span::from_millis(100);

struct Host {
    throttle: Throttle,
    now: Instant,
    survey: Survey,
    counters: BTreeMap<DeviceNumber, BlockCounters>,
    kernel: Present,
}

impl Host {
    /// Each initiator has a target of its own, and a volume in one of the groups.
    fn new() -> Self {
        let mut survey = Survey::default();
        for k in 0..SESSIONS {
            let device = DeviceNumber { major: 253, minor: k };
            let group = k % RESOURCES;
            let mapper =
                Mapper { name: format!("vg{group}-lv{k}"), uuid: format!("LVM-{group:0>32}{k:0>32}") };
            let known = Device { name: format!("dm-{k}"), mapper: Some(mapper), ..Device::default() };
            survey.devices.insert(device, known);
            let address = Ipv4Addr::from_bits(0x0a01_0000 + k);
            let portal = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 3260));
            let local = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 3260));
            let connection = Connection { local, peer: SocketAddr::from((address, 40_000)) };
            survey.connections.insert(connection);
            survey.interfaces.insert(connection, format!("eth{}", k % 2));
            let session = Session {
                initiator: format!("iqn.2026-01.example.initiator:{k}"),
                addresses: [address.into()].into(),
                written: BTreeMap::new(),
            };
            survey.targets.push(Target {
                framework: Framework::Lio,
                name: format!("iqn.2026-01.example.target:{k},1"),
                portals: [portal].into(),
                luns: [(0, device)].into(),
                sessions: vec![session],
                out_of_reach: None,
            });
        }
        let counters = survey.devices.keys().map(|&device| (device, BlockCounters::default())).collect();
        let throttle = Throttle::new(Settings::new(Span::from_millis(15))).expect("good settings");
        let mut host = Self { throttle, now: Instant::ORIGIN, survey, counters, kernel: Present::default() };
        for _ in 0..5 {
            host.survey();
            (0..10).for_each(|_| host.tick());
        }
        assert_eq!(host.kernel.members.len(), SESSIONS as usize / 2, "half of them are delayed");
        host
    }

    fn survey(&mut self) {
        self.throttle.handle_survey(self.now, &self.survey);
    }

    /// The disks go on. The wait sways around the threshold, so that most delays change in each interval.
    fn load(&mut self) {
        self.now = self.now + TICK;
        let phase = self.now.as_nanos() / TICK.as_nanos();
        for (device, counters) in &mut self.counters {
            counters.reads += 20;
            let slow = (phase + u64::from(device.minor % RESOURCES)) % 7;
            counters.read_millis =
                counters.read_millis.wrapping_add(20 * (9 + u32::try_from(slow).unwrap_or(0)));
            counters.sectors_written += if device.minor < SESSIONS / 2 { 1_000 } else { 0 };
        }
    }

    fn tick(&mut self) {
        self.load();
        self.throttle.handle_counters(self.now, &self.counters);
        let commands = self.plan();
        self.apply(commands);
    }

    fn plan(&mut self) -> Vec<Command> {
        self.throttle.handle_present(&self.kernel);
        plan(&self.kernel, self.throttle.wanted())
    }

    fn apply(&mut self, commands: Vec<Command>) {
        for (_, left) in self.kernel.members.values_mut() {
            *left = Span::from_nanos(left.as_nanos().saturating_sub(TICK.as_nanos()));
        }
        for command in commands {
            match command {
                Command::AddRoot { interface } => {
                    self.kernel.interfaces.insert(interface, BTreeMap::new());
                }
                Command::AddLeaf { interface, leaf, delay }
                | Command::SetDelay { interface, leaf, delay } => {
                    self.kernel.interfaces.entry(interface).or_default().insert(leaf, (delay, true));
                }
                Command::RemoveLeaf { interface, leaf } => {
                    self.kernel.interfaces.entry(interface).or_default().remove(&leaf);
                }
                Command::Enter { leaf, connections } => {
                    self.kernel.members.extend(connections.into_iter().map(|c| (c, (leaf, MEMBER_LASTS))));
                }
                Command::Leave { connections } => {
                    self.kernel.members.retain(|member, _| !connections.contains(member));
                }
                Command::Classify(on) => self.kernel.classifies = on,
            }
        }
    }
}

/// Measures `step` alone, and not what the host does between two steps.
fn measure(bencher: &mut Bencher<'_>, between: impl Fn(&mut Host), step: impl Fn(&mut Host) -> Vec<Command>) {
    let mut host = Host::new();
    bencher.iter_custom(|rounds| {
        let mut took = WallTime.zero();
        for _ in 0..rounds {
            between(&mut host);
            let begun = WallTime.start();
            let commands = black_box(step(&mut host));
            took += WallTime.end(begun);
            host.apply(commands);
        }
        took
    });
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("1000 sessions on 50 resources");
    group.bench_function("an interval: counters and plan", |bencher| {
        measure(bencher, Host::load, |host| {
            host.throttle.handle_counters(host.now, &host.counters);
            host.plan()
        });
    });
    group.bench_function("an interval: plan alone", |bencher| {
        measure(bencher, Host::load, Host::plan);
    });
    group.bench_function("a survey", |bencher| {
        let a_second = |host: &mut Host| (0..10).for_each(|_| host.tick());
        measure(bencher, a_second, |host| {
            host.survey();
            Vec::new()
        });
    });
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
