//! `/assets/uploads`: resumable uploads by the protocol tus 1.0.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use futures_util::StreamExt;
use galley_api_types::asset::AssetUploadBody;
use galley_api_types::problem::Step;
use galley_application::operations::asset_uploads::{self, Append, Begun, UploadState};
use galley_application::operations::assets::NewAsset;
use galley_application::{Caller, Error};
use galley_domain::AssetId;

use crate::extract::actor::WriteAssets;
use crate::extract::head_request::HeadRequest;
use crate::extract::tus::{self, TusVersion};
use crate::extract::upload::FileRequest;
use crate::resources::overload;
use crate::respond::response::MinimalBody;
use crate::routes::assets::FileBytes;
use crate::routes::assets::create::TextParts;
use crate::routes::prelude::*;

pub(crate) const PATH: &str = "/assets/uploads";

/// Begin a resumable upload
///
/// Follows tus 1.0.0 with the extensions creation, creation-with-upload, expiration and
/// termination. The upload's `id` is that of the asset, which exists once all bytes have arrived.
/// `Upload-Metadata` has `filename`, and optionally `alt` and `contentGroupId`. An upload expires
/// after seven days.
#[utoipa::path(
    post, path = "/assets/uploads", operation_id = "createUpload",
    params(
        ("Upload-Length" = i64, Header, description = "The size of the file in bytes.",
            minimum = 0, example = 1_048_576),
        ("Upload-Metadata" = String, Header,
            description = "Names and values in Base64, separated by commas.",
            example = "filename cGhvdG8uanBn,alt QSBoYXJib3Vy"),
    ),
    request_body(content((FileBytes = "application/offset+octet-stream")),
        description = "The first bytes of the file, if any."),
    responses(
        (status = 201, body = schemas::Created, headers(
            ("Upload-Offset" = i64, description = "The number of bytes that are stored."),
        )),
        (status = 400, description = "validation, unknown_reference, malformed_body"),
        (status = 408, description = "request_timeout"),
        (status = 413, description = "payload_too_large, asset_storage_exceeded"),
        (status = 415, description = "unsupported_media_type"),
        (status = 429, description = "too_many_uploads"),
        (status = 503, description = "asset_store_unavailable"),
    ),
)]
pub(crate) async fn create(
    actor: Actor<WriteAssets>,
    _: TusVersion,
    request: FileRequest,
) -> Result<Response, Problem> {
    let caller = actor.caller();
    let has_part = request.has_body();
    if has_part {
        tus::check_part_type(&request)?;
    }
    let size = tus::length(&request)?;
    let metadata = request.header(tus::METADATA).unwrap_or_default().to_owned();
    let new = new_asset(&metadata)?;
    let part = request.stated_size().unwrap_or_default();
    let created = asset_uploads::create(caller, new, size, part, metadata).await;
    let (id, mut state) = created.map_err(in_metadata)?;
    if has_part {
        state = append_bytes(caller, id, 0, request).await?;
    }
    let body = MinimalBody { id: id.to_string(), warning: None, token: None };
    let body = serde_json::to_vec(&body).expect("texts are JSON");
    let mut response = response::with_json(StatusCode::CREATED, body.into());
    add_state(&mut response, &state);
    insert(&mut response, LOCATION, format!("{PATH}?id={id}"));
    Ok(response)
}

/// Parses the description of the file.
fn new_asset(metadata: &str) -> Result<NewAsset, Error> {
    let mut given = TextParts::default();
    let mut name = None;
    for (key, value) in tus::metadata_pairs(metadata)? {
        if let Some(part) = given.part(key) {
            *part = Some(value);
        } else if key == "name" {
            name = Some(value);
        }
    }
    given.filename = given.filename.or(name);
    given.parse().map_err(in_metadata)
}

/// Names the header in the issues of a description.
fn in_metadata(error: Error) -> Error {
    let Error::Rejected(mut rejection) = error else { return error };
    for issue in &mut rejection.issues {
        issue.path.insert(0, Step::Field("Upload-Metadata".to_owned()));
    }
    Error::Rejected(rejection)
}

/// Get a resumable upload
///
/// `received`, and the header `Upload-Offset`, is the number of bytes that are stored. It equals
/// the size once the asset exists. tus requests it by HEAD, which also ends a request that appends
/// to the upload: a client whose connection was lost continues behind all bytes that have arrived.
#[utoipa::path(
    get, path = "/assets/uploads", operation_id = "getUpload",
    params(
        ("id" = schemas::AssetId, Query),
    ),
    responses(
        (status = 200, body = AssetUploadBody, headers(
            ("Upload-Offset" = i64, description = "The number of bytes that are stored."),
            ("Upload-Length" = i64, description = "The size of the file in bytes."),
        )),
    ),
)]
pub(crate) async fn get(
    actor: Actor<WriteAssets>,
    _: TusVersion,
    IdQuery(id): IdQuery<AssetId>,
    HeadRequest(is_head): HeadRequest,
) -> Result<Response, Problem> {
    if is_head {
        asset_uploads::interrupt(actor.caller(), id).await?;
    }
    let state = asset_uploads::state(actor.caller(), id).await?;
    let body = AssetUploadBody {
        id,
        size: state.size,
        received: state.received,
        expires_at: state.expires_at,
    };
    let mut response = response::ok(&body);
    add_state(&mut response, &state);
    insert(&mut response, tus::LENGTH, state.size.to_string());
    if !state.metadata.is_empty() {
        insert(&mut response, tus::METADATA, state.metadata);
    }
    insert(&mut response, CACHE_CONTROL, "no-store".to_owned());
    Ok(response)
}

