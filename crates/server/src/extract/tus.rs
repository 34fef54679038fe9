//! The headers of the protocol tus 1.0, for resumable uploads.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_application::{Error, Reason, Rejection};
use galley_domain::Invalid;

use crate::app::App;
use crate::describe::arguments;
use crate::extract::query::whole_number;
use crate::extract::upload::FileRequest;
use crate::problem::Problem;

/// The version of the protocol.
pub(crate) const VERSION: &str = "1.0.0";

/// The extensions of the protocol that the server supports.
pub(crate) const EXTENSIONS: &str = "creation,creation-with-upload,expiration,termination";

pub(crate) const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
pub(crate) const SUPPORTED_VERSIONS: HeaderName = HeaderName::from_static("tus-version");
pub(crate) const SUPPORTED_EXTENSIONS: HeaderName = HeaderName::from_static("tus-extension");
pub(crate) const MAX_SIZE: HeaderName = HeaderName::from_static("tus-max-size");
pub(crate) const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
pub(crate) const LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub(crate) const METADATA: HeaderName = HeaderName::from_static("upload-metadata");
pub(crate) const EXPIRES: HeaderName = HeaderName::from_static("upload-expires");

/// The media type of parts.
const PART_TYPE: &str = "application/offset+octet-stream";

/// The limit on bytes of `Upload-Metadata`.
const METADATA_LIMIT: usize = 8 * 1024;

/// The proof that the client uses the version of the server.
#[derive(Debug)]
pub(crate) struct TusVersion;

arguments! { TusVersion: resumable; }

impl FromRequestParts<App> for TusVersion {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        if parts.headers.get(RESUMABLE).is_some_and(|version| version == VERSION) {
            return Ok(Self);
        }
        let detail = "the header Tus-Resumable must be 1.0.0";
        let supported = HeaderValue::from_static(VERSION);
        let problem = Problem::new(Reason::UnsupportedProtocol, detail);
        Err(problem.with_header(SUPPORTED_VERSIONS, supported))
    }
}

/// Rejects a header by the name that documents use.
fn reject(name: &str, code: &'static str, message: &'static str) -> Error {
    Rejection::of_field(name, &Invalid::new(code, message)).into()
}

/// Returns the `Upload-Length` of a new upload.
pub(crate) fn length(request: &FileRequest) -> Result<u64, Error> {
    const NAME: &str = "Upload-Length";
    if request.header("upload-concat").is_some() {
        let detail = "Upload-Concat is not supported: send the file as one upload";
        return Err(Rejection::new(Reason::Validation, detail).into());
    }
    let text = request.header(LENGTH);
    let text = text.ok_or_else(|| reject(NAME, "required", "is required, as the size in bytes"))?;
    let size = whole_number(text).and_then(|size| u64::try_from(size).ok());
    size.ok_or_else(|| reject(NAME, "invalid_number", "must be the size of the file in bytes"))
}

/// Returns the `Upload-Offset` of a part.
pub(crate) fn offset(request: &FileRequest) -> Result<i64, Error> {
    const NAME: &str = "Upload-Offset";
    let text = request.header(OFFSET);
    let text = text.ok_or_else(|| reject(NAME, "required", "is required"))?;
    whole_number(text).ok_or_else(|| {
        reject(NAME, "invalid_number", "must be the number of bytes before the part")
    })
}

/// Rejects a body with another media type than that of parts.
pub(crate) fn check_part_type(request: &FileRequest) -> Result<(), Problem> {
    if request.header("content-type").is_some_and(|given| given.eq_ignore_ascii_case(PART_TYPE)) {
        return Ok(());
    }
    let detail = format!("send the part with Content-Type: {PART_TYPE}");
    Err(Problem::new(Reason::UnsupportedMediaType, detail))
}

/// Returns the pairs of an `Upload-Metadata`: names and values in Base64.
pub(crate) fn metadata_pairs(metadata: &str) -> Result<Vec<(&str, String)>, Error> {
    const NAME: &str = "Upload-Metadata";
    if metadata.len() > METADATA_LIMIT {
        return Err(reject(NAME, "too_long", "must have at most 8192 bytes"));
    }
    let message = "must have names and values in Base64, such as filename cGhvdG8uanBn";
    if !metadata.is_ascii() {
        return Err(reject(NAME, "invalid_string", message));
    }
    let mut pairs = Vec::new();
    for pair in metadata.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
        let decoded = BASE64_STANDARD.decode(value.trim()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        pairs.push((name, text.ok_or_else(|| reject(NAME, "invalid_string", message))?));
    }
    Ok(pairs)
}
