//! Images are made to fit the model that asks (T102–T109), whichever tool they come from (T16).
#![cfg(feature = "images")]

mod tool_support;

use std::sync::Arc;

use base64::Engine as _;
use branchline::providers::Model;
use branchline::tools::image::{ImageTarget, ResizeProfile};
use branchline::tools::read::ReadTool;
use branchline::tools::{Tool, ToolResult};
use serde_json::json;

use tool_support::{new_call, run, text, write};

/// An uncompressed picture of one colour.
fn bmp(width: u32, height: u32) -> Vec<u8> {
    let row = (width * 3).div_ceil(4) * 4;
    let size = 54 + row * height;
    let mut out = b"BM".to_vec();
    for number in [size, 0, 54, 40, width, height, 24 << 16 | 1, 0, row * height, 2835, 2835, 0, 0] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.resize(size as usize, 0x7f);
    out
}

fn read_for(resize: Option<ResizeProfile>, accepted: bool) -> ToolResult {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "wide.bmp", bmp(300, 100));
    let mut call = new_call("read", json!({"path": "wide.bmp"}), dir.path());
    call.images = Some(ImageTarget { model: "seer".to_owned(), accepted, resize });
    run(&(Arc::new(ReadTool::new()) as Arc<dyn Tool>), call).unwrap()
}

/// Width and height of a PNG in a result.
fn size_of(result: &ToolResult) -> (u32, u32) {
    let data = result.content[1]["data"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn each_model_has_its_own_limits() {
    let usual = read_for(None, true);
    assert_eq!(text(&usual), "Read image file [image/png]\n[Image converted from image/bmp to image/png.]");
    assert_eq!(size_of(&usual), (300, 100));

    let limits = ResizeProfile::from_value(&json!({"maxWidth": 150, "maxHeight": 40})).unwrap();
    let small = read_for(Some(limits), true);
    // The width first, then the height (T109).
    assert!(text(&small).ends_with(
        "[Image: original 300x100, displayed at 120x40. Multiply coordinates by 2.50 to map to original image.]"
    ));
    assert_eq!(size_of(&small), (120, 40));

    // Nothing can be that small: the result is a sentence and no error (T106).
    let tiny = ResizeProfile::from_value(&json!({"maxBytes": 20})).unwrap();
    let omitted = read_for(Some(tiny), true);
    assert!(!omitted.is_error && omitted.content.len() == 1 && text(&omitted).contains("[Image omitted: "));

    let unseen = read_for(None, false);
    assert_eq!(unseen.details.as_ref().unwrap()["imageUnsupportedByModel"], "seer");
    assert_eq!(unseen.content.len(), 2);
}

#[test]
fn limits_as_a_models_entry_says_them() {
    assert_eq!(ResizeProfile::from_value(&json!({})), None);
    assert_eq!(ResizeProfile::from_value(&json!(null)), None);
    assert_eq!(ResizeProfile::from_value(&json!({"maxWidth": "wide", "maxHeight": 0})), None);
    let some = ResizeProfile::from_value(&json!({"maxBytes": 1e6, "jpegQuality": 500})).unwrap();
    let usual = ResizeProfile::default();
    assert_eq!(some, ResizeProfile { max_bytes: 1_000_000, jpeg_quality: 100, ..usual });

    let entry = json!({
        "provider": "p", "id": "m", "api": "a", "input": ["text", "image"],
        "inputLimits": {"maxRequestBytes": 1, "images": {"maxPerMessage": 3, "resize": {"maxWidth": 768}}},
    });
    let model = Model::from_json(&entry).unwrap();
    assert_eq!(ResizeProfile::of_model(&model), Some(ResizeProfile { max_width: 768, ..usual }));
    assert_eq!(ResizeProfile::of_model(&Model::new("p", "m", "a")), None);
}
