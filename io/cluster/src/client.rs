//! A gateway's side: one stream to the controller, opened again whenever it ends.
//!
//! One task owns the [`Leaseholder`] and the stream. The caller takes the newest terms from a [`Client`],
//! puts them in force at the engine, and then tells the client. A lease goes on while there is no stream.
//! When it ends, the engine falls back by itself. When the gateway has been alone for long enough, the client
//! has new terms: the whole static part.
//!
//! A gateway of a pool under the law of promises holds no lease. It says how its promises stand, and hears
//! how those of the other gateways do.
//!
//! The wait between attempts grows up to one control interval. It starts again at the first wait only after a
//! stream that lasted for a lease. A stream that is accepted and ended at once is no success. Otherwise two
//! peers that send each other away would do so as fast as they can.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Status, Streaming};
use weir_clock::Clock;
use weir_control::{PortObservation, Standing};
use weir_leases::{Hello, Leaseholder, Report, Terms};
use weir_model::{Instant, Span};

use crate::error::{ClusterError, line};
use crate::proto::cluster_client::ClusterClient;
use crate::proto::{FromController, FromGateway};
use crate::tls::Tls;
use crate::wire;

/// How many messages wait for the task to take them.
const INBOX: usize = 16;
/// How many messages wait for the stream to take them.
const OUTBOX: usize = 16;
/// The first wait after a stream has ended. It doubles for each stream that does not last, up to a control
/// interval: a lease is three intervals, so there is time for several attempts.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// How long a stream has to last for the next wait to be the first again, in control intervals: a lease.
const LASTING: u64 = 3;

/// The gateway's message when its stream ends before the controller has answered. If the controller does not
/// trust a gateway's certificate, it says so in the TLS handshake. By then the gateway has finished its side
/// of the handshake, and sees a broken connection like any other.
const NOT_ACCEPTED: &str = "the connection ended before the gateway was accepted; \
    either the controller does not trust its certificate, or it has just stopped";

/// A gateway and its controller.
#[derive(Clone, Debug)]
pub struct ClientSpec {
    /// The gateway's name: one of the names in its certificate, and in the controller's configuration.
    pub gateway: String,
    /// The address of the controller, `host:port`. Its certificate names the host.
    pub controller: String,
    /// The certificate to show, and the authority to trust.
    pub tls: Tls,
    /// The control interval of the gateway's pool.
    pub interval: Span,
}

/// A gateway and its controller, checked. Whether the controller is there is not checked.
#[derive(Clone, Debug)]
pub struct CheckedSpec {
    spec: ClientSpec,
    endpoint: Endpoint,
}

/// A gateway's link to its controller, until it is dropped.
#[derive(Debug)]
pub struct Client {
    inbox: mpsc::Sender<Inbox>,
    terms: watch::Receiver<Option<Terms>>,
    others: watch::Receiver<Standing>,
    state: watch::Receiver<LinkState>,
    task: JoinHandle<()>,
}

/// News for a gateway.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// The caller puts these terms in force at the engine, and then calls [`Client::applied`]. Earlier terms
    /// that are not yet in force can be left out.
    Terms(Terms),
    /// Of a pool under the law of promises: how the promises of all other gateways stand. Earlier standings
    /// that were not yet taken in can be left out.
    Others(Standing),
    /// The link has changed.
    Link(LinkState),
}

/// Whether there is a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// The first attempt goes on.
    Connecting,
    /// The controller has accepted the gateway.
    Connected,
    /// The stream has ended, or none came to be. The client tries again.
    Lost {
        /// The reason, in a line that names the controller.
        why: String,
    },
}

/// Messages to the task.
enum Inbox {
    Report(Vec<(String, PortObservation)>),
    Applied(Terms),
    Standing(Standing),
}

/// What a gateway has to do with its controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Business {
    /// Its volumes are leased: these, for now.
    Leases(Vec<String>),
    /// Its pool is under the law of promises.
    Promises,
}

