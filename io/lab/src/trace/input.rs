//! The bytes of a trace: counted, decompressed, and with a head that can be looked at first.
//!
//! The first bytes decide the compression. The name of a file does not: traces come as `usr_0.csv.gz`, and
//! also as `usr_0.csv` from a browser that has not unpacked them.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::account::Account;

/// The first bytes of a gzip member (RFC 1952) and of a zstd frame (RFC 8878).
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A reader, preceded again by the bytes that were already read from it.
type Rewound<R> = Chain<Cursor<Vec<u8>>, R>;

/// How many bytes of the text are searched for its format.
const HEAD: usize = 64 << 10;

/// The text of a trace.
pub(super) struct Input {
    /// The beginning of the text: whole lines, or a part of the first line if that line is longer.
    pub(super) head: String,
    /// All of it, from the beginning.
    pub(super) text: Box<dyn BufRead + Send>,
}

/// Opens the trace in `raw`. `account` counts each byte of it.
pub(super) fn open(raw: impl Read + Send + 'static, account: Account) -> io::Result<Input> {
    let (magic, raw) = peek(Counted { raw, account }, ZSTD.len())?;
    let text: Box<dyn Read + Send> = if magic.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(BufReader::new(raw)))
    } else if magic.starts_with(ZSTD) {
        Box::new(zstd::Decoder::new(raw)?)
    } else {
        Box::new(raw)
    };
    let (mut head, text) = peek(text, HEAD)?;
    if head.len() == HEAD
        && let Some(last_line) = head.iter().rposition(|byte| *byte == b'\n')
    {
        head.truncate(last_line);
    }
    Ok(Input { head: String::from_utf8_lossy(&head).into_owned(), text: Box::new(BufReader::new(text)) })
}

/// The first `count` bytes, or all if there are fewer; and a reader that still begins with them.
fn peek<R: Read>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, Rewound<R>)> {
    let mut head = Vec::new();
    reader.by_ref().take(count as u64).read_to_end(&mut head)?;
    Ok((head.clone(), Cursor::new(head).chain(reader)))
}

/// Counts the bytes that are read.
struct Counted<R> {
    raw: R,
    account: Account,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.account.add_bytes(count as u64);
        Ok(count)
    }
}
