//! What static settings do, kept in a file, because finding it takes more than ten times as long as judging.
//!
//! Each line is a cell. Its key is a hash of what the cell is, and of what its volumes get in three runs. So
//! a change of the simulator, of a recording or of the space of settings makes it another cell, and what was
//! found before is not taken for it.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::bed::Bed;
use super::draw::Cell;
use super::oracle::Oracle;
use super::promise::Request;
use super::setting::{Told, probe, statics};

/// What a line means. Another number for another meaning.
const VERSION: u32 = 2;
/// How each line begins.
const BEGIN: &[u8] = b"{\"key\":\"";
/// The most bytes that are read: a hundred thousand cells.
const MOST_BYTES: u64 = 256 << 20;

/// What was found, and the file that keeps it.
#[derive(Debug)]
pub struct OracleFile {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    found: BTreeMap<Key, Oracle>,
}

/// What a cell is, and what it does.
pub(super) type Key = String;

#[derive(Serialize, Deserialize)]
struct Line {
    key: Key,
    /// For people.
    what: String,
    oracle: Oracle,
}

impl OracleFile {
    /// Reads what was found before; the file need not be there. A last line that was cut off is left out, and
    /// removed from the file.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is something else. Then it stays as it is.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let at = || path.display().to_string();
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).with_context(at)?;
        let metadata = file.metadata().with_context(at)?;
        anyhow::ensure!(metadata.is_file(), "{}: accepted: a file, or no such file", path.display());
        let length = metadata.len();
        anyhow::ensure!(
            length <= MOST_BYTES,
            "{}: found {length} bytes; accepted: at most {MOST_BYTES}",
            path.display()
        );
        let mut bytes = Vec::new();
        (&file).take(MOST_BYTES).read_to_end(&mut bytes).with_context(at)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let (lines, cut_off) = bytes.split_at(whole);
        let mut found = BTreeMap::new();
        for (place, line) in lines.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let Line { key, oracle, .. } = read(line).with_context(|| not_ours(path, place))?;
            found.insert(key, oracle);
        }
        let is_ours = BEGIN.starts_with(cut_off) || cut_off.starts_with(BEGIN);
        anyhow::ensure!(is_ours, not_ours(path, lines.iter().filter(|byte| **byte == b'\n').count()));
        if !cut_off.is_empty() {
            file.set_len(whole as u64).with_context(at)?;
        }
        Ok(Self { path: path.to_owned(), inner: Mutex::new(Inner { file, found }) })
    }

    pub(super) fn get(&self, key: &Key) -> Option<Oracle> {
        self.inner.lock().expect("no thread panics with it").found.get(key).cloned()
    }

    /// Keeps what was found of a cell.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep(&self, key: Key, cell: &Cell, oracle: &Oracle) -> anyhow::Result<()> {
        let line = Line { key: key.clone(), what: cell.to_string(), oracle: oracle.clone() };
        let line = serde_json::to_string(&line)? + "\n";
        let mut inner = self.inner.lock().expect("no thread panics with it");
        inner.file.write_all(line.as_bytes()).with_context(|| format!("writing {}", self.path.display()))?;
        inner.found.insert(key, oracle.clone());
        Ok(())
    }
}

fn read(line: &[u8]) -> anyhow::Result<Line> {
    let line: Line = serde_json::from_slice(line)?;
    anyhow::ensure!(!line.oracle.mild.is_empty(), "found no setting");
    Ok(line)
}

fn not_ours(path: &Path, place: usize) -> String {
    let accepted = "accepted: a line that weir lab guarantee has written, or no such file";
    format!("{}: line {}; {accepted}", path.display(), place + 1)
}

/// The key of a cell. `free` and `without` are the requests of the promised volume alone, and of both without
/// control, with the draw that is scored.
///
/// # Errors
/// If a run breaks a rule that holds for every run.
pub(super) fn key(
    cell: &Cell,
    bed: &Bed<'_>,
    told: Told,
    free: &[Request],
    without: &[Vec<Request>; 2],
) -> anyhow::Result<Key> {
    let mut hash = blake3::Hasher::new();
    hash.update(format!("{VERSION} {cell} {:?} {:?}", cell.scored, cell.chosen).as_bytes());
    for setting in statics(told) {
        hash.update(format!("{setting:?}").as_bytes());
    }
    // Deadlines, a depth and a bound, which nothing of the other runs has.
    let probe = bed.both(&probe(told))?;
    for requests in [free].into_iter().chain(without.iter().chain(&probe).map(Vec::as_slice)) {
        for Request { came, latency } in requests {
            hash.update(&came.as_nanos().to_le_bytes()).update(&latency.as_nanos().to_le_bytes());
        }
    }
    Ok(hash.finalize().to_hex()[..32].to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::draw::draw;
    use super::super::load::Loads;
    use super::super::matrix::Matrix;
    use super::super::oracle::Mild;
    use super::super::outcome::{Got, Kept};
    use super::*;

    #[test]
    fn what_was_found_is_there_again_and_a_line_that_was_cut_off_is_left_out() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let path = folder.path().join("oracle.jsonl");
        let (matrix, loads) = (Matrix::embedded(), Loads::made_up_and(&[]));
        let cell = draw(&matrix, &loads, 1, 0);
        let mild =
            Mild { setting: "depth 8".to_owned(), met: 1, other: Got { mean_us: 1, p99_us: 2, answered: 3 } };
        let kept = Kept::default();
        let oracle =
            Oracle { setting: "depth 8".to_owned(), kept, bursts: vec![true, false], mild: vec![mild] };
        let open = || OracleFile::open(&path).expect("it is read");
        for key in ["one", "two"] {
            open().keep(key.to_owned(), &cell, &oracle).expect("it is written");
        }
        let cut = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, &cut[..cut.len() - 5]).expect("it is written");
        let again = open();
        assert_eq!(
            (again.get(&"one".to_owned()), again.get(&"two".to_owned())),
            (Some(oracle.clone()), None)
        );
        again.keep("two".to_owned(), &cell, &oracle).expect("it is written");
        assert_eq!(open().get(&"two".to_owned()), Some(oracle));
    }

    #[test]
    fn a_file_that_is_something_else_stays_as_it_is() {
        let folder = tempfile::tempdir().expect("there is a folder for temporary files");
        let path = folder.path().join("notes.txt");
        for text in ["something else\n", "something else", "{\"key\": 1}\nand more", "{\"other\": 1}"] {
            fs::write(&path, text).expect("it is written");
            let error = OracleFile::open(&path).expect_err("it is something else");
            assert!(format!("{error:#}").contains("line 1; accepted: a line that"), "{error:#}");
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        let error = OracleFile::open(Path::new("/dev/zero")).expect_err("it is no file");
        assert!(error.to_string().contains("accepted: a file"), "{error:#}");
    }
}
