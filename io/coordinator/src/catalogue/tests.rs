//! The catalogue as a file.

use super::*;

#[test]
fn a_second_coordinator_is_kept_out_and_a_backup_is_a_catalogue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalogue");
    let catalogue = Catalogue::open(&path).unwrap();
    let error = Catalogue::open(&path).unwrap_err();
    assert!(matches!(error, CatalogueError::InUse(_)), "{error}");
    let copy = directory.path().join("copy");
    assert!(catalogue.backup(&copy).unwrap() > 0);
    assert!(matches!(catalogue.backup(&copy).unwrap_err(), CatalogueError::Exists(_)));
    Catalogue::open(&copy).unwrap();
}

#[test]
fn files_of_other_programs_and_of_later_versions_are_refused_and_left_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "x".repeat(5_000)).unwrap();
    let other = directory.path().join("other");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let later = directory.path().join("later");
    drop(Catalogue::open(&later).unwrap());
    Connection::open(&later).unwrap().pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    for path in [text, other, later] {
        let before = std::fs::read(&path).unwrap();
        let error = Catalogue::open(&path).unwrap_err();
        assert!(matches!(error, CatalogueError::Format { .. }), "{error}");
        if path.ends_with("text") {
            assert_eq!(std::fs::read(&path).unwrap(), before);
        }
    }
}
