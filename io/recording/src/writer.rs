//! Writes an engine's entries to a file, without making the engine wait.
//!
//! The recorder packs entries into a block in memory. A block that is full, or a second old, goes over a
//! channel to a thread that compresses and writes it. The channel holds [`BACKLOG`] blocks, some seconds of a
//! busy engine. When the channel is full, the recording is over.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use weir_engine::{Entry, Recorder};
use weir_model::{Instant, Span};
use zstd::stream::write::Encoder;

use crate::format::{BLOCK, Ending, Header, MAGIC, VERSION};

/// How many blocks may wait for the disk: 64 MiB.
const BACKLOG: usize = 1024;

/// The longest time that an entry stays in memory while others come. A crash loses no more than that.
const LONGEST_IN_MEMORY: Span = Span::from_secs(1);

/// The fastest level of zstd: it makes a fifth of the bytes, at some hundred MB/s.
const LEVEL: i32 = 1;

/// Records an engine to a file. When the engine drops it, the recording is complete.
#[derive(Debug)]
pub struct FileRecorder {
    /// The first `filled` bytes are records.
    block: Vec<u8>,
    filled: usize,
    /// The time of the last record.
    now: Instant,
    /// The time of the first record of the block.
    begun: Instant,
    entries: u64,
    /// `None`: the recording is over.
    blocks: Option<SyncSender<Vec<u8>>>,
    shared: Arc<Shared>,
}

/// State that the recorder and the writing thread share, beside the blocks.
#[derive(Default, Debug)]
struct Shared {
    entries: AtomicU64,
    overrun: AtomicBool,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Writing {
    path: PathBuf,
    thread: JoinHandle<io::Result<Written>>,
}

/// A file that was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The entries in it.
    pub entries: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// How it ends: complete, or early because the disk could not keep up.
    pub ending: Ending,
}

/// Makes the file at `path` for a recording of the engine of `pool`. The file must not exist.
///
/// # Errors
/// If the file or a thread cannot be made.
pub fn create(path: &Path, pool: &str) -> io::Result<(FileRecorder, Writing)> {
    let mut file = File::create_new(path)?;
    writeln!(file, "{MAGIC}{VERSION}")?;
    let header = Header { weir: env!("CARGO_PKG_VERSION").to_owned(), pool: pool.to_owned() };
    let (sender, blocks) = sync_channel(BACKLOG);
    let shared = Arc::new(Shared::default());
    let told = Arc::clone(&shared);
    let said = path.to_owned();
    let thread = Builder::new().name("weir-recording".to_owned()).spawn(move || {
        let written = write(file, &header, &blocks, &told);
        match &written {
            Err(error) => tracing::error!(path = %said.display(), %error, "the recording cannot be written, and ends"),
            Ok(written) if written.ending == Ending::Overrun => {
                tracing::error!(path = %said.display(), "the disk cannot keep up with the recording, which ends here");
            }
            Ok(_) => {}
        }
        written
    })?;
    Ok((FileRecorder::new(sender, shared), Writing { path: path.to_owned(), thread }))
}

impl Writing {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the recorder is gone and everything that it recorded is on the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<Written> {
        self.thread.join().map_err(|_| io::Error::other("the thread that writes it has ended"))?
    }
}

impl FileRecorder {
    fn new(blocks: SyncSender<Vec<u8>>, shared: Arc<Shared>) -> Self {
        Self {
            block: vec![0; BLOCK],
            filled: 0,
            now: Instant::ORIGIN,
            begun: Instant::ORIGIN,
            entries: 0,
            blocks: Some(blocks),
            shared,
        }
    }

    /// Packs a record into the block. False: the block has no room for it.
    fn pack(&mut self, record: &(u64, &Entry)) -> bool {
        match postcard::to_slice(record, &mut self.block[self.filled..]) {
            Ok(packed) => {
                self.filled += packed.len();
                true
            }
            Err(_) => false, // packing into memory fails only if the memory is too small
        }
    }

    /// Gives the block to the writing thread, and begins a new one.
    fn hand_over(&mut self) {
        if self.filled > 0 {
            let mut full = std::mem::replace(&mut self.block, vec![0; BLOCK]);
            full.truncate(std::mem::take(&mut self.filled));
            self.send(full);
        }
    }

    fn send(&mut self, block: Vec<u8>) {
        let Some(blocks) = &self.blocks else { return };
        if blocks.try_send(block).is_ok() {
            self.shared.entries.store(self.entries, Ordering::Relaxed);
        } else {
            self.shared.overrun.store(true, Ordering::Relaxed);
            self.blocks = None;
        }
    }
}

impl Recorder for FileRecorder {
    fn record(&mut self, now: Instant, entry: &Entry) {
        if self.blocks.is_none() {
            return;
        }
        if self.filled == 0 {
            self.begun = now;
        } else if now.saturating_since(self.begun) >= LONGEST_IN_MEMORY {
            self.hand_over();
            self.begun = now;
        }
        let record = (now.since(self.now).as_nanos(), entry);
        self.now = now;
        if !self.pack(&record) {
            self.hand_over();
            self.begun = now;
            if !self.pack(&record) {
                // Longer than a whole block: a promise with thousands of points.
                let long = postcard::to_allocvec(&record).expect("numbers and lists can be packed");
                self.entries += 1;
                return self.send(long);
            }
        }
        self.entries += 1;
    }
}

impl Drop for FileRecorder {
    fn drop(&mut self) {
        self.hand_over();
    }
}

fn write(file: File, header: &Header, blocks: &Receiver<Vec<u8>>, told: &Shared) -> io::Result<Written> {
    let mut stream = Encoder::new(file, LEVEL)?;
    stream.include_checksum(true)?;
    let mut next = Some(postcard::to_allocvec(header).map_err(io::Error::other)?);
    while let Some(block) = next {
        write_length(&mut stream, block.len())?;
        stream.write_all(&block)?;
        next = match blocks.try_recv() {
            Ok(block) => Some(block),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                stream.flush()?; // or a killed process would take it along
                blocks.recv().ok()
            }
        };
    }
    let ending = if told.overrun.load(Ordering::Relaxed) { Ending::Overrun } else { Ending::Complete };
    write_length(&mut stream, 0)?;
    stream.write_all(&[ending.code()])?;
    let file = stream.finish()?;
    file.sync_all()?;
    Ok(Written { entries: told.entries.load(Ordering::Relaxed), bytes: file.metadata()?.len(), ending })
}

fn write_length(stream: &mut impl Write, bytes: usize) -> io::Result<()> {
    let length = u32::try_from(bytes).map_err(io::Error::other)?;
    stream.write_all(&length.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use weir_engine::{Input, Outcome};

    use super::*;

    #[test]
    fn a_disk_that_cannot_keep_up_ends_the_recording_and_makes_nobody_wait() {
        let (sender, blocks) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let mut recorder = FileRecorder::new(sender, Arc::clone(&shared));
        let outcome = Outcome::Timeout(Some(Instant::FAR_FUTURE));
        let entry = Entry::Applied { input: Input::Timeout, outcome };
        for _ in 0..BLOCK {
            recorder.record(Instant::ORIGIN, &entry); // each takes more than three bytes: three blocks
        }
        assert!(shared.overrun.load(Ordering::Relaxed));
        assert_eq!(blocks.iter().count(), 1, "what was sent before is written, and nothing after");
        drop(recorder);
    }
}
