//! `POST /assets`

use std::pin::pin;

use axum::body::Bytes;
use futures_util::{Stream, StreamExt, stream};
use galley_api_types::asset::AssetBody;
use galley_api_types::problem::{Issue, Step};
use galley_application::operations::asset_files::{Upload, UploadedFile};
use galley_application::operations::assets::{self, NewAsset};
use galley_application::{Caller, Error, Reason, Rejection};
use galley_assets::FileType;
use galley_domain::asset::{Asset, AssetFilename};
use galley_domain::text::ShortText;
use galley_domain::{ContentGroupId, Invalid};
use multer::Multipart;
use tokio::task::yield_now;
use utoipa::{IntoParams, ToSchema};

use crate::extract::actor::WriteAssets;
use crate::extract::upload::{FileRequest, UploadRequest};
use crate::resources::overload;
use crate::respond::response::MinimalBody;
use crate::routes::assets::FileBytes;
use crate::routes::prelude::*;

const PATH: &str = "/assets";

/// The query parameters of an upload. A form may have parts of the same names instead.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct UploadParameters {
    /// The name of the file, unless a part of the form or `Content-Disposition` has it.
    #[param(value_type = Option<schemas::Filename>, inline, example = "photo.jpg")]
    filename: Option<String>,
    /// The text in place of an image.
    #[param(example = "A harbour at night", max_length = 1024)]
    alt: Option<String>,
    /// The group to which the asset belongs. A token that is limited to groups must name one.
    content_group_id: Option<String>,
}

/// The parts of a form.
#[derive(ToSchema)]
#[schema(as = UploadForm)]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct UploadForm {
    /// The file.
    #[schema(value_type = String, format = Binary)]
    file: FileBytes,
    /// The name of the file, in place of that of the part `file`.
    #[schema(value_type = Option<schemas::Filename>, inline)]
    filename: Option<String>,
    /// The text in place of an image.
    #[schema(max_length = 1024)]
    alt: Option<String>,
    /// The group to which the asset belongs.
    #[schema(rename = "contentGroupId")]
    content_group_id: Option<String>,
}

