//! What the tests of wire protocols share: a real HTTP server on loopback that answers what a test tells it to, and
//! sessions whose model lives there.
#![allow(dead_code, unreachable_pub)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use branchline::providers::Model;
use branchline::{Engine, EngineOptions, Event, Session, SessionOptions};
use serde_json::{Value, json};

/// One step of an answer's body.
#[derive(Clone)]
pub enum Act {
    /// Bytes, sent in one piece.
    Send(Vec<u8>),
    Wait(Duration),
    /// The body is complete; the connection stays usable.
    End,
    /// The connection is closed in the middle of the body.
    Close,
    /// The connection is reset in the middle of the body.
    Reset,
    /// Nothing more comes and the connection stays open, until the client closes it.
    Hang,
}

/// One answer.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub acts: Vec<Act>,
}

impl Reply {
    /// A stream of events made of these bytes, complete.
    pub fn stream(body: impl Into<Vec<u8>>) -> Reply {
        Reply::acts(vec![Act::Send(body.into()), Act::End])
    }

    pub fn acts(acts: Vec<Act>) -> Reply {
        Reply { status: 200, headers: vec![("content-type".into(), "text/event-stream".into())], acts }
    }

    pub fn refusal(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Reply { status, headers, acts: vec![Act::Send(body.as_bytes().to_vec()), Act::End] }
    }
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }
}

pub struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Connections that the client closed while the server hung.
    pub hung_up: Arc<AtomicUsize>,
}

impl Server {
    /// Answers the first request with the first reply and so on; the last one repeats.
    pub fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (asked, hung_up) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let server = Server { address, asked: asked.clone(), hung_up: hung_up.clone() };
        let next = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (replies, asked, next, hung_up) = (replies.clone(), asked.clone(), next.clone(), hung_up.clone());
                std::thread::spawn(move || serve(stream, &replies, &asked, &next, &hung_up));
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn last(&self) -> Asked {
        self.asked().pop().expect("a request")
    }
}

fn serve(stream: TcpStream, replies: &[Reply], asked: &Mutex<Vec<Asked>>, next: &AtomicUsize, hung_up: &AtomicUsize) {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let mut out = stream;
    while let Some(request) = read_request(&mut reader) {
        asked.lock().unwrap().push(request);
        let reply = &replies[next.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1)];
        let mut head = format!("HTTP/1.1 {} Status\r\ntransfer-encoding: chunked\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        if out.write_all(head.as_bytes()).is_err() {
            return;
        }
        for act in &reply.acts {
            let sent = match act {
                Act::Send(bytes) if bytes.is_empty() => Ok(()),
                Act::Send(bytes) => {
                    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                    chunk.extend_from_slice(bytes);
                    chunk.extend_from_slice(b"\r\n");
                    out.write_all(&chunk).and_then(|()| out.flush())
                }
                Act::Wait(time) => {
                    std::thread::sleep(*time);
                    Ok(())
                }
                Act::End => out.write_all(b"0\r\n\r\n"),
                Act::Close => return,
                Act::Reset => {
                    reset_on_close(&out);
                    return;
                }
                Act::Hang => {
                    let mut byte = [0];
                    while matches!(reader.read(&mut byte), Ok(1)) {}
                    hung_up.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

/// Makes the close that follows a reset: it lingers for no time.
fn reset_on_close(stream: &TcpStream) {
    use std::os::fd::AsRawFd;
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the descriptor is open, and the option's value is of the size that is told.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { path, headers, body: serde_json::from_slice(&body).unwrap_or(Value::Null) })
}

/// Server-sent events with this data each, without names.
pub fn events(data: &[Value]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// Server-sent events named by their `type`.
pub fn named_events(data: &[Value]) -> String {
    data.iter().map(|data| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())).collect()
}

/// A chat chunk with this delta.
pub fn chunk(delta: Value) -> Value {
    json!({"id": "cc", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// A chat chunk with this finish reason.
pub fn finish(reason: &str) -> Value {
    json!({"id": "cc", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A complete chat answer with this text.
pub fn chat_text(text: &str) -> String {
    events(&[chunk(json!({"content": text})), finish("stop")]) + "data: [DONE]\n\n"
}

/// The model `demo/m` of this protocol at `server`.
pub fn model(server: &Server, api: &str) -> Model {
    let mut model = Model::new("demo", "m", api);
    model.base_url = server.url();
    model.context_window = 100_000;
    model.max_tokens = 8000;
    model
}

pub fn engine(dir: &Path) -> Engine {
    Engine::new(EngineOptions::default().agent_dir(dir.join("agent")).worker_threads(2)).expect("an engine")
}

/// A session in `dir` with that model and without retries.
pub fn session(engine: &Engine, dir: &Path, model: Model) -> Session {
    session_with(engine, dir, model, |options| options)
}

pub fn session_with(
    engine: &Engine,
    dir: &Path,
    model: Model,
    change: impl FnOnce(SessionOptions) -> SessionOptions,
) -> Session {
    let name = model.full_name();
    engine.add_model(model).expect("a model");
    let options = SessionOptions::new(dir).session_dir(dir.join("sessions")).model(name).thinking_level("off");
    branchline::block_on(engine.create_session(change(options))).expect("a session")
}

/// The last assistant message among events.
pub fn last_response(events: &[Event]) -> Value {
    let ends = events.iter().rev().map(|event| serde_json::from_str::<Value>(&event.to_json()).expect("JSON"));
    let mut responses = ends.filter(|event| event["type"] == "message_end" && event["message"]["role"] == "assistant");
    responses.next().expect("a response")["message"].clone()
}
