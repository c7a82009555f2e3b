//! A way to a server that a test can cut, and lead to another server.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// An address that leads to a server. Its thread ends with the program.
pub(super) struct Proxy {
    address: String,
    way: Arc<Mutex<Way>>,
}

/// Where it leads to, if it is not cut, and the connections through it.
struct Way {
    server: Option<String>,
    connections: Vec<TcpStream>,
}

impl Proxy {
    /// A way to a server.
    pub(super) fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let way = Arc::new(Mutex::new(Way { server: Some(server.to_owned()), connections: Vec::new() }));
        let led = Arc::clone(&way);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = lead(&client, &led); // it is cut, or the server does not answer
            }
        });
        Self { address, way }
    }

    /// `host:port`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections. There are no new ones until [`Proxy::lead_to`].
    pub(super) fn cut(&self) {
        let mut way = self.way.lock().unwrap();
        way.server = None;
        for connection in way.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both); // it may have ended
        }
    }

    /// Leads to a server from now on.
    pub(super) fn lead_to(&self, server: &str) {
        self.way.lock().unwrap().server = Some(server.to_owned());
    }
}

fn lead(client: &TcpStream, way: &Mutex<Way>) -> io::Result<()> {
    let mut way = way.lock().unwrap();
    let Some(server) = &way.server else { return Ok(()) };
    let server = TcpStream::connect(server)?;
    for (from, to) in [(client, &server), (&server, client)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to); // one of them ends it
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    way.connections.extend([client.try_clone()?, server]);
    Ok(())
}
