//! Reading of request bodies, as JSON or a form, with a size limit and a timeout.

use std::collections::HashMap;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use galley_api_types::request::Fields;
use galley_application::{Error, Reason, Rejection};
use galley_domain::Invalid;
use galley_runtime::Overloaded;
use http_body_util::BodyExt;
use percent_encoding::percent_decode;
use serde_json::Value;

use crate::app::App;
use crate::describe::arguments;
use crate::extract::json;
use crate::problem::Problem;
use crate::resources::overload;
use crate::resources::request_memory::RequestReservation;

/// A body with a JSON object.
#[derive(Debug)]
pub(crate) struct JsonBody {
    /// The fields of the object.
    pub(crate) fields: Fields,
    /// The text of the body.
    pub(crate) bytes: Bytes,
}

impl FromRequest<App> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        Self::read(request, app, app.limits().body_size_limit).await
    }
}

impl JsonBody {
    /// Reads a body of at most `max` bytes.
    async fn read(request: Request, app: &App, max: usize) -> Result<Self, Problem> {
        let bytes = receive_in_time(request, app, max, BodyFormat::Json).await?;
        let large = bytes.clone();
        let value = app.run_by_size(bytes.len(), move || json::parse(&large)).await?;
        match value {
            Ok(Value::Object(object)) => Ok(Self { fields: Fields::new(object), bytes }),
            Ok(_) => Err(malformed("the body must be a JSON object".to_owned())),
            Err(message) => Err(malformed(format!("the body can't be parsed as JSON: {message}"))),
        }
    }
}

arguments! { JsonBody: body; }

/// The small JSON body of an unauthenticated client. Parsed JSON takes many times the memory of its
/// text.
#[derive(Debug)]
pub(crate) struct UnauthenticatedBody(pub(crate) JsonBody);

impl FromRequest<App> for UnauthenticatedBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        JsonBody::read(request, app, UNAUTHENTICATED_BODY_LIMIT).await.map(Self)
    }
}

arguments! { UnauthenticatedBody: body; }

/// The fields of a form that a browser submits (`application/x-www-form-urlencoded`), each once.
#[derive(Debug)]
pub(crate) struct FormBody(HashMap<String, String>);

/// The size limit of an unauthenticated client's body, in bytes.
const UNAUTHENTICATED_BODY_LIMIT: usize = 16 * 1024;

impl FormBody {
    /// Returns the value of a field that must be present.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Error> {
        let value = self.0.get(name).map(String::as_str);
        let missing = || Rejection::of_field(name, &Invalid::new("required", "is required")).into();
        value.ok_or_else(missing)
    }

    /// Returns the value of a field, or an empty text if it is absent.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl FromRequest<App> for FormBody {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let bytes =
            receive_in_time(request, app, UNAUTHENTICATED_BODY_LIMIT, BodyFormat::Form).await?;
        let mut fields = HashMap::new();
        // The parser would replace invalid bytes silently.
        if percent_decode(&bytes).decode_utf8().is_err() {
            return Err(malformed("the form is not UTF-8".to_owned()));
        }
        for (name, value) in form_urlencoded::parse(&bytes) {
            let name = name.into_owned();
            if fields.contains_key(&name) {
                return Err(malformed(format!("the form has the field {name:?} twice")));
            }
            fields.insert(name, value.into_owned());
        }
        Ok(Self(fields))
    }
}

arguments! { FormBody: form; }

/// The small body of an unauthenticated client: a JSON object, or a form.
#[derive(Debug)]
pub(crate) enum JsonOrForm {
    Json(JsonBody),
    Form(FormBody),
}

impl FromRequest<App> for JsonOrForm {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        if check_media_type(request.headers(), BodyFormat::Form).is_ok() {
            return FormBody::from_request(request, app).await.map(Self::Form);
        }
        JsonBody::read(request, app, UNAUTHENTICATED_BODY_LIMIT).await.map(Self::Json)
    }
}

arguments! { JsonOrForm: body; }

/// The expected media type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFormat {
    Json,
    Form,
}

