//! Sensors that are away, mute, endless or another program.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};

use super::*;

/// A server that answers one request as `answer` does, and its address.
fn server<T: Send + 'static>(
    answer: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]).unwrap();
        answer(peer)
    });
    (address, serving)
}

async fn asked(address: SocketAddr) -> Result<Device, String> {
    ask(&format!("http://{address}/metrics").parse().unwrap()).await
}

/// What is said of a server that answers with this text.
async fn said(answer: String) -> String {
    let (address, serving) = server(move |mut peer| peer.write_all(answer.as_bytes()));
    let why = asked(address).await.unwrap_err();
    serving.join().unwrap().unwrap();
    why
}

#[tokio::test]
async fn a_sensor_that_answers_tells_what_its_device_has_done() {
    let lines = [
        "present{device=\"sda\"} 1",
        "read_bytes_total{device=\"sda\"} 7",
        "written_bytes_total{device=\"sda\"} 8",
    ];
    let page = lines.map(|line| format!("weir_node_device_{line}\n")).concat() + "# EOF\n";
    let (address, serving) = server(move |mut peer| write!(peer, "HTTP/1.1 200 OK\r\n\r\n{page}"));
    let device = asked(address).await.unwrap();
    assert_eq!((&*device.name, device.bytes.read, device.bytes.written), ("sda", 7, 8));
    serving.join().unwrap().unwrap();
}

#[tokio::test]
async fn another_program_and_a_refusal_are_reasons() {
    assert!(
        said("HTTP/1.1 200 OK\r\n\r\nhello".to_owned())
            .await
            .contains("accepted: the metrics of weir node agent")
    );
    assert!(said("HTTP/1.1 404 Not Found\r\n\r\nwhat".to_owned()).await.contains("refuses (404): \"what\""));
    assert!(!said("\0\x01garbage\r\n\r\n".to_owned()).await.is_empty());
    assert!(!said(String::new()).await.is_empty());
}

#[tokio::test]
async fn a_sensor_that_is_away_or_mute_is_given_up_after_a_second() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mute = listener.local_addr().unwrap();
    assert_eq!(asked(mute).await.unwrap_err(), "no answer within 1 s");
    drop(listener);
    let why = asked(mute).await.unwrap_err();
    assert!(why.starts_with("no connection: "), "{why}");
}

#[tokio::test]
async fn of_an_answer_without_end_no_more_is_read_than_64_kib() {
    let (address, serving) = server(|mut peer| {
        let chunk = [b'x'; 1 << 16];
        peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        (0..1 << 12).take_while(|_| peer.write_all(&chunk).is_ok()).count()
    });
    assert_eq!(asked(address).await.unwrap_err(), "it is longer than 64 KiB");
    let chunks = serving.join().unwrap();
    assert!(chunks < 256, "{chunks} chunks of 64 KiB: more than the sockets hold");
}

#[test]
fn a_reason_is_one_short_line() {
    let line = one_line(&"a\n\u{1b}".repeat(1000));
    assert_eq!(line.chars().count(), MOST_TOLD);
    assert!(!line.contains(char::is_control));
}
