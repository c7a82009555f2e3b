//! Coordinator, client and node, killed at any moment of a put and of a get.
//!
//! The moment of a kill is a number of bytes that the client has moved, so it needs no clock. Each round has
//! another one, and a round always has the same. `WEIR_TRANSFER_KILLS` says how many rounds there are.
//!
//! The S3 server keeps its objects in memory, so it is cut off instead of killed. A directory is moved away,
//! as if its disk were not mounted.

use std::fs;

use weir_node_servers::Server;

use super::proxy::Proxy;
use super::site::{MIB, Site, file_node, node, stored};
use crate::harness::{Running, Scene, bytes, get, skipped, wait_until};

/// The bytes of an object: several parts on S3.
const SIZE: usize = 20 * MIB;

/// What a program reads at its start: libraries and its configuration.
const START: u64 = 64 << 10;

/// A coordinator with a directory, a bucket and a collection.
struct Mixed {
    site: Site,
    bucket: Server,
    collection: Server,
    to_bucket: Proxy,
    to_collection: Proxy,
    content: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Coordinator,
    Client,
    Node,
}

#[test]
fn transfers_survive_that_the_coordinator_is_killed() {
    survives(Victim::Coordinator);
}

#[test]
fn transfers_survive_that_the_client_is_killed() {
    survives(Victim::Client);
}

#[test]
fn transfers_survive_that_a_node_is_killed() {
    survives(Victim::Node);
}

fn survives(victim: Victim) {
    let Some(mut mixed) = Mixed::new() else { return };
    for round in 1..=rounds() {
        mixed.put(victim, round);
        mixed.get(victim, round);
        mixed.agrees(round);
    }
    mixed.ends_without_leftovers();
}

fn rounds() -> u64 {
    let wanted = std::env::var("WEIR_TRANSFER_KILLS").ok();
    wanted.map_or(4, |rounds| rounds.parse().expect("WEIR_TRANSFER_KILLS is a number"))
}

impl Mixed {
    fn new() -> Option<Self> {
        let (bucket, collection) = match (Server::s3(), Server::webdav()) {
            (Ok(bucket), Ok(collection)) => (bucket, collection),
            (Err(why), _) | (_, Err(why)) => {
                skipped("killing what takes part in bulk transfers", &why);
                return None;
            }
        };
        let (to_bucket, to_collection) = (Proxy::to(&bucket.address()), Proxy::to(&collection.address()));
        let scene = Scene::new();
        let through = |name, server: &Server, proxy: &Proxy| {
            let url = server.location().replace(&server.address(), proxy.address());
            node(name, &url, server.credentials())
        };
        let nodes = [
            file_node(&scene, "disk"),
            through("bucket", &bucket, &to_bucket),
            through("collection", &collection, &to_collection),
        ];
        let site = Site::new(scene, &nodes.concat());
        Some(Self { site, bucket, collection, to_bucket, to_collection, content: bytes(7, SIZE) })
    }

    /// Puts an object, and kills in the middle. At the end it is there.
    fn put(&mut self, victim: Victim, round: u64) {
        let name = name(round);
        self.content[..8].copy_from_slice(&round.to_le_bytes());
        self.site.scene.write("data", &self.content);
        let put = self.site.weir("put data --name").arg(&name).start();
        if let Some(rest) = self.strike(victim, put, 2 * round) {
            rest.succeed();
        } else if self.is_stored(&name) {
            return self.site.expect_object(&name, &self.content);
        } else {
            self.site.weir("put data --name").arg(&name).run();
        }
        self.site.expect_object(&name, &self.content);
    }

    /// Gets the object, and kills in the middle. At the end the file is whole.
    fn get(&mut self, victim: Victim, round: u64) {
        let file = self.site.scene.file("target");
        let line = format!("get {} -o target", name(round));
        let get = self.site.weir(&line).start();
        if let Some(rest) = self.strike(victim, get, 2 * round + 1) {
            rest.succeed();
        } else if !file.exists() {
            self.site.run(&line);
        }
        assert!(fs::read(&file).unwrap() == self.content, "round {round}: another file was got");
        fs::remove_file(&file).unwrap();
        let partial = |file: &String| file.starts_with(".target");
        assert!(!self.site.scene.listing().iter().any(partial), "round {round}: a partial file is left");
    }

