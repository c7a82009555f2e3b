//! Reads small files and folders of `/sys` and `/proc` within bounds, and keeps what was wrong with them.
//!
//! A target or a device may vanish while it is read. That is an ordinary answer: the thing is not there. All
//! else that is not as it should be is a [`Remark`], and the reading goes on with the next thing. If one odd
//! file ended the whole survey, one broken target would leave all others without their guard.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

use super::text::{Unfit, name};

/// The most bytes of a file. A file of sysfs or configfs has at most 4 KiB, `mountinfo` has more.
const MOST_FILE_BYTES: usize = 64 << 10;

/// The most entries of a folder.
const MOST_ENTRIES: usize = 4096;

/// The most remarks of a reading. The first ones say enough.
pub(super) const MOST_REMARKS: usize = 100;

/// Something on the host that is not as it should be, and was left out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Remark {
    /// The kernel does not let the agent read it.
    #[error("{}: {error}", shown(path))]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        error: Errno,
    },
    /// It has a form or a size that is not accepted.
    #[error("{}: {unfit}", shown(path))]
    Unfit {
        /// The file or folder, or the program that said it.
        path: PathBuf,
        /// What was found, and what is accepted.
        unfit: Unfit,
    },
    /// The kernel or a program does not answer as it should.
    #[error("{what}: {answer}")]
    NoAnswer {
        /// What was asked.
        what: &'static str,
        /// The answer.
        answer: String,
    },
}

/// A path in a line of the log. The paths of LUNs come from `tgtadm`, with any character.
fn shown(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "?")
}

/// Reads, and keeps the remarks.
#[derive(Debug)]
pub(super) struct Reader {
    remarks: Vec<Remark>,
    buffer: Box<[u8]>,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self { remarks: Vec::new(), buffer: vec![0; MOST_FILE_BYTES + 1].into() }
    }

    /// The remarks since the last call.
    pub(super) fn take_remarks(&mut self) -> Vec<Remark> {
        std::mem::take(&mut self.remarks)
    }

    /// Keeps a remark.
    pub(super) fn remark(&mut self, remark: Remark) {
        if self.remarks.len() < MOST_REMARKS && !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Keeps that `path` has an unfit text.
    pub(super) fn unfit(&mut self, path: &Path, unfit: Unfit) {
        self.remark(Remark::Unfit { path: path.to_owned(), unfit });
    }

    /// The value, unless it is unfit.
    pub(super) fn fit<T>(&mut self, path: &Path, parsed: Result<T, Unfit>) -> Option<T> {
        parsed.map_err(|unfit| self.unfit(path, unfit)).ok()
    }

    /// The text of a file. Bytes that are no UTF-8 are replaced, and hide nothing else: initiators and other
    /// users of the host choose parts of such texts, and a parser takes only what fits.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The bytes of a file.
    pub(super) fn bytes(&mut self, path: &Path) -> Option<&[u8]> {
        let length = match contents(path, &mut self.buffer) {
            Ok(length) => length,
            Err(error) => return self.absent(path, error),
        };
        if length == self.buffer.len() {
            self.unfit(path, Unfit::new("more than 64 KiB", "a file of at most 64 KiB"));
            return None;
        }
        self.buffer.get(..length)
    }

    /// The number in a file, without white space around it.
    pub(super) fn number<T: FromStr>(&mut self, path: &Path) -> Option<T> {
        let text = self.text(path)?;
        let number = text.trim().parse().map_err(|_| Unfit::new(&text, "a number that is not negative"));
        self.fit(path, number)
    }

    /// Whether a file says 1. SCST puts a mark into a second line.
    pub(super) fn is_set(&mut self, path: &Path) -> bool {
        self.text(path).is_some_and(|text| text.split_ascii_whitespace().next() == Some("1"))
    }

    /// The names of the entries of a folder, in order.
    pub(super) fn names(&mut self, folder: &Path) -> Vec<String> {
        let entries = self.entries(folder).into_iter();
        entries.filter_map(|entry| self.fit(folder, name(&entry.to_string_lossy()))).collect()
    }

    /// The names of the entries of a folder as they are, in order.
    pub(super) fn entries(&mut self, folder: &Path) -> Vec<OsString> {
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let _: Option<()> = self.absent(folder, errno(&error));
                return names;
            }
        };
        for entry in entries {
            let Ok(entry) = entry else { break }; // the folder has vanished meanwhile
            if names.len() == MOST_ENTRIES {
                self.unfit(folder, Unfit::new("more than 4096 entries", "a folder of at most 4096 entries"));
                break;
            }
            names.push(entry.file_name());
        }
        names.sort_unstable();
        names
    }

    /// The names with a number behind `prefix`, and the numbers: of `lun_0`, 0.
    pub(super) fn numbered(&mut self, folder: &Path, prefix: &str) -> Vec<(u64, PathBuf)> {
        let names = self.names(folder);
        let mut numbered = Vec::new();
        for (name, number) in names.iter().filter_map(|name| Some((name, name.strip_prefix(prefix)?))) {
            numbered.extend(number.parse().ok().map(|number: u64| (number, folder.join(name))));
        }
        numbered.sort_unstable();
        numbered
    }

    /// Where the symbolic links of a folder lead, as they stand there.
    pub(super) fn links(&mut self, folder: &Path) -> Vec<PathBuf> {
        let names = self.names(folder);
        names.iter().filter_map(|name| std::fs::read_link(folder.join(name)).ok()).collect()
    }

    /// Nothing, and a remark unless the thing is just not there.
    fn absent<T>(&mut self, path: &Path, error: Errno) -> Option<T> {
        if !is_gone(error) {
            self.remark(Remark::Unreadable { path: path.to_owned(), error });
        }
        None
    }
}

