//! The bytes of a configuration file, and no more than a configuration can have.
//!
//! A running server reads its file anew at each SIGHUP. To open a pipe would stop it until somebody writes
//! there, and to read a device or a file of gigabytes would cost it its memory. So only a regular file is
//! read, and only to a bound.

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
/// If it cannot be read, or is no regular file of text within the bound.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
    let wrong = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
    // Without waiting for somebody at the other end, should it be a pipe.
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
