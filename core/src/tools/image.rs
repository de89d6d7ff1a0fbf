//! Images as models get them: recognised by content, within the model's limits (T16, T100–T110).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::tool::text_block;
use super::{ToolResult, image_codec};
use crate::providers::Model;

/// So much of a file is enough to recognise an image.
pub(super) const DETECTION_BYTES: usize = 4100;

/// How large images may be, and how they are made smaller (T108).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResizeProfile {
    /// Most pixels across.
    pub max_width: u32,
    /// Most pixels down.
    pub max_height: u32,
    /// Bytes of base64 text that an image must stay below.
    pub max_bytes: usize,
    /// Quality of JPEG, 1 to 100.
    pub jpeg_quality: u8,
}

impl ResizeProfile {
    /// A model's own profile: `images.resize` of its [`input_limits`](Model::input_limits).
    pub fn of_model(model: &Model) -> Option<ResizeProfile> {
        ResizeProfile::from_value(&model.input_limits.get("images")?["resize"])
    }

    /// Reads `maxWidth`, `maxHeight`, `maxBytes` and `jpegQuality`; what is not there is the default's. `None` when nothing
    /// of it is there.
    pub fn from_value(value: &Value) -> Option<ResizeProfile> {
        let number = |key: &str| value[key].as_f64().filter(|number| *number >= 1.0);
        let mut profile = ResizeProfile::default();
        let (width, height) = (number("maxWidth"), number("maxHeight"));
        let (bytes, quality) = (number("maxBytes"), number("jpegQuality"));
        // Floats become the nearest integer that the type has.
        profile.max_width = width.map_or(profile.max_width, |it| it as u32);
        profile.max_height = height.map_or(profile.max_height, |it| it as u32);
        profile.max_bytes = bytes.map_or(profile.max_bytes, |it| it as usize);
        profile.jpeg_quality = quality.map_or(profile.jpeg_quality, |it| it.min(100.0) as u8);
        [width, height, bytes, quality].iter().any(Option::is_some).then_some(profile)
    }
}

impl Default for ResizeProfile {
    fn default() -> Self {
        ResizeProfile { max_width: 2000, max_height: 2000, max_bytes: 4_718_592, jpeg_quality: 80 }
    }
}

/// How a tool treats images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageOptions {
    /// Decode every image, and scale what is too large. Without it images are passed on unchecked (T107).
    pub auto_resize: bool,
    /// The limits where the model names none.
    pub profile: ResizeProfile,
}

impl Default for ImageOptions {
    fn default() -> Self {
        ImageOptions { auto_resize: true, profile: ResizeProfile::default() }
    }
}

impl ImageOptions {
    /// Sets [`auto_resize`](Self::auto_resize).
    pub fn auto_resize(mut self, auto_resize: bool) -> Self {
        self.auto_resize = auto_resize;
        self
    }

    /// Sets [`profile`](Self::profile).
    pub fn profile(mut self, profile: ResizeProfile) -> Self {
        self.profile = profile;
        self
    }

    pub(super) fn for_target(mut self, target: Option<&ImageTarget>) -> Self {
        if let Some(profile) = target.and_then(|target| target.resize) {
            self.profile = profile;
        }
        self
    }
}

/// What the model that called can do with images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTarget {
    /// The model's id.
    pub model: String,
    /// Whether it takes images at all.
    pub accepted: bool,
    /// Its own limits, if it has any.
    pub resize: Option<ResizeProfile>,
}

/// An image to send.
#[derive(Debug)]
pub(super) struct Ready {
    /// Base64.
    pub(super) data: String,
    pub(super) mime: String,
    /// What was done to it, for the model.
    pub(super) hints: Vec<String>,
    /// It is sent as it came.
    unchanged: bool,
}

/// Encoded pixels and what was done to get them.
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) mime: &'static str,
    pub(super) hint: Option<String>,
}

/// Recognises an image by how its file begins (T100).
pub(super) fn detect(bytes: &[u8]) -> Option<&'static str> {
    let bytes = &bytes[..bytes.len().min(DETECTION_BYTES)];
    match bytes {
        [0xff, 0xd8, 0xff, 0xf7, ..] => None,
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', rest @ ..] => is_still_png(rest).then_some("image/png"),
        [b'B', b'M', ..] => is_bmp(bytes).then_some("image/bmp"),
        _ => None,
    }
}

