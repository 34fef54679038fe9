//! `GET /a/{key}/{filename}`: the public address of an asset.

use std::ops::Range;

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_RANGE, RANGE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use galley_application::operations::asset_serving::{self, ServedBytes};
use galley_application::{Error, Reason, ServedAsset};
use galley_assets::FileType;
use galley_domain::AssetKey;
use galley_domain::asset::{RENDITION_WIDTHS, Rendition, RenditionFormat, RenditionWidth};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::respond::response::HasReservation;
use crate::routes::assets::FileBytes;
use crate::routes::prelude::*;

/// The number of headers of a file.
const HEADERS: usize = 16;

/// The route, as metrics name it.
pub(crate) const ROUTE: &str = "/a/{key}/{filename}";

/// Nothing in a file runs: not as a page, and not in one.
const POLICY: &str = "sandbox; default-src 'none'";

/// A file of an address never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// The query parameters of a rendition.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only its description is used")]
struct RenditionParameters {
    /// The width of a rendition in pixels. A smaller image keeps its size.
    #[param(inline, example = "640")]
    w: Option<WidthSchema>,
    /// The format of a rendition: webp by default.
    #[param(inline, example = "webp")]
    f: Option<RenditionFormatSchema>,
}

/// A width of a rendition. It is never constructed.
struct WidthSchema;

impl PartialSchema for WidthSchema {
    fn schema() -> RefOr<Schema> {
        let widths = RENDITION_WIDTHS.map(|width| width.to_string());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(widths)).into()
    }
}

impl ToSchema for WidthSchema {}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its description is used")]
enum RenditionFormatSchema {
    WebP,
    Jpeg,
    Png,
}

