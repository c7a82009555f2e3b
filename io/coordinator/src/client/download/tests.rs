//! A download, whose coordinator is the test.

use tokio::sync::watch;
use weir_clock::Clock;
use weir_node::{Location, PartialId};

use super::super::gate::{Gate, Signal};
use super::*;

const DATA: &[u8] = b"what is stored";

/// A node with an object `x`, which has this data.
async fn node(directory: &tempfile::TempDir) -> Node {
    let location: Location = format!("file://{}", directory.path().display()).parse().unwrap();
    let node = Node::open(location, None).unwrap();
    let (name, id): (ObjectName, PartialId) = ("x".parse().unwrap(), "p".parse().unwrap());
    let mut writer = node.begin(&name, &id, None).await.unwrap();
    writer.write(Bytes::from_static(DATA)).await.unwrap();
    writer.finish().await.unwrap();
    node
}

/// Reads `x` as one task of a transfer, after others that have left this.
async fn read(node: &Node, destination: Destination, place: &Arc<Mutex<Place>>) -> Result<Finished, Stop> {
    let (_open, signals) = watch::channel(Signal { is_open: true, ..Signal::default() });
    let tools =
        Tools { gate: Gate::new(Clock::new(), signals), counts: Arc::default(), notes: mpsc::channel(1).0 };
    let download = Download {
        node: node.clone(),
        name: "x".parse().unwrap(),
        expected: Some((DATA.len() as u64, blake3::hash(DATA))),
        destination,
        place: Arc::clone(place),
    };
    download.run(tools).await
}

#[tokio::test]
async fn what_was_passed_on_whole_is_not_passed_on_again_by_the_next_task() {
    let directory = tempfile::tempdir().unwrap();
    let node = node(&directory).await;
    let (sender, mut passed_on) = mpsc::channel(8);
    let place = Arc::default();
    let first = read(&node, Destination::Task(sender.clone()), &place).await.unwrap();
    // The coordinator has not heard of it, and starts the transfer again.
    let second = read(&node, Destination::Task(sender.clone()), &place).await.unwrap();
    assert_eq!(first, second);
    drop(sender);
    assert_eq!(passed_on.recv().await.as_deref(), Some(DATA));
    assert_eq!(passed_on.recv().await, None);
}

#[tokio::test]
async fn a_task_that_was_ended_while_its_last_bytes_were_passed_on_is_the_end_of_the_transfer() {
    let directory = tempfile::tempdir().unwrap();
    let node = node(&directory).await;
    let (sender, _passed_on) = mpsc::channel(8);
    let place = Arc::new(Mutex::new(Place::Whole(None)));
    for _ in 0..2 {
        let stop = read(&node, Destination::Task(sender.clone()), &place).await.unwrap_err();
        let Stop::Client(error) = stop else { panic!("{stop:?}") };
        assert!(error.to_string().contains("was passed on whole"), "{error}");
    }
    // What is only judged is read anew.
    read(&node, Destination::Nowhere, &place).await.unwrap();
}

#[tokio::test]
async fn what_another_object_of_the_name_came_to_is_not_told_of_this_one() {
    let directory = tempfile::tempdir().unwrap();
    let node = node(&directory).await;
    let before = Finished { bytes: 3, checksum: blake3::hash(b"old").as_bytes().to_vec() };
    let place = Arc::new(Mutex::new(Place::Whole(Some(before))));
    let (sender, _passed_on) = mpsc::channel(8);
    assert!(matches!(read(&node, Destination::Task(sender), &place).await, Err(Stop::Client(_))));
}