/// Reads a file into the buffer, as far as that goes, and says how many bytes that are.
fn contents(path: &Path, buffer: &mut [u8]) -> Result<usize, Errno> {
    // Without O_NONBLOCK, a pipe that somebody put there would hold the agent up for ever.
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match read(&file, rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// The kernel's answer in an error of the standard library.
pub(super) fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Whether the kernel answers so if a thing is not there, or no longer.
pub(super) fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NODEV | Errno::NXIO | Errno::NOTDIR | Errno::STALE)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_not_there_is_no_remark_and_what_is_odd_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut reader = Reader::new();
        assert_eq!(reader.text(&at("none")), None);
        assert_eq!(reader.names(&at("none")), Vec::<String>::new());
        assert_eq!(reader.take_remarks(), []);

        fs::write(at("number"), "7\n").unwrap();
        fs::write(at("word"), "seven").unwrap();
        fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
        fs::write(at("long"), vec![b'7'; MOST_FILE_BYTES + 1]).unwrap();
        assert_eq!(reader.number::<u64>(&at("number")), Some(7));
        for odd in ["word", "bytes", "long"] {
            assert_eq!(reader.number::<u64>(&at(odd)), None);
            let remarks = reader.take_remarks();
            assert_eq!(remarks.len(), 1, "{odd}");
            assert!(remarks[0].to_string().starts_with(&at(odd).display().to_string()), "{}", remarks[0]);
        }
        fs::write(at("long"), vec![b'7'; MOST_FILE_BYTES]).unwrap();
        assert_eq!(reader.text(&at("long")).map(|text| text.len()), Some(MOST_FILE_BYTES));
        assert_eq!(reader.text(folder.path()), None);
        assert_eq!(reader.take_remarks().len(), 1, "a folder is no file");
    }

    #[test]
    fn a_path_in_a_remark_is_no_command_to_a_terminal() {
        let remark = Remark::Unreadable { path: "/dev/\u{1b}[2J\n".into(), error: Errno::ACCESS };
        assert!(remark.to_string().starts_with("/dev/?[2J?: "), "{remark}");
    }

    #[test]
    fn a_pipe_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(Reader::new().text(&pipe), Some(String::new()));
    }

    #[test]
    fn remarks_and_entries_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST_ENTRIES + 10 {
            fs::write(folder.path().join(format!("lun_{number}")), "odd").unwrap();
        }
        let mut reader = Reader::new();
        let numbered = reader.numbered(folder.path(), "lun_");
        assert_eq!(numbered.len(), MOST_ENTRIES);
        assert!(numbered.is_sorted());
        assert_eq!(reader.take_remarks().len(), 1);
        numbered.iter().for_each(|(_, path)| assert_eq!(reader.number::<u64>(path), None));
        assert_eq!(reader.take_remarks().len(), MOST_REMARKS);
    }
}
