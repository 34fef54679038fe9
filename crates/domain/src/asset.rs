//! Assets: files of a workspace with a public address, such as images of pieces.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::id::{AssetFileId, AssetId, AssetKey, ContentGroupId};
use crate::named_enum;
use crate::text::{Invalid, ShortText, check_length, check_no_control_characters, checked_text};
use crate::time::Timestamp;

checked_text! {
    /// The name of a file: 1 to 255 characters without control characters and slashes.
    AssetFilename, |text| {
        check_length(text, 1, 255)?;
        check_no_control_characters(text)?;
        if text.contains(['/', '\\']) || matches!(text, "." | "..") {
            return Err(Invalid::new("invalid_string", "must be the name of a file, not a path"));
        }
        Ok(())
    }
}

/// An asset of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// The identifier.
    pub id: AssetId,
    /// The unguessable part of its address.
    pub key: AssetKey,
    /// The name of the file, for people.
    pub filename: AssetFilename,
    /// The text in place of an image.
    pub alt: Option<ShortText>,
    /// The group to which it belongs; `None` for the whole workspace.
    pub content_group_id: Option<ContentGroupId>,
    /// The version, incremented by every change.
    pub version: i64,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The stored file.
    pub file: AssetFile,
}

/// A stored file. Equal files of one workspace are stored once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetFile {
    /// The identifier, which is its name in the store.
    pub id: AssetFileId,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// The size in bytes.
    pub size: i64,
    /// The media type, detected from its bytes.
    pub media_type: String,
    /// The size of an image in pixels, as people see it.
    pub dimensions: Option<(i64, i64)>,
    /// The ThumbHash of an image.
    pub placeholder: Option<Vec<u8>>,
}

impl AssetFile {
    /// Returns the size in bytes as an unsigned number.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.size).unwrap_or_default()
    }

    /// Returns the SHA-256 in hexadecimal digits.
    pub fn hash(&self) -> String {
        FileHash(self.sha256).to_string()
    }
}

/// A resumable upload that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetUpload {
    /// The identifier of the asset that it creates.
    pub id: AssetId,
    /// The name of the file.
    pub filename: AssetFilename,
    /// The text in place of an image.
    pub alt: Option<ShortText>,
    /// The group of the asset; `None` for the whole workspace.
    pub content_group_id: Option<ContentGroupId>,
    /// The client's description of the file, which it gets back as it is.
    pub metadata: String,
    /// The size of the file in bytes.
    pub size: i64,
    /// The number of bytes that are stored.
    pub received: i64,
    /// The number of parts that are stored.
    pub part_count: i64,
    /// The time of its removal.
    pub expires_at: Timestamp,
}

/// A stored part of a resumable upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadPart {
    /// The name of its file in the store.
    pub file: AssetFileId,
    /// The position of its first byte.
    pub first_byte: i64,
    /// Its size in bytes.
    pub size: i64,
}

/// The SHA-256 of a file, as 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHash(pub [u8; 32]);

impl FromStr for FileHash {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("invalid_string", "must have 64 hexadecimal digits");
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(invalid()),
        };
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let mut hash = [0; 32];
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err(invalid());
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for FileHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = self.0.map(|byte| [byte >> 4, byte & 15]);
        let text: String =
            digits.iter().flatten().map(|&digit| char::from(DIGITS[usize::from(digit)])).collect();
        out.write_str(&text)
    }
}

/// The beginning of the path of all assets.
pub const PATH: &str = "/a/";

/// The characters of a file's name that its address has as they are.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the path of an asset.
pub fn path(key: AssetKey, filename: &AssetFilename) -> String {
    format!("{PATH}{key}/{}", utf8_percent_encode(filename.as_str(), UNESCAPED))
}

/// Returns the keys of the assets whose addresses are in a text, such as the JSON of a content
/// tree. Their host is not compared, so that a service with another address keeps its references.
pub fn referenced_keys(text: &str) -> BTreeSet<AssetKey> {
    let found = memmem::find_iter(text.as_bytes(), PATH).filter_map(|at| {
        let (key, rest) = text.get(at + PATH.len()..)?.split_at_checked(AssetKey::LENGTH)?;
        if rest.starts_with('/') { key.parse().ok() } else { None }
    });
    found.collect()
}

named_enum! {
    /// The format of a rendition.
    pub enum RenditionFormat {
        /// WebP, lossy.
        WebP = "webp",
        /// JPEG. Transparent parts become white.
        Jpeg = "jpeg",
        /// PNG.
        Png = "png",
    }
}

impl RenditionFormat {
    /// Returns the media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::WebP => "image/webp",
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
        }
    }
}

/// The widths of renditions in pixels.
pub const RENDITION_WIDTHS: [u32; 5] = [320, 640, 960, 1280, 1920];

/// A width of [`RENDITION_WIDTHS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RenditionWidth(u32);

impl RenditionWidth {
    /// Returns the width in pixels.
    pub const fn pixels(self) -> u32 {
        self.0
    }
}

impl FromStr for RenditionWidth {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let width = RENDITION_WIDTHS.into_iter().find(|width| width.to_string() == text);
        width.map(Self).ok_or_else(|| {
            let widths = RENDITION_WIDTHS.map(|width| width.to_string()).join(", ");
            Invalid::new("invalid_enum_value", format!("must be one of {widths}"))
        })
    }
}

/// A rendition of an image: another width, another format, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rendition {
    /// The width, which a smaller image does not reach; `None` for that of the image.
    pub width: Option<RenditionWidth>,
    /// The format.
    pub format: RenditionFormat,
}

/// Writes its name in the store, such as `640.webp`.
impl fmt::Display for Rendition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            Some(width) => write!(out, "{}", width.0)?,
            None => out.write_str("full")?,
        }
        write!(out, ".{}", self.format.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_on_any_host_and_in_any_text() {
        let [one, two] = [AssetKey::new(1), AssetKey::new(u128::MAX)];
        let name = AssetFilename::parse("A photo.jpg").unwrap();
        let text = format!(
            r#"{{"src":"https://a.example{}","href":"{}","alt":"/a/{one}"}}/a/{two}x/a/a/a/"#,
            path(one, &name),
            path(two, &name)
        );
        assert_eq!(referenced_keys(&text), BTreeSet::from([one, two]));
        assert!(path(one, &name).ends_with("/A%20photo.jpg"));
        for text in ["", "/a/", "/a/00000000000000000000000001", "/a/zzzzzzzzzzzzzzzzzzzzzzzzzz/"] {
            assert!(referenced_keys(text).is_empty(), "{text}");
        }
        assert!(referenced_keys(&format!("/a/{}\u{e9}/", "0".repeat(25))).is_empty());
    }

    #[test]
    fn names_of_files_are_no_paths() {
        for good in ["a", "photo.jpg", "日本 語.png", "..a", "x".repeat(255).as_str()] {
            assert!(AssetFilename::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "..\\x", "a\nb", "a\0", "x".repeat(256).as_str()] {
            assert!(AssetFilename::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn renditions_have_a_few_widths() {
        let of = |width: &str| width.parse::<RenditionWidth>();
        let (width, format) = (of("640").ok(), RenditionFormat::WebP);
        assert_eq!(Rendition { width, format }.to_string(), "640.webp");
        assert_eq!(Rendition { width: None, format }.to_string(), "full.webp");
        for bad in ["", "0", "641", "0640", "+640", "640.0", "10000"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