impl ClientSpec {
    /// Checks the address and the certificate.
    ///
    /// # Errors
    /// If the controller's address cannot be read, or the certificate cannot be used. It is no error if the
    /// controller is not there.
    pub fn check(self) -> Result<CheckedSpec, ClusterError> {
        Ok(CheckedSpec { endpoint: endpoint(&self)?, spec: self })
    }
}

impl CheckedSpec {
    /// The controller's address.
    pub fn controller(&self) -> &str {
        &self.spec.controller
    }
}

impl Client {
    /// Begins to connect a gateway. It takes the time from `clock`.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(checked: CheckedSpec, clock: Clock, business: Business) -> Self {
        let CheckedSpec { spec, endpoint } = checked;
        let (inbox, messages) = mpsc::channel(INBOX);
        let (set_terms, terms) = watch::channel(None);
        let (set_others, others) = watch::channel(Standing::default());
        let (set_state, state) = watch::channel(LinkState::Connecting);
        let link = Link {
            clock,
            endpoint,
            business,
            holder: Leaseholder::new(draw_run()),
            reports: 0,
            wait: FIRST_WAIT,
            attached: None,
            lasting: spec.interval.saturating_mul(LASTING),
            longest_wait: Duration::from(spec.interval).max(FIRST_WAIT),
            gateway: spec.gateway,
            controller: spec.controller,
            terms: set_terms,
            others: set_others,
            state: set_state,
        };
        let task = tokio::spawn(link.run(messages));
        Self { inbox, terms, others, state, task }
    }

    /// Waits for something new. The caller may drop the future and call again: nothing is lost.
    ///
    /// # Panics
    /// If the client's task has panicked.
    pub async fn next(&mut self) -> Told {
        const GONE: &str = "the task lives as long as the client";
        tokio::select! {
            biased;
            changed = self.terms.changed() => {
                changed.expect(GONE);
                Told::Terms(self.terms.borrow_and_update().clone().expect("never set to none"))
            }
            Ok(()) = self.others.changed() => Told::Others(*self.others.borrow_and_update()),
            changed = self.state.changed() => {
                changed.expect(GONE);
                Told::Link(self.state.borrow_and_update().clone())
            }
        }
    }

    /// Sends the controller the observations of all volumes of the gateway in the control interval that
    /// ended, if there is a stream.
    pub async fn report(&self, volumes: Vec<(String, PortObservation)>) {
        let _ = self.inbox.send(Inbox::Report(volumes)).await;
    }

    /// Tells the controller that these terms are in force at the engine. The caller must not do so earlier:
    /// the controller may then grant other gateways the places that these terms take away.
    pub async fn applied(&self, terms: Terms) {
        let _ = self.inbox.send(Inbox::Applied(terms)).await;
    }

    /// Of a pool under the law of promises: tells the controller how its promises stand, if there is a
    /// stream.
    pub async fn stand(&self, standing: Standing) {
        let _ = self.inbox.send(Inbox::Standing(standing)).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A number that no other run of a gateway has; never zero. It is made from the random keys that the standard
/// library draws for hash maps.
fn draw_run() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

fn endpoint(spec: &ClientSpec) -> Result<Endpoint, ClusterError> {
    let address = |why: String| ClusterError::Address { address: spec.controller.clone(), why };
    let uri: Uri = format!("https://{}", spec.controller).parse().map_err(|error| address(line(&error)))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    uri.port().ok_or_else(|| address("no port".to_owned()))?;
    let interval = Duration::from(spec.interval);
    let endpoint = Endpoint::from(uri)
        .connect_timeout(interval.max(Duration::from_secs(1)))
        .tcp_nodelay(true)
        // Two of these are less than a lease.
        .http2_keep_alive_interval(interval)
        .keep_alive_timeout(interval);
    spec.tls.client(endpoint, &host)
}

/// The task's state.
struct Link {
    clock: Clock,
    endpoint: Endpoint,
    gateway: String,
    controller: String,
    business: Business,
    /// What is leased: nothing under the law of promises.
    holder: Leaseholder,
    /// How many reports were sent on this stream.
    reports: u64,
    /// When the open stream was accepted.
    attached: Option<Instant>,
    /// How long a stream has to last for the next wait to be the first again.
    lasting: Span,
    /// How long to wait before the next attempt.
    wait: Duration,
    longest_wait: Duration,
    terms: watch::Sender<Option<Terms>>,
    others: watch::Sender<Standing>,
    state: watch::Sender<LinkState>,
}

/// How far a stream has come.
enum Stage {
    /// There is none; the wait before the next attempt.
    Waiting(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// A connection is being made.
    Connecting(Pin<Box<dyn Future<Output = Result<ClusterClient<tonic::transport::Channel>, Lost>> + Send>>),
    /// The hello is sent; the controller has not answered.
    Attaching(Up, Pin<Box<dyn Future<Output = Result<Streaming<FromController>, Lost>> + Send>>),
    /// The controller has accepted the gateway.
    Open(Up, Box<Streaming<FromController>>),
}

/// Takes the messages to the controller.
type Up = mpsc::Sender<FromGateway>;

/// Why a stream is over.
type Lost = String;

/// The next event of a stream.
enum Progress {
    Retry,
    Connected(ClusterClient<tonic::transport::Channel>),
    Attached(Streaming<FromController>),
    Told(Box<FromController>),
    Lost(Lost),
}

impl Stage {
    /// Waits for the next event of the stream. The caller may drop the future and call again.
    async fn next(&mut self) -> Progress {
        let progress = match self {
            Self::Waiting(wait) => {
                wait.await;
                Ok(Progress::Retry)
            }
            Self::Connecting(connection) => connection.await.map(Progress::Connected),
            Self::Attaching(_, stream) => stream.await.map(Progress::Attached),
            Self::Open(_, stream) => match stream.message().await {
                Ok(Some(told)) => Ok(Progress::Told(Box::new(told))),
                Ok(None) => Err("the stream has ended".to_owned()),
                Err(status) => Err(said(&status)),
            },
        };
        progress.unwrap_or_else(Progress::Lost)
    }

    const fn up(&self) -> Option<&Up> {
        match self {
            Self::Attaching(up, _) | Self::Open(up, _) => Some(up),
            Self::Waiting(_) | Self::Connecting(_) => None,
        }
    }
}

impl Link {
    async fn run(mut self, mut inbox: mpsc::Receiver<Inbox>) {
        let mut stage = self.connect();
        loop {
            let now = self.clock.now();
            let alone = self.holder.poll_timeout().map_or(Span::MAX, |at| at.saturating_since(now));
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.handle(message, &mut stage),
                    None => return,
                },
                progress = stage.next() => stage = self.proceed(stage, progress),
                () = sleep(alone.into()) => {
                    if let Some(terms) = self.holder.handle_timeout(self.clock.now()) {
                        self.terms.send_replace(Some(terms));
                    }
                }
            }
        }
    }

    fn handle(&mut self, message: Inbox, stage: &mut Stage) {
        let message = match message {
            Inbox::Report(volumes) => {
                self.business = Business::Leases(volumes.iter().map(|(volume, _)| volume.clone()).collect());
                stage.up().map(|_| {
                    self.reports += 1;
                    self.holder.handle_reported(self.clock.now(), self.reports);
                    wire::report_to_wire(&Report { number: self.reports, volumes })
                })
            }
            Inbox::Applied(terms) => self.holder.handle_applied(&terms).map(wire::acknowledged_to_wire),
            Inbox::Standing(standing) => {
                // If the stream does not take it, a newer one soon follows.
                let _ = stage.up().map(|up| up.try_send(wire::standing_to_wire(&standing)));
                None
            }
        };
        if let (Some(message), Some(up)) = (message, stage.up())
            && up.try_send(message).is_err()
        {
            *stage = self.lost("it takes no messages");
        }
    }

    fn proceed(&mut self, stage: Stage, progress: Progress) -> Stage {
        match (progress, stage) {
            (Progress::Retry, _) => self.connect(),
            (Progress::Connected(client), _) => self.attach(client),
            (Progress::Attached(stream), Stage::Attaching(up, _)) => {
                self.attached = Some(self.clock.now());
                self.state.send_replace(LinkState::Connected);
                Stage::Open(up, Box::new(stream))
            }
            (Progress::Told(told), stage) => match self.take(*told) {
                Ok(()) => stage,
                Err(why) => self.lost(&why),
            },
            (Progress::Lost(why), _) => self.lost(&why),
            (Progress::Attached(_), stage) => stage,
        }
    }

    fn connect(&self) -> Stage {
        let endpoint = self.endpoint.clone();
        Stage::Connecting(Box::pin(async move {
            let channel = endpoint.connect().await.map_err(|error| line(&error))?;
            Ok(ClusterClient::new(channel)
                .max_decoding_message_size(wire::MOST_BYTES)
                .max_encoding_message_size(wire::MOST_BYTES))
        }))
    }

    fn attach(&mut self, mut client: ClusterClient<tonic::transport::Channel>) -> Stage {
        let hello = self.hello();
        self.reports = 0;
        let (up, messages) = mpsc::channel(OUTBOX);
        up.try_send(wire::hello_to_wire(&self.gateway, &hello)).expect("it is empty");
        let stream = async move {
            let stream = client.attach(ReceiverStream::new(messages)).await;
            stream.map(tonic::Response::into_inner).map_err(|status| match status.source() {
                Some(_) => NOT_ACCEPTED.to_owned(),
                None => said(&status),
            })
        };
        Stage::Attaching(up, Box::pin(stream))
    }

    fn hello(&mut self) -> Hello {
        let (volumes, is_of_promises): (&[String], _) = match &self.business {
            Business::Leases(volumes) => (volumes, false),
            Business::Promises => (&[], true),
        };
        Hello { is_of_promises, ..self.holder.hello(self.clock.now(), volumes.iter().cloned()) }
    }

    /// Checks a message, and hands on what it says.
    fn take(&mut self, told: FromController) -> Result<(), Lost> {
        if told.version != wire::VERSION {
            return Err(wire::other_version("it", told.version));
        }
        if self.business == Business::Promises {
            let others = told.others.ok_or("it does not say how other gateways stand")?;
            self.others.send_replace(wire::standing(others));
            return Ok(());
        }
        let grants = wire::grants(told).map_err(|wrong| format!("it grants what makes no sense: {wrong}"))?;
        let terms = self.holder.handle_grants(self.clock.now(), &grants);
        self.terms.send_replace(Some(terms));
        Ok(())
    }

    fn lost(&mut self, why: &str) -> Stage {
        let why = format!("controller {}: {why}", self.controller);
        self.state.send_if_modified(|state| {
            let lost = LinkState::Lost { why };
            let is_new = *state != lost;
            *state = lost;
            is_new
        });
        let lasted = self.attached.take().map_or(Span::ZERO, |at| self.clock.now().saturating_since(at));
        if lasted >= self.lasting {
            self.wait = FIRST_WAIT;
        }
        let wait = self.wait;
        self.wait = (wait * 2).min(self.longest_wait);
        Stage::Waiting(Box::pin(sleep(wait)))
    }
}

/// The controller's reason for the end of the stream, or else the error of the stream.
fn said(status: &Status) -> Lost {
    match status.code() {
        Code::FailedPrecondition | Code::PermissionDenied | Code::InvalidArgument => {
            status.message().to_owned()
        }
        _ => format!("the stream has ended: {}", status.message()),
    }
}
