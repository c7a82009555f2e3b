//! The messages between gateways and their controller: as bytes, by their meaning, and their effect on both
//! sides.
//!
//! The first byte of a piece says what happens: one of three gateways speaks, the controller speaks to a
//! gateway, a stream ends, or time passes.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use weir_cluster::messages::{
    FromController, FromGateway, controller_bytes, from_controller, from_gateway, gateway_bytes,
};
use weir_control::{Grant, Limits, PortObservation, Standing, Strain, TotalConcurrency};
use weir_leases::{
    Connection, Controller, ControllerConfig, Grants, Held, Hello, Leaseholder, Messenger, Report,
    VolumeConfig, VolumeGrant,
};
use weir_model::{Bandwidth, Instant, Iops, MilliIops, Objective, Priority, Span, Target as Metric};

use super::Target;
use super::bytes::Bytes;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "cluster",
    run,
    seeds,
    words: &[b"oltp", b"\x08\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &[0], &[7]],
    must_reach: &[
        "hello",
        "refused",
        "report",
        "acknowledged",
        "granted",
        "nonsense",
        "terms",
        "ended",
        "alone",
        "hello of promises",
        "standing",
        "told",
        "others",
    ],
};

const GATEWAYS: [&str; 3] = ["one", "two", "stranger"];

fn some_grant(concurrency: u32) -> Grant {
    Grant {
        concurrency: NonZeroU32::new(concurrency).unwrap_or(NonZeroU32::MIN),
        max_iops: MilliIops::new(150_500),
        max_bandwidth: Bandwidth::new(1 << 20),
    }
}

fn say(who: u8, message: &FromGateway) -> Vec<u8> {
    [&[who][..], &gateway_bytes(message)].concat()
}

fn time(seconds: u32) -> Vec<u8> {
    [&[7][..], &(seconds * 1_000_000).to_be_bytes()].concat()
}

/// Two gateways under the law of promises.
fn promised(standing: Standing) -> Vec<Vec<u8>> {
    let promises = |gateway: &str| FromGateway::Hello {
        gateway: gateway.to_owned(),
        hello: Hello { run: 1, is_of_promises: true, ..Hello::default() },
    };
    vec![
        say(0, &promises("one")),
        say(1, &promises("two")),
        say(0, &FromGateway::Standing(standing)),
        say(1, &FromGateway::Standing(Standing::default())),
        time(1),
        vec![4],
        time(3),
    ]
}

fn seeds() -> Vec<Script> {
    let hello = |gateway: &str| FromGateway::Hello {
        gateway: gateway.to_owned(),
        hello: Hello {
            run: 1,
            volumes: ["oltp", "backup"]
                .map(|volume| Held {
                    volume: volume.to_owned(),
                    grant: some_grant(4),
                    fallback: some_grant(1),
                })
                .into(),
            left: Span::from_secs(3),
            is_of_promises: false,
        },
    };
    let strain = Strain { window: 0.9, lately: 0.8, likely: 0.9, latency: 0.01, service: 0.001 };
    let standing =
        Standing { is_promised: true, is_there: true, strain: Some(strain), ..Standing::default() };
    let report = |number| {
        let seen = PortObservation {
            over: Span::from_secs(2),
            arrived: 200,
            arrived_bytes: 200 << 12,
            answered: 190,
            answered_bytes: 190 << 12,
            latency_sum: Span::from_secs(1),
            at_device: 3.5,
            outstanding: 9.0,
            bound: NonZeroU32::new(4),
            ..PortObservation::default()
        };
        FromGateway::Report(Report { number, volumes: vec![("oltp".to_owned(), seen)] })
    };
    let grants = Grants {
        number: 1,
        answers: 1,
        lease: Span::from_secs(6),
        alone_after: Span::from_secs(18),
        volumes: vec![VolumeGrant {
            volume: "oltp".to_owned(),
            grant: some_grant(9),
            fallback: some_grant(2),
        }],
    };
    let life = vec![
        say(0, &hello("one")),
        say(1, &hello("two")),
        say(0, &FromGateway::Acknowledged(1)),
        say(1, &FromGateway::Acknowledged(1)),
        say(0, &report(1)),
        say(1, &report(1)),
        time(2),
        say(0, &FromGateway::Acknowledged(2)),
        say(0, &report(2)),
        time(2),
        vec![4],
        time(20),
    ];
    let told = vec![
        [&[3][..], &controller_bytes(&FromController::Grants(grants))].concat(),
        [&[3][..], &controller_bytes(&FromController::Others(standing))].concat(),
        time(3),
        time(30),
        say(2, &hello("stranger")),
        vec![0, 255],
    ];
    vec![Script::new(life), Script::new(told), Script::new(promised(standing))]
}