/// Upload an asset
///
/// The body is the file itself, with any `Content-Type`, or a form (`multipart/form-data`) with the
/// file in the part `file`. The type is detected from the bytes. An image that browsers don't show,
/// such as HEIC, is stored with a `warning`. `Content-Digest` or `Repr-Digest`
/// with `sha-256` (RFC 9530) is compared with a file that is sent by itself.
#[utoipa::path(
    post, path = "/assets", operation_id = "uploadAsset",
    params(
        UploadParameters,
        ("Content-Digest" = Option<String>, Header,
            description = "The SHA-256 of the body (RFC 9530).",
            example = "sha-256=:d435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=:"),
        ("Repr-Digest" = Option<String>, Header,
            description = "The SHA-256 of the file (RFC 9530).",
            example = "sha-256=:d435Qo+nKZ+gLcUHn7GQtQ72hiBVAgqoLsZnZPiTGPk=:"),
    ),
    request_body(content(
        (FileBytes = "application/octet-stream"),
        (UploadForm = "multipart/form-data"),
    ), description = "The file, or a form with it."),
    responses(
        (status = 201, body = AssetBody<'_>),
        (status = 400, description = "digest_mismatch, malformed_body, unknown_reference"),
        (status = 408, description = "request_timeout"),
        (status = 413, description = "payload_too_large, asset_storage_exceeded"),
        (status = 415, description = "unsupported_media_type"),
        (status = 503, description = "asset_store_unavailable"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteAssets>,
    mut query: Query,
    request: UploadRequest,
) -> Result<Response, Problem> {
    let given = TextParts::of_query(&mut query);
    query.finish()?;
    let (prefer, key) = (request.prefer, request.key.clone());
    let received = Box::pin(receive(actor.caller(), given, request.file));
    let (new, file) = overload::uncounted(received).await?;
    // The digest of the file stands for its bytes.
    let identity = format!("{:?} {:?}", file.sha256(), new);
    let base_url = app.asset_base_url().to_owned();
    let respond = Respond::new(move |asset: &Asset| {
        let warning = warning(asset);
        let warning = warning.as_deref();
        let body = AssetBody::new(asset, &base_url).with_warning(warning);
        let created = MinimalBody { id: asset.id.to_string(), warning, token: None };
        created::created_with_body(prefer, &created, asset.version, &body)
            .with_location(PATH, asset.id)
    });
    let request = key.for_body(&Bytes::from(identity));
    let created = assets::create(actor.caller(), new, file, request, respond).await?;
    Ok(created::respond(created))
}

/// Returns the warning about an image that browsers don't show.
fn warning(asset: &Asset) -> Option<String> {
    let media_type = &asset.file.media_type;
    (media_type.starts_with("image/") && !FileType::is_image_of_browsers(media_type)).then(|| {
        format!("browsers don't show {media_type}, and it has no renditions: upload a JPEG instead")
    })
}

/// The texts of an upload: those of the query, replaced by parts of the form.
#[derive(Debug, Default)]
pub(super) struct TextParts {
    pub(super) filename: Option<String>,
    alt: Option<String>,
    content_group_id: Option<String>,
}

impl TextParts {
    fn of_query(query: &mut Query) -> Self {
        Self {
            filename: query.text("filename"),
            alt: query.text("alt"),
            content_group_id: query.text("contentGroupId"),
        }
    }

    /// Returns the part of this name.
    pub(super) fn part(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "filename" => Some(&mut self.filename),
            "alt" => Some(&mut self.alt),
            "contentGroupId" => Some(&mut self.content_group_id),
            _ => None,
        }
    }

    /// Parses the texts.
    pub(super) fn parse(self) -> Result<NewAsset, Error> {
        let mut issues = Vec::new();
        let mut reject = |name: &str, invalid: &Invalid| {
            issues.push(Issue::new(vec![Step::Field(name.to_owned())], invalid));
        };
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let filename = match given(self.filename) {
            Some(name) => AssetFilename::parse(name),
            None => Err(Invalid::new("required", "is required")),
        };
        let alt = given(self.alt).map(ShortText::parse).transpose();
        // A malformed identifier is unknown.
        let group = given(self.content_group_id).map(|text| text.parse::<ContentGroupId>());
        if let Err(invalid) = &filename {
            reject("filename", invalid);
        }
        if let Err(invalid) = &alt {
            reject("alt", invalid);
        }
        if matches!(group, Some(Err(_))) {
            let path = vec![Step::Field("contentGroupId".to_owned())];
            issues.push(Issue::unknown_reference(path, "content group"));
        }
        match (filename, alt, group.transpose()) {
            (Ok(filename), Ok(alt), Ok(content_group_id)) => {
                Ok(NewAsset { filename, alt, content_group_id })
            }
            _ => Err(Rejection::of_issues(issues).into()),
        }
    }
}

/// Receives the file and its texts.
async fn receive(
    caller: &Caller,
    mut given: TextParts,
    request: FileRequest,
) -> Result<(NewAsset, UploadedFile), Problem> {
    if let Some(boundary) = request.boundary() {
        return receive_form(caller, given, boundary?, request).await;
    }
    given.filename = given.filename.or_else(|| request.filename());
    // Wrong texts are rejected before the file arrives.
    let new = given.parse()?;
    let digest = request.digest()?;
    let upload = Upload::begin(caller, request.stated_size()).await?;
    let file = receive_file(caller, upload, pin!(request.into_stream())).await?;
    if digest.is_some_and(|digest| digest != *file.sha256()) {
        file.discard(caller).await;
        let detail = "the SHA-256 of the received file differs from that of the header";
        return Err(Problem::new(Reason::DigestMismatch, detail));
    }
    Ok((new, file))
}

/// Writes the file while it arrives. After an error, nothing is left of it.
async fn receive_file<E: Into<Problem>>(
    caller: &Caller,
    mut upload: Upload,
    mut bytes: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Result<UploadedFile, Problem> {
    while let Some(chunk) = bytes.next().await {
        let written = match chunk {
            Ok(chunk) => upload.write(chunk).await.map_err(Problem::from),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            upload.abort(caller).await;
            return Err(error);
        }
    }
    Ok(upload.finish(caller).await?)
}

/// The limit on bytes of a text in a form.
const TEXT_LIMIT: u64 = 16 * 1024;

/// Receives a form: texts before and after the part with the file.
async fn receive_form(
    caller: &Caller,
    mut given: TextParts,
    boundary: String,
    request: FileRequest,
) -> Result<(NewAsset, UploadedFile), Problem> {
    let stated_size = request.stated_size();
    let mut form = form(request.into_stream(), boundary);
    let mut file = None;
    let received = loop {
        let field = match form.next_field().await {
            Ok(Some(field)) => field,
            Ok(None) => break Ok(()),
            Err(error) => break Err(of_form(error)),
        };
        let name = field.name().unwrap_or_default().to_owned();
        if let Some(part) = given.part(&name) {
            match field.text().await {
                Ok(text) => *part = Some(text),
                Err(error) => break Err(of_form(error)),
            }
        } else if name != "file" {
            // As an unknown field of JSON, it is ignored.
            if let Err(error) = field.bytes().await {
                break Err(of_form(error));
            }
        } else if file.is_some() {
            let invalid = Invalid::new("repeated", "must be given only once");
            break Err(Rejection::of_field("file", &invalid).into());
        } else {
            if let Some(name) = field.file_name().filter(|_| given.filename.is_none()) {
                given.filename = Some(name.to_owned());
            }
            let upload = match Upload::begin(caller, stated_size).await {
                Ok(upload) => upload,
                Err(error) => break Err(error.into()),
            };
            let bytes = field.map(|chunk| chunk.map_err(of_form));
            match receive_file(caller, upload, pin!(bytes)).await {
                Ok(received) => file = Some(received),
                Err(error) => break Err(error),
            }
        }
    };
    let missing = || Rejection::of_field("file", &Invalid::new("required", "is required"));
    let new = received.and_then(|()| Ok(given.parse()?));
    match (new, file) {
        (Ok(new), Some(file)) => Ok((new, file)),
        (Ok(_), None) => Err(missing().into()),
        (Err(error), None) => Err(error),
        (Err(error), Some(file)) => {
            file.discard(caller).await;
            Err(error)
        }
    }
}

/// Creates the parser of a form.
fn form(
    bytes: impl Stream<Item = Result<Bytes, Problem>> + Send + 'static,
    boundary: String,
) -> Multipart<'static> {
    // The file has a limit of its own.
    let limits = multer::SizeLimit::new().per_field(TEXT_LIMIT).for_field("file", u64::MAX);
    let allowed = multer::Constraints::new().size_limit(limits);
    // The end arrives a poll after the last bytes: multer 3.1 rejects a form of which the start and
    // the end arrive between two of its polls (https://github.com/rwf2/multer/pull/70).
    let late_end = stream::once(yield_now()).filter_map(async |()| None);
    let stream = bytes.map(|chunk| chunk.map_err(FormError)).chain(late_end);
    Multipart::with_constraints(Box::pin(stream), boundary, allowed)
}

/// The error of a body within a form.
#[derive(Debug)]
struct FormError(Problem);

impl std::fmt::Display for FormError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the body could not be received")
    }
}

