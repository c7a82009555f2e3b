//! What a user asks for: put, get, check, import, one more replica.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot, watch};
use weir_node::{Note, ObjectName};

use super::download::{Destination, Download, Place};
use super::run::{Outcome, Phase, Progress, Task, Tools, run};
use super::sink::FileTarget;
use super::source::{AHEAD, FileSource, Pieces};
use super::upload::Upload;
use super::{Client, ClientError, draw_word};
use crate::catalogue::FINISHING;
use crate::desk::VERSION;
use crate::proto::{Ask, Kind, Start};

/// How a transfer is to be served.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Asked {
    /// The rate on average, in bytes a second; `None`: the coordinator's usual one.
    pub rate: Option<u64>,
    /// The class; empty: the lowest.
    pub class: String,
    /// When it is to be done, in milliseconds of Unix time.
    pub deadline_ms: Option<u64>,
    /// Nodes that cost more are left out.
    pub max_cost: Option<u64>,
}

/// What is put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A file.
    File(PathBuf),
    /// Standard input, until its end.
    Stdin,
}

/// Where an object that is got goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A new file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// A transfer that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The node.
    pub node: String,
    /// The size of the object.
    pub bytes: u64,
    /// Its checksum (BLAKE3).
    pub checksum: [u8; 32],
}

/// Where the progress of a transfer goes.
pub type Watched = watch::Sender<Progress>;

impl Client {
    /// Something to watch a transfer by.
    pub fn watched() -> (Watched, watch::Receiver<Progress>) {
        let phase = Phase::Waiting(String::new());
        watch::channel(Progress { transfer: 0, phase, moved: 0, bytes: None, rate: 0 })
    }