struct World {
    now: Instant,
    controller: Controller,
    streams: BTreeMap<usize, Connection>,
    messenger: Messenger,
    /// The streams of gateways under the law of promises.
    promised: BTreeMap<usize, Connection>,
    /// By stream: the number of the last grants.
    last: BTreeMap<Connection, u64>,
    holder: Leaseholder,
}

fn run(script: &Script, seen: &mut Seen) {
    let mut world = World::new(script.pieces.len().is_multiple_of(2));
    for piece in &script.pieces {
        seen.message();
        world.hear(piece, seen);
        world.drain(seen);
    }
}

impl World {
    fn new(is_auto: bool) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let fixed = TotalConcurrency::Fixed(NonZeroU32::new(40).unwrap_or(NonZeroU32::MIN));
        let total = if is_auto { TotalConcurrency::Auto } else { fixed };
        let gateways = GATEWAYS[..2].iter().map(|name| (*name).to_owned()).collect();
        let config = ControllerConfig { total, interval: Span::from_secs(2), gateways };
        let objective = Objective {
            target: Some(Metric::Latency(Span::from_millis(5))),
            priority: Priority::new(2.0).unwrap_or_default(),
        };
        let limits = Limits { max_iops: Iops::new(1000.0), ..Limits::default() };
        let volumes = [
            ("oltp".to_owned(), VolumeConfig { objective, ..VolumeConfig::default() }),
            ("backup".to_owned(), VolumeConfig { limits, ..VolumeConfig::default() }),
        ];
        let mut holder = Leaseholder::new(1);
        holder.hello(now, ["oltp".to_owned()]);
        holder.handle_reported(now, 1);
        let controller = Controller::new(now, config, volumes);
        let messenger = Messenger::new(now, GATEWAYS[..2].iter().map(|name| (*name).to_owned()));
        Self {
            now,
            controller,
            streams: BTreeMap::new(),
            messenger,
            promised: BTreeMap::new(),
            last: BTreeMap::new(),
            holder,
        }
    }

    fn hear(&mut self, piece: &[u8], seen: &mut Seen) {
        let mut bytes = Bytes::new(piece);
        match bytes.u8() % 8 {
            who @ 0..=2 => self.hear_gateway(who.into(), bytes.rest(), seen),
            3 => self.hear_controller(bytes.rest(), seen),
            who @ 4..=6 => {
                if let Some(connection) = self.streams.remove(&usize::from(who - 4)) {
                    seen.reach("ended");
                    self.controller.handle_disconnected(self.now, connection);
                    assert!(!self.controller.is_connected(connection));
                }
                if let Some(connection) = self.promised.remove(&usize::from(who - 4)) {
                    self.messenger.handle_disconnected(self.now, connection);
                    assert!(!self.messenger.is_connected(connection));
                }
            }
            _ => {
                self.now = self.now + Span::from_micros(bytes.u32().into());
                self.controller.handle_timeout(self.now);
                self.messenger.handle_timeout(self.now);
                if let Some(terms) = self.holder.handle_timeout(self.now) {
                    seen.reach("alone");
                    assert_eq!(self.holder.handle_applied(&terms), None, "nobody is told");
                }
            }
        }
    }

    fn hear_gateway(&mut self, who: usize, bytes: &[u8], seen: &mut Seen) {
        let message = match from_gateway(bytes) {
            Ok(message) => message,
            Err(why) => {
                assert!(!why.is_empty());
                return seen.reach("nonsense");
            }
        };
        assert_eq!(from_gateway(&gateway_bytes(&message)), Ok(message.clone()), "it is said again");
        match message {
            // The certificate says which gateway it is, whatever the hello says.
            FromGateway::Hello { hello, .. } if hello.is_of_promises => {
                assert!(self.controller.handle_connected(self.now, GATEWAYS[who], &hello).is_err());
                match self.messenger.handle_connected(self.now, GATEWAYS[who], &hello) {
                    Ok(connection) => {
                        seen.reach("hello of promises");
                        self.promised.insert(who, connection);
                    }
                    Err(_) => seen.reach("refused"),
                }
            }
            FromGateway::Hello { hello, .. } => {
                match self.controller.handle_connected(self.now, GATEWAYS[who], &hello) {
                    Ok(connection) => {
                        seen.reach("hello");
                        self.streams.insert(who, connection);
                    }
                    Err(refused) => {
                        seen.reach("refused");
                        assert!(!refused.to_string().is_empty());
                    }
                }
            }
            FromGateway::Report(report) => {
                let Some(connection) = self.streams.get(&who) else { return };
                seen.reach("report");
                if self.controller.handle_report(self.now, *connection, report).is_err() {
                    seen.reach("refused");
                }
            }
            FromGateway::Standing(standing) => {
                let Some(connection) = self.promised.get(&who) else { return };
                seen.reach("standing");
                self.messenger.handle_standing(self.now, *connection, standing);
            }
            FromGateway::Acknowledged(number) => {
                let Some(connection) = self.streams.get(&who) else { return };
                seen.reach("acknowledged");
                self.controller.handle_acknowledged(self.now, *connection, number);
            }
        }
    }

    fn hear_controller(&mut self, bytes: &[u8], seen: &mut Seen) {
        let Ok(message) = from_controller(bytes) else { return seen.reach("nonsense") };
        assert_eq!(from_controller(&controller_bytes(&message)), Ok(message.clone()), "it is said again");
        let FromController::Grants(grants) = message else { return seen.reach("others") };
        let terms = self.holder.handle_grants(self.now, &grants);
        seen.reach("terms");
        assert!(terms.in_force(self.now).len() <= grants.volumes.len());
        assert_eq!(self.holder.handle_applied(&terms), Some(grants.number));
    }

    /// Does what a driver does after each message, and looks at what an operator can see.
    fn drain(&mut self, seen: &mut Seen) {
        while let Some((connection, grants)) = self.controller.poll_grants(self.now) {
            seen.reach("granted");
            assert!(self.controller.is_connected(connection));
            let last = self.last.insert(connection, grants.number);
            assert!(last < Some(grants.number), "{last:?}, then {}", grants.number);
            let message = FromController::Grants(grants);
            assert_eq!(from_controller(&controller_bytes(&message)), Ok(message));
        }
        while self.controller.poll_event().is_some() {}
        let mut told = 0;
        while let Some((connection, others)) = self.messenger.poll_message(self.now) {
            seen.reach("told");
            told += 1;
            assert!(self.messenger.is_connected(connection) && told <= 2, "one message for each gateway");
            let message = FromController::Others(others);
            assert_eq!(from_controller(&controller_bytes(&message)), Ok(message));
        }
        while self.messenger.poll_event().is_some() {}
        let status = self.controller.status(self.now);
        // For each of the two names: the configured gateway, and at most four earlier runs that may hold
        // something.
        assert!((2..=2 * (1 + 4)).contains(&status.gateways.len()), "{}", status.gateways.len());
        assert!(
            self.controller.history().all(|record| record
                .volumes
                .iter()
                .all(|volume| volume.total() > 0 || volume.split.is_empty()))
        );
    }
}
