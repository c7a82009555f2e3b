//! The task that writes a replica to its node.

use bytes::Bytes;
use weir_node::{Node, NodeError, Note, ObjectName, Tags, Writer};

use super::draw_word;
use super::run::{Stop, Tools};
use super::source::Pieces;
use crate::catalogue::FINISHING;
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
            Err(stop) => return self.adopt(stop).await,
        };
        let offset = writer.offset();
        tools.counts.follow(writer.sent());
        self.note(writer.take_notes(), &tools).await;
        let mut bytes = 0_u64;
        let mut there = if offset == 0 { None } else { There::of(&writer)? };
        while let Some(mut piece) = self.pieces.next().await {
            let ahead = offset.saturating_sub(bytes).min(piece.len() as u64);
            bytes += piece.len() as u64;
            let known = piece.split_to(usize::try_from(ahead).expect("a piece fits in memory"));
            if let Some(there) = &mut there
                && !there.has(&known).await?
            {
                let notes = std::mem::take(&mut self.notes);
                drop(writer);
                let _: bool = self.node.discard(&notes).await?;
                return Err(Stop::Node(
                    Fault::Gone,
                    "the partial replica has other data than its source".to_owned(),
                ));
            }
            while !piece.is_empty() {
                let slice = piece.split_to(tools.gate.at_once(piece.len()));
                tools.gate.pass(slice.len()).await;
                let written = writer.write(slice).await;
                self.note(writer.take_notes(), &tools).await; // also if the write has failed
                written?;
            }
        }
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if bytes < offset {
            return Err(Stop::Node(Fault::Gone, "the partial replica is longer than its source".to_owned()));
        }
        // From here on it may be visible, whatever happens to this client. The coordinator knows that before:
        // otherwise, nobody would ever remove what a transfer has stored that is cancelled in this instant.
        let _ = tools.notes.send(vec![FINISHING.to_owned()]).await; // the transfer is given up
        tools.gate.may_finish().await;
        tools.counts.finish();
        match writer.finish().await {
            Ok(()) => tools.counts.publish(),
            // It may be there all the same: finished by an earlier run, or by this one without an answer.
            Err(error) => match self.is_there(bytes, &checksum).await {
                Ok(true) => {
                    let _: bool = self.node.discard(&self.notes).await?;
                    self.node.make_durable(&self.name).await?;
                }
                Ok(false) => return Err(error.into()),
                // It may be there, and nobody can say so: it is not somebody else's.
                Err(unknown) => return Err(unknown.into()),
            },
        }
        Ok(Finished { bytes, checksum: checksum.as_bytes().to_vec() })
    }

    async fn writer(&mut self, tools: &Tools) -> Result<Writer, Stop> {
        if !self.notes.is_empty() {
            return Ok(self.node.resume(&self.name, &self.notes, self.bytes).await?);
        }
        // The writer would find out at its end, after hours perhaps.
        if self.node.size(&self.name).await?.is_some() {
            let why =
                "found something under this name that is no replica; accepted: nothing, or weir import first";
            return Err(Stop::Node(Fault::Exists, why.to_owned()));
        }
        let id = draw_word().parse().expect("a word of hexadecimal digits is an id");
        let before = self.node.notes_before(&id);
        self.note(before.clone(), tools).await;
        let mut writer = self.node.begin(&self.name, &id, self.bytes).await?;
        let mut notes = writer.take_notes();
        notes.retain(|note| !before.contains(note));
        self.note(notes, tools).await;
        Ok(writer)
    }

    /// The node has this very object already: the client was ended after it had finished its replica, and
    /// before the coordinator heard of it. Otherwise, why it cannot be written.
    async fn adopt(mut self, stop: Stop) -> Result<Finished, Stop> {
        let may_be = matches!(stop, Stop::Node(Fault::Gone | Fault::Exists, _));
        let Some(bytes) = self.bytes.filter(|_| may_be) else { return Err(stop) };
        if self.node.size(&self.name).await? != Some(bytes) {
            return Err(stop);
        }
        while self.pieces.next().await.is_some() {}
        let checksum = self.pieces.checksum().await.map_err(Stop::Client)?;
        if !self.is_there(bytes, &checksum).await? {
            return Err(stop);
        }
        // Whoever wrote it may have been ended before it was durable.
        self.node.make_durable(&self.name).await?;
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

    /// Hands on what must be kept to go on later. Two notes may be equal, as two parts of an upload are.
    async fn note(&mut self, notes: Vec<Note>, tools: &Tools) {
        let lines: Vec<_> = notes.iter().map(ToString::to_string).collect();
        self.notes.extend(notes);
        if !lines.is_empty() {
            let _ = tools.notes.send(lines).await; // the transfer is given up
        }
    }
}

/// What is known of the data of a partial replica, to compare.
enum There {
    Data(ReadBack),
    Tags(Tags),
}

impl There {
    fn of(writer: &Writer) -> Result<Option<Self>, NodeError> {
        let data = writer.read_back(0)?.map(|reader| Self::Data(ReadBack::new(reader)));
        Ok(data.or_else(|| writer.tags().map(Self::Tags)))
    }

    /// Whether it goes on with these bytes.
    async fn has(&mut self, expected: &[u8]) -> Result<bool, NodeError> {
        match self {
            Self::Data(data) => data.has(expected).await,
            Self::Tags(tags) => Ok(tags.go_on_with(expected)),
        }
    }
}

/// The data of a partial replica.
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

#[cfg(test)]
mod tests;
