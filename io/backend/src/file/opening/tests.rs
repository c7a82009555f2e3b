//! Claims about what opening creates, refuses and takes back.

use crate::rig::scratch;
use crate::{BackendSpec, OpenError, Opened};

use super::*;

fn open_at(path: &Path, size: Option<u64>) -> Result<Opened, OpenError> {
    crate::open(&BackendSpec::File { path: path.to_owned() }, size)
}

fn message(path: &Path, size: Option<u64>) -> String {
    let text = open_at(path, size).unwrap_err().to_string();
    text.strip_prefix(&format!("{}: ", path.display())).expect("an error names its file first").to_owned()
}

#[test]
fn a_missing_file_is_created_sparse_and_can_be_served_directly() {
    let directory = scratch();
    let path = directory.path().join("disk");
    let file = open(&path, Some(1 << 40)).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((file.size, metadata.len()), (1 << 40, 1 << 40));
    assert_eq!(std::os::unix::fs::MetadataExt::blocks(&metadata), 0);
    assert!(file.abilities.direct && !file.abilities.block_device);
}

#[test]
fn a_missing_file_without_a_size_is_refused_and_not_created() {
    let directory = scratch();
    let path = directory.path().join("disk");
    assert_eq!(message(&path, None), "does not exist; give a size, and it is created");
    assert_eq!(message(&path, Some(0)), "has no bytes to serve; a size above zero is needed");
    assert!(!path.exists());
}

#[test]
fn the_size_is_that_of_the_file_or_larger_and_never_smaller() {
    let directory = scratch();
    let path = directory.path().join("disk");
    fs::write(&path, [1; 5000]).unwrap();
    assert_eq!(open_at(&path, None).unwrap().properties().size, 5000);
    assert_eq!(
        message(&path, Some(4999)),
        "has 5000 bytes, more than the size of 4999 bytes; accepted is a size of at least 5000 bytes, or none"
    );
    assert!(message(&path, Some(0)).starts_with("has 5000 bytes, more than the size of 0 bytes"));
    assert!(message(&path, Some(u64::MAX)).starts_with("cannot make it larger: "));
    assert_eq!(fs::read(&path).unwrap(), [1; 5000]);
    assert_eq!(open_at(&path, Some(8000)).unwrap().properties().size, 8000);
    assert_eq!(fs::metadata(&path).unwrap().len(), 8000);
}

#[test]
fn an_empty_file_needs_a_size() {
    let directory = scratch();
    let path = directory.path().join("disk");
    fs::write(&path, []).unwrap();
    assert_eq!(message(&path, None), "has no bytes to serve; a size above zero is needed");
    assert_eq!(open_at(&path, Some(4096)).unwrap().properties().size, 4096);
}

#[test]
fn a_file_can_be_served_once_at_a_time() {
    let directory = scratch();
    let path = directory.path().join("disk");
    let first = open_at(&path, Some(4096)).unwrap();
    assert!(matches!(open_at(&path, Some(1 << 20)).unwrap_err(), OpenError::InUse { .. }));
    assert_eq!(fs::metadata(&path).unwrap().len(), 4096, "the size of a file in use is left alone");
    drop(first);
    assert!(open_at(&path, None).is_ok());
}

#[test]
fn what_is_no_file_is_refused_by_its_name() {
    let directory = scratch();
    let accepted = "a regular file or a block device is accepted";
    assert_eq!(message(directory.path(), Some(4096)), format!("is a directory; {accepted}"));
    assert_eq!(message(Path::new("/dev/null"), Some(4096)), format!("is a character device; {accepted}"));
}

#[test]
fn a_file_that_cannot_be_made_says_why() {
    let path = Path::new("/no/such/directory/disk");
    assert_eq!(message(path, Some(4096)), "cannot create it: No such file or directory (os error 2)");
}

#[test]
fn a_size_that_no_file_can_have_leaves_no_file_behind() {
    let directory = scratch();
    let path = directory.path().join("disk");
    assert!(message(&path, Some(u64::MAX)).starts_with("cannot give it its size: "));
    assert!(!path.exists());
}

#[test]
fn discarding_takes_back_what_opening_did_and_no_more() {
    let directory = scratch();
    let path = directory.path().join("disk");
    open_at(&path, Some(4096)).unwrap().discard();
    assert!(!path.exists());
    fs::write(&path, [1; 5000]).unwrap();
    open_at(&path, Some(9000)).unwrap().discard();
    assert_eq!(fs::read(&path).unwrap(), [1; 5000]);
    open_at(&path, None).unwrap().discard();
    assert_eq!(fs::read(&path).unwrap(), [1; 5000]);
}

#[test]
fn other_backends_need_a_size() {
    let error = crate::open(&BackendSpec::Memory, None).unwrap_err();
    assert_eq!(error.to_string(), "a memory backend needs a size above zero");
    assert_eq!(crate::open(&BackendSpec::Memory, Some(512)).unwrap().properties().size, 512);
}
