//! `weir record FILE --out DIR`: serves, and records every event and decision of each pool's engine.
//!
//! The recording begins with the engine, so it cannot be turned on while a server runs. An engine's decisions
//! depend on everything that it has seen, and its state is not written down.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context, anyhow};
use bytesize::ByteSize;
use clap::Args;
use weir_engine::Recorder;
use weir_gateway::Recorders;
use weir_recording::{Ending, Writing, create};

use crate::failure::Failure;
use crate::say;
use crate::verbs::serve::serve;

/// The ending of a recording's name.
pub(crate) const SUFFIX: &str = ".decisions";

/// The configuration to serve, and the directory of the recordings.
#[derive(Args, Debug)]
pub(crate) struct RecordArguments {
    /// The configuration file
    file: PathBuf,
    /// Directory for the recordings, one file POOL.decisions for each pool; new or empty
    ///
    /// Each pool is recorded from its start on, also a pool that a reload adds. If the disk cannot keep up,
    /// clients are not held back: the recording ends there, and the exit status is 1.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Serves until SIGTERM or SIGINT, and records.
///
/// # Errors
/// If it cannot start, or a recording is not complete.
pub(crate) async fn record(arguments: RecordArguments) -> Result<(), Failure> {
    let RecordArguments { file, out } = arguments;
    let made = prepare(&out)?;
    let recordings = Recordings::default();
    let served = serve(&file, Some(recordings.recorders(out.clone()))).await;
    if served.is_err() && made {
        let _ = fs::remove_dir(&out); // only if nothing was recorded
    }
    served?;
    recordings.finish()
}

/// Makes the directory, unless it is there and empty. Returns whether it made it.
fn prepare(out: &Path) -> Result<bool, Failure> {
    let wrong = |found: &str| {
        let accepted = "a directory that is empty, or does not exist and can be made";
        Failure::usage(format!("--out {}: found {found}; accepted: {accepted}", out.display()))
    };
    let made = match fs::create_dir(out) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(wrong(&error.to_string())),
    };
    let mut content = fs::read_dir(out).map_err(|error| wrong(&error.to_string()))?;
    if content.next().is_some() {
        return Err(wrong("files in it"));
    }
    tempfile::tempfile_in(out).map_err(|error| wrong(&error.to_string()))?;
    Ok(made)
}

/// The recordings of a server.
#[derive(Clone, Default)]
struct Recordings {
    /// The recordings, in the order in which they began.
    files: Rc<RefCell<Vec<Begun>>>,
}

/// A pool, and the file of its recording, or the reason why there is none.
type Begun = (String, anyhow::Result<Writing>);

impl Recordings {
    /// The function with which the gateway makes its recorders.
    fn recorders(&self, out: PathBuf) -> Recorders {
        let files = Rc::clone(&self.files);
        Box::new(move |pool| {
            let begun = begin(&out, pool).with_context(|| format!("pool {pool} is not recorded"));
            let (recorder, writing) = match begun {
                Ok((recorder, writing)) => (Some(recorder), Ok(writing)),
                Err(error) => {
                    tracing::error!("{error:#}");
                    (None, Err(error))
                }
            };
            files.borrow_mut().push((pool.to_owned(), writing));
            recorder
        })
    }

    /// Waits until everything is on the disk, and prints what was recorded.
    fn finish(self) -> Result<(), Failure> {
        let mut first_failure = Ok(());
        for (pool, writing) in self.files.take() {
            if let Err(error) = writing.and_then(|writing| finish(&pool, writing)) {
                if first_failure.is_ok() {
                    first_failure = Err(Failure::Runtime(error));
                } else {
                    say::on_stderr(format_args!("weir: {error:#}"));
                }
            }
        }
        first_failure
    }
}

/// Makes the file of a pool: `POOL.decisions`, or with a number if a pool of that name was served before.
fn begin(out: &Path, pool: &str) -> io::Result<(Box<dyn Recorder + Send>, Writing)> {
    let mut path = out.join(format!("{pool}{SUFFIX}"));
    for number in 2.. {
        match create(&path, pool) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            Ok((recorder, writing)) => return Ok((Box::new(recorder), writing)),
        }
        path = out.join(format!("{pool}.{number}{SUFFIX}"));
    }
    unreachable!("a directory does not hold as many files")
}

fn finish(pool: &str, writing: Writing) -> anyhow::Result<()> {
    let path = writing.path().to_owned();
    let written = writing.finish().with_context(|| format!("{}: the recording broke off", path.display()))?;
    let (entries, size) = (written.entries, ByteSize::b(written.bytes));
    say::on_stdout(format_args!(
        "weir: recorded pool {pool}: {entries} entries, {size}, in {}",
        path.display()
    ));
    match written.ending {
        Ending::Complete => Ok(()),
        Ending::Overrun | Ending::CutOff => Err(anyhow!(
            "{}: the disk could not keep up; what was decided after these {entries} entries is not recorded",
            path.display()
        )),
    }
}
