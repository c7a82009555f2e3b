//! An upload, whose coordinator is the test.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use weir_clock::Clock;
use weir_node::Location;

use super::super::gate::{Gate, Signal};
use super::*;

#[tokio::test]
async fn nothing_becomes_visible_before_the_coordinator_knows_that_it_may() {
    let directory = tempfile::tempdir().unwrap();
    let location: Location = format!("file://{}", directory.path().display()).parse().unwrap();
    let (node, name) = (Node::open(location, None).unwrap(), "x".parse::<ObjectName>().unwrap());
    let (signal, signals) = watch::channel(Signal { is_open: true, ..Signal::default() });
    let (notes, mut noted) = mpsc::channel(1);
    let tools = Tools { gate: Gate::new(Clock::new(), signals), counts: Arc::default(), notes };
    let pieces = Pieces::of_pipe(&b"abc"[..]);
    let upload = Upload { node: node.clone(), name: name.clone(), notes: Vec::new(), bytes: Some(3), pieces };
    let task = tokio::spawn(upload.run(tools));
    while noted.recv().await.unwrap() != [FINISHING] {}
    // The stream breaks before the answer, and there is another one.
    for is_open in [false, true] {
        signal.send_modify(|signal| signal.is_open = is_open);
        assert_eq!(node.size(&name).await.unwrap(), None);
    }
    assert!(!task.is_finished());
    // Another one, which may finish, has all the time that this one would need.
    let (open, signals) = watch::channel(Signal { is_open: true, may_finish: true, pace: None });
    let (other_notes, mut other_noted) = mpsc::channel(8);
    let tools = Tools { gate: Gate::new(Clock::new(), signals), counts: Arc::default(), notes: other_notes };
    let (other, pieces) = ("y".parse::<ObjectName>().unwrap(), Pieces::of_pipe(&b"abc"[..]));
    let upload =
        Upload { node: node.clone(), name: other.clone(), notes: Vec::new(), bytes: Some(3), pieces };
    upload.run(tools).await.unwrap();
    assert!(other_noted.recv().await.is_some());
    drop(open);
    assert_eq!((node.size(&other).await.unwrap(), node.size(&name).await.unwrap()), (Some(3), None));
    assert!(!task.is_finished());
    // An answer whose stream is broken already says nothing.
    signal.send_replace(Signal { is_open: false, may_finish: true, pace: None });
    assert_eq!(node.size(&name).await.unwrap(), None);
    signal.send_modify(|signal| signal.is_open = true);
    assert_eq!(task.await.unwrap().unwrap().bytes, 3);
    assert_eq!(node.size(&name).await.unwrap(), Some(3));
}
