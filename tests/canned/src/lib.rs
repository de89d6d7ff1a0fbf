//! An HTTP server on loopback that plays prepared answers and records what it was asked. Plain threads, no executor: it
//! knows nothing of what it tests.

pub mod requests;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// For example `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Which connection it came over, counted from 0.
    pub connection: usize,
    /// When it was complete.
    pub at: Instant,
}

impl Received {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// What happens after the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The answer is complete and the connection stays open.
    Keep,
    /// The answer never ends, until the client closes the connection.
    Hang,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// The answer goes on with comments twenty times a second, until the client closes the connection.
    Comments,
}

/// A prepared answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers besides those for the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Bytes for each write; 0 for all at once.
    pub chunk: usize,
    /// Wait between writes.
    pub pause: Duration,
    /// What happens after the body.
    pub then: Then,
}

impl Reply {
    /// A stream of server-sent events.
    pub fn sse(body: impl Into<Vec<u8>>) -> Reply {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Reply { status: 200, headers, body: body.into(), chunk: 0, pause: Duration::ZERO, then: Then::Keep }
    }

    /// The answer "hi" of a model, in the protocol anthropic-messages.
    pub fn hi() -> Reply {
        let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}});
        Reply::sse(events([
            ("message_start", json!({"type": "message_start", "message": {"id": "m1", "model": "m", "usage": {}}})),
            ("content_block_start", block),
            ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
            ("message_delta", json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}})),
            ("message_stop", json!({"type": "message_stop"})),
        ]))
    }

    /// An answer with a status and a JSON body.
    pub fn status(status: u16, body: &Value) -> Reply {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Reply { status, headers, body: body.to_string().into_bytes(), ..Reply::sse("") }
    }

    /// With another header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Written so many bytes at a time.
    pub fn chunked(mut self, bytes: usize) -> Reply {
        self.chunk = bytes;
        self
    }

    /// With a wait between writes.
    pub fn paced(mut self, pause: Duration) -> Reply {
        self.pause = pause;
        self
    }

    /// Ending like that.
    pub fn then(mut self, then: Then) -> Reply {
        self.then = then;
        self
    }
}

/// Events as a body: each is an event name (empty for none) and its data.
pub fn events<'a>(events: impl IntoIterator<Item = (&'a str, Value)>) -> String {
    let mut out = String::new();
    for (name, data) in events {
        if !name.is_empty() {
            out.push_str(&format!("event: {name}\n"));
        }
        out.push_str(&format!("data: {data}\n\n"));
    }
    out
}

#[derive(Default)]
struct Shared {
    replies: Mutex<(Vec<Reply>, usize)>,
    received: Mutex<Vec<Received>>,
    hangups: AtomicUsize,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// The server. Dropping it closes every connection.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that plays these answers in order; the last one repeats.
    ///
    /// # Panics
    /// There is no free port.
    pub fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { replies: Mutex::new((replies, 0)), ..Shared::default() });
        let theirs = shared.clone();
        let thread = std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { continue };
                if theirs.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let _ = stream.set_nodelay(true);
                if let Ok(copy) = stream.try_clone() {
                    lock(&theirs.open).push(copy);
                }
                let shared = theirs.clone();
                std::thread::spawn(move || {
                    let _ = serve(&stream, number, &shared);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Server { shared, address, thread: Some(thread) }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub fn received(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// How often a client closed the connection while an answer was still going on.
    pub fn hangups(&self) -> usize {
        self.shared.hangups.load(Ordering::SeqCst)
    }

    /// Waits until `done` holds, at most for ten seconds; whether it does.
    pub fn wait(&self, done: impl Fn(&Server) -> bool) -> bool {
        let begun = Instant::now();
        while !done(self) {
            if begun.elapsed() > Duration::from_secs(10) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for stream in lock(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A port on loopback where nobody listens.
///
/// # Panics
/// There is no free port.
pub fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

fn serve(mut stream: &TcpStream, connection: usize, shared: &Shared) -> io::Result<()> {
    let mut buffer = Vec::new();
    while let Some(request) = receive(stream, &mut buffer, connection)? {
        let reply = {
            let mut replies = lock(&shared.replies);
            let (list, next) = &mut *replies;
            let reply = list.get(*next).or(list.last()).cloned();
            *next += 1;
            reply
        };
        lock(&shared.received).push(request);
        let Some(reply) = reply else { return Ok(()) };
        let mut head = format!("HTTP/1.1 {} Canned\r\ntransfer-encoding: chunked\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        let size = if reply.chunk == 0 { reply.body.len().max(1) } else { reply.chunk };
        for piece in reply.body.chunks(size) {
            if write_chunk(stream, piece).is_err() {
                shared.hangups.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            if !reply.pause.is_zero() {
                std::thread::sleep(reply.pause);
            }
        }
        match reply.then {
            Then::Keep => stream.write_all(b"0\r\n\r\n")?,
            Then::Cut => return Ok(()),
            Then::Hang => {
                let _ = stream.read(&mut [0; 64]);
                shared.hangups.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            Then::Comments => {
                while write_chunk(stream, b": ping\n\n").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                shared.hangups.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_chunk(mut stream: &TcpStream, piece: &[u8]) -> io::Result<()> {
    let mut out = format!("{:x}\r\n", piece.len()).into_bytes();
    out.extend_from_slice(piece);
    out.extend_from_slice(b"\r\n");
    stream.write_all(&out)
}

/// The next request; `None` at the end of the connection.
fn receive(mut stream: &TcpStream, buffer: &mut Vec<u8>, connection: usize) -> io::Result<Option<Received>> {
    let mut piece = [0; 16384];
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let length: usize = length.unwrap_or(0);
    while buffer.len() < length {
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            read => buffer.extend_from_slice(&piece[..read]),
        }
    }
    let body = buffer.drain(..length).collect();
    Ok(Some(Received { method, path, headers, body, connection, at: Instant::now() }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
