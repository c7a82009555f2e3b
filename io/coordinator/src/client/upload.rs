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
        let mut writer = match self.writer().await {
            Ok(writer) => writer,
            Err(error) => return self.adopt(error).await,
        };
        let offset = writer.offset();
        tools.counts.before.store(offset, Ordering::Relaxed);
        note(&mut writer, &tools).await;
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
            writer.write(piece).await?;
            tools.counts.moved.fetch_add(moved, Ordering::Relaxed);
            note(&mut writer, &tools).await;
        }
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if bytes < offset {
            return Err(Stop::Node(Fault::Gone, "the partial replica is longer than its source".to_owned()));
        }
        // Visible from here on; the coordinator must be there to hear of it.
        tools.gate.pass(0).await;
        writer.finish().await?;
        Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() })
    }

    async fn writer(&self) -> Result<Writer, NodeError> {
        if self.notes.is_empty() {
            let id = draw_word().parse().expect("a word of hexadecimal digits is an id");
            self.node.begin(&self.name, &id, self.bytes).await
        } else {
            self.node.resume(&self.name, &self.notes, self.bytes).await
        }
    }

    /// The node has this very object already: the client was ended after it had finished its replica, and
    /// before the coordinator heard of it. Otherwise, the error of the attempt to write it.
    async fn adopt(mut self, error: NodeError) -> Result<Finished, Stop> {
        let may_be = matches!(error.kind(), ErrorKind::Gone | ErrorKind::Exists);
        let is_there = may_be && self.bytes.is_some() && self.node.size(&self.name).await? == self.bytes;
        if !is_there {
            return Err(error.into());
        }
        let mut reader = self.node.read(&self.name, 0).await?;
        let mut hasher = blake3::Hasher::new();
        while let Some(piece) = reader.next().await? {
            hasher.update(&piece);
        }
        while self.pieces.next().await.is_some() {}
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if hasher.finalize() != checksum {
            return Err(error.into());
        }
        let bytes = self.bytes.expect("compared above");
        Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() })
    }
}

/// Hands on what must be kept to go on later.
async fn note(writer: &mut Writer, tools: &Tools) {
    let lines: Vec<_> = writer.take_notes().iter().map(ToString::to_string).collect();
    if !lines.is_empty() {
        let _ = tools.notes.send(lines).await; // the transfer is given up
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
