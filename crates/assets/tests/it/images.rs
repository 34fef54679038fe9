//! Images: sizes, orientation, colours, formats, and damaged files.

use std::io::Cursor;

use galley_assets::ImageFormat;
use galley_assets::image::{
    Dimensions, ImageError, inspect, memory_needed, render, stored_dimensions,
};
use galley_domain::asset::RenditionFormat;
use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, GenericImageView, ImageEncoder, Rgb, RgbImage, Rgba, RgbaImage};
use moxcms::ColorProfile;

const RED: [u8; 3] = [220, 20, 20];
const BLUE: [u8; 3] = [20, 20, 220];

/// Returns an image whose left half is red, and whose right half is blue.
fn halves(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| Rgb(if x < width / 2 { RED } else { BLUE }))
}

fn encoded(image: &DynamicImage, format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Returns a JPEG with an EXIF orientation from 1 to 8.
fn jpeg_with_orientation(image: &RgbImage, orientation: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
    let exif =
        [&b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"[..], &[orientation, 0, 0, 0], &[0; 4]];
    encoder.set_exif_metadata(exif.concat()).unwrap();
    encoder.encode_image(image).unwrap();
    bytes
}

fn decoded(bytes: &[u8], format: RenditionFormat) -> DynamicImage {
    let format = match format {
        RenditionFormat::WebP => image::ImageFormat::WebP,
        RenditionFormat::Jpeg => image::ImageFormat::Jpeg,
        RenditionFormat::Png => image::ImageFormat::Png,
    };
    image::load_from_memory_with_format(bytes, format).unwrap()
}

/// Returns true if a pixel has almost this colour.
fn is_near(image: &DynamicImage, x: u32, y: u32, colour: [u8; 3]) -> bool {
    let Rgba([red, green, blue, _]) = image.get_pixel(x, y);
    [red, green, blue].iter().zip(colour).all(|(one, other)| one.abs_diff(other) < 30)
}

#[test]
fn renditions_of_each_format_have_the_width_and_the_colours() {
    let image = DynamicImage::from(halves(1000, 500));
    for (source, format) in [
        (image::ImageFormat::Jpeg, ImageFormat::Jpeg),
        (image::ImageFormat::Png, ImageFormat::Png),
        (image::ImageFormat::Gif, ImageFormat::Gif),
        (image::ImageFormat::WebP, ImageFormat::WebP),
    ] {
        let bytes = encoded(&image, source);
        let (dimensions, placeholder) = inspect(&bytes, format).unwrap();
        assert_eq!(dimensions, Dimensions { width: 1000, height: 500 });
        assert!((5..=30).contains(&placeholder.len()), "{placeholder:?}");
        assert_eq!(stored_dimensions(&bytes), Some(dimensions));
        for &rendition in RenditionFormat::ALL {
            let small = decoded(&render(&bytes, format, Some(320), rendition).unwrap(), rendition);
            assert_eq!(small.dimensions(), (320, 160), "{format:?} {rendition:?}");
            assert!(is_near(&small, 40, 80, RED) && is_near(&small, 280, 80, BLUE), "{format:?}");
            // A smaller image is not enlarged.
            let same = decoded(&render(&bytes, format, Some(1920), rendition).unwrap(), rendition);
            assert_eq!(same.dimensions(), (1000, 500));
            let same = decoded(&render(&bytes, format, None, rendition).unwrap(), rendition);
            assert_eq!(same.dimensions(), (1000, 500));
        }
    }
}

#[test]
fn images_are_upright() {
    for (orientation, red) in [(1, (10, 50)), (2, (190, 50)), (3, (190, 50)), (4, (10, 50))] {
        let bytes = jpeg_with_orientation(&halves(400, 200), orientation);
        let (dimensions, _) = inspect(&bytes, ImageFormat::Jpeg).unwrap();
        assert_eq!(dimensions, Dimensions { width: 400, height: 200 });
        let png = render(&bytes, ImageFormat::Jpeg, Some(200), RenditionFormat::Png).unwrap();
        let image = decoded(&png, RenditionFormat::Png);
        assert_eq!(image.dimensions(), (200, 100));
        assert!(is_near(&image, red.0, red.1, RED), "{orientation}");
    }
    for (orientation, red) in [(5, (50, 10)), (6, (50, 10)), (7, (50, 390)), (8, (50, 390))] {
        let bytes = jpeg_with_orientation(&halves(800, 400), orientation);
        let (dimensions, _) = inspect(&bytes, ImageFormat::Jpeg).unwrap();
        assert_eq!(dimensions, Dimensions { width: 400, height: 800 });
        let png = render(&bytes, ImageFormat::Jpeg, Some(200), RenditionFormat::Png).unwrap();
        let image = decoded(&png, RenditionFormat::Png);
        assert_eq!(image.dimensions(), (200, 400));
        assert!(is_near(&image, red.0, red.1, RED), "{orientation}");
    }
}

#[test]
fn renditions_have_no_metadata() {
    let bytes = jpeg_with_orientation(&halves(400, 200), 6);
    assert!(bytes.windows(4).any(|part| part == b"Exif"));
    for &rendition in RenditionFormat::ALL {
        let small = render(&bytes, ImageFormat::Jpeg, None, rendition).unwrap();
        for marker in [&b"Exif"[..], b"eXIf", b"EXIF"] {
            assert!(!small.windows(4).any(|part| part == marker), "{rendition:?}");
        }
    }
}

#[test]
fn colours_are_converted_to_srgb() {
    // The green of Display P3 is beyond that of sRGB, and its red differs from that of sRGB.
    let image = RgbImage::from_pixel(64, 64, Rgb([200, 60, 60]));
    let profile = ColorProfile::new_display_p3().encode().unwrap();
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    encoder.set_icc_profile(profile).unwrap();
    encoder.write_image(image.as_raw(), 64, 64, image::ExtendedColorType::Rgb8).unwrap();
    let shown = render(&bytes, ImageFormat::Png, None, RenditionFormat::Png).unwrap();
    let Rgba([red, green, _, _]) = decoded(&shown, RenditionFormat::Png).get_pixel(5, 5);
    assert!(red > 210 && green < 60, "{red} {green}");
    // A profile that can't be read changes nothing.
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    encoder.set_icc_profile(b"no profile".to_vec()).unwrap();
    encoder.write_image(image.as_raw(), 64, 64, image::ExtendedColorType::Rgb8).unwrap();
    let shown = render(&bytes, ImageFormat::Png, None, RenditionFormat::Png).unwrap();
    assert!(is_near(&decoded(&shown, RenditionFormat::Png), 5, 5, [200, 60, 60]));
}

#[test]
fn transparency_is_kept_or_becomes_white() {
    let image =
        RgbaImage::from_fn(100, 100, |x, _| Rgba([200, 0, 0, if x < 50 { 255 } else { 0 }]));
    let bytes = encoded(&image.into(), image::ImageFormat::Png);
    let of =
        |rendition| decoded(&render(&bytes, ImageFormat::Png, None, rendition).unwrap(), rendition);
    for rendition in [RenditionFormat::WebP, RenditionFormat::Png] {
        let shown = of(rendition);
        assert_eq!((shown.get_pixel(10, 50)[3], shown.get_pixel(90, 50)[3]), (255, 0));
    }
    let shown = of(RenditionFormat::Jpeg);
    assert!(is_near(&shown, 10, 50, [200, 0, 0]) && is_near(&shown, 90, 50, [255; 3]));
}

#[test]
fn unusual_sizes_and_depths_are_rendered() {
    let deep =
        image::ImageBuffer::from_fn(900, 3, |x, _| image::Luma([u16::try_from(x * 70).unwrap()]));
    for image in [
        DynamicImage::from(RgbImage::new(1, 1)),
        DynamicImage::from(RgbImage::new(1, 5_000)),
        DynamicImage::from(RgbImage::new(5_000, 1)),
        DynamicImage::ImageLuma16(deep),
        DynamicImage::ImageRgba16(image::ImageBuffer::new(640, 480)),
    ] {
        let bytes = encoded(&image, image::ImageFormat::Png);
        let (found, placeholder) = inspect(&bytes, ImageFormat::Png).unwrap();
        assert_eq!((found.width, found.height), image.dimensions());
        assert!(!placeholder.is_empty(), "{found:?}");
        for &rendition in RenditionFormat::ALL {
            let small = render(&bytes, ImageFormat::Png, Some(320), rendition).unwrap();
            assert_eq!(decoded(&small, rendition).width(), image.width().min(320));
        }
    }
}

/// Returns the head of a PNG that states this size.
fn png_of(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = encoded(&RgbImage::new(1, 1).into(), image::ImageFormat::Png);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc32fast::hash(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn bombs_are_rejected_by_their_header() {
    for (width, height) in [(100_000, 100_000), (60_000, 60_000), (65_535, 900)] {
        let bytes = png_of(width, height);
        let needed = memory_needed(&bytes, ImageFormat::Png);
        assert!(matches!(needed, Err(ImageError::TooLarge)), "{needed:?}");
        let shown = render(&bytes, ImageFormat::Png, Some(320), RenditionFormat::WebP);
        assert!(matches!(shown, Err(ImageError::TooLarge)), "{shown:?}");
    }
    // A size below the limit is decoded, and its pixels are missing.
    let bytes = png_of(5_000, 5_000);
    assert_eq!(memory_needed(&bytes, ImageFormat::Png).unwrap(), 75_000_000);
    let shown = render(&bytes, ImageFormat::Png, Some(320), RenditionFormat::WebP);
    assert!(matches!(shown, Err(ImageError::Unreadable(_))), "{shown:?}");
}

#[test]
fn damaged_images_are_errors() {
    let image = DynamicImage::from(halves(120, 90));
    let sources = [
        (jpeg_with_orientation(&halves(120, 90), 6), ImageFormat::Jpeg),
        (encoded(&image, image::ImageFormat::Png), ImageFormat::Png),
        (encoded(&image, image::ImageFormat::Gif), ImageFormat::Gif),
        (encoded(&image, image::ImageFormat::WebP), ImageFormat::WebP),
    ];
    // Each run has the same files.
    let mut numbers = galley_testing::Numbers(7);
    for (bytes, format) in &sources {
        for round in 0..150 {
            let mut damaged = bytes.clone();
            for _ in 0..=numbers.below(8) {
                let at = numbers.below(damaged.len());
                damaged[at] = u8::try_from(numbers.below(256)).unwrap();
            }
            if round % 3 == 0 {
                damaged.truncate(numbers.below(damaged.len()));
            }
            if memory_needed(&damaged, *format).is_ok() {
                drop(inspect(&damaged, *format));
                drop(render(&damaged, *format, Some(320), RenditionFormat::Png));
            }
        }
        // Another format's bytes.
        for (_, other) in &sources {
            assert_eq!(render(bytes, *other, None, RenditionFormat::Png).is_ok(), other == format);
        }
        assert!(inspect(b"", *format).is_err());
    }
}
