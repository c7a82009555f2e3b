//! The task that writes a replica to its node.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use weir_node::{ErrorKind, Node, NodeError, Note, ObjectName, Writer};

use super::draw_word;
use super::run::{Stop, Tools};
use super::source::Pieces;
use crate::proto::{Fault, Finished};

/// What is written, and where.
pub(super) struct Upload {
    pub(super) node: Node,
    pub(super) name: ObjectName,
    /// Of a partial replica on the node.
    pub(super) notes: Vec<Note>,
    pub(super) bytes: Option<u64>,
    pub(super) pieces: Pieces,
}

impl Upload {
    /// Writes it.
    pub(super) async fn run(mut self, mut tools: Tools) -> Result<Finished, Stop> {
        let mut writer = match self.writer(&tools).await {
            Ok(writer) => writer,
            Err(error) => return self.adopt(error).await,
        };
        let offset = writer.offset();
        tools.counts.before.store(offset, Ordering::Relaxed);
        self.note(writer.take_notes(), &tools).await;
        let mut bytes = 0_u64;
        let mut there = match offset {
            0 => None,
            _ => writer.read_back(0)?.map(ReadBack::new),
        };
        while let Some(mut piece) = self.pieces.next().await {
            let ahead = offset.saturating_sub(bytes).min(piece.len() as u64);
            bytes += piece.len() as u64;
            let known = piece.split_to(usize::try_from(ahead).expect("a piece fits in memory"));
            if let Some(there) = &mut there
                && !there.has(&known).await?
            {
                let notes = std::mem::take(&mut self.notes);
                drop(writer);
                self.node.discard(&notes).await?;
                return Err(Stop::Node(
                    Fault::Gone,
                    "the partial replica has other data than its source".to_owned(),
                ));
            }
            if piece.is_empty() {
                continue;
            }
            tools.gate.pass(piece.len()).await;
            let moved = piece.len() as u64;
            let written = writer.write(piece).await;
            self.note(writer.take_notes(), &tools).await; // also if the write has failed
            written?;
            tools.counts.moved.fetch_add(moved, Ordering::Relaxed);
        }
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if bytes < offset {
            return Err(Stop::Node(Fault::Gone, "the partial replica is longer than its source".to_owned()));
        }
        // Visible from here on; the coordinator must be there to hear of it.
        tools.gate.pass(0).await;
        match writer.finish().await {
            Ok(()) => {}
            // A partial replica without notes was finished by an earlier run, and nobody has heard of it.
            Err(error) if error.kind() == ErrorKind::Exists && self.is_there(bytes, &checksum).await? => {
                self.node.discard(&self.notes).await?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() })
    }

    async fn writer(&mut self, tools: &Tools) -> Result<Writer, NodeError> {
        if self.notes.is_empty() {
            let id = draw_word().parse().expect("a word of hexadecimal digits is an id");
            self.note(self.node.notes_before(&id), tools).await;
            self.node.begin(&self.name, &id, self.bytes).await
        } else {
            self.node.resume(&self.name, &self.notes, self.bytes).await
        }
    }

    /// The node has this very object already: the client was ended after it had finished its replica, and
    /// before the coordinator heard of it. Otherwise, the error of the attempt to write it.
    async fn adopt(mut self, error: NodeError) -> Result<Finished, Stop> {
        let may_be = matches!(error.kind(), ErrorKind::Gone | ErrorKind::Exists);
        let Some(bytes) = self.bytes.filter(|_| may_be) else { return Err(error.into()) };
        if self.node.size(&self.name).await? != Some(bytes) {
            return Err(error.into());
        }
        while self.pieces.next().await.is_some() {}
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if !self.is_there(bytes, &checksum).await? {
            return Err(error.into());
        }
        Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() })
    }

    /// Whether the node has an object of this name with this data.
    async fn is_there(&self, bytes: u64, checksum: &blake3::Hash) -> Result<bool, NodeError> {
        if self.node.size(&self.name).await? != Some(bytes) {
            return Ok(false);
        }
        let mut reader = self.node.read(&self.name, 0).await?;
        let mut hasher = blake3::Hasher::new();
        while let Some(piece) = reader.next().await? {
            hasher.update(&piece);
        }
        Ok(hasher.finalize() == *checksum)
    }

    /// Hands on what must be kept to go on later, once.
    async fn note(&mut self, mut notes: Vec<Note>, tools: &Tools) {
        notes.retain(|note| !self.notes.contains(note));
        let lines: Vec<_> = notes.iter().map(ToString::to_string).collect();
        self.notes.extend(notes);
        if !lines.is_empty() {
            let _ = tools.notes.send(lines).await; // the transfer is given up
        }
    }
}

/// The data of a partial replica, to compare.
struct ReadBack {
    reader: weir_node::Reader,
    rest: Bytes,
}

impl ReadBack {
    const fn new(reader: weir_node::Reader) -> Self {
        Self { reader, rest: Bytes::new() }
    }

    /// Whether it goes on with these bytes.
    async fn has(&mut self, mut expected: &[u8]) -> Result<bool, NodeError> {
        while !expected.is_empty() {
            if self.rest.is_empty() {
                match self.reader.next().await? {
                    Some(piece) => self.rest = piece,
                    None => return Ok(false),
                }
            }
            let length = self.rest.len().min(expected.len());
            let (now, later) = expected.split_at(length);
            if self.rest.split_to(length) != now {
                return Ok(false);
            }
            expected = later;
        }
        Ok(true)
    }
}
