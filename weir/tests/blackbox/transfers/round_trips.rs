//! What was stored is read again, on each sort of node, and damage is found and mended.

use std::fs;

use weir_node_servers::Server;

use super::site::{MIB, Site, complaints, file_node, server_node, stored, write};
use crate::harness::{Scene, skipped};

const SIZES: [usize; 4] = [0, 1, 5 * MIB + 1, 40 * MIB];

/// Puts and gets objects of all sizes at a node, and removes them.
fn round_trips(site: &Site) {
    for (seed, size) in (0..).zip(SIZES) {
        let content = write(&site.scene, "data", seed, size);
        let name = format!("dir/of {size}").replace(' ', "-");
        let said = site.run(&format!("put data --name {name}"));
        let checksum = blake3::hash(&content).to_hex().to_string();
        assert!(said.contains(&checksum), "{said}");
        let stat = site.run(&format!("stat {name}"));
        assert!(stat.contains(&checksum) && stat.contains(&format!(" {size} B")), "{stat}");
        site.expect_object(&name, &content);
        let shown = site.weir("get").arg(&name).args("-o -").outcome();
        assert_eq!(shown.code, Some(0), "{}", shown.log);
    }
    assert_eq!(site.names().len(), SIZES.len());
    assert_eq!(site.run("ls nothing").matches("dir/").count(), 0);
    for name in site.names() {
        site.run(&format!("rm {name}"));
        assert!(!site.has(&name));
    }
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn what_is_put_on_a_directory_is_got_again_and_removed_with_its_object() {
    let mut site = Site::of_files(&["disk"]);
    round_trips(&site);
    assert_eq!(stored(&site.scene.file("disk")), (vec![], vec![]));
    site.stop();
}

#[test]
fn what_is_put_on_webdav_is_got_again_and_removed_with_its_object() {
    match Server::webdav() {
        Ok(server) => {
            round_trips(&Site::new(Scene::new(), &server_node("dav", &server)));
            assert_eq!(stored(&server.root()), (vec![], vec![]));
        }
        Err(why) => skipped("bulk transfers to WebDAV", &why),
    }
}

#[test]
fn what_is_put_on_s3_is_got_again_and_removed_with_its_object() {
    match Server::s3() {
        Ok(server) => {
            round_trips(&Site::new(Scene::new(), &server_node("bucket", &server)));
            assert_eq!(super::kills::in_bucket(&server), (vec![], 0));
        }
        Err(why) => skipped("bulk transfers to S3", &why),
    }
}

#[test]
fn what_is_put_over_sftp_is_got_again_and_removed_with_its_object() {
    match Server::sftp() {
        Ok(server) => {
            let mut site = Site::idle(Scene::new(), &server_node("remote", &server)).with_ssh(&server);
            site.start();
            round_trips(&site);
            assert_eq!(stored(&server.root()), (vec![], vec![]));
        }
        Err(why) => skipped("bulk transfers over SFTP", &why),
    }
}

#[test]
fn standard_input_is_stored_in_two_replicas_on_two_nodes() {
    let site = Site::of_files(&["a", "b"]);
    let content = write(&site.scene, "data", 1, 9 * MIB + 7);
    site.weir("put - --name piped --replicas 2").reading(&site.scene.file("data")).run();
    for node in ["a", "b"] {
        assert!(fs::read(site.scene.file(node).join("piped")).unwrap() == content, "on {node}");
    }
    assert!(site.run("stat piped").contains("2 good of 2"));
}

#[test]
fn a_file_of_a_node_is_imported_where_it_is() {
    let site = Site::of_files(&["a", "b"]);
    let content = write(&site.scene, "b/old.img", 2, 3 * MIB);
    site.run("import b old.img");
    site.expect_object("old.img", &content);
    let again = site.refusal("import b old.img");
    assert!(again.contains("found old.img already; accepted: "), "{again}");
    let none = site.weir("import a old.none").outcome();
    assert_eq!((none.code, complaints(&none.log).len()), (Some(64), 1), "{}", none.log);
    assert!(!site.has("old.none"));
}

#[test]
fn flipped_bits_are_found_by_verify_avoided_by_get_and_mended_by_repair() {
    let site = Site::of_files(&["a", "b"]);
    let content = write(&site.scene, "data", 3, 6 * MIB);
    site.run("put data --name x --replicas 2");
    site.run("verify x");
    let mut flipped = content.clone();
    flipped[5 * MIB] ^= 4;
    fs::write(site.scene.file("a/x"), &flipped).unwrap();
    fs::write(site.scene.file("b/x"), &content).unwrap();
    // One of two reads begins at the bad replica.
    for _ in 0..2 {
        site.expect_object("x", &content);
    }
    assert!(site.run("stat x").contains("a: bad"));
    let verified = site.weir("verify x").outcome();
    assert_eq!((verified.code, complaints(&verified.log).len()), (Some(1), 1), "{}", verified.log);
    assert!(verified.log.contains("1 of 2 replicas are bad"), "{}", verified.log);
    site.run("repair x");
    assert!(fs::read(site.scene.file("a/x")).unwrap() == content);
    site.run("verify x");
    assert!(site.run("repair x").contains("nothing to repair"));
}

#[test]
fn a_bad_replica_that_went_to_standard_output_is_noted_and_read_no_more() {
    let site = Site::of_files(&["a", "b"]);
    let content = "of many lines\n".repeat(10_000);
    site.scene.write("data", &content);
    site.run("put data --name x --replicas 2");
    fs::write(site.scene.file("a/x"), content.replacen("lines", "liars", 1)).unwrap();
    // One of two reads begins at the bad replica.
    let mut codes = [(); 2].map(|()| site.weir("get x -o -").outcome().code);
    codes.sort();
    assert_eq!(codes, [Some(0), Some(1)]);
    assert!(site.run("stat x").contains("a: bad"));
    for _ in 0..2 {
        assert!(site.run("get x -o -") == content.trim_end());
    }
}

#[test]
fn nothing_is_changed_if_no_replica_is_good() {
    let site = Site::of_files(&["a"]);
    write(&site.scene, "data", 4, MIB);
    site.run("put data --name x");
    fs::write(site.scene.file("a/x"), b"short").unwrap();
    let got = site.weir("get x -o got").outcome();
    assert_eq!((got.code, complaints(&got.log).len()), (Some(1), 1), "{}", got.log);
    assert!(!site.scene.listing().iter().any(|name| name.contains("got")), "{:?}", site.scene.listing());
    let repaired = site.weir("repair x").outcome();
    assert_eq!((repaired.code, complaints(&repaired.log).len()), (Some(1), 1), "{}", repaired.log);
    assert!(repaired.log.contains("no replica is good; nothing was changed"), "{}", repaired.log);
    assert_eq!(fs::read(site.scene.file("a/x")).unwrap(), b"short");
}

#[test]
fn a_replica_that_is_gone_is_bad_and_is_written_anew() {
    let site = Site::of_files(&["a", "b"]);
    let content = write(&site.scene, "data", 5, MIB);
    site.run("put data --name x --replicas 2");
    fs::remove_file(site.scene.file("b/x")).unwrap();
    assert_eq!(site.weir("verify x").outcome().code, Some(1));
    site.run("repair x");
    assert!(fs::read(site.scene.file("b/x")).unwrap() == content);
}

#[test]
fn a_backup_is_a_catalogue_of_its_own_and_replaces_nothing() {
    let mut site = Site::of_files(&["a"]);
    let content = write(&site.scene, "data", 6, MIB);
    site.run("put data --name x");
    let backup = site.scene.text("backup.db");
    site.run(&format!("transfers backup {backup}"));
    let before = fs::read(&backup).unwrap();
    let again = site.refusal(&format!("transfers backup {backup}"));
    assert!(again.contains("found a file there; accepted: a new name"), "{again}");
    assert!(fs::read(&backup).unwrap() == before, "it is as it was");
    site.run("rm x");
    site.stop();
    // The object is gone from its node, and the old catalogue still knows it.
    fs::remove_dir_all(site.scene.file("state")).unwrap();
    fs::create_dir(site.scene.file("state")).unwrap();
    fs::rename(&backup, site.scene.file("state/catalogue.db")).unwrap();
    fs::write(site.scene.file("a/x"), &content).unwrap();
    site.start();
    site.expect_object("x", &content);
}

#[test]
fn replicas_of_an_object_go_on_several_sorts_of_nodes_together() {
    let (dav, bucket) = match (Server::webdav(), Server::s3()) {
        (Ok(dav), Ok(bucket)) => (dav, bucket),
        (Err(why), _) | (_, Err(why)) => return skipped("bulk transfers to several servers", &why),
    };
    let scene = Scene::new();
    let nodes = [file_node(&scene, "disk"), server_node("dav", &dav), server_node("bucket", &bucket)];
    let site = Site::new(scene, &nodes.concat());
    let content = write(&site.scene, "data", 7, 20 * MIB);
    site.run("put data --name x --replicas 3");
    assert!(site.run("verify x").matches(": good").count() == 3);
    for _ in 0..3 {
        site.expect_object("x", &content);
    }
    site.run("rm x");
    assert_eq!(stored(&dav.root()).0, stored(&site.scene.file("disk")).0);
}

#[test]
fn a_replica_that_a_node_has_already_is_taken_over_and_another_file_is_not() {
    let site = Site::of_files(&["a"]);
    let content = write(&site.scene, "data", 8, 3 * MIB);
    site.scene.write("a/x", &content);
    site.run("put data --name x");
    site.expect_object("x", &content);
    assert_eq!(stored(&site.scene.file("a")), (vec!["x".to_owned()], vec![]));
    site.scene.write("a/y", "another");
    let other = site.weir("put data --name y").outcome();
    assert_eq!((other.code, complaints(&other.log).len()), (Some(1), 1), "{}", other.log);
    assert!(other.log.contains("a: found something under this name"), "{}", other.log);
    assert!(!site.has("y"));
    assert_eq!(fs::read(site.scene.file("a/y")).unwrap(), b"another");
}

#[test]
fn a_coordinator_ends_beside_a_client_which_goes_on_with_the_next_one() {
    let mut site = Site::of_files(&["a"]);
    let mut put = site.weir("put - --name x").typed_to().start();
    put.wait_for_log("goes on at a");
    put.type_line("before");
    site.stop();
    put.wait_for_log("the coordinator does not answer; it is tried again");
    put.type_line("between");
    site.start();
    put.type_line("after");
    put.end_input();
    put.succeed();
    site.expect_object("x", b"before\nbetween\nafter\n");
    assert_eq!(stored(&site.scene.file("a")), (vec!["x".to_owned()], vec![]));
    site.stop();
}
