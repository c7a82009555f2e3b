//! Buckets of an S3 server.

use std::io::Write;

use weir_node::{Credentials, ErrorKind, Location, Node};
use weir_node_servers::Server;

use crate::bench::{Bench, PIECE, data, get, id, kind, name, put, run, write};
use crate::fake::serve;

crate::conformance::conformance!(Bench::s3());

#[test]
fn a_name_may_have_any_character_of_urls() {
    run(Bench::s3(), "s3: names", async |bench| {
        let name = name("a?b#c&d;e:f@g/%2e%2e/<Code>NoSuchBucket</Code>");
        assert_eq!(bench.node.size(&name).await.unwrap(), None);
        put(&bench.node, &name, &id("any"), &data(1, 9)).await.unwrap();
        assert!(get(&bench.node, &name, 0).await == data(1, 9));
        bench.node.remove(&name).await.unwrap();
    });
}

#[test]
fn the_notes_of_an_upload_are_its_id_and_its_parts() {
    run(Bench::s3(), "s3: notes", async |bench| {
        let (name, mut notes) = (name("noted"), Vec::new());
        let mut writer = bench.node.begin(&name, &id("noted"), None).await.unwrap();
        write(&mut writer, &data(1, 60 * PIECE), &mut notes).await.unwrap();
        let offset = writer.offset();
        drop(writer);
        assert!(notes[0].as_str().starts_with("upload ") && notes[0].as_str().ends_with(" of/tests/noted"));
        assert!(notes.iter().skip(1).all(|note| note.as_str().starts_with("part 8388608 ")), "{notes:?}");
        assert_eq!(offset, (notes.len() as u64 - 1) * (8 << 20));
        assert!(offset >= 16 << 20, "{offset}");
        // The notes of one object do not fit another one.
        assert_eq!(
            kind(bench.node.resume(&crate::bench::name("other"), &notes, None).await),
            ErrorKind::Gone
        );
        bench.node.discard(&notes).await.unwrap();
    });
}

#[test]
fn the_parts_that_a_server_has_are_compared_with_their_source() {
    run(Bench::s3(), "s3: tags", async |bench| {
        let (name, mut notes) = (name("compared"), Vec::new());
        let mut writer = bench.node.begin(&name, &id("compared"), None).await.unwrap();
        write(&mut writer, &data(1, 60 * PIECE), &mut notes).await.unwrap();
        drop(writer);
        let resumed = bench.node.resume(&name, &notes, None).await.unwrap();
        let there = usize::try_from(resumed.offset()).unwrap();
        let mut changed = data(1, 60 * PIECE).to_vec();
        assert!(there > 0 && resumed.tags().unwrap().go_on_with(&changed[..there]));
        changed[there - 1] ^= 1;
        assert!(!resumed.tags().unwrap().go_on_with(&changed[..there]));
        bench.node.discard(&notes).await.unwrap();
    });
}

#[test]
fn a_reader_keeps_to_the_version_that_it_began_with() {
    run(Bench::s3(), "s3: versions", async |bench| {
        let name = name("changed");
        put(&bench.node, &name, &id("changed-1"), &data(1, 50 * PIECE)).await.unwrap();
        let mut reader = bench.node.read(&name, 0).await.unwrap();
        bench.node.remove(&name).await.unwrap();
        put(&bench.node, &name, &id("changed-2"), &data(2, 50 * PIECE)).await.unwrap();
        assert_eq!(kind(reader.next().await), ErrorKind::Other);
        assert!(get(&bench.node, &name, 0).await == data(2, 50 * PIECE));
    });
}

#[test]
fn a_bucket_or_a_server_that_is_not_there_is_unreachable() {
    let mut server = match Server::s3() {
        Ok(server) => server,
        Err(why) => return run(Err(why), "s3: no bucket", async |_| ()),
    };
    let credentials = Credentials::read(&server.credentials().unwrap()).unwrap();
    let missing: Location = server.location().replace("bulk", "missing").parse().unwrap();
    let missing = Node::open(missing, Some(&credentials)).unwrap();
    let gone = Node::open(server.location().parse().unwrap(), Some(&credentials)).unwrap();
    run(Bench::file(), "", async |_| assert_eq!(kind(missing.probe().await), ErrorKind::Unreachable));
    server.stop();
    run(Bench::file(), "", async |_| assert_eq!(kind(gone.probe().await), ErrorKind::Unreachable));
}

#[test]
fn an_answer_that_no_right_server_gives_is_cut_off() {
    let address = serve(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<a>";
        let _ = stream.get_mut().write_all(head.as_bytes());
        // It ends when the client closes the connection, and otherwise never.
        while stream.get_mut().write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    run(Bench::file(), "", async |_| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "access_key_id = \"a\"\nsecret_access_key = \"b\"\n").unwrap();
        let credentials = Credentials::read(file.path()).unwrap();
        let location = format!("s3://bulk?endpoint=http://{address}").parse().unwrap();
        let node = Node::open(location, Some(&credentials)).unwrap();
        assert_eq!(kind(node.probe().await), ErrorKind::Other);
    });
}

#[test]
fn a_node_without_credentials_or_with_those_of_another_sort_is_not_opened() {
    run(Bench::s3(), "s3: credentials", async |_| {
        let location: Location = "s3://bulk?endpoint=http://127.0.0.1:1".parse().unwrap();
        assert_eq!(kind(Node::open(location, None)), ErrorKind::Denied);
    });
    run(Bench::webdav(), "webdav: credentials", async |bench| {
        let credentials = Credentials::read(&bench.server.as_ref().unwrap().credentials().unwrap()).unwrap();
        for text in ["file:///tmp", "sftp://host/root", "s3://bulk?endpoint=http://127.0.0.1:1"] {
            let opened = Node::open(text.parse().unwrap(), Some(&credentials));
            assert_eq!(kind(opened), ErrorKind::Denied);
        }
    });
}
