//! Keeps many transfers waiting at a coordinator, to see its memory: `queue SOCKET TRANSFERS NODES`.
//!
//! It asks for as many puts, of the nodes `n0` to `n99` and so on, says how long that took, and holds on
//! until standard input ends. It moves no data.

use std::io::Read;
use std::path::PathBuf;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Endpoint, Uri};
use weir_clock::Clock;
use weir_coordinator::proto::coordinator_client::CoordinatorClient;
use weir_coordinator::proto::from_client::Message;
use weir_coordinator::proto::{Ask, FromClient, Kind};

/// How many streams a connection has.
const STREAMS: u64 = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: queue SOCKET TRANSFERS NODES");
    let (socket, transfers, nodes) =
        (PathBuf::from(next()?), next()?.parse::<u64>()?, next()?.parse::<u64>()?);
    let names: Vec<_> = (0..nodes).map(|node| format!("n{node}")).collect();
    let clock = Clock::new();
    let began = clock.now();
    let mut held = Vec::new();
    for first in (0..transfers).step_by(usize::try_from(STREAMS)?) {
        let socket = socket.clone();
        let connect = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await?;
        let mut client = CoordinatorClient::new(channel);
        for number in first..transfers.min(first + STREAMS) {
            let ask = Ask {
                version: 1,
                kind: Kind::Put.into(),
                name: format!("object-{number}"),
                bytes: Some(1_000_000_000),
                nodes: names.clone(),
                replicas: 1,
                run: format!("run-{number}"),
                source: format!("source-{number}"),
                ..Ask::default()
            };
            let (outbox, messages) = mpsc::channel(1);
            outbox.send(FromClient { message: Some(Message::Ask(ask)) }).await?;
            let answers = client.transfer(ReceiverStream::new(messages)).await?.into_inner();
            held.push((outbox, answers));
        }
    }
    let took = clock.now().since(began).as_secs_f64();
    println!("{} transfers asked for in {took:.1} s", held.len());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
