//! Images: their size, a placeholder, and renditions in other sizes and formats.
//!
//! An image comes from anyone, so all work on it has bounds: [`memory_needed`] reads its header,
//! and rejects one that takes too much memory when decoded. Panics of decoders are errors of the
//! image.

use std::fmt;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fast_image_resize::pixels::{U8x3, U8x4};
use fast_image_resize::{
    FilterType, IntoImageView, IntoImageViewMut, PixelTrait, ResizeAlg, ResizeOptions, Resizer,
};
use galley_domain::asset::RenditionFormat;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::metadata::Orientation;
use image::{
    ColorType, DynamicImage, GenericImageView, ImageDecoder, ImageReader, Limits, Rgb, RgbImage,
};
use moxcms::{ColorProfile, DataColorSpace, Layout, TransformOptions};

use crate::file_type::ImageFormat;

/// The limit on bytes of a decoded image: 55 million pixels without transparency, 41 million with
/// it or of grey, 28 million of grey with transparency.
pub const DECODED_SIZE_LIMIT: u64 = 160 * 1024 * 1024;

/// The limit on bytes of a file that is decoded.
pub const ENCODED_SIZE_LIMIT: u64 = 64 * 1024 * 1024;

/// The limit on the width and the height of an image.
const SIDE_LIMIT: u32 = 65_535;

/// The quality of renditions, from 0 to 100. The difference is hard to see, at half the size of 90.
const WEBP_QUALITY: f32 = 80.0;
const JPEG_QUALITY: u8 = 82;

/// The longer side of the image that a placeholder is made of, as ThumbHash limits it.
const PLACEHOLDER_SIDE: u32 = 100;

/// The error of an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The image has more pixels than the limits allow.
    #[error("the image has too many pixels")]
    TooLarge,
    /// The image is damaged, or uses a part of its format that is not supported.
    #[error("the image can't be read: {0}")]
    Unreadable(String),
}

impl From<image::ImageError> for ImageError {
    fn from(error: image::ImageError) -> Self {
        match error {
            image::ImageError::Limits(_) => Self::TooLarge,
            other => Self::Unreadable(other.to_string()),
        }
    }
}

/// The width and height of an image, as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

impl From<ImageFormat> for image::ImageFormat {
    fn from(format: ImageFormat) -> Self {
        match format {
            ImageFormat::Jpeg => Self::Jpeg,
            ImageFormat::Png => Self::Png,
            ImageFormat::Gif => Self::Gif,
            ImageFormat::WebP => Self::WebP,
        }
    }
}

/// Returns the size of an image of any format by its header, before its orientation is applied.
pub fn stored_dimensions(head: &[u8]) -> Option<Dimensions> {
    let found = imagesize::blob_size(head).ok()?;
    let side = |side: usize| u32::try_from(side).ok();
    Some(Dimensions { width: side(found.width)?, height: side(found.height)? })
}

/// Returns the memory in bytes that the image takes when it is decoded. Rejects one over the limit.
pub fn memory_needed(bytes: &[u8], format: ImageFormat) -> Result<u64, ImageError> {
    without_panic(|| {
        let header = decoder(bytes, format)?;
        let ((width, height), color) = (header.dimensions(), header.color_type());
        let decoded = header.total_bytes();
        let pixels = u64::from(width) * u64::from(height);
        let is_progressive = format == ImageFormat::Jpeg && is_progressive_jpeg(bytes);
        // A progressive one has all coefficients in memory, of two bytes each.
        let needed = if is_progressive { decoded.saturating_mul(3) } else { decoded };
        // Before it is resized, an image of another type is converted.
        let needed = match color {
            ColorType::Rgb8 | ColorType::Rgba8 => needed,
            color => needed.max(decoded + if color.has_alpha() { 4 } else { 3 } * pixels),
        };
        if needed > DECODED_SIZE_LIMIT { Err(ImageError::TooLarge) } else { Ok(needed) }
    })
}

/// Returns the size of the image, and its placeholder as a ThumbHash.
pub fn inspect(bytes: &[u8], format: ImageFormat) -> Result<(Dimensions, Vec<u8>), ImageError> {
    without_panic(|| {
        let decoded = Decoded::read(bytes, format)?;
        let dimensions = decoded.dimensions();
        let Dimensions { width, height } = dimensions;
        let longer = width.max(height).max(PLACEHOLDER_SIDE);
        let side = |side| scaled(side, PLACEHOLDER_SIDE, longer);
        let small = Dimensions { width: side(width), height: side(height) };
        let small = decoded.rendered(small)?.into_rgba8();
        let (width, height) = (small.width() as usize, small.height() as usize);
        Ok((dimensions, thumbhash::rgba_to_thumb_hash(width, height, small.as_raw())))
    })
}

