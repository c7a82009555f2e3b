//! Directories of this host.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use weir_node::{ErrorKind, Node};

use crate::bench::{Bench, PIECE, data, get, id, kind, name, put, run, write};

crate::conformance::conformance!(Bench::file());

/// Tells the program that it has a small file system of its own.
const SMALL: &str = "WEIR_SMALL_FILE_SYSTEM";

fn node_at(root: &Path) -> Node {
    Node::open(format!("file://{}", root.display()).parse().unwrap(), None).unwrap()
}

#[test]
fn a_link_that_leads_out_of_the_root_is_not_followed() {
    run(Bench::file(), "", async |bench| {
        let root = bench.root.as_ref().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        symlink(outside.path(), root.join("out")).unwrap();
        symlink(outside.path().join("secret"), root.join("link")).unwrap();
        symlink("../../../../../etc", root.join("up")).unwrap();
        for text in ["out/secret", "link", "up/passwd"] {
            assert_eq!(kind(bench.node.read(&name(text), 0).await), ErrorKind::Denied);
            assert_eq!(kind(bench.node.size(&name(text)).await), ErrorKind::Denied);
        }
        for (text, id) in [("out/new", "out-1"), ("out/folder/new", "out-2")] {
            assert_eq!(
                kind(put(&bench.node, &name(text), &crate::bench::id(id), &data(1, 9)).await),
                ErrorKind::Denied
            );
        }
        assert_eq!(kind(bench.node.remove(&name("out/secret")).await), ErrorKind::Denied);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    });
}

#[test]
fn a_link_within_the_root_is_followed() {
    run(Bench::file(), "", async |bench| {
        let root = bench.root.as_ref().unwrap();
        std::fs::create_dir(root.join("disk2")).unwrap();
        symlink("disk2", root.join("today")).unwrap();
        put(&bench.node, &name("today/a"), &id("a"), &data(1, 9)).await.unwrap();
        assert!(get(&bench.node, &name("disk2/a"), 0).await == data(1, 9));
    });
}

#[test]
fn a_link_in_place_of_the_partials_is_refused() {
    run(Bench::file(), "", async |bench| {
        let (root, outside) = (bench.root.as_ref().unwrap(), tempfile::tempdir().unwrap());
        symlink(outside.path(), root.join(".weir-partial")).unwrap();
        assert!(bench.node.begin(&name("a"), &id("a"), None).await.is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    });
}

#[test]
fn two_writers_never_share_a_partial() {
    run(Bench::file(), "", async |bench| {
        let mut writer = bench.node.begin(&name("a"), &id("one"), None).await.unwrap();
        let notes = writer.take_notes();
        assert_eq!(kind(bench.node.begin(&name("a"), &id("one"), None).await), ErrorKind::Exists);
        assert_eq!(kind(bench.node.resume(&name("a"), &notes, None).await), ErrorKind::Other);
        drop(writer);
        assert_eq!(bench.node.resume(&name("a"), &notes, None).await.unwrap().offset(), 0);
    });
}

#[test]
fn a_folder_is_no_object_and_an_object_no_folder() {
    run(Bench::file(), "", async |bench| {
        put(&bench.node, &name("a/b"), &id("1"), &data(1, 9)).await.unwrap();
        assert_eq!(kind(bench.node.size(&name("a")).await), ErrorKind::Other);
        assert_eq!(kind(bench.node.read(&name("a"), 0).await), ErrorKind::Other);
        assert_eq!(kind(put(&bench.node, &name("a"), &id("2"), &data(1, 9)).await), ErrorKind::Exists);
        assert_eq!(kind(put(&bench.node, &name("a/b/c"), &id("3"), &data(1, 9)).await), ErrorKind::Exists);
        assert_eq!(bench.node.size(&name("a/b/c")).await.unwrap(), None);
    });
}

#[test]
fn a_pipe_is_no_object_and_holds_nobody_up() {
    run(Bench::file(), "", async |bench| {
        let pipe = bench.root.as_ref().unwrap().join("pipe");
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        assert_eq!(kind(bench.node.read(&name("pipe"), 0).await), ErrorKind::Other);
    });
}

#[test]
fn a_root_that_is_not_there_is_unreachable() {
    run(Bench::file(), "", async |bench| {
        let node = node_at(&bench.root.as_ref().unwrap().join("not mounted"));
        assert_eq!(kind(node.probe().await), ErrorKind::Unreachable);
        assert_eq!(kind(node.size(&name("a")).await), ErrorKind::Unreachable);
        assert_eq!(kind(node.begin(&name("a"), &id("a"), None).await), ErrorKind::Unreachable);
    });
}

#[test]
fn a_partial_larger_than_the_object_cannot_be_gone_on_with() {
    run(Bench::file(), "", async |bench| {
        let mut writer = bench.node.begin(&name("a"), &id("a"), None).await.unwrap();
        let mut notes = writer.take_notes();
        write(&mut writer, &data(1, 100), &mut notes).await.unwrap();
        drop(writer);
        assert_eq!(kind(bench.node.resume(&name("a"), &notes, Some(99)).await), ErrorKind::Gone);
    });
}

#[test]
fn a_full_file_system_is_full_and_what_fitted_can_be_gone_on_with() {
    if let Some(root) = std::env::var_os(SMALL) {
        return run(Bench::file(), "", async |_| full(Path::new(&root)).await);
    }
    // The test runs itself again, where a namespace lets it mount a file system that nobody else sees.
    let (root, program) = (tempfile::tempdir().unwrap(), std::env::current_exe().unwrap());
    let script = "mount -t tmpfs -o size=8m tmpfs \"$1\" || exit 69; shift; exec \"$@\"";
    let claim = "file::a_full_file_system_is_full_and_what_fitted_can_be_gone_on_with";
    let ran = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(root.path())
        .arg(program)
        .args(["--exact", claim])
        .env(SMALL, root.path())
        .output();
    match ran {
        Ok(ran) if ran.status.success() => {}
        Ok(ran) if ran.status.code() != Some(69) && !ran.stdout.is_empty() => {
            panic!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        }
        _ => run(Err("no namespace with a file system of its own".to_owned()), claim, async |_| ()),
    }
}

async fn full(root: &Path) {
    let (node, bytes, mut notes) = (node_at(root), data(1, 12 * PIECE), Vec::new());
    let mut writer = node.begin(&name("a"), &id("a"), None).await.unwrap();
    let written = write(&mut writer, &bytes, &mut notes).await;
    let failed = match written {
        Ok(()) => writer.finish().await,
        Err(error) => {
            drop(writer); // it holds the lock
            Err(error)
        }
    };
    assert_eq!(kind(failed), ErrorKind::Full);
    let writer = node.resume(&name("a"), &notes, None).await.unwrap();
    assert!(writer.offset() > 0);
    let back = writer.read_back(0).unwrap().unwrap();
    let there = crate::bench::rest(back).await;
    assert!(there == bytes.slice(..there.len()));
}
