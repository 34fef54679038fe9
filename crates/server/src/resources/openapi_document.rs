//! The committed OpenAPI document, which the program contains compressed.

use std::sync::LazyLock;

use crate::respond::compressed_file::CompressedFile;

/// The document, compressed by the build script.
const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

pub(crate) static OPENAPI_DOCUMENT: LazyLock<CompressedFile> =
    LazyLock::new(|| CompressedFile::new("application/json", COMPRESSED));

/// Returns the text of the OpenAPI document.
pub fn openapi_text() -> String {
    String::from_utf8(OPENAPI_DOCUMENT.decompress()).expect("the document is UTF-8")
}