/// Get the file of an asset
///
/// The address is public and needs no token: anyone with it can read the file. The file never
/// changes, so caches keep it for a year. Images, audio and video are shown by browsers, all other
/// files are downloaded. Ranges and conditional requests work.
///
/// With `w`, `f` or both, the response is a rendition of a JPEG, PNG, GIF or WebP image: upright,
/// in sRGB, without metadata, and of an animation the first frame. The file itself has all its
/// metadata, possibly with a location.
#[utoipa::path(
    get, path = "/a/{key}/{filename}", operation_id = "getAssetFile",
    params(
        ("key" = String, Path, description = "The key of the address.",
            example = "01kah3v9k8d4x7w2m5n6p8q9rs"),
        ("filename" = String, Path, description = "The name of the file, or any other name.",
            example = "photo.jpg"),
        RenditionParameters,
        ("Range" = Option<String>, Header, description = "A single range of bytes (RFC 9110, \
            section 14). It applies to files, not to renditions.", example = "bytes=0-1023"),
        ("If-Range" = Option<String>, Header, description = "The `ETag` of the file to which the \
            range applies. The response to another one is the whole file."),
    ),
    responses(
        (status = 200, body = FileBytes, content_type = "application/octet-stream"),
        (status = 206, description = "The requested range.", body = FileBytes,
            content_type = "application/octet-stream"),
        (status = 416, description = "range_not_satisfiable"),
        (status = 503, description = "asset_store_unavailable"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    path: Result<Path<(String, String)>, PathRejection>,
    mut query: Query,
    headers: HeaderMap,
) -> Response {
    let rendition = rendition_of(&mut query);
    let served = match query.finish() {
        Ok(()) => serve(&app, path, rendition, &headers).await,
        Err(error) => Err(error.into()),
    };
    let mut response = served.unwrap_or_else(Problem::into_response);
    protect(&mut response);
    response
}

/// Adds the headers of all responses.
fn protect(response: &mut Response) {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Pages of other sites show the files, also in workers and canvases.
        (CROSS_ORIGIN_RESOURCE_POLICY, "cross-origin"),
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

/// Returns the key in the path of an address.
pub(crate) fn key_in(path: &str) -> Option<AssetKey> {
    let (key, name) = path.strip_prefix(galley_domain::asset::PATH)?.split_once('/')?;
    key.parse().ok().filter(|_| !name.is_empty() && !name.contains('/'))
}

/// Returns the whole file.
pub(crate) fn whole(served: &ServedAsset, bytes: Bytes) -> Response {
    let file = &served.asset.file;
    let mut response = respond(served, &format!("\"{}\"", file.hash()), file.bytes(), bytes.into());
    protect(&mut response);
    response
}

/// Parses the requested rendition, if there is any.
fn rendition_of(query: &mut Query) -> Option<Rendition> {
    let width = query.parsed::<RenditionWidth>("w");
    let format = query.parsed::<RenditionFormat>("f");
    (width.is_some() || format.is_some())
        .then(|| Rendition { width, format: format.unwrap_or(RenditionFormat::WebP) })
}

async fn serve(
    app: &App,
    path: Result<Path<(String, String)>, PathRejection>,
    rendition: Option<Rendition>,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let key = path.ok().and_then(|Path((key, _))| key.parse::<AssetKey>().ok());
    let service = app.service();
    let served = asset_serving::find_served(service, key.ok_or_else(Error::not_found)?).await?;
    let Some(rendition) = rendition else { return whole_or_part(app, &served, headers).await };
    let bytes = asset_serving::rendition(service, &served, rendition).await?;
    let tag = format!("\"{}-{rendition}\"", served.asset.file.hash());
    let mut response = Response::new(Body::from(bytes));
    add_headers(&mut response, &tag, rendition.format.media_type());
    let name = format!("{}.{}", served.asset.filename.as_str(), rendition.format.as_str());
    response.headers_mut().insert(CONTENT_DISPOSITION, disposition("inline", &name));
    Ok(response)
}

/// Returns the file, or the requested range of it.
async fn whole_or_part(
    app: &App,
    served: &ServedAsset,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let file = &served.asset.file;
    let size = file.bytes();
    let tag = format!("\"{}\"", file.hash());
    let range = match requested_range(headers, &tag, size) {
        RequestedRange::Whole => None,
        RequestedRange::Part(range) => Some(range),
        RequestedRange::Unsatisfiable => {
            let detail = format!("the file has {size} bytes");
            let mut response = Problem::new(Reason::RangeNotSatisfiable, detail).into_response();
            response.headers_mut().insert(CONTENT_RANGE, header(format!("bytes */{size}")));
            return Ok(response);
        }
    };
    let read = range.clone().unwrap_or(0..size);
    let length = read.end - read.start;
    let body = match asset_serving::read(app.service(), served, read.clone()).await? {
        ServedBytes::Whole(bytes) => {
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            Body::from(bytes.slice(place(read.start)..place(read.end)))
        }
        ServedBytes::Part(stream) => Body::from_stream(stream),
    };
    let mut response = respond(served, &tag, length, body);
    if let Some(Range { start, end }) = range {
        let headers = response.headers_mut();
        headers.insert(CONTENT_RANGE, header(format!("bytes {start}-{}/{size}", end - 1)));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

/// Returns the response with the headers of a file.
fn respond(served: &ServedAsset, tag: &str, length: u64, body: Body) -> Response {
    let file = &served.asset.file;
    let mut response = Response::new(body);
    response.headers_mut().reserve(HEADERS);
    add_headers(&mut response, tag, &file.media_type);
    let headers = response.headers_mut();
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    let digest = BASE64_STANDARD.encode(file.sha256);
    headers.insert(REPR_DIGEST, header(format!("sha-256=:{digest}:")));
    let kind = if FileType::is_inline(&file.media_type) { "inline" } else { "attachment" };
    headers.insert(CONTENT_DISPOSITION, disposition(kind, served.asset.filename.as_str()));
    response
}

fn add_headers(response: &mut Response, tag: &str, media_type: &str) {
    let headers = response.headers_mut();
    headers.insert(ETAG, header(tag.to_owned()));
    headers.insert(CONTENT_TYPE, header(media_type.to_owned()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    // The bytes are those of the cache, or arrive one after another.
    response.extensions_mut().insert(HasReservation);
}

fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns a `Content-Disposition` with this filename (RFC 6266).
fn disposition(kind: &str, filename: &str) -> HeaderValue {
    let name = utf8_percent_encode(filename, NON_ALPHANUMERIC);
    header(format!("{kind}; filename*=UTF-8''{name}"))
}

/// The range of a request.
#[derive(Debug, PartialEq, Eq)]
enum RequestedRange {
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

/// Returns the requested range (RFC 9110, section 14). Several ranges, other units and malformed
/// headers are ignored, and so is a range of another representation.
fn requested_range(headers: &HeaderMap, tag: &str, size: u64) -> RequestedRange {
    let Some(range) = headers.get(RANGE).and_then(|range| range.to_str().ok()) else {
        return RequestedRange::Whole;
    };
    if headers.get(IF_RANGE).is_some_and(|own| own.as_bytes() != tag.as_bytes()) {
        return RequestedRange::Whole;
    }
    let Ok(parsed) = http_range_header::parse_range_header(range.trim()) else {
        return RequestedRange::Whole;
    };
    match parsed.validate(size).as_deref() {
        Ok([one]) => RequestedRange::Part(*one.start()..one.end() + 1),
        Ok(_) => RequestedRange::Whole,
        Err(_) if range.contains(',') => RequestedRange::Whole,
        Err(_) => RequestedRange::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_of_the_same_file_is_a_part() {
        use RequestedRange::{Part, Unsatisfiable, Whole};
        for (range, if_range, expected) in [
            ("bytes=0-0", None, Part(0..1)),
            ("bytes=2-", None, Part(2..10)),
            ("bytes=-3", None, Part(7..10)),
            ("bytes=-30", None, Part(0..10)),
            ("bytes=5-99", None, Part(5..10)),
            ("bytes=10-", None, Unsatisfiable),
            ("bytes=-0", None, Unsatisfiable),
            ("bytes=0-1,3-4", None, Whole),
            ("items=0-1", None, Whole),
            ("bytes=a-b", None, Whole),
            ("bytes=3-2", None, Whole),
            ("bytes=0-1", Some("\"tag\""), Part(0..2)),
            ("bytes=0-1", Some("W/\"tag\""), Whole),
            ("bytes=0-1", Some("Sat, 28 Nov 2026 04:00:00 GMT"), Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, range.parse().unwrap());
            headers.extend(if_range.map(|tag| (IF_RANGE, HeaderValue::from_static(tag))));
            assert_eq!(requested_range(&headers, "\"tag\"", 10), expected, "{range} {if_range:?}");
        }
        assert_eq!(requested_range(&HeaderMap::new(), "\"tag\"", 10), Whole);
    }
}
