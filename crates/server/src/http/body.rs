//! Reading a request's body: JSON, of a bounded size, within a bounded time.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::http::app::App;
use crate::http::error::Error;
use crate::http::fields::Fields;
use crate::http::json;
use crate::http::problem::{Problem, Reason};

/// A body that is a JSON object.
#[derive(Debug)]
pub(crate) struct JsonBody {
    /// Its fields.
    pub(crate) fields: Fields,
    /// Its text.
    pub(crate) bytes: Bytes,
}

impl FromRequest<App> for JsonBody {
    type Rejection = Error;

    async fn from_request(request: Request, app: &App) -> Result<Self, Error> {
        check_media_type(request.headers())?;
        let limits = app.limits();
        check_announced_size(request.headers(), limits.body_max)?;
        let body = receive(request.into_body(), limits.body_max);
        let bytes = tokio::time::timeout(limits.receive_time_max, body)
            .await
            .map_err(|_| Problem::new(Reason::RequestTimeout, "the body came too slowly"))??;
        let large = bytes.clone();
        let value = app.process(bytes.len(), move || json::parse(&large)).await;
        match value {
            Ok(Value::Object(object)) => Ok(Self { fields: Fields::new(object), bytes }),
            Ok(_) => Err(malformed("the body must be a JSON object".to_owned())),
            Err(message) => Err(malformed(format!("the body is not JSON as accepted: {message}"))),
        }
    }
}

fn malformed(detail: String) -> Error {
    Problem::new(Reason::MalformedBody, detail).into()
}

async fn receive(body: Body, max: usize) -> Result<Bytes, Error> {
    match Limited::new(body, max).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large(max)),
        Err(_) => Err(malformed("the body ended early".to_owned())),
    }
}

/// Refuses by its own word what would be refused in the end.
fn check_announced_size(headers: &HeaderMap, max: usize) -> Result<(), Error> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match announced.and_then(|text| text.parse::<u64>().ok()) {
        Some(size) if size > max as u64 => Err(too_large(max)),
        _ => Ok(()),
    }
}

fn too_large(max: usize) -> Error {
    Problem::new(Reason::PayloadTooLarge, format!("the body may have at most {max} bytes")).into()
}

/// `application/json` or `…+json`, in UTF-8, not compressed.
fn check_media_type(headers: &HeaderMap) -> Result<(), Error> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(header(CONTENT_ENCODING).trim(), "" | "identity") {
        return Err(unsupported("send the body without Content-Encoding"));
    }
    let content_type = header(CONTENT_TYPE);
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    if essence != "application/json" && !essence.ends_with("+json") {
        return Err(unsupported("send the header Content-Type: application/json"));
    }
    let foreign_charset = parts.any(|parameter| {
        let parameter = parameter.to_ascii_lowercase();
        parameter
            .strip_prefix("charset=")
            .is_some_and(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8"))
    });
    if foreign_charset { Err(unsupported("send the body in UTF-8")) } else { Ok(()) }
}

fn unsupported(detail: &str) -> Error {
    Problem::new(Reason::UnsupportedMediaType, detail).into()
}
