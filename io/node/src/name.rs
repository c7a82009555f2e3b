//! Names that a caller gives: of objects, of partials, and the notes to find a partial again.
//!
//! They are checked once, where text becomes one of these types. The drivers then put them into paths, URLs
//! and keys without a second look.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest name of an object, in bytes.
const LONGEST_NAME: usize = 512;
/// The longest component of a name, in bytes: that of Linux's file systems.
const LONGEST_COMPONENT: usize = 255;
/// The longest id of a partial, in bytes.
const LONGEST_ID: usize = 64;
/// The longest note, in bytes. An upload id of S3 has a few hundred.
const LONGEST_NOTE: usize = 2_048;
/// What weir's own files and folders on a node begin with. No object has such a name.
const OWN: &str = ".weir-";

/// The folder of the partials, below the root of a node.
pub(crate) const PARTIALS: &str = ".weir-partial";

/// A text that cannot be used as a name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{what}: found {found}; accepted: {accepted}")]
pub struct NameError {
    what: &'static str,
    found: String,
    accepted: &'static str,
}

/// The name of an object: a relative path, such as `2026/run-7.tar`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectName(String);

impl ObjectName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path without its last component, empty if there is none; and the last component.
    pub(crate) fn split(&self) -> (&str, &str) {
        self.0.rsplit_once('/').unwrap_or(("", &self.0))
    }

    /// The paths of the folders that the object lies in, the outermost first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').filter_map(|(at, _)| self.0.get(..at))
    }
}

impl FromStr for ObjectName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refuse = |found: String, accepted| Err(NameError { what: "object name", found, accepted });
        if text.is_empty() || text.len() > LONGEST_NAME {
            return refuse(format!("{} bytes", text.len()), "1 to 512 bytes");
        }
        if text.chars().any(char::is_control) {
            return refuse(format!("{text:?}"), "no control characters");
        }
        for component in text.split('/') {
            if component.is_empty() || component.len() > LONGEST_COMPONENT {
                let found = format!("a component of {} bytes in {text:?}", component.len());
                return refuse(found, "a relative path whose components have 1 to 255 bytes");
            }
            if component == "." || component == ".." {
                return refuse(format!("{component:?} in {text:?}"), "a path without \".\" and \"..\"");
            }
            if component.starts_with(OWN) {
                return refuse(format!("{component:?}"), "no component that begins with \".weir-\"");
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a partial: 1 to 64 letters, digits, `-` and `_`.
///
/// Two writers must never begin with the same id. WebDAV could not keep their bytes apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PartialId(String);

impl PartialId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PartialId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = (1..=LONGEST_ID).contains(&text.len());
        if fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Ok(Self(text.to_owned()));
        }
        let found = format!("{:?}", text.chars().take(LONGEST_ID + 1).collect::<String>());
        Err(NameError { what: "partial id", found, accepted: "1 to 64 letters, digits, \"-\" and \"_\"" })
    }
}

impl fmt::Display for PartialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A line of text that a writer leaves, so that another process can go on with its partial, or discard it.
///
/// The order of a writer's notes matters. A note has no secret in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Note(String);

impl Note {
    /// The line as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// That a partial with this id has been begun: on a node of files, WebDAV or SFTP.
    pub(crate) fn file(id: &PartialId) -> Self {
        Self(format!("file {id}"))
    }

    /// The id that the first note of a partial names, on a node of files, WebDAV or SFTP.
    pub(crate) fn file_id(notes: &[Self]) -> Option<PartialId> {
        notes.first()?.0.strip_prefix("file ")?.parse().ok()
    }
}

impl FromStr for Note {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let accepted = "a line of 1 to 2048 bytes, as a writer left it";
        if !(1..=LONGEST_NOTE).contains(&text.len()) {
            return Err(NameError { what: "note", found: format!("{} bytes", text.len()), accepted });
        }
        if text.chars().any(char::is_control) {
            return Err(NameError { what: "note", found: "a control character".to_owned(), accepted });
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_path_that_cannot_leave_its_root() {
        for good in ["a", "a/b c/d.tar", "..a", "a..", "...", "ü/%2e%2e", &"x".repeat(255)] {
            assert_eq!(good.parse::<ObjectName>().unwrap().to_string(), good);
        }
        let long = ["y".repeat(255), "y".repeat(255), "yy".to_owned()].join("/");
        let bad = ["", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a\nb", "a/.weir-partial/b", &long];
        for bad in bad.into_iter().chain([&*"x".repeat(256)]) {
            let error = bad.parse::<ObjectName>().unwrap_err().to_string();
            assert!(error.contains("found ") && error.contains("; accepted: "), "{error}");
        }
    }

    #[test]
    fn the_folders_of_a_name_come_outermost_first() {
        let name: ObjectName = "a/b/c".parse().unwrap();
        assert_eq!(name.folders().collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(name.split(), ("a/b", "c"));
        assert_eq!("c".parse::<ObjectName>().unwrap().split(), ("", "c"));
    }

    #[test]
    fn an_id_of_a_partial_is_one_plain_word() {
        assert!("4f-2_B".parse::<PartialId>().is_ok());
        for bad in ["", "a/b", "..", "a b", "ü", &"x".repeat(65)] {
            assert!(bad.parse::<PartialId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_note_is_one_bounded_line() {
        assert!("part 8388608 \"abc\"".parse::<Note>().is_ok());
        assert!("a\nb".parse::<Note>().is_err() && "".parse::<Note>().is_err());
        assert!("x".repeat(2_049).parse::<Note>().is_err());
    }
}
