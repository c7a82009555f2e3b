//! Servers of HTTP in this process, which do what no real one does on demand.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// The first line of a request.
pub(crate) struct Request(String);

impl Request {
    pub(crate) fn method(&self) -> &str {
        self.0.split(' ').next().unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.0.split(' ').nth(1).unwrap()
    }
}

/// Serves each connection on a thread of its own, and gives the address.
pub(crate) fn serve(handle: impl Fn(&Request, &mut BufReader<TcpStream>) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let handle = std::sync::Arc::new(handle);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = handle.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some(request) = request(&mut stream) {
                    handle(&request, &mut stream);
                }
            });
        }
    });
    address
}

fn request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut first = String::new();
    if stream.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut line = String::new();
    while stream.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    Some(Request(first))
}

/// Answers a request; the client may have gone.
pub(crate) fn answer(stream: &mut BufReader<TcpStream>, status: &str, body: &str) {
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(answer.as_bytes()).ok();
}
