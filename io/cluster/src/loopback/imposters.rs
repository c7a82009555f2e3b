//! Peers of another version: each side says in a line which version it found and which it accepts.

use std::pin::Pin;

use tokio::net::TcpListener;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt, iter, pending};
use tonic::transport::Endpoint;
use tonic::{Code, Request, Response, Status, Streaming};
use weir_clock::Clock;
use weir_control::PortObservation;
use weir_leases::{Hello, Report};
use weir_model::{Instant, Span};

use super::certificates::Authority;
use super::{connect, refusal, serve};
use crate::proto::cluster_client::ClusterClient;
use crate::proto::cluster_server::{Cluster, ClusterServer};
use crate::proto::{FromController, FromGateway, from_gateway::Message};
use crate::{LinkState, wire};

async fn say(authority: &Authority, controller: String, first: FromGateway) -> Status {
    let endpoint = Endpoint::from_shared(format!("https://{controller}")).unwrap();
    let endpoint = authority.issue("gateway1").client(endpoint, "127.0.0.1").unwrap();
    let mut client = ClusterClient::new(endpoint.connect().await.unwrap());
    client.attach(iter([first])).await.unwrap_err()
}

#[tokio::test]
async fn a_gateway_of_another_version_is_refused_in_one_line() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let mut hello = wire::hello_to_wire("gateway1", &Hello::default());
    if let Some(Message::Hello(hello)) = &mut hello.message {
        hello.version = 9;
    }
    let status = say(&authority, server.address().to_string(), hello).await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    let line = "gateway \"gateway1\" speaks another version of the protocol: found 9, accepted: 4";
    assert_eq!(status.message(), line);
}

#[tokio::test]
async fn who_does_not_say_hello_first_is_refused() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let status = say(&authority, server.address().to_string(), wire::acknowledged_to_wire(1)).await;
    assert_eq!(status.message(), "the first message is no hello");
}

/// A controller of another version, which accepts every gateway.
struct Newer;

#[tonic::async_trait]
impl Cluster for Newer {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<FromController, Status>> + Send>>;

    async fn attach(
        &self,
        _: Request<Streaming<FromGateway>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let (grants, stream) = tokio::sync::mpsc::channel(1);
        grants.try_send(Ok(FromController { version: 9, ..FromController::default() })).unwrap();
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

#[tokio::test]
async fn a_controller_of_another_version_is_refused_in_one_line() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = authority.issue("127.0.0.1").server().unwrap();
    let served =
        server.add_service(ClusterServer::new(Newer)).serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(served);
    let mut client = connect(&authority, "gateway1", "gateway1", address);
    let why = refusal(&mut client).await;
    let line =
        format!("controller {address}: it speaks another version of the protocol: found 9, accepted: 4");
    assert_eq!(why, line);
}

#[tokio::test]
async fn a_second_gateway_of_one_name_is_refused_with_the_address_of_the_first_which_stays() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let mut first = connect(&authority, "gateway1", "gateway1", server.address());
    super::link(&mut first, |state| *state == LinkState::Connected).await;
    let mut second = connect(&authority, "gateway1", "gateway1", server.address());
    let why = refusal(&mut second).await;
    let line = "gateway gateway1 is connected already, from 127.0.0.1:";
    assert!(why.contains(line) && why.contains("accepted: one gateway of each name"), "{why}");
    // The first is still listened to: what it reports is answered.
    super::obey(&mut first, |terms| super::requests(terms) > 1).await;
    assert!(super::status(&server).await.gateways[0].connected);
}

#[tokio::test]
async fn a_message_that_makes_no_sense_ends_its_stream_and_says_why() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let endpoint = Endpoint::from_shared(format!("https://{}", server.address())).unwrap();
    let endpoint = authority.issue("gateway1").client(endpoint, "127.0.0.1").unwrap();
    let mut client = ClusterClient::new(endpoint.connect().await.unwrap());
    let hello = Hello { run: 1, ..Hello::default() };
    let mut report = wire::report_to_wire(&Report {
        number: 1,
        volumes: vec![("oltp".to_owned(), PortObservation::default())],
    });
    if let Some(Message::Report(report)) = &mut report.message {
        report.volumes[0].outstanding = f64::NAN;
    }
    let says = iter([wire::hello_to_wire("gateway1", &hello), report]).chain(pending());
    let mut stream = client.attach(says).await.unwrap().into_inner();
    let status = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ends without a word"),
            Err(status) => break status,
        }
    };
    let line = "a message makes no sense: found volume oltp: NaN requests outstanding; \
                accepted: from 0 to 1099511627776";
    assert_eq!(status.message(), line);
}

/// A controller that accepts every gateway and ends each stream at once.
struct Fickle(std::sync::Arc<std::sync::Mutex<Vec<Instant>>>);

#[tonic::async_trait]
impl Cluster for Fickle {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<FromController, Status>> + Send>>;

    async fn attach(
        &self,
        _: Request<Streaming<FromGateway>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        self.0.lock().unwrap().push(Clock::new().now());
        Ok(Response::new(Box::pin(iter([]))))
    }
}

#[tokio::test]
async fn a_stream_that_does_not_last_ends_no_back_off() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = authority.issue("127.0.0.1").server().unwrap();
    let attempts = std::sync::Arc::<std::sync::Mutex<Vec<Instant>>>::default();
    let served = server
        .add_service(ClusterServer::new(Fickle(attempts.clone())))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(served);
    let mut client = connect(&authority, "gateway1", "gateway1", address);
    while attempts.lock().unwrap().len() < 6 {
        client.next().await;
    }
    // Each wait is at least its own length, however slow the machine is.
    let attempts = attempts.lock().unwrap();
    let waited = attempts[5].since(attempts[0]);
    let least: u64 = [50, 100, 200, 400, 500].into_iter().sum();
    assert!(waited >= Span::from_millis(least), "{waited} for five attempts");
}