    /// Kills when the client has moved a number of bytes. The client, unless it was the victim.
    fn strike(&mut self, victim: Victim, mut client: Running, round: u64) -> Option<Running> {
        let random = u64::from_le_bytes(bytes(round, 8).try_into().unwrap());
        let moment = START + random % SIZE as u64;
        wait_until("the moment has come", || client.bytes_moved().is_none_or(|read| read >= moment));
        match victim {
            Victim::Client => {
                client.kill();
                let is_over = || !self.site.run("transfers").contains("running");
                wait_until("the coordinator notices the end of the client", is_over);
                return None;
            }
            Victim::Coordinator => {
                self.site.kill();
                self.site.start();
            }
            Victim::Node => self.strike_node(&client),
        }
        Some(client)
    }

    /// Strikes the node to which the client has gone last.
    fn strike_node(&mut self, client: &Running) {
        let log = client.logged();
        let node = log.lines().rev().find_map(|line| line.split_once("goes on at "));
        match node.map(|(_, node)| node.trim()) {
            Some("disk") => {
                let (here, away) = (self.site.scene.file("disk"), self.site.scene.file("away"));
                fs::rename(&here, &away).unwrap();
                fs::rename(&away, &here).unwrap();
            }
            Some("bucket") => {
                self.to_bucket.cut();
                self.to_bucket.lead_to(&self.bucket.address());
            }
            _ => {
                self.to_collection.cut();
                self.collection.kill();
                self.collection.restart_webdav();
                self.to_collection.lead_to(&self.collection.address());
            }
        }
    }

    /// Whether the object is stored. No node shows it if it is not, but one that finished it unheard.
    fn is_stored(&self, name: &str) -> bool {
        let has = self.site.has(name);
        for root in [self.site.scene.file("disk"), self.collection.root()] {
            let whole = fs::read(root.join(name)).ok();
            assert!(whole.is_none_or(|whole| whole == self.content), "{name} is visible, and not whole");
        }
        has
    }

    /// Each object is on the node that the catalogue names, and nowhere else.
    fn agrees(&self, round: u64) {
        let listed = self.site.names();
        assert_eq!(listed.len() as u64, round, "{listed:?}");
        let mut there = stored(&self.site.scene.file("disk")).0;
        there.extend(stored(&self.collection.root()).0);
        there.extend(in_bucket(&self.bucket).0);
        there.sort();
        assert_eq!(there, listed, "round {round}");
    }

    fn ends_without_leftovers(mut self) {
        let partials = || {
            let mut partials = stored(&self.site.scene.file("disk")).1;
            partials.extend(stored(&self.collection.root()).1);
            partials
        };
        wait_until("no partial is left", || partials().is_empty());
        // S3 names an upload in its answer. Nobody knows of one whose answer was never heard.
        let unheard = in_bucket(&self.bucket).1;
        assert!(unheard as u64 <= rounds(), "{unheard} uploads are left");
        // A get that was killed waits for nobody: another run asks anew.
        let listed = self.site.run("transfers");
        assert!(!listed.contains(" put "), "{listed}");
        self.site.stop();
    }
}

fn name(round: u64) -> String {
    format!("r{round:03}")
}

/// The names of the objects of an S3 server, and the number of its unfinished uploads.
pub(super) fn in_bucket(server: &Server) -> (Vec<String>, usize) {
    let url = |query: &str| format!("http://{}/bulk?{query}", server.address());
    let listed = get(&url("list-type=2"));
    let keys = listed.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
    let names = keys.map(|(key, _)| key.trim_start_matches("of/tests/").to_owned()).collect();
    (names, get(&url("uploads")).matches("<UploadId>").count())
}
