//! `/docs`: Scalar's API reference for the OpenAPI document. All its files are embedded in the
//! program, and the page can't load resources from other origins.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use galley_application::Error;

use crate::problem::Problem;
use crate::respond::compressed_file::CompressedFile;
use crate::respond::response::{self, StaticFile};

/// The content security policy: scripts and data of this service only. Scalar's editor inserts
/// styles that depend on its content, so inline styles are allowed. They can't load anything
/// either.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The name of Scalar's script.
const SCRIPT: &str = "scalar.js";

/// Scalar's script, compressed by the build script.
const COMPRESSED_SCRIPT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scalar.js.gz"));

/// The style sheet: the colours of all pages and the rules of this page.
const STYLE: &str =
    concat!(include_str!("../../../templates/colors.css"), include_str!("page.css"));

static PAGE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::new("text/html; charset=utf-8", include_bytes!("index.html").as_slice())
});

static FILES: LazyLock<BTreeMap<&str, StaticFile>> = LazyLock::new(|| {
    let files: [(&str, &str, &[u8]); 4] = [
        ("page.js", JAVASCRIPT, include_bytes!("page.js")),
        ("page.css", "text/css; charset=utf-8", STYLE.as_bytes()),
        ("icon.svg", "image/svg+xml", include_bytes!("icon.svg")),
        ("LICENSE", "text/plain; charset=utf-8", include_bytes!("LICENSE")),
    ];
    BTreeMap::from(files.map(|(name, kind, bytes)| (name, StaticFile::new(kind, bytes))))
});

static SCRIPT_FILE: LazyLock<CompressedFile> =
    LazyLock::new(|| CompressedFile::new(JAVASCRIPT, COMPRESSED_SCRIPT));

/// Get the interactive API reference
#[utoipa::path(
    get,
    path = "/docs",
    operation_id = "getDocs",
    responses((status = 200, body = String, content_type = "text/html")),
)]
pub(crate) async fn page() -> Response {
    let mut response = response::file(&PAGE);
    let policy = HeaderValue::from_static(POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

/// Get a file of the interactive API reference
#[utoipa::path(
    get,
    path = "/docs/{file}",
    operation_id = "getDocsFile",
    params(("file" = String, Path, description = "The file's name", example = "page.css")),
    responses((status = 200, content(
        (String = "text/css"),
        (String = "text/javascript"),
        (String = "text/plain"),
        (String = "image/svg+xml"),
    ))),
)]
pub(crate) async fn asset(
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(name) = name.map_err(|_| Error::not_found())?;
    let mut response = match &*name {
        SCRIPT => SCRIPT_FILE.response(&headers),
        name => response::file(FILES.get(name).ok_or_else(Error::not_found)?),
    };
    // The files change only with the program's version.
    let cache = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    Ok(response)
}
