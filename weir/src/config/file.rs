//! The text of a configuration file, bounded in length.
//!
//! A running server reads its file anew at each SIGHUP. Opening a pipe would block the server until somebody
//! writes to the pipe. Reading a device or a file of gigabytes would take all of its memory. So it reads only
//! regular files, and only up to a bound.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest file, in bytes: tens of thousands of volumes.
const LARGEST: u64 = 16 << 20;

/// The text of the file at `path`.
///
/// # Errors
/// If the file cannot be read, is no regular file, is no text, or is too long.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
    let wrong = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
    // If the file is a pipe, this does not wait for the other end.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(wrong("something that is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(wrong(format!("more than {LARGEST} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("bytes that are no text in UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn what_is_no_file_of_a_configuration_is_refused_without_waiting_or_reading_all_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| text_of(path).unwrap_err().to_string();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&pipe, directory.path(), Path::new("/dev/zero")] {
            assert_eq!(refusal(path), "something that is no regular file", "{}", path.display());
        }
        let large = directory.path().join("large");
        File::create(&large).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(refusal(&large), "more than 16777216 bytes");
        let binary = directory.path().join("binary");
        std::fs::write(&binary, [0xff, 0xfe]).unwrap();
        assert_eq!(refusal(&binary), "bytes that are no text in UTF-8");
    }
}
