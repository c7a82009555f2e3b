//! What people and catalogues say about storage nodes: URLs, names, notes and files of credentials.
//!
//! A note comes back from a catalogue, and a client acts on it. So each script is also tried as the notes of
//! a partial on a node in a directory: whatever they say, nothing but a partial of that node may change.

use std::fs;
use std::path::Path;

use tempfile::{NamedTempFile, TempDir};
use weir_node::{Credentials, Location, Node, Note, ObjectName, PartialId};

use super::Target;
use crate::script::Script;
use crate::seen::Seen;

pub(super) const TARGET: Target = Target {
    name: "node-texts",
    run,
    seeds,
    words: &[
        b"file://",
        b"s3://",
        b"webdav://",
        b"webdavs://",
        b"sftp://",
        b"?endpoint=http://h:1",
        b"&region=",
        b"user:hidden@",
        b"[::1]",
        b":65536",
        b"%2F",
        b"%2e%2e",
        b"%00",
        b"..",
        b"../secret",
        b"/",
        b"\\",
        b"#",
        b"file partial",
        b"file ../object",
        b"file ",
        b"upload ",
        b"part ",
        b"18446744073709551616",
        b"access_key_id = \"a\"\n",
        b"secret_access_key = \"s\"\n",
        b"password = \"p\"\n",
        b"user = \"u\"\n",
        b"'''",
        b"\xc3\xa9",
    ],
    must_reach: &[
        "file",
        "s3",
        "webdav",
        "sftp",
        "no location",
        "name",
        "no name",
        "note",
        "no note",
        "id",
        "resumed",
        "gone",
        "discarded",
        "credentials",
        "no credentials",
    ],
};

/// The most characters of an error. A name in it has up to 512.
const MOST_TOLD: usize = 4_000;

fn seeds() -> Vec<Script> {
    let lines = |lines: &[&str]| Script::new(lines.iter().map(|line| line.as_bytes().to_vec()).collect());
    vec![
        lines(&["file:///srv/nodes/a%20b", "sftp://me@host:22/srv", "sftp://[fd00::1]/srv"]),
        lines(&["s3://bulk/a/b?endpoint=http://127.0.0.1:9000&region=eu-1", "s3://bulk?endpoint=https://h"]),
        lines(&["webdav://127.0.0.1:8080/a%20b/", "webdavs://dav.example/", "webdav://user:hidden@h/"]),
        lines(&["file partial", "2026/run-7.tar"]),
        lines(&["file other", "4f-2_B"]),
        lines(&["upload 4f of/key", "part 8388608 \"tag\"", "part 5 \"tag\""]),
        Script::of_lines("access_key_id = \"AK\"\nsecret_access_key = \"s\"\nsession_token = \"t\"\n"),
        Script::of_lines("user = \"u\"\npassword = \"p\"\n"),
    ]
}

fn run(script: &Script, seen: &mut Seen) {
    let texts: Vec<String> =
        script.pieces.iter().map(|piece| String::from_utf8_lossy(piece).into_owned()).collect();
    for text in &texts {
        seen.message();
        of_location(text, seen);
        seen.reach(if told(text.parse::<ObjectName>()).is_some() { "name" } else { "no name" });
        seen.reach(if told(text.parse::<Note>()).is_some() { "note" } else { "no note" });
        if told(text.parse::<PartialId>()).is_some() {
            seen.reach("id");
        }
    }
    of_credentials(&script.joined(), seen);
    let notes: Vec<Note> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if !notes.is_empty() {
        of_notes(&notes, seen);
    }
}

/// A URL that is accepted is written in a form that names the same place.
fn of_location(text: &str, seen: &mut Seen) {
    let Some(location) = told(text.parse::<Location>()) else {
        seen.reach("no location");
        return;
    };
    seen.reach(match &location {
        Location::File { .. } => "file",
        Location::S3 { .. } => "s3",
        Location::WebDav { .. } => "webdav",
        Location::Sftp { .. } => "sftp",
    });
    let written = location.to_string();
    assert_eq!(written.parse::<Location>().as_ref(), Ok(&location), "{text:?} was written as {written:?}");
}

fn of_credentials(bytes: &[u8], seen: &mut Seen) {
    let file = NamedTempFile::new().expect("there is a folder for temporary files");
    fs::write(file.path(), bytes).expect("the file is ours");
    match told(Credentials::read(file.path())) {
        Some(credentials) => {
            seen.reach("credentials");
            let shown = format!("{credentials:?}");
            assert!(["Credentials(S3)", "Credentials(WebDAV)"].contains(&&*shown), "{shown}");
        }
        None => seen.reach("no credentials"),
    }
}

/// Goes on with a partial of these notes, and discards it. All else below and beside the root stays.
fn of_notes(notes: &[Note], seen: &mut Seen) {
    let folder = TempDir::new().expect("there is a folder for temporary files");
    let root = folder.path().join("root");
    let write = |path: &Path| fs::write(path, "kept").expect("the folder is ours");
    fs::create_dir_all(root.join(".weir-partial")).expect("the folder is ours");
    let partial = root.join(".weir-partial/partial");
    let kept = [folder.path().join("secret"), root.join("object"), root.join(".weir-partial/kept")];
    kept.iter().for_each(|path| write(path));
    write(&partial);
    let location = Location::File { root };
    let node = Node::open(location, None).expect("a directory needs nothing");
    let name: ObjectName = "new".parse().expect("a name");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime of one thread").block_on(async {
        match told(node.resume(&name, notes, Some(100)).await) {
            Some(writer) => {
                seen.reach("resumed");
                assert_eq!(writer.offset(), 4, "the bytes of the partial");
            }
            None => seen.reach("gone"),
        }
        let _ = told(node.discard(notes).await);
    });
    let removed: Vec<_> = kept.iter().filter(|path| !path.exists()).collect();
    // That is what one of its own notes would say.
    let is_own = notes[0].as_str() == "file kept";
    assert!(removed.is_empty() || is_own && removed == [&kept[2]], "{notes:?} removed {removed:?}");
    if !partial.exists() {
        seen.reach("discarded");
    }
}

/// What was read. An error is one bounded line.
fn told<T, E: std::fmt::Display>(read: Result<T, E>) -> Option<T> {
    read.map_err(|error| {
        let text = error.to_string();
        assert!(text.chars().count() <= MOST_TOLD && !text.contains('\n'), "{text:?}");
    })
    .ok()
}
