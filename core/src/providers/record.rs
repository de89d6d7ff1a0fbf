//! Recording what goes over the wire, for diagnosis: one JSON object a line, in a file that only its owner can read.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::WireObserver;
use crate::error::{Error, ErrorCode, Result};
use crate::system::clock::now_ms;

/// Most bytes that wait for the disk. More is left out, and the file says so.
const WAITING: u64 = 64 * 1024 * 1024;
/// Headers that are never recorded, whoever set them.
const PRIVATE: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cf-aig-authorization",
    "cookie",
    "set-cookie",
];

/// Writes the traffic of an engine with services to a file; give it to
/// [`EngineOptions::wire_observer`](crate::EngineOptions::wire_observer).
///
/// Lines are `{"time", "exchange", "kind", …}`: `request` with `method`, `url`, `headers`, `body`; `response` with `status`,
/// `headers`; `bytes` with `data`; `end`. Bodies are texts, or `base64` where they are none. Keys are removed, but prompts and
/// answers are not: the file holds whole conversations.
pub struct WireRecorder {
    sender: Mutex<Option<Sender<String>>>,
    waiting: Arc<AtomicU64>,
    lost: AtomicU64,
    /// Exchanges without an end.
    open: Mutex<BTreeSet<u64>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl WireRecorder {
    /// Creates the file, which must not exist.
    ///
    /// Errors: `file_exists`, `storage_failed`.
    pub fn create(path: impl AsRef<Path>) -> Result<WireRecorder> {
        let path = path.as_ref();
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Error::new(ErrorCode::FileExists, "the file to record to exists; choose another name").at(path)
            }
            _ => Error::storage("create the file to record to", path, &error),
        })?;
        let (sender, receiver) = mpsc::channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let theirs = waiting.clone();
        let writer = std::thread::Builder::new()
            .name("branchline-record".into())
            .spawn(move || write(file, &receiver, &theirs))
            .map_err(|error| Error::new(ErrorCode::Internal, format!("cannot start a thread: {error}")))?;
        Ok(WireRecorder {
            sender: Mutex::new(Some(sender)),
            waiting,
            lost: AtomicU64::new(0),
            open: Mutex::default(),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Writes what is left, an end of what has none, and closes the file; what comes later is left out. Blocks until the
    /// file has it.
    pub fn finish(&self) {
        // The rest of an answer that nobody needs any more may still be on its way.
        let mut open = self.open();
        for exchange in std::mem::take(&mut *open) {
            self.put(exchange, "end", json!({}));
        }
        drop(open);
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = writer.join();
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line of an exchange that has not ended: [`finish`](WireRecorder::finish) may have said so before the exchange does.
    fn put_of_open(&self, exchange: u64, kind: &str, fields: Value) {
        let open = self.open();
        if open.contains(&exchange) {
            self.put(exchange, kind, fields);
        }
    }

    fn put(&self, exchange: u64, kind: &str, fields: Value) {
        let mut object = Map::new();
        object.insert("time".to_owned(), now_ms().into());
        object.insert("exchange".to_owned(), exchange.into());
        object.insert("kind".to_owned(), kind.into());
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            object.insert("lost".to_owned(), lost.into());
        }
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        let mut line = Value::Object(object).to_string();
        line.push('\n');
        let length = line.len() as u64;
        if self.waiting.fetch_add(length, Ordering::Relaxed) + length > WAITING {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
            return;
        }
        if let Some(sender) = &*self.sender.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = sender.send(line);
        }
    }
}

fn write(file: File, lines: &Receiver<String>, waiting: &AtomicU64) {
    let mut file = std::io::BufWriter::new(file);
    while let Ok(line) = lines.recv() {
        // A full disk must not disturb the session; the file then ends early.
        let _ = file.write_all(line.as_bytes());
        if waiting.fetch_sub(line.len() as u64, Ordering::Relaxed) == line.len() as u64 {
            let _ = file.flush();
        }
    }
    let _ = file.flush();
}

fn headers(headers: &[(String, String)]) -> Value {
    let shown = headers.iter().map(|(name, value)| {
        let private = PRIVATE.iter().any(|known| name.eq_ignore_ascii_case(known));
        json!([name, if private { "[secret]" } else { value.as_str() }])
    });
    shown.collect()
}

fn bytes(name: &str, bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({name: text}),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    }
}

impl WireObserver for WireRecorder {
    fn request(&self, exchange: u64, method: &str, url: &str, sent: &[(String, String)], body: &[u8]) {
        let mut fields = json!({"method": method, "url": url, "headers": headers(sent)});
        if let (Some(fields), Value::Object(body)) = (fields.as_object_mut(), bytes("body", body)) {
            fields.extend(body);
        }
        self.open().insert(exchange);
        self.put(exchange, "request", fields);
    }

    fn response(&self, exchange: u64, status: u16, received: &[(String, String)]) {
        self.put_of_open(exchange, "response", json!({"status": status, "headers": headers(received)}));
    }

    fn bytes(&self, exchange: u64, received: &[u8]) {
        self.put_of_open(exchange, "bytes", bytes("data", received));
    }

    fn end(&self, exchange: u64) {
        let mut open = self.open();
        if open.remove(&exchange) {
            self.put(exchange, "end", json!({})); // before anybody else says that it is the end
        }
    }
}

/// Who watches the traffic of an engine.
pub(crate) fn observers(
    host: &Option<Arc<dyn WireObserver>>,
    recorder: &Option<Arc<WireRecorder>>,
) -> Option<Arc<dyn WireObserver>> {
    let recorder = recorder.clone().map(|recorder| recorder as Arc<dyn WireObserver>);
    match (host.clone(), recorder) {
        (Some(host), Some(recorder)) => Some(Arc::new(Both(host, recorder))),
        (host, recorder) => host.or(recorder),
    }
}

struct Both(Arc<dyn WireObserver>, Arc<dyn WireObserver>);

impl WireObserver for Both {
    fn request(&self, exchange: u64, method: &str, url: &str, headers: &[(String, String)], body: &[u8]) {
        self.0.request(exchange, method, url, headers, body);
        self.1.request(exchange, method, url, headers, body);
    }

    fn response(&self, exchange: u64, status: u16, headers: &[(String, String)]) {
        self.0.response(exchange, status, headers);
        self.1.response(exchange, status, headers);
    }

    fn bytes(&self, exchange: u64, bytes: &[u8]) {
        self.0.bytes(exchange, bytes);
        self.1.bytes(exchange, bytes);
    }

    fn end(&self, exchange: u64) {
        self.0.end(exchange);
        self.1.end(exchange);
    }
}

impl Drop for WireRecorder {
    fn drop(&mut self) {
        // Not waited for: who wants the file to be whole calls `finish`.
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
