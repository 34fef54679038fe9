//! Requests to upload a file: a raw body, a form (`multipart/form-data`), or a part of a resumable
//! upload. The bytes are passed on as they arrive.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{
    AsHeaderName, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::Stream;
use futures_util::stream::unfold;
use galley_application::{Reason, Rejection};
use galley_domain::Invalid;

use http_body_util::BodyExt;
use percent_encoding::percent_decode_str;

use crate::app::App;
use crate::describe::arguments;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::{Prefer, split_unquoted};
use crate::problem::Problem;

/// An upload whose body has not been read yet.
#[derive(Debug)]
pub(crate) struct UploadRequest {
    pub(crate) prefer: Prefer,
    pub(crate) key: IdempotencyKey,
    pub(crate) file: FileRequest,
}

/// The headers and the bytes of a file.
#[derive(Debug)]
pub(crate) struct FileRequest {
    headers: HeaderMap,
    body: Body,
    timeout: Duration,
}

arguments! { UploadRequest: idempotent, prefer; FileRequest: ; }

impl FromRequest<App> for UploadRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let key = IdempotencyKey::from_request_parts(&mut parts, app).await?;
        let prefer = Prefer::of(&parts.headers);
        let file = FileRequest::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { prefer, key, file })
    }
}

impl FromRequest<App> for FileRequest {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let timeout = app.limits().receive_timeout;
        let headers = parts.headers;
        let encoding = headers.get(CONTENT_ENCODING).map_or("", |value| text_of(value));
        if !matches!(encoding.trim(), "" | "identity") {
            let detail = "send the file without Content-Encoding";
            return Err(Problem::new(Reason::UnsupportedMediaType, detail));
        }
        Ok(Self { headers, body, timeout })
    }
}

fn text_of(value: &axum::http::HeaderValue) -> &str {
    value.to_str().unwrap_or_default()
}

impl FileRequest {
    /// Returns the text of a header. One that is no text is a replacement character.
    pub(crate) fn header(&self, name: impl AsHeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap_or("\u{fffd}"))
    }

    /// Returns true if the request has a body that is not empty.
    pub(crate) fn has_body(&self) -> bool {
        !self.body.is_end_stream()
    }

    /// Returns the size that the client states.
    pub(crate) fn stated_size(&self) -> Option<u64> {
        text_of(self.headers.get(CONTENT_LENGTH)?).parse().ok()
    }

    /// Returns the boundary of a form, or `None` for a raw body.
    pub(crate) fn boundary(&self) -> Option<Result<String, Problem>> {
        let content_type = text_of(self.headers.get(CONTENT_TYPE)?);
        if !content_type.trim_start().to_ascii_lowercase().starts_with("multipart/") {
            return None;
        }
        Some(multer::parse_boundary(content_type).map_err(|_| {
            let detail = "a form needs the header Content-Type: multipart/form-data; boundary=…";
            Problem::new(Reason::UnsupportedMediaType, detail)
        }))
    }

    /// Returns the name of the file in `Content-Disposition`.
    pub(crate) fn filename(&self) -> Option<String> {
        filename_of(text_of(self.headers.get(CONTENT_DISPOSITION)?))
    }

    /// Returns the SHA-256 that the client states for the body (RFC 9530).
    pub(crate) fn digest(&self) -> Result<Option<[u8; 32]>, Problem> {
        for name in ["Content-Digest", "Repr-Digest"] {
            for value in self.headers.get_all(name) {
                if let Some(digest) = sha256_of(name, text_of(value))? {
                    return Ok(Some(digest));
                }
            }
        }
        Ok(None)
    }

    /// Returns the bytes as they arrive. A pause is an error.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Problem>> + Send + 'static {
        let timeout = self.timeout;
        unfold(Some(self.body), move |body| async move {
            let mut body = body?;
            loop {
                let frame = match tokio::time::timeout(timeout, body.frame()).await {
                    Err(_) => {
                        let detail = "the file did not arrive in time";
                        return Some((Err(Problem::new(Reason::RequestTimeout, detail)), None));
                    }
                    Ok(None) => return None,
                    Ok(Some(Err(_))) => {
                        let detail = "the body ended early";
                        return Some((Err(Problem::new(Reason::MalformedBody, detail)), None));
                    }
                    Ok(Some(Ok(frame))) => frame,
                };
                // Trailers have no bytes of the file.
                if let Ok(bytes) = frame.into_data() {
                    return Some((Ok(bytes), Some(body)));
                }
            }
        })
    }
}

/// Returns the filename of a `Content-Disposition` (RFC 6266). The form with a character set has
/// precedence.
fn filename_of(disposition: &str) -> Option<String> {
    let mut plain = None;
    for parameter in split_unquoted(disposition, ';').skip(1) {
        let Some((name, value)) = parameter.split_once('=') else { continue };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "filename*" => {
                let (charset, encoded) = value.split_once('\'')?;
                let (_, encoded) = encoded.split_once('\'')?;
                if charset.eq_ignore_ascii_case("utf-8") {
                    return percent_decode_str(encoded).decode_utf8().ok().map(Into::into);
                }
            }
            "filename" => {
                let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                plain = Some(match quoted {
                    Some(text) => text.replace("\\\"", "\"").replace("\\\\", "\\"),
                    None => value.to_owned(),
                });
            }
            _ => {}
        }
    }
    plain
}

/// Returns the SHA-256 of a dictionary of digests: `sha-256=:…:`. Other algorithms are ignored.
fn sha256_of(header: &str, value: &str) -> Result<Option<[u8; 32]>, Problem> {
    for member in value.split(',') {
        let Some((algorithm, digest)) = member.trim().split_once('=') else { continue };
        if !algorithm.trim().eq_ignore_ascii_case("sha-256") {
            continue;
        }
        let bytes = digest.trim().strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
        let bytes = bytes.and_then(|bytes| BASE64_STANDARD.decode(bytes).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
            let invalid = Invalid::new("invalid_string", "must have the form sha-256=:BASE64:");
            Rejection::of_field(header, &invalid)
        })?;
        return Ok(Some(bytes));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_from_dispositions() {
        for (disposition, name) in [
            ("attachment", None),
            ("attachment; filename=a.png", Some("a.png")),
            ("inline;FileName=\"a; b.png\" ; size=3", Some("a; b.png")),
            (r#"attachment; filename="a\"b\\c.png""#, Some(r#"a"b\c.png"#)),
            ("attachment; filename=a.png; filename*=UTF-8''%e2%82%ac.png", Some("\u{20ac}.png")),
            ("attachment; filename*=utf-8'de'%C3%A4.png; filename=x", Some("\u{e4}.png")),
            ("attachment; filename*=iso-8859-1''%E4.png; filename=x.png", Some("x.png")),
            ("attachment; filename", None),
        ] {
            assert_eq!(filename_of(disposition).as_deref(), name, "{disposition}");
        }
    }

    #[test]
    fn digests_are_read_from_dictionaries() {
        let digest = BASE64_STANDARD.encode([7; 32]);
        let of = |value: &str| sha256_of("content-digest", value).ok();
        assert_eq!(of(&format!("sha-256=:{digest}:")), Some(Some([7; 32])));
        assert_eq!(of(&format!("md5=:AA==:, SHA-256 = :{digest}:")), Some(Some([7; 32])));
        assert_eq!(of("sha-512=:AA==:"), Some(None));
        assert_eq!(of(""), Some(None));
        for bad in ["sha-256=AA==", "sha-256=:AA==:", "sha-256=:?:", "sha-256=1"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