/// Returns the image in another format, at most so wide. A smaller one keeps its size. Metadata are
/// left out, and colours are those of sRGB.
pub fn render(
    bytes: &[u8],
    format: ImageFormat,
    width: Option<u32>,
    rendition: RenditionFormat,
) -> Result<Vec<u8>, ImageError> {
    without_panic(|| {
        let decoded = Decoded::read(bytes, format)?;
        let shown = decoded.dimensions();
        let width = width.unwrap_or(SIDE_LIMIT).min(shown.width);
        let height = scaled(shown.height, width, shown.width);
        encode(&decoded.rendered(Dimensions { width, height })?, rendition)
    })
}

/// Runs a decoder. A panic is an error of the image, which is damaged in a way that the decoder
/// does not expect.
fn without_panic<T>(work: impl FnOnce() -> Result<T, ImageError>) -> Result<T, ImageError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ImageError::Unreadable("its decoder has failed".to_owned())))
}

fn decoder(bytes: &[u8], format: ImageFormat) -> Result<impl ImageDecoder, ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format.into());
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_LIMIT);
    limits.max_image_height = Some(SIDE_LIMIT);
    limits.max_alloc = Some(DECODED_SIZE_LIMIT);
    reader.limits(limits);
    Ok(reader.into_decoder()?)
}

/// The first byte of a marker in a JPEG file.
const MARKER: u8 = 0xff;

/// Returns true if the frame of a JPEG file is progressive.
fn is_progressive_jpeg(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [MARKER, kind, after @ ..] = rest {
        match kind {
            // A fill byte.
            &MARKER => rest = &rest[1..],
            0xc2 | 0xc6 | 0xca | 0xce => return true,
            0xc0 | 0xc1 | 0xc3 | 0xc5 | 0xc7 | 0xc9 | 0xcb | 0xcd | 0xcf | 0xda => return false,
            _ => {
                let [high, low, ..] = after else { return false };
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                rest = after.get(length..).unwrap_or_default();
            }
        }
    }
    false
}

/// A decoded image, before its orientation and its colours are applied.
struct Decoded {
    image: DynamicImage,
    orientation: Orientation,
    profile: Option<Vec<u8>>,
}

impl Decoded {
    fn read(bytes: &[u8], format: ImageFormat) -> Result<Self, ImageError> {
        let mut decoder = decoder(bytes, format)?;
        if decoder.total_bytes() > DECODED_SIZE_LIMIT {
            return Err(ImageError::TooLarge);
        }
        // An image with damaged metadata is shown without them.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let profile = decoder.icc_profile().ok().flatten();
        Ok(Self { image: DynamicImage::from_decoder(decoder)?, orientation, profile })
    }

    /// Returns true if the orientation swaps width and height.
    const fn is_turned(&self) -> bool {
        matches!(
            self.orientation,
            Orientation::Rotate90
                | Orientation::Rotate270
                | Orientation::Rotate90FlipH
                | Orientation::Rotate270FlipH
        )
    }

    fn dimensions(&self) -> Dimensions {
        let (width, height) = self.image.dimensions();
        if self.is_turned() {
            return Dimensions { width: height, height: width };
        }
        Dimensions { width, height }
    }

    /// Returns the image in this size, upright, with 8 bits for each colour of sRGB.
    fn rendered(self, size: Dimensions) -> Result<DynamicImage, ImageError> {
        let Dimensions { width, height } = size;
        let size = if self.is_turned() { (height, width) } else { (width, height) };
        let Self { mut image, orientation, profile } = self;
        // The size is changed first, as the rest is quicker on a small image.
        if size != image.dimensions() {
            image = resized(image, size.0, size.1)?;
        }
        image.apply_orientation(orientation);
        let mut image = if image.color().has_alpha() {
            DynamicImage::from(image.into_rgba8())
        } else {
            DynamicImage::from(image.into_rgb8())
        };
        if let Some(converted) = profile.and_then(|profile| to_srgb(&image, &profile)) {
            image = converted;
        }
        Ok(image)
    }
}

