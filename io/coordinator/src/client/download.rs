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
    /// It is only read and hashed, and then made durable: it becomes an object where it is.
    Catalogue,
    Task(mpsc::Sender<Bytes>),
}

/// What the tasks of one transfer have done, one after the other. What one has read, the next does not read
/// again, and what one has handed on, the next does not hand on again.
#[derive(Default)]
#[allow(clippy::large_enum_variant)] // a transfer has one
pub(super) enum Place {
    /// Nothing that would help the next one.
    #[default]
    Empty,
    /// A part of the object is in this sink.
    Part(Sink),
    /// The sink has the whole object. What that came to, if the task lived to see it.
    Whole(Option<Finished>),
}

impl Place {
    /// How many bytes the sink has; `None`: there is none any more.
    fn taken(&self) -> Option<u64> {
        match self {
            Self::Part(sink) => Some(sink.taken()),
            Self::Empty | Self::Whole(_) => None,
        }
    }
}

/// What is read, and where it goes to.
pub(super) struct Download {
    pub(super) node: Node,
    pub(super) name: ObjectName,
    /// What was stored; `None`: nobody knows yet.
    pub(super) expected: Option<(u64, blake3::Hash)>,
    pub(super) destination: Destination,
    /// Of all tasks of the transfer.
    pub(super) place: Arc<Mutex<Place>>,
}

impl Download {
    /// Reads it.
    pub(super) async fn run(self, tools: Tools) -> Result<Finished, Stop> {
        let shared = Arc::clone(&self.place);
        let mut place = shared.lock().await;
        let read = self.read(&mut place, tools).await;
        // An empty partial file is of no use to anybody.
        if read.is_err()
            && place.taken() == Some(0)
            && let (Destination::File(target), Some((_, checksum))) = (&self.destination, &self.expected)
        {
            *place = Place::Empty;
            target.discard(checksum).await;
        }
        read
    }

    async fn read(&self, place: &mut Place, mut tools: Tools) -> Result<Finished, Stop> {
        // Nothing has to be kept of what is only judged, and each node is judged for itself.
        let is_judged = matches!(self.destination, Destination::Nowhere | Destination::Catalogue);
        loop {
            let sink = match std::mem::take(place) {
                Place::Part(sink) if !is_judged => sink,
                Place::Whole(Some(finished)) if !is_judged && self.expects(&finished) => {
                    tools.counts.begin_behind(finished.bytes);
                    *place = Place::Whole(Some(finished.clone()));
                    return Ok(finished); // the coordinator has not heard of it
                }
                Place::Whole(_) if matches!(self.destination, Destination::Stdout | Destination::Task(_)) => {
                    *place = Place::Whole(None); // no task after this one may pass it on either
                    let why = format!("{} was passed on whole, and the coordinator was lost then", self.name);
                    return Err(Stop::Client(ClientError::Corrupt(format!("{why}; do not use it"))));
                }
                _ => self.open().await.map_err(Stop::Client)?,
            };
            *place = Place::Part(sink);
            let Place::Part(sink) = &mut *place else { unreachable!("it was put there just now") };
            let from = sink.taken();
            tools.counts.begin_behind(from);
            let mut reader = self.node.read(&self.name, from).await?;
            tools.counts.read_by(reader.arrived());
            if let Some((bytes, _)) = self.expected.filter(|(bytes, _)| *bytes != reader.size()) {
                let why = format!("found {} bytes instead of {bytes}", reader.size());
                return Err(Stop::Node(Fault::Corrupt, why));
            }
            while let Some(piece) = reader.next().await? {
                tools.gate.pass(piece.len()).await;
                if !sink.take(piece).await {
                    break;
                }
            }
            let bytes = sink.taken();
            let Place::Part(sink) = std::mem::replace(place, Place::Whole(None)) else {
                unreachable!("it was put there above")
            };
            let checksum = sink.checksum().await.map_err(Stop::Client)?;
            let is_good = self.expected.is_none_or(|expected| expected == (bytes, checksum));
            match (&self.destination, is_good) {
                (Destination::File(target), true) => target.finish(&checksum).await.map_err(Stop::Client)?,
                (Destination::Catalogue, _) => self.node.make_durable(&self.name).await?,
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
                    *place = Place::Empty;
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
            let finished = Finished { bytes, checksum: checksum.as_bytes().to_vec() };
            *place = Place::Whole(Some(finished.clone()));
            return Ok(finished);
        }
    }

    /// Whether this is what is stored: the object may be another one by now.
    fn expects(&self, finished: &Finished) -> bool {
        self.expected.is_none_or(|(bytes, checksum)| {
            bytes == finished.bytes && finished.checksum == checksum.as_bytes()
        })
    }

    async fn open(&self) -> Result<Sink, ClientError> {
        match (&self.destination, &self.expected) {
            (Destination::File(target), Some((bytes, checksum))) => target.open(checksum, *bytes).await,
            (Destination::Stdout, _) => Ok(Sink::stdout()),
            (Destination::Task(to), _) => Ok(Sink::task(to.clone())),
            (Destination::Nowhere | Destination::Catalogue, _) => Ok(Sink::nowhere()),
            (Destination::File(_), None) => {
                Err(ClientError::Corrupt("the coordinator did not say what was stored".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