impl std::error::Error for FormError {}

/// Returns the rejection of a form.
fn of_form(error: multer::Error) -> Problem {
    match error {
        multer::Error::StreamReadFailed(inner) => match inner.downcast::<FormError>() {
            Ok(received) => received.0,
            Err(other) => Problem::new(Reason::MalformedBody, other.to_string()),
        },
        multer::Error::FieldSizeExceeded { limit, field_name } => {
            let name = field_name.unwrap_or_default();
            let message = format!("must have at most {limit} bytes");
            Rejection::of_field(&name, &Invalid::new("too_long", message)).into()
        }
        other => {
            let detail = format!("the form can't be parsed: {other}");
            Problem::new(Reason::MalformedBody, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_form_that_arrives_between_two_polls_is_parsed() {
        let text = "--x\r\nContent-Disposition: form-data; name=\"alt\"\r\n\r\nA\r\n--x--\r\n";
        let (mut polls, mut bytes) = (0, Some(Bytes::from(text)));
        let stream = stream::poll_fn(move |context| {
            polls += 1;
            if polls == 1 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(bytes.take().map(Ok))
        });
        let mut form = form(stream, "x".to_owned());
        let field = form.next_field().await.unwrap().unwrap();
        assert_eq!(field.text().await.unwrap(), "A");
        assert!(form.next_field().await.unwrap().is_none());
    }
}
