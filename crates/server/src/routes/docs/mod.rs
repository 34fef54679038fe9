//! `/docs`: Swagger UI for the OpenAPI document. All its files are embedded in the program, and the
//! page can't load resources from other origins.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use axum::response::Response;
use galley_application::Error;

use crate::problem::Problem;
use crate::respond::response::{self, StaticFile};

/// The content security policy: resources of this service only, and images as `data:` URLs in the
/// style sheet.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The style sheet: the colours of all pages and the rules of this page.
const STYLE: &str =
    concat!(include_str!("../../../templates/colors.css"), include_str!("page.css"));

static PAGE: LazyLock<StaticFile> = LazyLock::new(|| {
    StaticFile::new("text/html; charset=utf-8", include_bytes!("index.html").as_slice())
});

macro_rules! files {
    ($($name:literal, $type:literal, $bytes:expr;)*) => {
        BTreeMap::from([$(($name, StaticFile::new($type, &$bytes[..])),)*])
    };
}

/// Includes a file that the build script extracted from Swagger UI's archive.
macro_rules! vendored {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

static FILES: LazyLock<BTreeMap<&str, StaticFile>> = LazyLock::new(|| {
    files! {
        "swagger-ui-bundle.js", "text/javascript; charset=utf-8", vendored!("swagger-ui-bundle.js");
        "swagger-ui.css", "text/css; charset=utf-8", vendored!("swagger-ui.css");
        "favicon-32x32.png", "image/png", vendored!("favicon-32x32.png");
        "LICENSE", "text/plain; charset=utf-8", vendored!("LICENSE");
        "NOTICE", "text/plain; charset=utf-8", vendored!("NOTICE");
        "page.js", "text/javascript; charset=utf-8", include_bytes!("page.js");
        "page.css", "text/css; charset=utf-8", STYLE.as_bytes();
    }
});

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
        (String = "image/png"),
    ))),
)]
pub(crate) async fn asset(name: Result<Path<String>, PathRejection>) -> Result<Response, Problem> {
    let file = name.ok().and_then(|Path(name)| FILES.get(name.as_str()));
    let file = file.ok_or_else(Error::not_found)?;
    let mut response = response::file(file);
    // The files change only with the program's version.
    let cache = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, cache);
    Ok(response)
}
