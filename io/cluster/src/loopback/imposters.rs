//! Peers of another version: each side says in a line which it found and which it accepts.

use std::pin::Pin;

use tokio::net::TcpListener;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, iter};
use tonic::transport::Endpoint;
use tonic::{Code, Request, Response, Status, Streaming};
use weir_controller::Hello;

use super::certificates::Authority;
use super::{connect, refusal, serve};
use crate::proto::cluster_client::ClusterClient;
use crate::proto::cluster_server::{Cluster, ClusterServer};
use crate::proto::{FromController, FromGateway, from_gateway::Message};
use crate::wire;

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
    let line = "gateway \"gateway1\" speaks another version of the protocol: found 9, accepted: 1";
    assert_eq!(status.message(), line);
}

#[tokio::test]
async fn who_does_not_say_hello_first_is_refused() {
    let authority = Authority::new();
    let server = serve(&authority, "127.0.0.1:0").await;
    let status = say(&authority, server.address().to_string(), wire::acknowledged_to_wire(1)).await;
    assert_eq!(status.message(), "the first message is no hello");
}

/// A controller of another version, which accepts everybody.
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
        format!("controller {address}: it speaks another version of the protocol: found 9, accepted: 1");
    assert_eq!(why, line);
}
