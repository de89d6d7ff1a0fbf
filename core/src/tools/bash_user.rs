//! Commands that a person types (T280–T288): the same shell as `bash`, no limits of time, and output made fit to be shown.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use super::ansi::{remove_controls, split_unfinished, strip};
use super::bash::BashOptions;
use super::operations::{CommandRequest, End, Operations};
use super::spill::{self, SpillFile};
use super::truncate::{self, MAX_BYTES};
use super::utf8_stream::Utf8Stream;

/// Characters kept in memory.
const KEEP: usize = 2 * MAX_BYTES;

/// What a person's command came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UserCommand {
    /// The end of what it printed, within the usual limits, without control sequences and carriage returns.
    pub output: String,
    /// The shell's code; `None` when it was cancelled or nobody knows.
    pub exit_code: Option<i32>,
    /// The token fired.
    pub cancelled: bool,
    /// `output` is not all.
    pub truncated: bool,
    /// Where all of it is. The file belongs to the caller.
    #[serde(serialize_with = "lossy")]
    pub full_output_path: Option<PathBuf>,
}

/// A path as text; what is no Unicode in it is replaced.
fn lossy<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(to)
}

/// Runs a command to its end. `on_text` gets the cleaned output piece by piece, on the thread that reads it.
///
/// Errors: when it cannot be started.
pub async fn execute(
    operations: &Operations,
    command: &str,
    cwd: &Path,
    options: &BashOptions,
    cancel: &CancellationToken,
    on_text: impl FnMut(&str) + Send + 'static,
) -> io::Result<UserCommand> {
    let text = Arc::new(Mutex::new(Text::default()));
    let sink = text.clone();
    let mut on_text = on_text;
    let output = move |data: &[u8]| {
        let piece = lock(&sink).push(data);
        if !piece.is_empty() {
            on_text(&piece);
        }
    };
    let mut request = CommandRequest::new(options.command(command), cwd, Box::new(output));
    request.shell.clone_from(&options.shell);
    request.environment = Some(options.environment.build(None, &[]));
    request.cancel = cancel.clone();
    let ended = operations.commands.run(request).await?;
    let mut out = lock(&text).end();
    out.cancelled = ended.end == End::Cancelled;
    out.exit_code = ended.code.filter(|_| !out.cancelled);
    Ok(out)
}

fn lock(text: &Mutex<Text>) -> std::sync::MutexGuard<'_, Text> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Output on its way to a person.
#[derive(Default)]
struct Text {
    decoder: Utf8Stream,
    /// A control sequence that has not ended.
    held: String,
    raw: usize,
    pieces: VecDeque<String>,
    kept: usize,
    dropped: bool,
    file: Option<SpillFile>,
    failed: bool,
}

impl Text {
    fn push(&mut self, data: &[u8]) -> String {
        self.raw += data.len();
        let mut text = std::mem::take(&mut self.held);
        self.decoder.push(data, |piece| text.push_str(piece));
        let (complete, unfinished) = split_unfinished(&text);
        let clean = remove_controls(&strip(complete));
        self.held = unfinished.to_owned();
        self.take(clean.clone());
        clean
    }

    fn take(&mut self, piece: String) {
        if self.raw > MAX_BYTES {
            self.spill();
        }
        if let Some(file) = &mut self.file
            && file.write(piece.as_bytes()).is_err()
        {
            file.remove();
            (self.file, self.failed) = (None, true);
        }
        self.kept += piece.len();
        self.pieces.push_back(piece);
        while self.kept > KEEP && self.pieces.len() > 1 {
            self.kept -= self.pieces.pop_front().map_or(0, |piece| piece.len());
            self.dropped = true;
        }
    }

    /// Everything so far goes to a file, unless it is there already.
    fn spill(&mut self) {
        if self.file.is_some() || self.failed {
            return;
        }
        let so_far: String = self.pieces.iter().map(String::as_str).collect();
        match SpillFile::create("pi-bash", so_far.as_bytes(), spill::MOST) {
            Ok(file) => self.file = Some(file),
            Err(_) => self.failed = true,
        }
    }

    fn end(&mut self) -> UserCommand {
        let mut text = std::mem::take(&mut self.held);
        self.decoder.finish(|piece| text.push_str(piece));
        if !text.is_empty() {
            self.take(remove_controls(&strip(&text)));
        }
        let text: String = self.pieces.iter().map(String::as_str).collect();
        let shown = truncate::tail(&text);
        if shown.truncated {
            self.spill();
        }
        UserCommand {
            output: shown.content,
            truncated: shown.truncated || self.dropped,
            full_output_path: self.file.take().map(|file| file.path().to_path_buf()),
            ..UserCommand::default()
        }
    }
}