async fn receive_in_time(
    request: Request,
    app: &App,
    max: usize,
    kind: BodyFormat,
) -> Result<Bytes, Problem> {
    let (mut head, body) = request.into_parts();
    let reservation = head.extensions.remove::<RequestReservation>();
    let reserve = |bytes| match &reservation {
        Some(reservation) => reservation.resize(app.request_memory(), bytes),
        None => Ok(()),
    };
    let receive = receive(&head.headers, body, max, kind, reserve);
    let received = tokio::time::timeout(app.limits().receive_timeout, receive);
    overload::uncounted(received)
        .await
        .map_err(|_| Problem::new(Reason::RequestTimeout, "the body did not arrive in time"))?
}

fn malformed(detail: String) -> Problem {
    Problem::new(Reason::MalformedBody, detail)
}

/// The limit of bytes that are read and discarded after a rejection. Many clients read the response
/// only after they have sent the whole body.
const DISCARDED_BYTES_LIMIT: usize = 32 * 1024 * 1024;

/// Receives the whole body, if it has the expected media type and size.
async fn receive(
    headers: &HeaderMap,
    mut body: Body,
    max: usize,
    kind: BodyFormat,
    reserve: impl Fn(usize) -> Result<(), Overloaded>,
) -> Result<Bytes, Problem> {
    let mut rejection = check_media_type(headers, kind).err();
    if declared_size(headers).is_some_and(|size| size > max as u64) {
        rejection = rejection.or(Some(too_large(max)));
    }
    // A client with `Expect: 100-continue` receives the rejection before it sends the body.
    if let Some(error) = rejection.take_if(|_| headers.contains_key(EXPECT)) {
        return Err(error);
    }
    let (mut bytes, mut discarded) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| malformed("the body ended early".to_owned()))?;
        let Ok(data) = frame.into_data() else { continue };
        if rejection.is_none() && bytes.len() + data.len() > max {
            rejection = Some(too_large(max));
            bytes = Vec::new();
        }
        if rejection.is_none()
            && let Err(error) = reserve(bytes.len() + data.len())
        {
            rejection = Some(error.into());
            bytes = Vec::new();
        }
        if rejection.is_none() {
            bytes.extend_from_slice(&data);
        } else {
            // The received bytes were dropped.
            reserve(0)?;
            discarded += data.len();
            if discarded > DISCARDED_BYTES_LIMIT {
                break;
            }
        }
    }
    rejection.map_or_else(|| Ok(Bytes::from(bytes)), Err)
}

/// Returns the size that `Content-Length` states.
fn declared_size(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(max: usize) -> Problem {
    Problem::new(Reason::PayloadTooLarge, format!("the body may have at most {max} bytes"))
}

/// Checks that the body is `application/json`, `…+json` or a form, in UTF-8, and not compressed.
fn check_media_type(headers: &HeaderMap, kind: BodyFormat) -> Result<(), Problem> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !matches!(header(CONTENT_ENCODING).trim(), "" | "identity") {
        return Err(unsupported("send the body without Content-Encoding"));
    }
    let content_type = header(CONTENT_TYPE);
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    match kind {
        BodyFormat::Json if essence != "application/json" && !essence.ends_with("+json") => {
            return Err(unsupported("send the header Content-Type: application/json"));
        }
        BodyFormat::Form if essence != "application/x-www-form-urlencoded" => {
            return Err(unsupported(
                "send the header Content-Type: application/x-www-form-urlencoded",
            ));
        }
        _ => {}
    }
    let foreign_charset = parts.any(|parameter| {
        let parameter = parameter.to_ascii_lowercase();
        parameter
            .strip_prefix("charset=")
            .is_some_and(|charset| !matches!(charset.trim_matches('"'), "utf-8" | "utf8"))
    });
    if foreign_charset { Err(unsupported("send the body in UTF-8")) } else { Ok(()) }
}

fn unsupported(detail: &str) -> Problem {
    Problem::new(Reason::UnsupportedMediaType, detail)
}
