//! Directories of a host with sshd.

use weir_node::{ErrorKind, Node};

use crate::bench::{Bench, data, id, kind, name, put, run};

crate::conformance::conformance!(Bench::sftp());

#[test]
fn a_host_that_does_not_know_the_user_is_denied_and_one_that_is_gone_unreachable() {
    run(Bench::sftp(), "sftp: another user", async |bench| {
        let server = bench.server.as_ref().unwrap();
        let location = server.location().replace("sftp://", "sftp://nobody-of-this-name@");
        let ssh = server.ssh().unwrap().as_os_str().to_owned();
        let node = Node::open_with_ssh(location.parse().unwrap(), None, ssh).unwrap();
        let error = node.probe().await.unwrap_err();
        assert!(error.to_string().contains("Permission denied"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Denied);
    });
    let Ok(mut bench) = Bench::sftp() else { return };
    bench.server.as_mut().unwrap().stop();
    run(Ok(bench), "", async |bench| {
        assert_eq!(kind(bench.node.probe().await), ErrorKind::Unreachable);
    });
}

#[test]
fn a_partial_that_was_begun_is_not_begun_again() {
    run(Bench::sftp(), "sftp: a partial", async |bench| {
        let _writer = bench.node.begin(&name("a"), &id("one"), None).await.unwrap();
        assert_eq!(kind(bench.node.begin(&name("a"), &id("one"), None).await), ErrorKind::Exists);
    });
}

#[test]
fn a_folder_is_no_object_and_an_object_no_folder() {
    run(Bench::sftp(), "sftp: a folder", async |bench| {
        put(&bench.node, &name("a/b"), &id("1"), &data(1, 9)).await.unwrap();
        assert_eq!(kind(bench.node.size(&name("a")).await), ErrorKind::Other);
        assert_eq!(kind(put(&bench.node, &name("a"), &id("2"), &data(1, 9)).await), ErrorKind::Exists);
        assert_eq!(kind(put(&bench.node, &name("a/b/c"), &id("3"), &data(1, 9)).await), ErrorKind::Exists);
    });
}

#[test]
fn a_root_that_is_not_there_is_unreachable() {
    run(Bench::sftp(), "sftp: a root", async |bench| {
        let server = bench.server.as_ref().unwrap();
        let location = format!("{}/missing", server.location());
        let ssh = server.ssh().unwrap().as_os_str().to_owned();
        let node = Node::open_with_ssh(location.parse().unwrap(), None, ssh).unwrap();
        assert_eq!(kind(node.probe().await), ErrorKind::Unreachable);
    });
}

#[test]
fn a_program_that_is_not_there_is_named() {
    run(Bench::file(), "", async |_| {
        let location = "sftp://127.0.0.1/root".parse().unwrap();
        let node = Node::open_with_ssh(location, None, "/nowhere/ssh".into()).unwrap();
        assert!(node.probe().await.unwrap_err().to_string().contains("the program ssh"));
    });
}

#[test]
fn however_much_ssh_says_one_bounded_line_is_kept() {
    run(Bench::file(), "", async |bench| {
        let program = bench.root.as_ref().unwrap().join("ssh");
        let script = "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x >&2\necho >&2\nexit 255\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let location = "sftp://127.0.0.1/root".parse().unwrap();
        let node = Node::open_with_ssh(location, None, program.into()).unwrap();
        assert_eq!(kind(node.probe().await), ErrorKind::Unreachable);
    });
}
