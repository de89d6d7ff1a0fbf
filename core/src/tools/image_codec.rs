//! Decoding, scaling and encoding of images, with limits on what a file may make us allocate.

use super::image::{Encoded, ResizeProfile};

#[cfg(not(feature = "images"))]
pub(super) fn to_png(_bytes: &[u8]) -> Option<Vec<u8>> {
    None
}

/// Without decoders an image is passed on if it is small enough.
#[cfg(not(feature = "images"))]
pub(super) fn fit(bytes: &[u8], _mime: &str, profile: &ResizeProfile) -> Option<Option<Encoded>> {
    (super::image::base64_size(bytes.len()) < profile.max_bytes).then_some(None)
}

#[cfg(feature = "images")]
pub(super) use with_decoders::{fit, to_png};

#[cfg(feature = "images")]
mod with_decoders {
    use std::io::Cursor;

    use image::codecs::jpeg::JpegEncoder;
    use image::imageops::FilterType;
    use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

    use super::{Encoded, ResizeProfile};
    use crate::tools::image::base64_size;

    /// Most memory for the pixels of one image.
    const MOST_MEMORY: u64 = 512 << 20;
    /// Most pixels across or down.
    const MOST_PIXELS: u32 = 32_768;
    /// Qualities that are tried when the profile's is not enough.
    const QUALITIES: [u8; 4] = [85, 70, 55, 40];

    /// The picture, turned as it says it should be.
    fn decode(bytes: &[u8]) -> Option<DynamicImage> {
        let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MOST_MEMORY);
        limits.max_image_width = Some(MOST_PIXELS);
        limits.max_image_height = Some(MOST_PIXELS);
        reader.limits(limits);
        let mut decoder = reader.into_decoder().ok()?;
        let orientation = decoder.orientation().ok();
        let mut picture = DynamicImage::from_decoder(decoder).ok()?;
        if let Some(orientation) = orientation {
            picture.apply_orientation(orientation);
        }
        Some(picture)
    }

    pub(in crate::tools) fn to_png(bytes: &[u8]) -> Option<Vec<u8>> {
        png(&decode(bytes)?)
    }

    /// `Some(None)` when the image may stay as it is, `None` when it cannot be decoded or made to fit.
    pub(in crate::tools) fn fit(bytes: &[u8], _mime: &str, profile: &ResizeProfile) -> Option<Option<Encoded>> {
        let picture = decode(bytes)?;
        let (width, height) = (picture.width(), picture.height());
        let small = width <= profile.max_width && height <= profile.max_height;
        if small && base64_size(bytes.len()) < profile.max_bytes {
            return Some(None);
        }
        let (mut to_width, mut to_height) = scaled(width, height, profile);
        loop {
            let scaled = picture.resize_exact(to_width, to_height, FilterType::Lanczos3);
            if let Some((bytes, mime)) = encode(&scaled, profile) {
                let factor = f64::from(width) / f64::from(to_width);
                let hint = format!(
                    "[Image: original {width}x{height}, displayed at {to_width}x{to_height}. Multiply coordinates by \
                     {factor:.2} to map to original image.]"
                );
                return Some(Some(Encoded { bytes, mime, hint: Some(hint) }));
            }
            if (to_width, to_height) == (1, 1) {
                return None;
            }
            to_width = (to_width * 3 / 4).max(1);
            to_height = (to_height * 3 / 4).max(1);
        }
    }

    /// Fits the width first, then the height.
    fn scaled(width: u32, height: u32, profile: &ResizeProfile) -> (u32, u32) {
        let ratio =
            |side: u32, to: u32, from: u32| ((f64::from(side) * f64::from(to) / f64::from(from)).round() as u32).max(1);
        let (mut to_width, mut to_height) = (width, height);
        if to_width > profile.max_width {
            to_height = ratio(to_height, profile.max_width, to_width);
            to_width = profile.max_width;
        }
        if to_height > profile.max_height {
            to_width = ratio(to_width, profile.max_height, to_height);
            to_height = profile.max_height;
        }
        (to_width.max(1), to_height.max(1))
    }

    /// The smaller of PNG and JPEG if it fits, else the best JPEG that does.
    fn encode(picture: &DynamicImage, profile: &ResizeProfile) -> Option<(Vec<u8>, &'static str)> {
        let fits = |bytes: &Vec<u8>| base64_size(bytes.len()) < profile.max_bytes;
        let as_png = png(picture).filter(fits).map(|bytes| (bytes, "image/png"));
        let as_jpeg = jpeg(picture, profile.jpeg_quality).filter(fits).map(|bytes| (bytes, "image/jpeg"));
        let smaller = [as_png, as_jpeg].into_iter().flatten().min_by_key(|(bytes, _)| bytes.len());
        smaller.or_else(|| {
            let tries = QUALITIES.iter().filter_map(|quality| jpeg(picture, *quality));
            tries.into_iter().find(fits).map(|bytes| (bytes, "image/jpeg"))
        })
    }

    fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        picture.write_to(&mut Cursor::new(&mut out), ImageFormat::Png).ok()?;
        Some(out)
    }

    fn jpeg(picture: &DynamicImage, quality: u8) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        picture.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut out, quality)).ok()?;
        Some(out)
    }
}
