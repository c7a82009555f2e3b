//! Recorded block I/O, read line by line: [`open`] a file, and iterate over its reads and writes.
//!
//! Traces are longer than memory: those of MSR Cambridge have hundreds of millions of lines. So the reader
//! keeps only the line at hand. It reads five formats, each in a file of its own that names the source of its
//! rules. Unless the caller names the format, the first lines of the trace decide it. The first bytes decide
//! the compression (gzip, zstd or none).
//!
//! **What the reader does to the requests:**
//!
//! - Times count from the first request on.
//! - A request may stand behind a later one by at most a second, as requests of several processors do. It
//!   then gets the latest time before it, and the reader counts it. To sort such requests, the reader would
//!   have to keep a second of the trace. A request that stands further behind is a broken line. The same
//!   holds for a request that comes more than a day after all requests before it.
//! - Everything that is neither a read nor a write is left out and counted. Nothing else is left out.
//! - A line that makes no sense is an error that names file and line, and ends the reading. With
//!   [`TraceReader::skip_broken`], the reader counts such lines instead. The default is strict, because a
//!   replay with holes in it looks like a replay of a lighter load.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use weir_model::Span;
use weir_sim::TraceRequest;

mod account;
mod blkparse;
mod csv;
mod error;
mod input;
mod iolog;
mod line;
mod msr;
mod spc;

pub use account::{Account, Remarks};
pub use error::TraceError;
use line::{Line, Misfit, Recorded, quoted};

/// The longest line of a trace. The lines of all formats stay far below it.
const MOST_BYTES: usize = 4096;

/// How far a request may stand behind a later one.
const DISORDER: Span = Span::from_secs(1);

/// The longest time without a request. A time after a longer gap is more likely damaged than true, and a
/// replay would simulate every control period of the years up to it.
const LONGEST_GAP: Span = Span::from_secs(24 * 3_600);

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `t_us,op,offset,length`.
    Csv,
    /// The CSV of Microsoft Research Cambridge.
    Msr,
    /// SPC ASCII.
    Spc,
    /// The text of `blkparse`.
    Blkparse,
    /// fio's iolog, versions 2 and 3.
    Iolog,
}

impl Format {
    /// Every format, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Iolog, Self::Csv, Self::Msr, Self::Spc, Self::Blkparse];

    /// The name of the format on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Msr => "msr",
            Self::Spc => "spc",
            Self::Blkparse => "blkparse",
            Self::Iolog => "iolog",
        }
    }

    /// The format of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// An example line, for a message.
    const fn example(self) -> &'static str {
        match self {
            Self::Csv => "t_us,op,offset,length",
            Self::Msr => "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            Self::Spc => "ASU,LBA,Size,Opcode,Timestamp",
            Self::Blkparse => "8,0 1 1 0.000000697 697 Q W 223490 + 8 [name]",
            Self::Iolog => "fio version 3 iolog",
        }
    }

    /// The parser for a trace of this format that begins with `head`; `None` if no line of `head` has this
    /// format.
    fn parser(self, head: &str) -> Option<Parser> {
        let arrival = blkparse::arrival(head.lines());
        let mut parser = match self {
            Self::Csv => Parser::Csv,
            Self::Msr => Parser::Msr,
            Self::Spc => Parser::Spc,
            Self::Blkparse => Parser::Blkparse(arrival),
            Self::Iolog => return head.lines().next().and_then(iolog::version).map(Parser::Iolog),
        };
        let is_header = |line: &str| line.trim() == self.example();
        let fits = |line: &str| is_header(line) || !matches!(parser.parse(line), Err(_) | Ok(Line::Nothing));
        head.lines().any(fits).then_some(parser)
    }
}

/// Opens the trace in the file `path`. Without a `format`, the first lines decide it.
///
/// # Errors
/// If there is no such file, or its first lines have no known format, or not the given one.
pub fn open(path: &Path, format: Option<Format>) -> Result<TraceReader, TraceError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| TraceError::Open { file: name.clone(), source })?;
    TraceReader::new(name, file, format)
}

/// The reads and writes of a trace, in the order of their time. After an error, the iterator ends.
pub struct TraceReader {
    name: String,
    text: Box<dyn BufRead + Send>,
    format: Format,
    parser: Parser,
    line: Vec<u8>,
    number: u64,
    /// The time of the first request, as the format counts it.
    origin: Option<Span>,
    /// The latest time so far, as the format counts it.
    latest: Span,
    skip_broken: bool,
    ended: bool,
    account: Account,
}

#[derive(Clone, Copy, Debug)]
enum Parser {
    Csv,
    Msr,
    Spc,
    Blkparse(blkparse::Arrival),
    Iolog(iolog::Version),
}

impl Parser {
    fn parse(&mut self, line: &str) -> Result<Line, Misfit> {
        match self {
            Self::Csv => csv::parse(line),
            Self::Msr => msr::parse(line),
            Self::Spc => spc::parse(line),
            Self::Blkparse(arrival) => blkparse::parse(line, *arrival),
            Self::Iolog(version) => iolog::parse(line, version),
        }
    }
}

