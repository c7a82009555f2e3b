//! Collections of a WebDAV server: a real one, and some that do what no real one does on demand.

use std::io::{Read, Write};

use bytes::Bytes;
use weir_node::{Credentials, ErrorKind, Location, Node};

use crate::bench::{Bench, PIECE, data, id, kind, name, put, run, write};
use crate::fake::{answer, serve};

crate::conformance::conformance!(Bench::webdav());

#[test]
fn a_wrong_password_is_denied_and_a_server_that_is_gone_is_unreachable() {
    run(Bench::webdav(), "webdav: a wrong password", async |bench| {
        let server = bench.server.as_ref().unwrap();
        let location: Location = server.location().parse().unwrap();
        let node = Node::open(location, None).unwrap();
        assert_eq!(kind(node.probe().await), ErrorKind::Denied);
        assert_eq!(kind(node.begin(&name("a"), &id("a"), None).await), ErrorKind::Denied);
    });
    let Ok(mut bench) = Bench::webdav() else { return };
    bench.server.as_mut().unwrap().stop();
    run(Ok(bench), "", async |bench| {
        assert_eq!(kind(bench.node.probe().await), ErrorKind::Unreachable);
        assert_eq!(kind(bench.node.size(&name("a")).await), ErrorKind::Unreachable);
    });
}

#[test]
fn a_server_that_moves_to_another_name_is_an_error() {
    // That is what wsgidav does with a "?".
    run(Bench::webdav(), "webdav: another name", async |bench| {
        let name = name("what?now");
        assert_eq!(kind(put(&bench.node, &name, &id("what"), &data(1, 9)).await), ErrorKind::Other);
        assert_eq!(bench.node.size(&name).await.unwrap(), None);
    });
}

#[test]
fn a_removal_of_a_name_that_is_a_collection_leaves_what_is_in_it() {
    run(Bench::webdav(), "webdav: a collection is no object", async |bench| {
        put(&bench.node, &name("collection/a"), &id("within"), &data(1, 9)).await.unwrap();
        bench.node.remove(&name("collection")).await.unwrap();
        assert_eq!(bench.node.size(&name("collection/a")).await.unwrap(), Some(9));
        bench.node.remove(&name("collection/a")).await.unwrap();
        assert_eq!(bench.node.size(&name("collection/a")).await.unwrap(), None);
    });
}

#[test]
fn a_collection_that_is_not_there_is_unreachable() {
    run(Bench::webdav(), "webdav: a collection that is not there", async |bench| {
        let server = bench.server.as_ref().unwrap();
        let location = format!("{}missing/", server.location());
        let credentials = Credentials::read(&server.credentials().unwrap()).unwrap();
        let node = Node::open(location.parse().unwrap(), Some(&credentials)).unwrap();
        assert_eq!(kind(node.probe().await), ErrorKind::Unreachable);
        assert_eq!(kind(node.begin(&name("a"), &id("a"), None).await), ErrorKind::Other);
    });
}

#[test]
fn what_the_server_says_to_a_body_that_it_does_not_take_is_the_error() {
    let server = serve(|request, stream| match request.method() {
        "PUT" => {
            let mut some = [0; 1_000];
            stream.get_mut().read_exact(&mut some).unwrap();
            answer(stream, "507 Insufficient Storage", "<html>no space for <b>you</b></html>");
            // A server that closes with bytes unread resets the connection, and its answer is lost.
            std::io::copy(stream, &mut std::io::sink()).ok();
        }
        _ => answer(stream, "201 Created", ""),
    });
    run(Ok(on(&server)), "", async |bench| {
        let mut writer = bench.node.begin(&name("a"), &id("a"), Some(1 << 30)).await.unwrap();
        let error = write(&mut writer, &data(1, 64 * PIECE), &mut Vec::new()).await;
        assert!(error.as_ref().is_err_and(|error| error.to_string().contains("no space for")), "{error:?}");
        assert_eq!(kind(error), ErrorKind::Full);
        assert_eq!(kind(writer.finish().await), ErrorKind::Other);
    });
}

#[test]
fn a_server_that_takes_no_more_bytes_is_stalled() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let server = serve(move |request, stream| match request.method() {
        "PUT" => drop(wait.lock().unwrap().recv()),
        _ => answer(stream, "201 Created", ""),
    });
    let bench = on(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut writer = bench.node.begin(&name("a"), &id("a"), None).await.unwrap();
        tokio::time::pause();
        let piece = Bytes::from(vec![0; PIECE]);
        let error = loop {
            if let Err(error) = writer.write(piece.clone()).await {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Stalled);
    });
    drop(done);
}

#[test]
fn a_server_that_sends_another_range_or_less_than_it_said_is_an_error() {
    let server = serve(|request, stream| match request.path() {
        "/ignores" => answer(stream, "200 OK", "0123456789"),
        "/other" => {
            let head =
                "HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\nContent-Range: bytes 8-9/10\r\n\r\n89";
            stream.get_mut().write_all(head.as_bytes()).unwrap();
        }
        _ => {
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n01234";
            stream.get_mut().write_all(head.as_bytes()).unwrap();
            stream.get_mut().shutdown(std::net::Shutdown::Both).unwrap();
        }
    });
    run(Ok(on(&server)), "", async |bench| {
        for text in ["ignores", "other"] {
            assert_eq!(kind(bench.node.read(&name(text), 5).await), ErrorKind::Other);
        }
        let mut reader = bench.node.read(&name("short"), 0).await.unwrap();
        let error = loop {
            match reader.next().await {
                Ok(piece) => assert!(piece.is_some(), "the end of an object that is not whole"),
                Err(error) => break error,
            }
        };
        assert_eq!(kind::<()>(Err(error)), ErrorKind::Unreachable);
    });
}

#[test]
fn a_long_answer_to_an_error_is_cut_off() {
    let server = serve(|_, stream| answer(stream, "500 Internal Server Error", &"x".repeat(1 << 20)));
    run(Ok(on(&server)), "", async |bench| {
        assert_eq!(kind(bench.node.probe().await), ErrorKind::Other);
    });
}

/// A node on a server in this process.
fn on(address: &str) -> Bench {
    let node = Node::open(format!("webdav://{address}/").parse().unwrap(), None).unwrap();
    Bench { node, ..Bench::file().unwrap() }
}
