//! `/content-pieces/publish`, `/content-pieces/unpublish` and `/content-pieces/preview`.

use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use galley_api_types::content_group::ContentGroupBody;
use galley_api_types::content_piece::ContentPieceBody;
use galley_api_types::publication::{
    PieceToPreview, PieceToUnpublish, PiecesToPublish, RequestedPiece,
};
use galley_api_types::revision::RequestedRevision;
use galley_application::operations::bulk_publishing::{self, BulkPublication};
use galley_application::operations::content_pieces::{self, PublicationRequest, StoredPiece};
use galley_application::operations::previews::{self, IssuedPreview};
use galley_application::{Error, Rejection};
use galley_domain::{Invalid, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::actor::{ReadContentPieces, WritePublishing};
use crate::extract::body::JsonBody;
use crate::extract::request;
use crate::routes::prelude::*;

/// The published content piece, or the content group whose pieces were published.
#[derive(Serialize, ToSchema)]
#[schema(as = Published)]
#[serde(untagged)]
enum PublishedBody<'a> {
    Piece(Box<ContentPieceBody<'a>>),
    Group(ContentGroupBody<'a>),
}

/// Publish content pieces
///
/// With `id`, publishes a revision of the piece with all of its variants, or schedules that. The
/// piece's version stays the same. With `contentGroupId`, publishes the latest revisions of all
/// pieces of the group, up to 10,000. If the request ends early, it can be sent again. Requires the
/// permission `contentPieces:read` as well.
#[utoipa::path(
    post, path = "/content-pieces/publish", operation_id = "publishContentPieces",
    request_body(
        content = PiecesToPublish,
        examples(
            ("piece" = (value = json!({
                "id": "cp_01kah3v9k8d4x7w2m5n6p8q9rs",
                "revision": "rev_01kah3v9k8d4x7w2m5n6p8q9rs",
                "at": "2027-01-01T09:00:00+01:00",
                "unpublishAt": "2027-02-01T09:00:00+01:00",
            }))),
            ("group" = (value = json!({
                "contentGroupId": "cg_01kah3v9k8d4x7w2m5n6p8q9rs",
                "subtree": true,
            }))),
        ),
    ),
    responses(
        (status = 200, body = PublishedBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 409, description = "slug_taken, too_large"),
    ),
)]
pub(crate) async fn publish(
    actor: Actor<WritePublishing>,
    expected: VersionPrecondition,
    request: ChangeActionRequest<PiecesToPublish>,
) -> Result<Response, Problem> {
    let (prefer, (), body, request) = request.parse(actor.caller()).await?;
    let publication = match requested(&body)? {
        Requested::Piece(publication) => publication,
        Requested::Group(publication) => {
            let group = bulk_publishing::publish_group(actor.caller(), publication).await?;
            let body = PublishedBody::Group(group.body());
            return Ok(response::updated(prefer, group.group.version, &body));
        }
    };
    let respond = Respond::new(move |stored: &StoredPiece| {
        let body = PublishedBody::Piece(Box::new(stored.body()));
        created::changed(prefer, stored.piece.version, &body)
    });
    let published =
        content_pieces::publish(actor.caller(), publication, expected, request, respond).await?;
    Ok(created::respond(published))
}

/// The pieces that a request names.
enum Requested {
    Piece(PublicationRequest),
    Group(BulkPublication),
}

fn requested(body: &PiecesToPublish) -> Result<Requested, Problem> {
    let conflict = |field: &str, message: &str| -> Problem {
        Rejection::of_field(field, &Invalid::new("conflict", message)).into()
    };
    let &PiecesToPublish { id, content_group_id, subtree, revision, at, unpublish_at } = body;
    match (id, content_group_id) {
        (None, None) => {
            let message = "is required, unless contentGroupId is given";
            Err(Rejection::of_field("id", &Invalid::new("required", message)).into())
        }
        (Some(_), Some(_)) => Err(conflict("contentGroupId", "must be absent with id")),
        (Some(_), None) if subtree.is_some() => {
            Err(conflict("subtree", "must be absent without contentGroupId"))
        }
        (Some(RequestedPiece(id)), None) => {
            let id = id.ok_or_else(Error::not_found)?;
            let revision = match revision.flatten() {
                Some(RequestedRevision(revision)) => Some(revision.ok_or_else(Error::not_found)?),
                None => None,
            };
            if let (Some(Some(at)), Some(Some(end))) = (at, unpublish_at)
                && end <= at
            {
                return Err(conflict("unpublishAt", "must be later than at"));
            }
            Ok(Requested::Piece(PublicationRequest { id, revision, at, unpublish_at }))
        }
        (None, Some(group)) => {
            let single = [
                ("revision", revision.is_some()),
                ("at", at.is_some()),
                ("unpublishAt", unpublish_at.is_some()),
            ];
            match single.into_iter().find(|(_, is_given)| *is_given) {
                Some((field, _)) => Err(conflict(field, "must be absent with contentGroupId")),
                None => Ok(Requested::Group(BulkPublication {
                    group,
                    subtree: subtree.unwrap_or(false),
                })),
            }
        }
    }
}

/// Unpublish a content piece
///
/// Removes the piece from the published view, or schedules that. The piece's version stays the
/// same. Requires the permission `contentPieces:read` as well.
#[utoipa::path(
    post, path = "/content-pieces/unpublish", operation_id = "unpublishContentPiece",
    request_body = PieceToUnpublish,
    responses((status = 200, body = ContentPieceBody<'_>)),
)]
pub(crate) async fn unpublish(
    actor: Actor<WritePublishing>,
    expected: VersionPrecondition,
    request: ChangeActionRequest<PieceToUnpublish>,
) -> Result<Response, Problem> {
    let (prefer, id, PieceToUnpublish { at }, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(move |stored: &StoredPiece| {
        created::changed(prefer, stored.piece.version, &stored.body())
    });
    let unpublished =
        content_pieces::unpublish(actor.caller(), id, at, expected, request, respond).await?;
    Ok(created::respond(unpublished))
}

/// A preview token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Preview)]
#[serde(rename_all = "camelCase")]
struct PreviewBody<'a> {
    /// The token, to be sent as an access token.
    #[schema(example = "galley_0000000000000000000000000000000000000000000000000")]
    token: &'a str,
    /// The time at which it expires.
    #[schema(value_type = schemas::Time)]
    expires_at: Timestamp,
    /// The URL that shows the piece: the `previewUrl` of its group, or of the nearest group above.
    /// Null if none has one.
    #[schema(
        example = "https://example.org/preview?id=cp_01kah3v9k8d4x7w2m5n6p8q9rs&token=galley_0"
    )]
    url: Option<&'a str>,
}

/// Create a preview token
///
/// The token gets and lists one content piece with its variants as they are in the current view,
/// and nothing else. It expires after an hour. At each request it has at most the rights of the
/// token that created it, and it ends with that.
#[utoipa::path(
    post, path = "/content-pieces/preview", operation_id = "createPreview",
    request_body = PieceToPreview,
    responses(
        (status = 200, body = PreviewBody<'_>),
        (status = 404, description = "not_found"),
    ),
)]
pub(crate) async fn preview(
    actor: Actor<ReadContentPieces>,
    JsonBody { fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let (id, PieceToPreview {}) = request::parse(actor.caller(), fields).await?;
    let IssuedPreview { token, expires_at, url } = previews::issue(actor.caller(), id).await?;
    let body = PreviewBody { token: token.reveal(), expires_at, url: url.as_deref() };
    let mut response = response::ok(&body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
