//! The controller's process, driven as `io/cluster/src/server.rs` drives it: after each message and each
//! wait, the controller is told the time, and its messages are sent.

use std::collections::BTreeMap;

use weir_leases::{Connection, Controller, ControllerConfig, VolumeConfig};
use weir_model::Instant;

use super::clock::Clock;
use super::link::{Down, Up};
use super::net::Net;
use super::rules::Rules;

/// The process.
#[derive(Debug)]
pub(super) struct Process {
    clock: Clock,
    config: ControllerConfig,
    volumes: BTreeMap<String, VolumeConfig>,
    controller: Option<Controller>,
    /// Until when it does nothing, because it is paused or was not started again yet.
    idle_until: Instant,
}

impl Process {
    pub(super) fn new(
        clock: Clock,
        config: ControllerConfig,
        volumes: BTreeMap<String, VolumeConfig>,
    ) -> Self {
        Self { clock, config, volumes, controller: None, idle_until: Instant::ORIGIN }
    }

    pub(super) fn pause(&mut self, until: Instant) {
        self.idle_until = self.idle_until.max(until);
    }

    pub(super) fn crash(&mut self, now: Instant, until: Instant, net: &mut Net) {
        self.controller = None;
        self.idle_until = until;
        net.controller_died(now);
    }

    pub(super) fn next_at(&self, net: &Net) -> Instant {
        let Some(controller) = &self.controller else { return self.idle_until };
        let messages = net.streams().map(|(_, stream)| stream.next_up()).min();
        let timer = self.clock.when(controller.poll_timeout());
        self.idle_until.max(messages.unwrap_or(Instant::FAR_FUTURE).min(timer))
    }

    /// Does everything that it can do now.
    pub(super) fn turn(&mut self, now: Instant, net: &mut Net, rules: &dyn Rules) {
        if now < self.idle_until {
            return;
        }
        let shown = self.clock.shows(now);
        let controller = self.controller.get_or_insert_with(|| {
            net.is_controller_up = true;
            Controller::new(shown, self.config.clone(), self.volumes.clone())
        });
        let streams: Vec<_> = net.streams().map(|(key, _)| key).collect();
        for key in streams {
            while let Some(message) = net.stream(key).and_then(|stream| stream.receive_up(now)) {
                handle(controller, shown, now, net, key, message, &self.config);
                controller.handle_timeout(shown);
                drain(controller, shown, now, net, rules);
            }
            let Some(stream) = net.stream(key).filter(|stream| stream.controller_ends <= now) else {
                continue;
            };
            stream.controller_ends = Instant::FAR_FUTURE;
            stream.controller_left = true;
            if let Some(connection) = stream.connection.take() {
                controller.handle_disconnected(shown, connection);
            }
        }
        controller.handle_timeout(shown);
        drain(controller, shown, now, net, rules);
    }
}

fn handle(
    controller: &mut Controller,
    shown: Instant,
    now: Instant,
    net: &mut Net,
    key: u64,
    message: Up,
    config: &ControllerConfig,
) {
    let Some(stream) = net.stream(key) else { return };
    match (message, stream.connection) {
        (Up::Hello(hello), None) => {
            match controller.handle_connected(shown, &config.gateways[stream.gateway], &hello) {
                Ok(connection) => {
                    stream.connection = Some(connection);
                    net.send_down(now, key, Down::Attached);
                }
                Err(_refused) => net.close_by_controller(now, key),
            }
        }
        (Up::Report(report), Some(connection)) => {
            if controller.handle_report(shown, connection, report).is_err() {
                detach(controller, shown, now, net, key, connection);
            }
        }
        (Up::Acknowledged(number), Some(connection)) => {
            controller.handle_acknowledged(shown, connection, number);
        }
        // A stream has one hello, and messages after its end are not read.
        (Up::Hello(_), Some(_)) | (Up::Report(_) | Up::Acknowledged(_), None) => {}
    }
}

fn drain(controller: &mut Controller, shown: Instant, now: Instant, net: &mut Net, rules: &dyn Rules) {
    while let Some((connection, grants)) = controller.poll_grants(shown) {
        let number = grants.number;
        if let Some(key) = stream_of(net, connection) {
            net.send_down(now, key, Down::Grants(grants));
        }
        if rules.forgets_unacknowledged() {
            controller.handle_acknowledged(shown, connection, number);
        }
    }
    let replaced: Vec<_> = net
        .streams()
        .filter_map(|(key, stream)| Some((key, stream.connection?)))
        .filter(|(_, connection)| !controller.is_connected(*connection))
        .collect();
    for (key, connection) in replaced {
        detach(controller, shown, now, net, key, connection);
    }
    while controller.poll_event().is_some() {}
}

fn detach(
    controller: &mut Controller,
    shown: Instant,
    now: Instant,
    net: &mut Net,
    key: u64,
    connection: Connection,
) {
    net.close_by_controller(now, key);
    if let Some(stream) = net.stream(key) {
        stream.connection = None;
    }
    controller.handle_disconnected(shown, connection);
}

fn stream_of(net: &Net, connection: Connection) -> Option<u64> {
    net.streams().find(|(_, stream)| stream.connection == Some(connection)).map(|(key, _)| key)
}
