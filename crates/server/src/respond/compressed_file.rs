//! Files that the program contains compressed.

use std::io::Read;
use std::sync::OnceLock;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::read::GzDecoder;

use crate::respond::response::{self, StaticFile};

/// A file that is compressed by gzip.
pub(crate) struct CompressedFile {
    content_type: &'static str,
    gzip: &'static [u8],
    compressed: StaticFile,
    /// The file for clients that don't accept gzip. It is decompressed once, so that parallel
    /// requests share its memory.
    decompressed: OnceLock<StaticFile>,
}

impl CompressedFile {
    /// Creates a file from its compressed content, which the build made.
    pub(crate) fn new(content_type: &'static str, gzip: &'static [u8]) -> Self {
        let compressed = StaticFile::new(content_type, gzip);
        Self { content_type, gzip, compressed, decompressed: OnceLock::new() }
    }

    /// Returns the content without compression.
    pub(crate) fn decompress(&self) -> Vec<u8> {
        let mut content = Vec::new();
        GzDecoder::new(self.gzip).read_to_end(&mut content).expect("the build compressed it");
        content
    }

    /// Returns the file without compression.
    pub(crate) fn decompressed(&self) -> &StaticFile {
        self.decompressed.get_or_init(|| StaticFile::new(self.content_type, self.decompress()))
    }

    /// Returns 200 with the file, compressed if the client accepts that.
    pub(crate) fn response(&self, headers: &HeaderMap) -> Response {
        if !accepts_gzip(headers) {
            return response::file(self.decompressed());
        }
        let mut response = response::file(&self.compressed);
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    }
}

/// Returns true if `Accept-Encoding` allows `gzip` (RFC 9110, section 12.5.3): by its name, else by
/// `*`.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING);
    let weight_of = |wanted: &str| {
        let lines = lines.iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).find_map(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
            let weight = weight.split_once('=').and_then(|(_, weight)| weight.trim().parse().ok());
            name.trim().eq_ignore_ascii_case(wanted).then_some(weight.unwrap_or(1.0))
        })
    };
    weight_of("gzip").or_else(|| weight_of("*")).is_some_and(|weight: f32| weight > 0.0)
}
