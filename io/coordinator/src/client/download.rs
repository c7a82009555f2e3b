//! The task that reads an object from a node.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use weir_node::{Node, ObjectName};

use super::ClientError;
use super::run::{Stop, Tools};
use super::sink::{FileTarget, Sink};
use crate::proto::{Fault, Finished};

/// Where an object goes to.
#[derive(Clone, Debug)]
pub(super) enum Destination {
    File(FileTarget),
    Stdout,
    /// It is only read and hashed.
    Nowhere,
    Task(mpsc::Sender<Bytes>),
}

/// What is read, and where it goes to.
pub(super) struct Download {
    pub(super) node: Node,
    pub(super) name: ObjectName,
    /// What was stored; `None`: nobody knows yet.
    pub(super) expected: Option<(u64, blake3::Hash)>,
    pub(super) destination: Destination,
    /// The sink of all tasks of the transfer, one after the other: what one has read, the next does not read
    /// again.
    pub(super) sink: Arc<Mutex<Option<Sink>>>,
}

impl Download {
    /// Reads it.
    pub(super) async fn run(self, tools: Tools) -> Result<Finished, Stop> {
        let shared = Arc::clone(&self.sink);
        let mut place = shared.lock().await;
        let read = self.read(&mut place, tools).await;
        // An empty partial file is of no use to anybody.
        if read.is_err()
            && place.as_ref().is_some_and(|sink| sink.taken() == 0)
            && let (Destination::File(target), Some((_, checksum))) = (&self.destination, &self.expected)
        {
            *place = None;
            target.discard(checksum).await;
        }
        read
    }

    async fn read(&self, place: &mut Option<Sink>, mut tools: Tools) -> Result<Finished, Stop> {
        loop {
            let sink = match place.take() {
                // Nothing has to be kept of what is only judged, and each node is judged for itself.
                Some(sink) if !matches!(self.destination, Destination::Nowhere) => sink,
                _ => self.open().await.map_err(Stop::Client)?,
            };
            let sink = place.insert(sink);
            let from = sink.taken();
            tools.counts.begin_behind(from);
            let mut reader = self.node.read(&self.name, from).await?;
            if let Some((bytes, _)) = self.expected.filter(|(bytes, _)| *bytes != reader.size()) {
                let why = format!("found {} bytes instead of {bytes}", reader.size());
                return Err(Stop::Node(Fault::Corrupt, why));
            }
            while let Some(piece) = reader.next().await? {
                tools.gate.pass(piece.len()).await;
                let moved = piece.len() as u64;
                if !sink.take(piece).await {
                    break;
                }
                tools.counts.add_read(moved);
            }
            let bytes = sink.taken();
            let sink = place.take().expect("it was put there");
            let checksum = sink.checksum().await.map_err(Stop::Client)?;
            let is_good = self.expected.is_none_or(|expected| expected == (bytes, checksum));
            match (&self.destination, is_good) {
                (Destination::File(target), true) => target.finish(&checksum).await.map_err(Stop::Client)?,
                (_, true) | (Destination::Nowhere, false) => {}
                (Destination::Stdout | Destination::Task(_), false) => {
                    let why = format!("{}: what was read is not what was stored; do not use it", self.name);
                    if from == 0 {
                        return Err(Stop::PassedOn(why));
                    }
                    // It began at another replica. Nobody can say which of the two is bad.
                    let why = format!("{why}; weir verify {} finds the bad replica", self.name);
                    return Err(Stop::Client(ClientError::Corrupt(why)));
                }
                (Destination::File(target), false) => {
                    target.discard(&self.expected.expect("compared above").1).await;
                    if from > 0 {
                        continue; // the fault may be in what was there before: from the start, from here alone
                    }
                    return Err(Stop::Node(
                        Fault::Corrupt,
                        "what was read is not what was stored".to_owned(),
                    ));
                }
            }
            return Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() });
        }
    }

    async fn open(&self) -> Result<Sink, ClientError> {
        match (&self.destination, &self.expected) {
            (Destination::File(target), Some((bytes, checksum))) => target.open(checksum, *bytes).await,
            (Destination::Stdout, _) => Ok(Sink::stdout()),
            (Destination::Task(to), _) => Ok(Sink::task(to.clone())),
            (Destination::Nowhere, _) => Ok(Sink::nowhere()),
            (Destination::File(_), None) => {
                Err(ClientError::Corrupt("the coordinator did not say what was stored".to_owned()))
            }
        }
    }
}