    /// Stores something under a name, in as many replicas as there are `watched`. One result for each: some
    /// may be stored although others are not. Standard input can be read only once, so its further replicas
    /// are copies of the first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn put(
        &self,
        name: &ObjectName,
        what: &What,
        asked: &Asked,
        watched: Vec<Watched>,
    ) -> Result<Vec<Result<Stored, ClientError>>, ClientError> {
        let replicas = u32::try_from(watched.len()).unwrap_or(u32::MAX);
        let run_of = draw_word();
        let ask = |replica: u32, bytes, source| Ask {
            bytes,
            replicas,
            replica,
            run: run_of.clone(),
            source,
            ..self.ask_for(Kind::Put, name, asked)
        };
        match what {
            What::File(path) => {
                let wrong = |error: ClientError| ClientError::Wrong(error.to_string());
                let source = FileSource::open(path).map_err(wrong)?;
                let each = watched.into_iter().enumerate().map(|(replica, watched)| {
                    let (client, name, source) = (self.clone(), name.clone(), source.clone());
                    let replica = u32::try_from(replica).unwrap_or(u32::MAX);
                    let ask = ask(replica, Some(source.bytes()), source.identity());
                    tokio::spawn(async move {
                        let begin =
                            |start: &Start, tools: Tools| client.upload(&name, start, tools, source.pieces());
                        run(&client, ask, &watched, begin).await.and_then(stored)
                    })
                });
                let mut results = Vec::new();
                for one in each.collect::<Vec<_>>() {
                    results
                        .push(one.await.unwrap_or_else(|error| Err(ClientError::Corrupt(error.to_string()))));
                }
                Ok(results)
            }
            What::Stdin => {
                let mut watched = watched.into_iter();
                let Some(first) = watched.next() else { return Ok(Vec::new()) };
                let mut pipe = Some(Pieces::of_pipe(std::io::stdin()));
                let begin = |start: &Start, tools: Tools| {
                    let gone = || {
                        ClientError::Corrupt(
                            "standard input was read already, and cannot be read again for another node"
                                .to_owned(),
                        )
                    };
                    self.upload(name, start, tools, pipe.take().ok_or_else(gone)?)
                };
                let mut results =
                    vec![run(self, ask(0, None, String::new()), &first, begin).await.and_then(stored)];
                for one in watched {
                    let is_there = results.first().is_some_and(Result::is_ok);
                    if is_there {
                        results.push(self.replicate(name, asked, one).await);
                    }
                }
                Ok(results)
            }
        }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If there is none of the name, no replica can be read, or it cannot be written.
    pub async fn get(
        &self,
        name: &ObjectName,
        target: Target,
        asked: &Asked,
        watched: Watched,
    ) -> Result<Stored, ClientError> {
        let destination = match target {
            Target::File(path) => Destination::File(FileTarget::new(path)?),
            Target::Stdout => Destination::Stdout,
        };
        self.read(self.ask_for(Kind::Get, name, asked), name, destination, &watched).await
    }

    /// Reads a replica, and tells the coordinator what it is. What was read; the caller compares.
    ///
    /// # Errors
    /// If there is no such replica, or it cannot be read.
    pub async fn check(
        &self,
        name: &ObjectName,
        node: &str,
        asked: &Asked,
        watched: Watched,
    ) -> Result<Stored, ClientError> {
        let ask = Ask { node: node.to_owned(), ..self.ask_for(Kind::Check, name, asked) };
        self.read(ask, name, Destination::Nowhere, &watched).await
    }

    /// Makes an object of a file that a node has already. Its name is the file's path on the node.
    ///
    /// # Errors
    /// If there is no such file, or an object of its name.
    pub async fn import(
        &self,
        node: &str,
        path: &ObjectName,
        asked: &Asked,
        watched: Watched,
    ) -> Result<Stored, ClientError> {
        let ask = Ask { node: node.to_owned(), replicas: 1, ..self.ask_for(Kind::Import, path, asked) };
        self.read(ask, path, Destination::Catalogue, &watched).await
    }

    /// Writes one more replica of an object, on a node whose failure domain has none. The data comes from a
    /// replica that is good, in a transfer of its own.
    ///
    /// # Errors
    /// If there is no such node, or no good replica.
    pub async fn replicate(
        &self,
        name: &ObjectName,
        asked: &Asked,
        watched: Watched,
    ) -> Result<Stored, ClientError> {
        let ask = self.ask_for(Kind::Replicate, name, asked);
        let begin = |start: &Start, tools: Tools| {
            let (pieces, received) = mpsc::channel(AHEAD);
            let (end, ended) = oneshot::channel();
            let (client, asked, of) = (self.clone(), asked.clone(), name.clone());
            tokio::spawn(async move {
                let (watched, _) = Self::watched();
                let ask = client.ask_for(Kind::Get, &of, &asked);
                let read = client.read(ask, &of, Destination::Task(pieces), &watched).await;
                let _ = end.send(read.map(|stored| blake3::Hash::from_bytes(stored.checksum))); // given up
            });
            self.upload(name, start, tools, Pieces::of_task(received, ended))
        };
        run(self, ask, &watched, begin).await.and_then(stored)
    }

    fn ask_for(&self, kind: Kind, name: &ObjectName, asked: &Asked) -> Ask {
        Ask {
            version: VERSION,
            kind: kind.into(),
            name: name.to_string(),
            node: String::new(),
            bytes: None,
            rate: asked.rate.unwrap_or(0),
            class: asked.class.clone(),
            deadline_ms: asked.deadline_ms,
            nodes: self.nodes.keys().cloned().collect(),
            replicas: 1,
            replica: 0,
            run: draw_word(),
            source: String::new(),
            max_cost: asked.max_cost,
        }
    }

    fn upload(
        &self,
        name: &ObjectName,
        start: &Start,
        tools: Tools,
        pieces: Pieces,
    ) -> Result<Task, ClientError> {
        let notes = start.notes.iter().filter(|note| *note != FINISHING);
        let notes = notes.filter_map(|note| note.parse::<Note>().ok()).collect();
        let node = self.known(&start.node)?;
        let upload = Upload { node, name: name.clone(), notes, bytes: start.bytes, pieces };
        Ok(tokio::spawn(upload.run(tools)))
    }

    async fn read(
        &self,
        ask: Ask,
        name: &ObjectName,
        destination: Destination,
        watched: &Watched,
    ) -> Result<Stored, ClientError> {
        let place: Arc<Mutex<Place>> = Arc::default();
        let begin = |start: &Start, tools: Tools| {
            let checksum = <[u8; 32]>::try_from(start.checksum.as_slice()).ok().map(blake3::Hash::from_bytes);
            let download = Download {
                node: self.known(&start.node)?,
                name: name.clone(),
                expected: start.bytes.zip(checksum),
                destination: destination.clone(),
                place: Arc::clone(&place),
            };
            Ok(tokio::spawn(download.run(tools)))
        };
        run(self, ask, watched, begin).await.and_then(stored)
    }

    fn known(&self, node: &str) -> Result<weir_node::Node, ClientError> {
        let known = || self.nodes.keys().cloned().collect::<Vec<_>>().join(", ");
        self.node(node).cloned().ok_or_else(|| {
            ClientError::Wrong(format!("node: found {node:?} at the coordinator; accepted: {}", known()))
        })
    }
}

fn stored(outcome: Outcome) -> Result<Stored, ClientError> {
    let Outcome { node, bytes, checksum } = outcome;
    let lost = |_| ClientError::Corrupt("the coordinator had it done without this client".to_owned());
    Ok(Stored { node, bytes, checksum: checksum.try_into().map_err(lost)? })
}
