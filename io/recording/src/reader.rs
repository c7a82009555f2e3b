//! Reads entries from a file.
//!
//! The reader trusts nothing in a file. It checks the version, the lengths and the numbers, and reports a
//! damaged file as an error. A file that ends in the middle is not damaged but cut off: its entries up to
//! there are good.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;
use weir_engine::Entry;
use weir_model::{Instant, Span};
use zstd::stream::read::Decoder;

use crate::format::{Ending, Header, LONGEST_BLOCK, MAGIC, VERSION};

/// The longest name of a pool or a version, in bytes.
const LONGEST_NAME: usize = 255;

/// The most memory that a file can ask for to be decompressed, as a power of two: 16 MiB. The writer takes
/// less.
const LARGEST_WINDOW: u32 = 24;

/// Reads a recording, entry by entry, with one block of it in memory.
pub struct Reader {
    path: PathBuf,
    stream: Decoder<'static, Box<dyn BufRead + Send>>,
    header: Header,
    /// The current block. The reader has handed out its first `taken` bytes.
    block: Vec<u8>,
    taken: usize,
    now: Instant,
    ending: Option<Ending>,
}

/// Why a file cannot be read as a recording.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{}: cannot read it: {source}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{}: found {found}; accepted: a file that `weir record` wrote", path.display())]
    NoRecording {
        /// The file.
        path: PathBuf,
        /// The text that stands in the place of a recording's first line.
        found: String,
    },
    /// The file has another version of the format.
    #[error("{}: found a recording in format {found}; accepted: format {VERSION}, of this version of weir", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
    },
    /// The file is not as weir wrote it.
    #[error("{}: the file is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        what: String,
    },
}

impl Reader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is no recording of this version.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Refused { path: path.to_owned(), source })?;
        Self::of(path, BufReader::new(file))
    }

    /// Reads the recording in `file`, which errors call `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is no recording of this version.
    pub fn of(path: &Path, file: impl BufRead + Send + 'static) -> Result<Self, ReadError> {
        let refused = |source| ReadError::Refused { path: path.to_owned(), source };
        let mut file: Box<dyn BufRead + Send> = Box::new(file);
        check_first_line(path, &mut file).map_err(refused)??;
        let mut stream = Decoder::with_buffer(file).map_err(refused)?;
        stream.window_log_max(LARGEST_WINDOW).map_err(refused)?;
        let mut reader = Self {
            path: path.to_owned(),
            stream,
            header: Header::default(),
            block: Vec::new(),
            taken: 0,
            now: Instant::ORIGIN,
            ending: None,
        };
        reader.read_block()?;
        reader.header = postcard::from_bytes(&reader.block)
            .map_err(|error| reader.damaged(&format!("it does not say of which pool it is ({error})")))?;
        reader.taken = reader.block.len();
        for text in [&reader.header.pool, &reader.header.weir] {
            if text.len() > LONGEST_NAME || text.contains(char::is_control) {
                return Err(
                    reader.damaged("it does not say of which pool it is (no name that can be printed)")
                );
            }
        }
        Ok(reader)
    }

    /// The pool that was recorded.
    pub fn pool(&self) -> &str {
        &self.header.pool
    }

    /// The version of weir that recorded.
    pub fn weir(&self) -> &str {
        &self.header.weir
    }

    /// The next entry and its time; `None` at the end.
    ///
    /// # Errors
    /// If the file is damaged here, or cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<(Instant, Entry)>, ReadError> {
        while self.taken == self.block.len() && self.ending.is_none() {
            self.read_block()?;
        }
        if self.taken == self.block.len() {
            return Ok(None);
        }
        match postcard::take_from_bytes::<(u64, Entry)>(&self.block[self.taken..]) {
            Ok(((nanos, entry), rest)) => {
                self.taken = self.block.len() - rest.len();
                self.now = self.now + Span::from_nanos(nanos);
                Ok(Some((self.now, entry)))
            }
            Err(postcard::Error::DeserializeUnexpectedEnd) if self.ending == Some(Ending::CutOff) => {
                self.taken = self.block.len();
                Ok(None)
            }
            Err(error) => {
                Err(self.damaged(&format!("an entry after {:?} makes no sense ({error})", self.now)))
            }
        }
    }

    /// How the recording ends, once [`Reader::next_entry`] has returned `None`.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Reads the rest of the file and throws it away, to check the checksum at its end.
    ///
    /// # Errors
    /// If the file is damaged anywhere.
    pub fn check_rest(mut self) -> Result<(), ReadError> {
        match io::copy(&mut self.stream, &mut io::sink()) {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(self.damaged(&error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Reads the next block, or how the recording ends.
    fn read_block(&mut self) -> Result<(), ReadError> {
        self.taken = 0;
        self.block.clear();
        let Some(length) = self.read_exactly::<4>()? else { return Ok(()) };
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 {
            let Some([code]) = self.read_exactly()? else { return Ok(()) };
            let ending = Ending::from_code(code);
            self.ending = Some(ending.ok_or_else(|| self.damaged("an ending that is none"))?);
            return match self.read_some(1)? {
                0 => Ok(()),
                _ => Err(self.damaged("something follows the end")),
            };
        }
        if length > LONGEST_BLOCK {
            return Err(self.damaged(&format!("a block of {length} bytes")));
        }
        if self.read_some(length)? < length {
            self.ending = Some(Ending::CutOff);
        }
        Ok(())
    }

    /// Reads `N` bytes. `None` if the file has fewer: the recording ends there.
    fn read_exactly<const N: usize>(&mut self) -> Result<Option<[u8; N]>, ReadError> {
        self.read_some(N)?;
        let found = <[u8; N]>::try_from(self.block.as_slice()).ok();
        self.block.clear();
        if found.is_none() {
            self.ending = Some(Ending::CutOff);
        }
        Ok(found)
    }

    /// Reads up to `length` bytes into the block. Returns how many the block has.
    fn read_some(&mut self, length: usize) -> Result<usize, ReadError> {
        match (&mut self.stream).take(length as u64).read_to_end(&mut self.block) {
            // The stream ends too early. What it had is in the block.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(self.block.len()),
            Err(error) => Err(self.damaged(&error.to_string())),
            Ok(_) => Ok(self.block.len()),
        }
    }

    fn damaged(&self, what: &str) -> ReadError {
        ReadError::Damaged { path: self.path.clone(), what: what.to_owned() }
    }
}

/// Checks the first line. The outer error is the system's, the inner one the file's.
fn check_first_line(path: &Path, file: &mut impl BufRead) -> io::Result<Result<(), ReadError>> {
    let mut line = Vec::new();
    file.take(64).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    Ok(match line.strip_prefix(MAGIC).map(|version| version.trim_end_matches('\n')) {
        Some(version) if version == VERSION.to_string() => Ok(()),
        Some(version) => Err(ReadError::Version { path: path.to_owned(), found: format!("{version:?}") }),
        None => {
            let found =
                if line.is_empty() { "an empty file".to_owned() } else { format!("{:?}", shorten(&line)) };
            Err(ReadError::NoRecording { path: path.to_owned(), found })
        }
    })
}

fn shorten(line: &str) -> String {
    line.chars().take(20).collect()
}
