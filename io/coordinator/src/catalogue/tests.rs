//! The catalogue as a file.

use super::*;

#[test]
fn a_second_coordinator_is_kept_out_and_a_backup_is_a_catalogue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalogue");
    let _catalogue = Catalogue::open(&path).unwrap();
    let error = Catalogue::open(&path).unwrap_err();
    assert!(matches!(error, CatalogueError::InUse(_)), "{error}");
    let copy = directory.path().join("copy");
    assert!(backup(&path, &copy).unwrap() > 0);
    assert!(matches!(backup(&path, &copy).unwrap_err(), CatalogueError::Exists(_)));
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

#[test]
fn a_backup_is_written_while_the_catalogue_changes() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("catalogue"), directory.path().join("copy"));
    let mut catalogue = Catalogue::open(&path).unwrap();
    catalogue.set_peak(0, "before", 1, 1).unwrap();
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| backup(&path, &copy));
        for round in 0.. {
            catalogue.set_peak(round, "meanwhile", 1, 1).unwrap();
            if backup.is_finished() {
                break;
            }
        }
        backup.join().unwrap().unwrap();
    });
    let copied = Catalogue::open(&copy).unwrap().peaks().unwrap();
    assert!(copied.iter().any(|(node, ..)| node == "before"), "{copied:?}");
}