/// Continue a resumable upload
///
/// Appends the body at `Upload-Offset`, which is the number of bytes that are stored. The bytes of
/// an interrupted request are kept. With the last bytes, the asset is created.
#[utoipa::path(
    patch, path = "/assets/uploads", operation_id = "appendToUpload",
    params(
        ("id" = schemas::AssetId, Query),
        ("Upload-Offset" = i64, Header, description = "The number of bytes before the part.",
            minimum = 0, example = 0),
    ),
    request_body(content((FileBytes = "application/offset+octet-stream")),
        description = "The next bytes of the file."),
    responses(
        (status = 204, headers(
            ("Upload-Offset" = i64, description = "The number of bytes that are stored."),
        )),
        (status = 400, description = "malformed_body, unknown_reference"),
        (status = 408, description = "request_timeout"),
        (status = 409, description = "upload_offset_mismatch"),
        (status = 413, description = "payload_too_large, asset_storage_exceeded"),
        (status = 415, description = "unsupported_media_type"),
        (status = 503, description = "asset_store_unavailable"),
    ),
)]
pub(crate) async fn append(
    actor: Actor<WriteAssets>,
    _: TusVersion,
    IdQuery(id): IdQuery<AssetId>,
    request: FileRequest,
) -> Result<Response, Problem> {
    tus::check_part_type(&request)?;
    let first_byte = tus::offset(&request)?;
    let state = append_bytes(actor.caller(), id, first_byte, request).await?;
    let mut response = response::no_content();
    add_state(&mut response, &state);
    Ok(response)
}

/// Delete a resumable upload
///
/// Ends an upload that is not complete, and deletes its bytes.
#[utoipa::path(
    delete, path = "/assets/uploads", operation_id = "deleteUpload",
    params(
        ("id" = schemas::AssetId, Query),
    ),
    responses(
        (status = 204),
        (status = 409, description = "upload_offset_mismatch"),
    ),
)]
pub(crate) async fn delete(
    actor: Actor<WriteAssets>,
    _: TusVersion,
    IdQuery(id): IdQuery<AssetId>,
) -> Result<Response, Problem> {
    asset_uploads::delete(actor.caller(), id).await?;
    Ok(response::no_content())
}

/// Get the properties of resumable uploads
///
/// Returns the version and the extensions of tus that the server supports, and the size limit of a
/// file in bytes.
#[utoipa::path(
    options, path = "/assets/uploads", operation_id = "getUploadOptions",
    responses((status = 200, headers(
        ("Tus-Version" = String, description = "The supported version of the protocol."),
        ("Tus-Extension" = String, description = "The supported extensions of the protocol."),
        ("Tus-Max-Size" = i64, description = "The size limit of a file in bytes."),
    ))),
)]
pub(crate) async fn options(State(app): State<App>) -> Response {
    let mut response = StatusCode::OK.into_response();
    let size = app.asset_size_limit().to_string();
    insert(&mut response, tus::SUPPORTED_VERSIONS, tus::VERSION.to_owned());
    insert(&mut response, tus::SUPPORTED_EXTENSIONS, tus::EXTENSIONS.to_owned());
    insert(&mut response, tus::MAX_SIZE, size);
    response
}

/// Appends the bytes of a request. Those of an interrupted one are kept.
async fn append_bytes(
    caller: &Caller,
    id: AssetId,
    first_byte: i64,
    request: FileRequest,
) -> Result<UploadState, Problem> {
    let size = request.stated_size();
    let mut append = match Append::begin(caller, id, first_byte, size).await? {
        Begun::Complete(state) => return Ok(state),
        Begun::Append(append) => append,
    };
    // The bytes of an interrupted request are stored, as those of a complete one.
    let interrupted = append.interrupted();
    let receive = async {
        let mut bytes = pin!(request.into_stream().take_until(interrupted));
        while let Some(chunk) = bytes.next().await {
            append.write(caller, chunk?).await?;
        }
        Ok::<_, Problem>(())
    };
    match overload::uncounted(Box::pin(receive)).await {
        Ok(()) => Ok(append.finish(caller).await.map_err(in_metadata)?),
        Err(error) => {
            append.interrupt(caller).await?;
            Err(error)
        }
    }
}

/// Adds the position of an upload, and the time of its removal.
fn add_state(response: &mut Response, state: &UploadState) {
    insert(response, tus::OFFSET, state.received.to_string());
    if let Some(at) = state.expires_at {
        let since_1970 = Duration::from_millis(u64::try_from(at.ms()).unwrap_or_default());
        let at = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since_1970);
        insert(response, tus::EXPIRES, at);
    }
}

fn insert(response: &mut Response, name: HeaderName, value: String) {
    let value = HeaderValue::try_from(value).ok();
    response.headers_mut().extend(value.map(|value| (name, value)));
}
