//! `read`: part of a text file, from a line on, or an image (T80–T110).
//!
//! A file is looked at in three steps: what it is, where the wanted lines are (`line_index` counts bytes, and remembers),
//! and the few bytes that can be shown. Its size does not matter for memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::image::{self, ImageOptions, ImageTarget};
use super::line_index::{Indexes, Lines};
use super::operations::{Access, FileKind, FileOperations, Metadata};
use super::os_error::{is_a_directory, os_error, os_error_without_path};
use super::write::go_on;
use super::{Tool, ToolCall, ToolDefinition, ToolError, ToolFuture, ToolResult, blocking, local, path, read_text};
use crate::permissions::{Effect, Fence};

const DESCRIPTION: &str = "Read a file: text, or an image (PNG, JPEG, GIF, WebP, BMP), which is attached. Of a text at most \
2000 lines or 50 KB are shown, whichever comes first; go on with offset and limit.";

/// The most of an image file that is looked at.
const MOST_IMAGE_BYTES: u64 = 256 << 20;
/// A file served by a host is asked for in pieces of this size when it is larger.
const PIECE: usize = 16 << 20;

/// The tool.
pub struct ReadTool {
    definition: ToolDefinition,
    images: ImageOptions,
    indexes: Indexes,
}

impl ReadTool {
    /// The tool with its standard definition.
    pub fn new() -> ReadTool {
        ReadTool::with_images(ImageOptions::default())
    }

    /// The tool with its own way to treat images where the model says nothing about them.
    pub fn with_images(images: ImageOptions) -> ReadTool {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to read, relative to the working directory or absolute"},
                "offset": {"type": "number", "description": "First line to show, counted from 1. Default 1"},
                "limit": {"type": "number", "description": "How many lines to show. Default: as many as fit"}
            },
            "required": ["path"]
        });
        let mut definition = ToolDefinition::new("read", DESCRIPTION, parameters).with_effect(Effect::Read, &["path"]);
        definition.constrained_sampling = Some(json!({"type": "json_schema", "strict": "prefer"}));
        definition.snippet = Some("show a file, or part of it".to_owned());
        definition.guidelines = vec!["To look at a file use read; do not print it with a command.".to_owned()];
        ReadTool { definition, images, indexes: Indexes::default() }
    }
}

impl Default for ReadTool {
    fn default() -> Self {
        ReadTool::new()
    }
}

impl Tool for ReadTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepares_images(&self) -> bool {
        true
    }

    fn execute(&self, mut call: ToolCall) -> ToolFuture {
        let (images, indexes) = (self.images, self.indexes.clone());
        Box::pin(async move {
            let cancel = call.cancel.clone();
            // A future that is dropped ends what it began as well.
            call.cancel = cancel.child_token();
            let _ends_with_this = call.cancel.clone().drop_guard();
            tokio::select! {
                biased;
                // What runs on another thread looks at the token too, and ends in its own time.
                () = cancel.cancelled() => Err(ToolError::aborted()),
                result = read(call, images, indexes) => result,
            }
        })
    }
}

/// What every step needs to know.
struct Request {
    given: String,
    window: read_text::Window,
    images: ImageOptions,
    target: Option<ImageTarget>,
    cancel: CancellationToken,
}

async fn read(call: ToolCall, images: ImageOptions, indexes: Indexes) -> Result<ToolResult, ToolError> {
    let given = path::argument(&call)?;
    let number = |key: &str| call.arguments.get(key).and_then(Value::as_f64);
    let window = read_text::Window::new(number("offset"), number("limit"));
    let files = call.operations.files.clone();
    let resolved = path::resolve_with(&given, &call.cwd, files.home())?;
    let request = Request { given, window, images, target: call.images.clone(), cancel: call.cancel.clone() };
    let replaced = files.replaced().await.map_err(|error| os_error(&error, "access", &resolved))?;
    if !replaced.contains(&resolved) {
        return blocking(move || request.local(&path::existing_variant(resolved), &indexes)).await;
    }
    if let Some(fence) = call.operations.fence.clone() {
        let replaced = fence.inner().replaced().await.map_err(|error| os_error(&error, "access", &resolved))?;
        if !replaced.contains(&resolved) {
            return blocking(move || request.fenced(&path::existing_variant(resolved), &indexes, &fence)).await;
        }
    }
    let path = path::existing_variant_of(&*files, resolved).await;
    let bytes = fetch(&*files, &path).await?;
    blocking(move || request.bytes(bytes)).await
}

/// The content of a file that a host serves.
async fn fetch(files: &dyn FileOperations, path: &Path) -> Result<Vec<u8>, ToolError> {
    files.access(path, Access::Read).await.map_err(|error| os_error(&error, "access", path))?;
    // A buffer without a file behind it has no facts; it is read as it is.
    let facts = files.metadata(path).await.ok();
    if let Some(facts) = &facts {
        refuse_other_kinds(facts, path)?;
    }
    let failed = |error: io::Error| os_error_without_path(&error, "read");
    if facts.is_none_or(|facts| facts.size <= PIECE as u64) {
        return files.read(path).await.map_err(failed);
    }
    let mut bytes = Vec::new();
    loop {
        let piece = files.read_range(path, bytes.len() as u64, PIECE).await.map_err(failed)?;
        let last = piece.len() < PIECE;
        bytes.extend_from_slice(&piece);
        if last {
            return Ok(bytes);
        }
    }
}