/// Whether the chunks of a PNG file begin with a header and do not announce an animation.
fn is_still_png(mut chunks: &[u8]) -> bool {
    if !chunks.starts_with(b"\0\0\0\x0dIHDR") {
        return false;
    }
    while let [a, b, c, d, kind @ ..] = chunks {
        match kind.get(..4) {
            Some(b"acTL") => return false,
            Some(b"IDAT") | None => return true,
            Some(_) => {}
        }
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        match chunks.get(length.saturating_add(12)..) {
            Some(next) => chunks = next,
            None => return true,
        }
    }
    true
}

/// Whether what begins with `BM` has a header that makes sense.
fn is_bmp(bytes: &[u8]) -> bool {
    let two = |at: usize| bytes.get(at..at + 2).map(|it| u32::from(u16::from_le_bytes([it[0], it[1]])));
    let four = |at: usize| bytes.get(at..at + 4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]]));
    let (Some(size), Some(pixels), Some(header)) = (four(2), four(10), four(14)) else { return false };
    let (planes, bits) = if header == 12 { (two(22), two(24)) } else { (two(26), two(28)) };
    bytes.len() >= 26
        && (size == 0 || size >= 26)
        && (header == 12 || (40..=124).contains(&header))
        && u64::from(pixels) >= 14 + u64::from(header)
        && (size == 0 || pixels < size)
        && planes == Some(1)
        && matches!(bits, Some(1 | 4 | 8 | 16 | 24 | 32))
}

/// Size of base64 text.
pub(super) fn base64_size(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Makes an image fit (T104–T110), or says why it is left out.
pub(super) fn prepare(bytes: &[u8], mime: &str, options: &ImageOptions) -> Result<Ready, &'static str> {
    const TOO_LARGE: &str = "could not be resized below the inline image size limit";
    let passed_on = matches!(mime, "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp");
    let mut hints = Vec::new();
    let mut converted = None;
    if !passed_on {
        converted = Some(image_codec::to_png(bytes).ok_or("could not be converted to a type that models take")?);
        hints.push(format!("[Image converted from {mime} to image/png.]"));
    }
    let bytes = converted.as_deref().unwrap_or(bytes);
    let mime = if passed_on { mime } else { "image/png" };
    let as_it_is =
        |hints: Vec<String>| Ready { data: STANDARD.encode(bytes), mime: mime.to_owned(), unchanged: passed_on, hints };
    if !options.auto_resize {
        return Ok(as_it_is(hints));
    }
    match image_codec::fit(bytes, mime, &options.profile).ok_or(TOO_LARGE)? {
        None => Ok(as_it_is(hints)),
        Some(Encoded { bytes, mime, hint }) => {
            hints.extend(hint);
            Ok(Ready { data: STANDARD.encode(bytes), mime: mime.to_owned(), hints, unchanged: false })
        }
    }
}

/// Whether a result has images that may need work.
pub(crate) fn has_images(result: &ToolResult) -> bool {
    result.content.iter().any(|block| block["type"] == "image")
}

/// Treats the images of any tool's result as `read` treats its own (T16). What cannot be processed stays as it is.
pub(crate) fn normalise(result: &mut ToolResult, target: Option<&ImageTarget>) {
    let options = ImageOptions::default().for_target(target);
    let mut content = Vec::with_capacity(result.content.len());
    for block in std::mem::take(&mut result.content) {
        match work_on(&block, &options) {
            Some(ready) => {
                let mut changed = block;
                changed["data"] = ready.data.into();
                changed["mimeType"] = ready.mime.into();
                content.push(changed);
                if !ready.hints.is_empty() {
                    content.push(text_block(ready.hints.join("\n")));
                }
            }
            None => content.push(block),
        }
    }
    result.content = content;
}

fn work_on(block: &Value, options: &ImageOptions) -> Option<Ready> {
    if block["type"] != json!("image") {
        return None;
    }
    let bytes = STANDARD.decode(block["data"].as_str()?).ok()?;
    prepare(&bytes, block["mimeType"].as_str()?, options).ok().filter(|ready| !ready.unchanged)
}

#[cfg(test)]
mod tests {
    use super::detect;

    #[test]
    fn recognised_by_content_alone() {
        assert_eq!(detect(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(detect(b"\xff\xd8\xff\xf7"), None);
        assert_eq!(detect(b"GIF89a"), Some("image/gif"));
        assert_eq!(detect(b"RIFF\0\0\0\0WEBP"), Some("image/webp"));
        assert_eq!(detect(b"\x89PNG\r\n\x1a\n"), None);
        assert_eq!(detect(b"<svg/>"), None);
        assert_eq!(detect(b"BMW owners club, a list that is long enough\n"), None);
        assert_eq!(detect(b""), None);
    }
}
