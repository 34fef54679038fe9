//! The type of a file, detected from its first bytes. A client's own statement is not used, as a
//! browser would trust it: an HTML page named `.png` is a page.

use infer::MatcherType;

/// The first bytes of a file that its type is detected from.
pub const HEAD_SIZE: usize = 8 * 1024;

/// The type of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileType {
    /// The media type.
    pub media_type: &'static str,
    /// The format of an image that renditions are made of.
    pub image: Option<ImageFormat>,
}

/// The format of an image that is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// GIF. Renditions show the first frame of an animation.
    Gif,
    /// WebP. Renditions show the first frame of an animation.
    WebP,
}

/// The media types that browsers show without running anything in them.
const INLINE: [&str; 18] = [
    "image/avif",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "audio/aac",
    "audio/m4a",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/opus",
    "audio/x-flac",
    "audio/flac",
    "audio/x-wav",
    "video/mp4",
    "video/ogg",
    "video/quicktime",
    "video/webm",
];

/// The media type of SVG, which browsers show within pages only.
const SVG: &str = "image/svg+xml";

/// The media type of a file without a known signature.
const UNKNOWN: &str = "application/octet-stream";

impl FileType {
    /// Detects the type of a file with these first bytes.
    pub fn detect(head: &[u8]) -> Self {
        let media_type = match infer::get(head) {
            // The signatures of texts are skipped: `text_type` detects SVG.
            // All other texts are plain.
            Some(found) if found.matcher_type() != MatcherType::Text => found.mime_type(),
            _ => text_type(head),
        };
        Self { media_type, image: ImageFormat::of(media_type) }
    }

    /// Returns true if a browser shows the file by itself. Others are downloaded.
    pub fn is_inline(media_type: &str) -> bool {
        INLINE.contains(&media_type)
    }

    /// Returns true if browsers show images of this type within a page.
    pub fn is_image_of_browsers(media_type: &str) -> bool {
        media_type == SVG || media_type.starts_with("image/") && Self::is_inline(media_type)
    }
}

impl ImageFormat {
    /// Returns the format with this media type.
    pub fn of(media_type: &str) -> Option<Self> {
        Some(match media_type {
            "image/jpeg" => Self::Jpeg,
            "image/png" => Self::Png,
            "image/gif" => Self::Gif,
            "image/webp" => Self::WebP,
            _ => return None,
        })
    }
}

/// Returns the media type of a text, or that of unknown files.
fn text_type(head: &[u8]) -> &'static str {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The head may end within a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return UNKNOWN,
    };
    if text.contains(|found: char| found.is_control() && !matches!(found, '\t' | '\n' | '\r')) {
        return UNKNOWN;
    }
    let start = text.trim_start_matches('\u{feff}').trim_start();
    if start.starts_with('<') && text.contains("<svg") {
        return SVG;
    }
    if start.is_empty() { UNKNOWN } else { "text/plain;charset=utf-8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_decide_on_the_type() {
        for (head, media_type) in [
            (&b"\x89PNG\r\n\x1a\n<html>"[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heif"),
            (b"%PDF-1.7", "application/pdf"),
            (b"PK\x03\x04", "application/zip"),
            (b"<!DOCTYPE html><script>alert(1)</script>", "text/plain;charset=utf-8"),
            (b"<?xml version='1.0'?><!-- x --><svg onload='alert(1)'>", "image/svg+xml"),
            (b" \n<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
            (b"#!/bin/sh\nrm", "text/plain;charset=utf-8"),
            ("Stra\u{df}e".as_bytes(), "text/plain;charset=utf-8"),
            (&"a\u{1f600}".as_bytes()[..3], "text/plain;charset=utf-8"),
            (b"", "application/octet-stream"),
            (b"\0\0\0", "application/octet-stream"),
            (b"a\xffb", "application/octet-stream"),
        ] {
            assert_eq!(FileType::detect(head).media_type, media_type, "{head:?}");
        }
    }

    #[test]
    fn markup_and_documents_are_downloaded() {
        for media_type in ["text/html", "text/plain;charset=utf-8", "image/svg+xml"] {
            assert!(!FileType::is_inline(media_type), "{media_type}");
        }
        assert!(!FileType::is_inline("application/pdf") && FileType::is_inline("image/png"));
    }
}