/// Only regular files are read: a pipe or device may never answer, or never end.
pub(super) fn refuse_other_kinds(facts: &Metadata, path: &Path) -> Result<(), ToolError> {
    let kind = match facts.kind {
        FileKind::File => return Ok(()),
        FileKind::Directory => return Err(is_a_directory("read")),
        FileKind::Fifo => "a named pipe",
        FileKind::Socket => "a socket",
        FileKind::Device => "a device",
        FileKind::Symlink | FileKind::Other => "not a regular file",
    };
    Err(ToolError::new(format!("EINVAL: it is {kind}, which cannot be read, read '{}'", path.display())))
}

impl Request {
    fn local(&self, path: &Path, indexes: &Indexes) -> Result<ToolResult, ToolError> {
        go_on(&self.cancel)?;
        local::check_access(path, Access::Read).map_err(|error| os_error(&error, "access", path))?;
        // Looked at before it is opened, since opening may already wait, and after, since it may be another by then.
        let facts = std::fs::metadata(path).map_err(|error| os_error(&error, "access", path))?;
        refuse_other_kinds(&local::facts(&facts), path)?;
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).custom_flags(flags).open(path);
        let file = file.map_err(|error| os_error(&error, "open", path))?;
        self.opened(file, path, indexes)
    }

    /// The same for a file that must not lie elsewhere.
    fn fenced(&self, path: &Path, indexes: &Indexes, fence: &Fence) -> Result<ToolResult, ToolError> {
        go_on(&self.cancel)?;
        fence.access(path, Access::Read).map_err(|error| os_error(&error, "access", path))?;
        refuse_other_kinds(&fence.facts(path).map_err(|error| os_error(&error, "access", path))?, path)?;
        let file = fence.open(path, OFlags::RDONLY | OFlags::NONBLOCK);
        self.opened(file.map_err(|error| os_error(&error, "open", path))?.into(), path, indexes)
    }

    fn opened(&self, file: File, path: &Path, indexes: &Indexes) -> Result<ToolResult, ToolError> {
        let facts = file.metadata().map_err(|error| os_error(&error, "open", path))?;
        refuse_other_kinds(&local::facts(&facts), path)?;
        let failed = |error: io::Error| os_error_without_path(&error, "read");
        let start = local::read_at_most(&file, 0, image::DETECTION_BYTES).map_err(failed)?;
        if let Some(mime) = image::detect(&start) {
            if facts.len() > MOST_IMAGE_BYTES {
                return Ok(self.image(&[], mime));
            }
            let bytes = local::read_at_most(&file, 0, MOST_IMAGE_BYTES as usize).map_err(failed)?;
            return Ok(self.image(&bytes, mime));
        }
        let lines = Lines::of_file(file, &facts, indexes, &self.cancel)
            .map_err(|error| if self.cancel.is_cancelled() { ToolError::aborted() } else { failed(error) })?;
        self.text(lines)
    }

    fn bytes(&self, bytes: Vec<u8>) -> Result<ToolResult, ToolError> {
        match image::detect(&bytes) {
            Some(mime) => Ok(self.image(&bytes, mime)),
            None => self.text(Lines::of_bytes(bytes)),
        }
    }

    fn text(&self, mut lines: Lines) -> Result<ToolResult, ToolError> {
        let mut result = read_text::show(&mut lines, &self.given, &self.window)?;
        result.structured_content = result.content.first().map(|block| block["text"].clone());
        Ok(result)
    }

    fn image(&self, bytes: &[u8], mime: &str) -> ToolResult {
        let options = self.images.for_target(self.target.as_ref());
        let mut result = match image::prepare(bytes, mime, &options) {
            Ok(ready) => {
                let mut note = format!("Read image file [{}]", ready.mime);
                for hint in &ready.hints {
                    note.push('\n');
                    note.push_str(hint);
                }
                let block = json!({"type": "image", "data": ready.data, "mimeType": ready.mime});
                let mut structured = block.clone();
                structured["note"] = note.as_str().into();
                let mut result = ToolResult::text(note);
                result.content.push(block);
                result.structured_content = Some(structured);
                result
            }
            Err(why) => {
                let text = format!("Read image file [{mime}]\n[Image omitted: {why}.]");
                ToolResult { structured_content: Some(text.as_str().into()), ..ToolResult::text(text) }
            }
        };
        if let Some(target) = self.target.as_ref().filter(|target| !target.accepted) {
            result.details = Some(json!({"imageUnsupportedByModel": target.model}));
        }
        result
    }
}
