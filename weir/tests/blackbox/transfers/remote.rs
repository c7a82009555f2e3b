//! Clients of other machines: the coordinator and they show each other certificates.

use std::net::TcpListener;

use super::site::{MIB, Site, complaints, file_node, node, write};
use crate::harness::{Authority, Scene};

/// The lines of `[transfers]` about an address, and of a node.
fn lines(address: &str, files: &str, node: &str) -> String {
    format!("address = \"{address}\"\n{files}{node}")
}

/// A client of another machine, with its own file.
fn client(site: &Site, address: &str, files: &str) -> Scene {
    let scene = Scene::new();
    let node = node("disk", &format!("file://{}", site.scene.text("disk")), None);
    scene.write("transfers.toml", format!("[transfers]\n{}", lines(address, files, &node)));
    scene
}

#[test]
fn a_client_of_another_machine_is_served_if_it_shows_a_certificate_of_the_authority() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let scene = Scene::new();
    let authority = Authority::new();
    let files = authority.issue(&scene, "127.0.0.1");
    let lines = lines(&address, &files, &file_node(&scene, "disk"));
    let site = Site::new(scene, &lines);
    let here = Scene::new();
    let content = write(&here, "data", 1, 9 * MIB);
    let run = |scene: &Scene, arguments: &str| {
        let file = scene.text("transfers.toml");
        site.weir(arguments).env("WEIR_TRANSFERS", &file).directory(here.path()).outcome()
    };

    let keys = Scene::new();
    let good = client(&site, &address, &authority.issue(&keys, "client"));
    let put = run(&good, "put data --name x");
    assert_eq!(put.code, Some(0), "{}", put.log);
    let got = run(&good, "get x -o got");
    assert_eq!(got.code, Some(0), "{}", got.log);
    assert!(std::fs::read(here.file("got")).unwrap() == content);

    let keys = Scene::new();
    let stranger = Authority::new().trusting(&authority).issue(&keys, "client");
    let refused = client(&site, &address, &stranger);
    let keys = Scene::new();
    let expired = client(&site, &address, &authority.issue_expired(&keys, "client"));
    for wrong in [refused, expired] {
        for what in ["ls", "put data --name y"] {
            let ended = run(&wrong, what);
            assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{what}\n{}", ended.log);
            assert_eq!(complaints(&ended.log).len(), 1, "{what}\n{}", ended.log);
        }
    }
    assert!(!site.has("y"));
}

#[test]
fn a_client_refuses_a_coordinator_whose_certificate_is_not_of_its_authority() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let scene = Scene::new();
    let files = Authority::new().issue(&scene, "127.0.0.1");
    let lines = lines(&address, &files, &file_node(&scene, "disk"));
    let site = Site::new(scene, &lines);
    let keys = Scene::new();
    let other = client(&site, &address, &Authority::new().issue(&keys, "client"));
    let ended = site.weir("ls").env("WEIR_TRANSFERS", &other.text("transfers.toml")).outcome();
    assert_eq!((ended.code, ended.log.lines().count()), (Some(1), 1), "{}", ended.log);
}
