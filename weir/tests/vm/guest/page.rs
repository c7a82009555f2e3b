//! The manual's commands for Linux's own client, run exactly as they stand there. The guest is a machine of
//! its own, with the page's addresses.

use std::path::Path;

use crate::harness::Server;
use crate::pages::clients::{commands, configuration};

use super::super::in_guest;
use super::super::kernel_client::{attempt, shell};

#[test]
fn linuxs_client_works_by_the_commands_of_the_page_as_they_stand() {
    in_guest("linuxs_client_works_by_the_commands_of_the_page_as_they_stand", || {
        shell("mkdir -p /run/weir /srv/weir /etc/weir");
        let file = Path::new("/etc/weir/weir.toml");
        std::fs::write(file, configuration()).expect("the guest can be written");
        let server = Server::start(file);
        run("vm");
        run("vm-back");
        shell("echo durable >/mnt/db/file; sync");
        server.kill();
        assert!(!attempt("echo lost >/mnt/db/other; sync -d /mnt/db/other").status.success(), "weir is away");
        run("vm-lost");
        let server = Server::start(file);
        run("vm-back");
        assert_eq!(shell("cat /mnt/db/file"), "durable\n");
        run("vm-lost");
        server.stop();
    });
}

fn run(mark: &str) {
    commands(mark).iter().for_each(|block| drop(shell(&block.text)));
}
