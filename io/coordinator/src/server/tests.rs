//! A coordinator with a client whose machine has gone: its connection is open, and nobody answers there.

use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::{advance, pause};
use tonic::transport::{Endpoint, Uri};
use weir_model::Bandwidth;
use weir_transfer::PolicyName;

use super::*;
use crate::desk::NodeConfig;
use crate::proto::coordinator_client::CoordinatorClient;
use crate::proto::from_client::Message as Said;
use crate::proto::{Ask, FromClient, Kind, State};

/// A desk whose only node is down, so that everything waits.
fn desk() -> DeskConfig {
    let node = NodeConfig {
        name: "a".to_owned(),
        url: String::new(),
        peak_read: None,
        peak_write: None,
        class: 0,
        cost: 0,
        capacity: None,
        domain: "a".to_owned(),
    };
    let rate = Bandwidth::new(10_000_000).unwrap();
    DeskConfig {
        policy: PolicyName::Deadline.policy(),
        classes: vec!["bronze".to_owned()],
        rate,
        nodes: vec![node],
    }
}

/// Asks for a transfer, on a runtime of its own, and says when it is admitted. From then on nothing runs
/// there, until `end` is heard of: the connection is open, and no ping is answered.
fn ask_and_fall_silent(socket: PathBuf, admitted: oneshot::Sender<()>, end: &std::sync::mpsc::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let held = runtime.block_on(async {
        let connect = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://localhost").connect_with_connector(connect).await;
        let mut client = CoordinatorClient::new(channel.unwrap());
        let ask = Ask {
            version: 1,
            kind: Kind::Put.into(),
            name: "x".to_owned(),
            bytes: Some(100),
            nodes: vec!["a".to_owned()],
            replicas: 1,
            run: "r".to_owned(),
            source: "s".to_owned(),
            ..Ask::default()
        };
        let (outbox, messages) = mpsc::channel(1);
        outbox.send(FromClient { message: Some(Said::Ask(ask)) }).await.unwrap();
        let mut answers = client.transfer(ReceiverStream::new(messages)).await.unwrap().into_inner();
        answers.message().await.unwrap().expect("it is admitted");
        (client, outbox, answers)
    });
    admitted.send(()).unwrap();
    let _ = end.recv(); // the test may have failed
    drop(held);
}

/// Lets all tasks do what they can do now. The desk may answer before the connection's task has run. Then its
/// ping would be sent a second late, and its wait for an answer would begin late, too.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_whose_machine_has_gone_holds_its_transfer_for_some_fifteen_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let spec = ServerSpec {
        state: state.clone(),
        remote: None,
        desk: desk(),
        nodes: Vec::new(),
        sensors: Vec::new(),
    };
    let server = Server::start(Clock::new(), spec).await.unwrap();
    let ((admitted, is_admitted), (end, ended)) = (oneshot::channel(), std::sync::mpsc::channel());
    // While a thread of the runtime is at work, time passes only as it is told.
    let client = tokio::task::spawn_blocking(move || {
        std::thread::spawn(move || ask_and_fall_silent(state.join(SOCKET), admitted, &ended)).join()
    });
    is_admitted.await.unwrap();
    pause();
    let is_interrupted = async || {
        let listed = server.desk.ask(|desk, now, _| desk.list_transfers(now, true, 0)).await;
        listed.unwrap().unwrap().transfers[0].state() == State::Interrupted
    };
    for second in 1..=16 {
        advance(Duration::from_secs(1)).await;
        settle().await;
        let has_gone = is_interrupted().await;
        assert!(!has_gone || second > 5, "after {second} s: it may only be slow");
    }
    // The stream has ended; what reads it is yet to tell the desk.
    let mut asked = 0;
    while !is_interrupted().await {
        asked += 1;
        assert!(asked < 100_000, "the transfer is not freed");
    }
    drop(end);
    client.await.unwrap().unwrap();
}