/// Returns `side` scaled by `numerator / denominator`, at least 1.
fn scaled(side: u32, numerator: u32, denominator: u32) -> u32 {
    let (side, numerator) = (u64::from(side), u64::from(numerator));
    let denominator = u64::from(denominator).max(1);
    let scaled = (side * numerator + denominator / 2) / denominator;
    u32::try_from(scaled).unwrap_or(SIDE_LIMIT).max(1)
}

/// Returns the image in another size, with 8 bits for each colour.
///
/// The resizer is compiled for each type of pixels that is named here, which takes long and much
/// code. So images of other types are converted before.
fn resized(image: DynamicImage, width: u32, height: u32) -> Result<DynamicImage, ImageError> {
    let has_alpha = image.color().has_alpha();
    let mut smaller = if has_alpha {
        DynamicImage::new_rgba8(width, height)
    } else {
        DynamicImage::new_rgb8(width, height)
    };
    if has_alpha {
        resize::<U8x4>(&image.into_rgba8().into(), &mut smaller)?;
    } else {
        resize::<U8x3>(&image.into_rgb8().into(), &mut smaller)?;
    }
    Ok(smaller)
}

fn resize<P: PixelTrait>(from: &DynamicImage, to: &mut DynamicImage) -> Result<(), ImageError> {
    let unreadable = |message: &dyn fmt::Display| ImageError::Unreadable(message.to_string());
    let (Some(from), Some(mut to)) = (from.image_view::<P>(), to.image_view_mut::<P>()) else {
        return Err(unreadable(&"its pixels have an unknown type"));
    };
    let filter = ResizeAlg::Convolution(FilterType::Lanczos3);
    let options = ResizeOptions::new().resize_alg(filter);
    let resized = Resizer::new().resize_typed(&from, &mut to, &options);
    resized.map_err(|error| unreadable(&error))
}

/// Returns the image with the colours of sRGB, or `None` if the profile does not describe its
/// colours: a CMYK image is RGB after its decoding already.
fn to_srgb(image: &DynamicImage, profile: &[u8]) -> Option<DynamicImage> {
    let profile = ColorProfile::new_from_slice(profile).ok()?;
    if profile.color_space != DataColorSpace::Rgb {
        return None;
    }
    let layout = if image.color().has_alpha() { Layout::Rgba } else { Layout::Rgb };
    let srgb = ColorProfile::new_srgb();
    let transform =
        profile.create_transform_8bit(layout, &srgb, layout, TransformOptions::default()).ok()?;
    let mut converted = image.clone();
    let target = match &mut converted {
        DynamicImage::ImageRgb8(pixels) => &mut **pixels,
        DynamicImage::ImageRgba8(pixels) => &mut **pixels,
        _ => return None,
    };
    transform.transform(image.as_bytes(), target).ok()?;
    Some(converted)
}

fn encode(image: &DynamicImage, format: RenditionFormat) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    match format {
        RenditionFormat::WebP => {
            let (width, height) = image.dimensions();
            let encoder = if image.color().has_alpha() {
                webp::Encoder::from_rgba(image.as_bytes(), width, height)
            } else {
                webp::Encoder::from_rgb(image.as_bytes(), width, height)
            };
            let memory = encoder.encode_simple(false, WEBP_QUALITY);
            let memory =
                memory.map_err(|error| ImageError::Unreadable(format!("WebP: {error:?}")))?;
            bytes.extend_from_slice(&memory);
        }
        RenditionFormat::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
            on_white(image).write_with_encoder(encoder)?;
        }
        RenditionFormat::Png => image.write_with_encoder(PngEncoder::new(&mut bytes))?,
    }
    Ok(bytes)
}

/// Returns the image on a white ground, as JPEG has no transparency.
fn on_white(image: &DynamicImage) -> RgbImage {
    let DynamicImage::ImageRgba8(pixels) = image else { return image.to_rgb8() };
    let mut ground = RgbImage::new(pixels.width(), pixels.height());
    for (under, over) in ground.pixels_mut().zip(pixels.pixels()) {
        let [red, green, blue, alpha] = over.0.map(u16::from);
        let blended = [red, green, blue].map(|colour| (colour * alpha + 255 * (255 - alpha)) / 255);
        *under = Rgb(blended.map(|colour| u8::try_from(colour).unwrap_or(u8::MAX)));
    }
    ground
}
