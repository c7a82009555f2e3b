//! What makes no sense is refused in one line, and nothing is stored.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use weir_node_servers::Server;

use super::site::{MIB, Site, complaints, file_node, node, refusal, stored, write};
use crate::harness::{Program, Scene, skipped, wait_until};

#[test]
fn arguments_that_make_no_sense_are_refused_in_one_line_and_store_nothing() {
    let site = Site::of_files(&["a"]);
    write(&site.scene, "data", 1, 1000);
    write(&site.scene, "taken", 2, 10);
    site.run("put data --name there");
    let cases = [
        ("put data --name there", "found there already, of 1000 bytes; accepted: another name"),
        ("put data --class platinum", "class: found \"platinum\"; accepted: bronze, silver, gold"),
        ("put data --replicas 2", "replicas: found 2; accepted: at most 1"),
        ("put data --name ../x", "found \"..\" in \"../x\"; accepted: "),
        ("put data --name a/../../x", "found \"..\" in "),
        ("put data --name /etc/x", "in \"/etc/x\"; accepted: a relative path"),
        ("put data --name .weir-partial/x", "accepted: "),
        ("put missing", "missing: No such file or directory"),
        ("put .", "found no name that is text; accepted: --name NAME"),
        ("put . --name x", "found something that is no regular file; accepted: a file, or - for a pipe"),
        ("put -", "--name: found nothing; accepted: the name of the object"),
        ("get there -o taken", "taken: found a file of that name; accepted: another one"),
        ("get nothing", "found none of the name nothing; accepted: one of weir ls"),
        ("stat nothing", "accepted: one of weir ls"),
        ("rm nothing", "accepted: one of weir ls"),
        ("verify nothing", "accepted: one of weir ls"),
        ("repair nothing", "accepted: one of weir ls"),
        ("import nowhere x", "node: found \"nowhere\"; accepted: a"),
        ("import a ../data", "found \"..\" in \"../data\"; accepted: "),
        ("import a there", "found there already; accepted: a file that is no object yet"),
        ("nodes calibrate nowhere", "accepted: "),
        ("transfers show 99", "found no number 99; accepted: "),
        ("transfers cancel 99", "found no number 99; accepted: "),
        ("transfers cancel 1", "accepted: one that has not"),
        ("transfers backup here.db", "found a relative path; accepted: an absolute one"),
    ];
    for (arguments, expected) in cases {
        let line = site.refusal(arguments);
        assert!(line.contains(expected), "{arguments}\n{line}");
    }
    assert_eq!(site.names(), ["there"]);
    assert_eq!(stored(&site.scene.file("a")), (vec!["there".to_owned()], vec![]));
    assert_eq!(fs::read(site.scene.file("taken")).unwrap().len(), 10);
}

#[test]
fn values_of_options_that_make_no_sense_are_refused_with_what_is_accepted() {
    let site = Site::of_files(&["a"]);
    write(&site.scene, "data", 1, 1000);
    for arguments in ["--rate 0", "--rate -1MB/s", "--rate fast", "--deadline never", "--replicas 0"] {
        let ended = site.weir("put data").args(arguments).outcome();
        assert_eq!((ended.code, ended.out.as_str()), (Some(64), ""), "{arguments}\n{}", ended.log);
        let option = arguments.split(' ').next().unwrap();
        assert!(ended.log.lines().next().unwrap().contains(option), "{arguments}\n{}", ended.log);
    }
    assert_eq!(site.names(), [""; 0]);
}

#[test]
fn files_that_cannot_be_used_are_refused_in_one_line() {
    let scene = Scene::new();
    let secret = scene.write("secret.toml", "user = \"u\"\npassword = \"hidden\"\n");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o644)).unwrap();
    let dav = node("dav", "webdav://127.0.0.1:1/", Some(secret));
    let cases = [
        (node("x", "ftp://host/", None), "node.x.url: found "),
        (node("x", "file://relative", None), "node.x.url: found "),
        (node("x", "webdav://u:hidden@host/", None), "found a url with a password"),
        (dav, "found mode 0644, by which others than its owner may use it; accepted: 0600 or 0400"),
    ];
    let mut site = Site::idle(scene, "");
    let head = fs::read_to_string(site.config()).unwrap();
    for (nodes, expected) in cases {
        fs::write(site.config(), format!("{head}{nodes}")).unwrap();
        let serve = format!("transfers serve {}", site.config().display());
        for arguments in [serve.as_str(), "ls", "put transfers.toml"] {
            let line = site.refusal(arguments);
            assert!(line.contains(expected) && !line.contains("hidden"), "{arguments}\n{line}");
        }
    }
    let disk = file_node(&site.scene, "disk");
    fs::write(site.config(), format!("{head}{disk}")).unwrap();
    let missing = site.weir("ls").outcome();
    assert_eq!((missing.code, missing.log.lines().count()), (Some(1), 1), "{}", missing.log);
    assert!(missing.log.contains("is weir transfers serve at work there?"), "{}", missing.log);
    site.start();
    let second = site.refusal(&format!("transfers serve {}", site.config().display()));
    assert!(second.contains("found another coordinator that uses it; accepted: one at a time"), "{second}");
    assert_eq!(site.names(), [""; 0], "the first one serves on");
    site.stop();
}