impl TraceReader {
    /// Reads the trace in `raw`, compressed or not. Errors call it `name`.
    ///
    /// # Errors
    /// If it cannot be read, or its first lines have no known format, or not the given one.
    pub fn new(
        name: String,
        raw: impl Read + Send + 'static,
        format: Option<Format>,
    ) -> Result<Self, TraceError> {
        let account = Account::default();
        let input = match input::open(raw, account.clone()) {
            Ok(input) => input,
            Err(source) => return Err(TraceError::Read { file: name, line: 1, source }),
        };
        let candidates = format.as_ref().map_or(Format::ALL.as_slice(), std::slice::from_ref);
        let fitting = candidates.iter().find_map(|format| Some((*format, format.parser(&input.head)?)));
        let Some((format, parser)) = fitting else {
            return Err(TraceError::Format {
                file: name,
                found: input.head.lines().next().map_or("an empty file".to_owned(), quoted),
                accepted: accepted(candidates),
            });
        };
        Ok(Self {
            name,
            text: input.text,
            format,
            parser,
            line: Vec::new(),
            number: 0,
            origin: None,
            latest: Span::ZERO,
            skip_broken: false,
            ended: false,
            account,
        })
    }

    /// Whether to count broken lines in the [`Account`] and pass over them from here on. Without this, the
    /// first broken line ends the reading.
    #[must_use]
    pub fn skip_broken(mut self, skip: bool) -> Self {
        self.skip_broken = skip;
        self
    }

    /// The format of the trace.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The bytes that the reader has read, and its remarks so far. The account stays valid after the reader
    /// is given away.
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    /// Reads the next line into `self.line`. Its length is bounded, whatever the file holds. False at the
    /// end.
    fn read_line(&mut self) -> io::Result<Result<bool, Misfit>> {
        self.line.clear();
        let mut bounded = (&mut self.text).take(MOST_BYTES as u64);
        if bounded.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(Ok(false));
        }
        self.number += 1;
        if self.line.len() == MOST_BYTES && !self.line.ends_with(b"\n") {
            self.text.skip_until(b'\n')?;
            return Ok(Err(Misfit::new("a line that goes on", format_args!("at most {MOST_BYTES} bytes"))));
        }
        Ok(Ok(true))
    }

    /// The meaning of the next line; `None` at the end.
    fn next_line(&mut self) -> io::Result<Option<Result<Line, Misfit>>> {
        Ok(match self.read_line()? {
            Err(misfit) => Some(Err(misfit)),
            Ok(false) => None,
            Ok(true) => Some(match std::str::from_utf8(&self.line) {
                Ok(line) => self.parser.parse(line.trim_end_matches(['\n', '\r'])),
                Err(_) => Err(Misfit::new("bytes that are no text", "UTF-8")),
            }),
        })
    }

    /// Gives the request its time in the trace.
    fn place(&mut self, recorded: Recorded) -> Result<TraceRequest, Misfit> {
        let Recorded { mut at, kind, offset, length } = recorded;
        if at < self.latest {
            let behind = Span::from_nanos(self.latest.as_nanos() - at.as_nanos());
            if behind > DISORDER {
                let found = format_args!("a time {behind} before that of a line above");
                return Err(Misfit::new(found, format_args!("lines by time, give or take {DISORDER}")));
            }
            self.account.add_out_of_order();
            at = self.latest;
        }
        let gap = Span::from_nanos(at.as_nanos() - self.latest.as_nanos());
        if self.origin.is_some() && gap > LONGEST_GAP {
            let found = format_args!("a time {gap} after that of the line before");
            return Err(Misfit::new(found, format_args!("at most {LONGEST_GAP} without a request")));
        }
        self.latest = at;
        let origin = *self.origin.get_or_insert(at);
        let at = Span::from_nanos(at.as_nanos() - origin.as_nanos());
        Ok(TraceRequest { at, kind, offset, length })
    }

    /// Ends the reading.
    fn fail(&mut self, error: TraceError) -> TraceError {
        self.ended = true;
        self.account.fail(&error);
        error
    }

    fn broken(&self, Misfit { found, accepted }: Misfit) -> TraceError {
        TraceError::Line { file: self.name.clone(), line: self.number, found, accepted }
    }
}

impl Iterator for TraceReader {
    type Item = Result<TraceRequest, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let outcome = match self.next_line() {
                Ok(None) => break,
                Ok(Some(Ok(Line::Nothing))) => continue,
                Ok(Some(Ok(Line::Other))) => {
                    self.account.add_other();
                    continue;
                }
                Ok(Some(Ok(Line::Request(recorded)))) => self.place(recorded),
                Ok(Some(Err(misfit))) => Err(misfit),
                Err(source) => {
                    let line = self.number + 1;
                    return Some(Err(self.fail(TraceError::Read { file: self.name.clone(), line, source })));
                }
            };
            match outcome {
                Ok(request) => return Some(Ok(request)),
                Err(misfit) if self.skip_broken => {
                    self.account.add_broken(|| self.broken(misfit).to_string())
                }
                Err(misfit) => {
                    let error = self.broken(misfit);
                    return Some(Err(self.fail(error)));
                }
            }
        }
        self.ended = true;
        None
    }
}

/// The formats that a trace may have, for a message.
fn accepted(formats: &[Format]) -> String {
    let each = |format: &Format| match format {
        Format::Iolog => format!("iolog ({})", iolog::headers()),
        other => format!("{} ({})", other.name(), other.example()),
    };
    formats.iter().map(each).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
