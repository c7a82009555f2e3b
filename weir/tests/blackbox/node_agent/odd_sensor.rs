//! A sensor that behaves as a test wants it to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

/// How it behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// As an agent does; with each answer, the device has written 500 MB more.
    Good,
    /// It answers with bytes that are no metrics.
    Garbage,
    /// A counter is no number.
    Odd,
    /// Its answer ends inside the last number.
    Cut,
    /// Its answer has no end.
    Endless,
    /// It accepts, and says nothing.
    Mute,
}

/// A sensor, until the end of the test program.
pub(super) struct OddSensor {
    address: SocketAddr,
    manner: Arc<Mutex<Manner>>,
}

impl OddSensor {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let manner = Arc::new(Mutex::new(Manner::Good));
        let present = Arc::clone(&manner);
        spawn(move || {
            let mut written = 0_u64;
            let mut silent = Vec::new();
            for peer in listener.incoming().filter_map(Result::ok) {
                written += 500_000_000;
                let manner = *present.lock().expect("nobody panics with it");
                if manner == Manner::Mute {
                    silent.push(peer);
                } else {
                    spawn(move || answer(peer, manner, written));
                }
            }
        });
        Self { address, manner }
    }

    /// The url of its metrics.
    pub(super) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Behaves so from now on.
    pub(super) fn set(&self, manner: Manner) {
        *self.manner.lock().expect("nobody panics with it") = manner;
    }
}

fn answer(mut peer: TcpStream, manner: Manner, written: u64) {
    let _ = peer.read(&mut [0; 4096]); // the request
    let counter = if manner == Manner::Odd { "many".to_owned() } else { written.to_string() };
    let page = format!(
        "weir_node_device_present{{device=\"sda\"}} 1\nweir_node_device_read_bytes_total{{device=\"sda\"}} 0\n\
         weir_node_device_written_bytes_total{{device=\"sda\"}} {counter}\n# EOF\n"
    );
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let _ = match manner {
        Manner::Garbage => write!(peer, "{head}\0\u{1b}[2J garbage"),
        Manner::Endless => {
            let _ = write!(peer, "{head}");
            while peer.write_all(&[b'x'; 65_536]).is_ok() {}
            Ok(())
        }
        Manner::Cut => write!(peer, "{head}{}", page.trim_end_matches("00\n# EOF\n")),
        Manner::Good | Manner::Odd | Manner::Mute => write!(peer, "{head}{page}"),
    };
}