#[test]
fn a_state_directory_that_cannot_be_made_is_refused_in_one_line() {
    let scene = Scene::new();
    let file = scene.write("file", "");
    for state in
        ["/proc/nowhere/state".to_owned(), file.display().to_string(), format!("{}/x", file.display())]
    {
        let nodes = "[node.a]\nurl = \"file:///\"\n";
        let text = format!("[transfers]\nstate = \"{state}\"\nmetrics = \"127.0.0.1:0\"\n{nodes}");
        let config = scene.write("transfers.toml", text);
        let line = refusal(&state, Program::weir().args("transfers serve").arg(config.display()).outcome());
        assert!(line.contains(&state), "{line}");
    }
}

#[test]
fn a_client_with_the_wrong_secret_stores_nothing_and_says_why_in_one_line() {
    let server = match Server::webdav() {
        Ok(server) => server,
        Err(why) => return skipped("a wrong password of WebDAV", &why),
    };
    let site = Site::new(Scene::new(), &super::site::server_node("dav", &server));
    let wrong = site.scene.write("wrong.toml", "user = \"weir\"\npassword = \"hidden\"\n");
    fs::set_permissions(&wrong, PermissionsExt::from_mode(0o600)).unwrap();
    let right = server.credentials().unwrap().display().to_string();
    let text = fs::read_to_string(site.config()).unwrap().replace(&right, &wrong.display().to_string());
    let client = site.scene.write("client.toml", text);
    write(&site.scene, "data", 1, MIB);
    let put = site.weir("put data --name x").env("WEIR_TRANSFERS", &client.display().to_string()).outcome();
    assert_eq!((put.code, complaints(&put.log).len()), (Some(64), 1), "{}", put.log);
    assert!(put.log.contains("401") && !put.log.contains("hidden"), "{}", put.log);
    assert!(!site.has("x"));
    site.run("put data --name x");
    let verified = site.weir("verify x").env("WEIR_TRANSFERS", &client.display().to_string()).outcome();
    assert_eq!((verified.code, complaints(&verified.log).len()), (Some(64), 1), "{}", verified.log);
    assert!(site.run("stat x").contains("dav: good"), "it was not judged");
}

#[test]
fn a_coordinator_with_wrong_keys_of_s3_does_not_start_and_says_why_in_one_line() {
    let denied = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code></Error>";
    let url = super::failing_nodes::answering("403 Forbidden", denied);
    let scene = Scene::new();
    let keys = "access_key_id = \"weir\"\nsecret_access_key = \"hidden\"\n";
    let keys = scene.write("keys.toml", keys);
    fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
    let nodes = node("bucket", &format!("s3://bulk?endpoint={url}"), Some(keys));
    let state = scene.file("state").display().to_string();
    let text = format!("[transfers]\nstate = \"{state}\"\nmetrics = \"127.0.0.1:0\"\n{nodes}");
    let config = scene.write("transfers.toml", text);
    let line = refusal("keys", Program::weir().args("transfers serve").arg(config.display()).outcome());
    assert!(line.contains("node bucket: ") && line.contains("403"), "{line}");
    assert!(line.contains("accepted: credentials") && !line.contains("hidden"), "{line}");
}

#[test]
fn a_file_that_changes_while_it_is_put_is_no_object() {
    let site = Site::of_files(&["a"]);
    for change in ["append", "rewrite", "truncate", "replace"] {
        write(&site.scene, "data", 1, 64 * MIB);
        let mut put = site.weir("put data --name x").start();
        wait_until("it reads the file", || put.bytes_moved().is_none_or(|read| read > 2 * MIB as u64));
        assert!(put.is_running(), "it was faster than the test");
        put.signal(Signal::STOP);
        let file = site.scene.file("data");
        let content = fs::read(&file).unwrap();
        match change {
            "append" => fs::write(&file, [&content[..], b"x"].concat()).unwrap(),
            "rewrite" => fs::write(&file, vec![1; content.len()]).unwrap(),
            "truncate" => fs::write(&file, &content[..MIB]).unwrap(),
            _ => {
                site.scene.write("other", vec![2; content.len()]);
                fs::rename(site.scene.file("other"), &file).unwrap();
            }
        }
        put.signal(Signal::CONT);
        let ended = put.wait();
        if change == "replace" {
            // The old file is read to its end; the kernel notes when its last name is taken away.
            assert!(matches!(ended.code, Some(0 | 64)), "{}", ended.log);
            continue;
        }
        assert_eq!((ended.code, complaints(&ended.log).len()), (Some(64), 1), "{change}\n{}", ended.log);
        assert!(ended.log.contains("found other data than at the start"), "{change}\n{}", ended.log);
        assert!(!site.has("x"), "{change}");
        wait_until("its partial replica is removed", || stored(&site.scene.file("a")) == (vec![], vec![]));
    }
}
