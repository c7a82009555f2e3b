//! The controller's client in a gateway's process, like `io/cluster/src/client.rs`: one stream, opened again
//! whenever it ends, after growing waits.

use weir_control::PortObservation;
use weir_leases::{Leaseholder, Report, Terms};
use weir_model::{Instant, Span};

use super::clock::Clock;
use super::link::{Down, Up};
use super::net::Net;
use super::promise::{Promise, Promises};
use super::surroundings::Surroundings;

/// The first wait after a stream has ended.
const FIRST_WAIT: Span = Span::from_millis(50);
/// For how many control intervals a stream has to last, so that the next wait is the first one again.
const LASTING: u64 = 3;

/// The client.
#[derive(Debug)]
pub(super) struct Uplink {
    gateway: usize,
    interval: Span,
    volumes: Vec<String>,
    holder: Leaseholder,
    stage: Stage,
    reports: u64,
    wait: Span,
    /// When the stream was accepted.
    attached: Option<Instant>,
    /// The newest terms that are to be put in force.
    terms: Option<(Terms, Option<Promise>)>,
}

/// The state of the stream.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// There is none, until this instant of the local clock.
    Waiting(Instant),
    /// A connection is being made: the true instant at which the outcome is known, and whether it is a
    /// success.
    Connecting(Instant, bool),
    /// The hello was sent on the stream with this key.
    Open(u64),
}

impl Uplink {
    pub(super) fn new(
        shown: Instant,
        gateway: usize,
        run: u64,
        interval: Span,
        volumes: Vec<String>,
    ) -> Self {
        Self {
            gateway,
            interval,
            volumes,
            holder: Leaseholder::new(run),
            stage: Stage::Waiting(shown),
            reports: 0,
            wait: FIRST_WAIT,
            attached: None,
            terms: None,
        }
    }

    /// The first true instant at which there is something to do.
    pub(super) fn next_at(&self, clock: Clock, net: &mut Net) -> Instant {
        let stage = match self.stage {
            Stage::Waiting(until) => clock.when(until),
            Stage::Connecting(at, _) => at,
            Stage::Open(stream) => net.stream(stream).map_or(Instant::ORIGIN, |stream| stream.next_down()),
        };
        stage.min(self.holder.poll_timeout().map_or(Instant::FAR_FUTURE, |at| clock.when(at)))
    }

    pub(super) fn turn(&mut self, shown: Instant, around: &mut Surroundings<'_>, promises: &mut Promises) {
        match self.stage {
            Stage::Waiting(until) if until <= shown => {
                let (at, is_there) = around.net.dial(around.now, self.gateway);
                self.stage = Stage::Connecting(at, is_there);
            }
            Stage::Connecting(at, is_there) if at <= around.now => {
                if is_there {
                    self.attach(shown, around, promises)
                } else {
                    self.lost(shown)
                }
            }
            Stage::Open(stream) => self.read(shown, stream, around, promises),
            Stage::Waiting(_) | Stage::Connecting(..) => {}
        }
        if let Some(terms) = self.holder.handle_timeout(shown)
            && around.rules.takes_fallback()
        {
            self.terms = Some((terms, None));
        }
    }

    /// The newest terms that are to be put in force.
    pub(super) fn poll_terms(&mut self) -> Option<(Terms, Option<Promise>)> {
        self.terms.take()
    }

    /// Terms are in force.
    pub(super) fn handle_applied(&mut self, terms: &Terms, around: &mut Surroundings<'_>) {
        if let (Some(number), Stage::Open(stream)) = (self.holder.handle_applied(terms), self.stage) {
            around.net.send_up(around.now, stream, Up::Acknowledged(number));
        }
    }

    /// Reports what the volumes got in the interval that ended.
    pub(super) fn report(
        &mut self,
        shown: Instant,
        volumes: Vec<(String, PortObservation)>,
        around: &mut Surroundings<'_>,
        promises: &mut Promises,
    ) {
        if let Stage::Open(stream) = self.stage {
            self.reports += 1;
            self.holder.handle_reported(shown, self.reports);
            promises.on_sent(shown, self.reports);
            let report = Report { number: self.reports, volumes };
            around.net.send_up(around.now, stream, Up::Report(report));
        }
    }

    fn attach(&mut self, shown: Instant, around: &mut Surroundings<'_>, promises: &mut Promises) {
        let hello = self.holder.hello(shown, self.volumes.iter().cloned());
        self.reports = 0;
        promises.on_hello(shown);
        let stream = around.net.open(around.now, self.gateway);
        around.net.send_up(around.now, stream, Up::Hello(hello));
        self.stage = Stage::Open(stream);
    }

    fn read(&mut self, shown: Instant, stream: u64, around: &mut Surroundings<'_>, promises: &mut Promises) {
        while let Some(message) = around.net.stream(stream).and_then(|open| open.receive_down(around.now)) {
            match message {
                Down::Attached => self.attached = Some(shown),
                Down::Grants(grants) => {
                    let terms = self.holder.handle_grants(shown, &grants);
                    let promise = promises.on_received(shown, &grants);
                    self.terms = Some((terms, Some(promise)));
                }
            }
        }
        if around.net.stream(stream).is_none_or(|open| open.gateway_ends <= around.now) {
            around.net.close_by_gateway(around.now, stream);
            self.lost(shown);
        }
    }

    fn lost(&mut self, shown: Instant) {
        let lasted = self.attached.take().map_or(Span::ZERO, |at| shown.saturating_since(at));
        if lasted >= self.interval.saturating_mul(LASTING) {
            self.wait = FIRST_WAIT;
        }
        self.stage = Stage::Waiting(shown + self.wait);
        self.wait = self.wait.saturating_mul(2).min(self.interval.max(FIRST_WAIT));
    }
}
