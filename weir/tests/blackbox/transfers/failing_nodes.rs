//! Nodes that are down, end in the middle, or are full.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use weir_node_servers::Server;

use super::proxy::Proxy;
use super::site::{MIB, Site, complaints, file_node, node, server_node, stored, write};
use crate::harness::{Scene, skipped, wait_until};

#[test]
fn a_node_that_is_down_is_shown_waited_for_and_taken_once_it_is_up() {
    let scene = Scene::new();
    let nodes = node("late", &format!("file://{}", scene.text("late")), None);
    let site = Site::new(scene, &nodes);
    let shown = site.run("nodes");
    assert!(shown.contains("late is down: ") && shown.contains("no directory"), "{shown}");
    let content = write(&site.scene, "data", 1, 3 * MIB);
    let put = site.weir("put data --name x").start();
    put.wait_for_log("waits: no node can give it 10.0 MB/s now: late is down (root ");
    let listed = site.run("transfers");
    assert!(listed.contains("waiting") && listed.contains("late is down"), "{listed}");
    fs::create_dir(site.scene.file("late")).unwrap();
    put.succeed();
    assert!(!site.run("nodes").contains("down"));
    site.expect_object("x", &content);
}

#[test]
fn a_put_goes_on_at_another_node_if_its_server_of_webdav_is_killed() {
    match Server::webdav() {
        Ok(server) => goes_on_elsewhere("dav", server),
        Err(why) => skipped("a server of WebDAV that ends in the middle of a put", &why),
    }
}

#[test]
fn a_put_goes_on_at_another_node_if_its_server_of_s3_is_killed() {
    match Server::s3() {
        Ok(server) => goes_on_elsewhere("bucket", server),
        Err(why) => skipped("a server of S3 that ends in the middle of a put", &why),
    }
}

fn goes_on_elsewhere(name: &str, mut server: Server) {
    let scene = Scene::new();
    // The other node comes up later, so that the put begins at the server.
    let later = node("disk", &format!("file://{}", scene.text("disk")), None);
    let site = Site::new(scene, &[later, server_node(name, &server)].concat());
    let content = write(&site.scene, "data", 2, 40 * MIB);
    let mut put = site.weir("put data --name x").start();
    wait_until("it moves data", || put.bytes_moved().is_none_or(|read| read > 12 * MIB as u64));
    assert!(put.is_running(), "it was faster than the test");
    server.kill();
    fs::create_dir(site.scene.file("disk")).unwrap();
    put.wait_for_log("goes on at disk");
    put.succeed();
    assert!(fs::read(site.scene.file("disk/x")).unwrap() == content);
    site.expect_object("x", &content);
    assert!(site.run("nodes").contains(&format!("{name} is down: ")));
}

#[test]
fn a_get_goes_on_at_the_other_replica_if_its_node_is_cut_off() {
    let server = match Server::webdav() {
        Ok(server) => server,
        Err(why) => return skipped("a server of WebDAV that is cut off in the middle of a get", &why),
    };
    let proxy = Proxy::to(&server.address());
    let scene = Scene::new();
    let url = server.location().replace(&server.address(), proxy.address());
    let nodes = [file_node(&scene, "disk"), node("dav", &url, server.credentials())].concat();
    let site = Site::new(scene, &nodes);
    let content = write(&site.scene, "data", 3, 40 * MIB);
    site.run("put data --name x --replicas 2");
    let mut seen = false;
    for _ in 0..2 {
        let mut get = site.weir("get x -o got").start();
        wait_until("it moves data", || get.bytes_moved().is_none_or(|read| read > 4 * MIB as u64));
        proxy.cut();
        seen |= get.logged().contains("goes on at dav");
        get.succeed();
        assert!(fs::read(site.scene.file("got")).unwrap() == content);
        fs::remove_file(site.scene.file("got")).unwrap();
        proxy.lead_to(&server.address());
        wait_until("the node is up", || !site.run("nodes").contains("down"));
    }
    assert!(seen, "one of two reads begins there");
}

#[test]
fn a_put_that_does_not_fit_on_a_node_goes_elsewhere() {
    let scene = Scene::new();
    let nodes = [file_node(&scene, "small"), file_node(&scene, "large")].concat();
    let Some(_small) = Mounted::small(&scene.file("small")) else {
        return skipped("a node that is full", "only the superuser may mount a small file system");
    };
    let site = Site::new(scene, &nodes);
    let content = write(&site.scene, "data", 4, 24 * MIB);
    for number in 0..2 {
        let put = site.weir("put data --name").arg(format!("x{number}")).outcome();
        assert_eq!(put.code, Some(0), "{}", put.log);
        let full: Vec<_> = put.log.lines().filter(|line| line.contains("No space left")).collect();
        assert!(full.len() <= 1, "{}", put.log);
        site.expect_object(&format!("x{number}"), &content);
    }
    assert_eq!(stored(&site.scene.file("large")).0, ["x0", "x1"]);
    wait_until("the partial replica is removed", || stored(&site.scene.file("small")) == (vec![], vec![]));
}

#[test]
fn a_put_that_fits_on_no_node_fails_in_one_line_and_leaves_nothing() {
    let scene = Scene::new();
    let nodes = file_node(&scene, "small");
    let Some(_small) = Mounted::small(&scene.file("small")) else {
        return skipped("a node that is full", "only the superuser may mount a small file system");
    };
    let site = Site::new(scene, &nodes);
    write(&site.scene, "data", 5, 24 * MIB);
    let put = site.weir("put data --name x").outcome();
    assert_eq!((put.code, complaints(&put.log).len()), (Some(1), 1), "{}", put.log);
    assert!(complaints(&put.log)[0].contains("small: "), "{}", put.log);
    assert!(!site.has("x"));
    wait_until("the partial replica is removed", || stored(&site.scene.file("small")) == (vec![], vec![]));
}

#[test]
fn a_node_takes_no_more_than_its_capacity() {
    let scene = Scene::new();
    let small = file_node(&scene, "small") + "capacity = \"4MiB\"\n";
    let site = Site::new(scene, &small);
    write(&site.scene, "data", 6, 3 * MIB);
    site.run("put data --name first");
    let second = site.weir("put data --name second").outcome();
    assert_eq!((second.code, complaints(&second.log).len()), (Some(1), 1), "{}", second.log);
    assert!(second.log.contains("small: its capacity is taken"), "{}", second.log);
    site.run("rm first");
    site.run("put data --name second");
}

/// A file system that is mounted until this is dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// One of 8 MiB; `None` if this user may not mount it.
    fn small(path: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=8m", "weir"]).arg(path);
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then(|| Self(path.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status(); // the test has ended
    }
}

/// The URL of a server that gives each request the same answer.
pub(super) fn answering(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read > 0) {
                head.push(byte[0]);
            }
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = client.write_all(&[head.as_bytes(), body.as_bytes()].concat()); // it may have gone
        }
    });
    url
}
