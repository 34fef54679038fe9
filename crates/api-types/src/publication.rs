//! The JSON representation of the publication of a piece.

use std::sync::LazyLock;

use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::{Publication, PublicationState};
use galley_domain::{ContentGroupId, ContentPieceId, RevisionId, Timestamp};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;
use utoipa::openapi::schema::Schema;

use crate::actor::ActorBody;
use crate::request::{FieldContext, FieldValue, Parsed, body, schema_of};
use crate::revision::RequestedRevision;
use crate::schemas;

/// The publication of a content piece, or the constant JSON of a draft. Lists have many drafts, and
/// one text takes a tenth of the time that six fields take.
#[derive(Debug)]
pub(crate) enum PublicationJson<'a> {
    Draft,
    Other(Box<PublicationBody<'a>>),
}

impl<'a> PublicationJson<'a> {
    /// Creates the representation of a piece's publication by this author.
    pub(crate) fn new(piece: &ContentPiece, published_by: Option<ActorBody<'a>>) -> Self {
        if piece.publication == Publication::default() {
            return Self::Draft;
        }
        Self::Other(Box::new(PublicationBody::new(piece, published_by)))
    }
}

impl Serialize for PublicationJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        static DRAFT: LazyLock<Box<RawValue>> = LazyLock::new(|| {
            let draft = PublicationBody {
                state: PublicationState::Draft.as_str(),
                revision: None,
                published_at: None,
                published_by: None,
                publish_at: None,
                unpublish_at: None,
            };
            to_raw_value(&draft).expect("its keys are texts")
        });
        match self {
            Self::Draft => DRAFT.serialize(serializer),
            Self::Other(body) => body.serialize(serializer),
        }
    }
}

/// The publication of a content piece.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Publication)]
pub struct PublicationBody<'a> {
    /// `draft`: the piece is not published. `published`: its latest revision is. `changed`: an
    /// earlier revision is.
    #[schema(value_type = schemas::PublicationState)]
    state: &'static str,
    /// The published revision.
    #[schema(value_type = Option<schemas::RevisionId>)]
    revision: Option<RevisionId>,
    /// The time of its publication.
    #[schema(value_type = Option<schemas::Time>)]
    published_at: Option<Timestamp>,
    /// The author of its publication.
    #[schema(value_type = Option<ActorBody<'_>>)]
    published_by: Option<ActorBody<'a>>,
    /// The time at which a revision is going to be published. Always null in the published view.
    #[schema(value_type = Option<schemas::Time>)]
    publish_at: Option<Timestamp>,
    /// The time at which the piece is going to be unpublished. Always null in the published view.
    #[schema(value_type = Option<schemas::Time>)]
    unpublish_at: Option<Timestamp>,
}

impl<'a> PublicationBody<'a> {
    fn new(piece: &ContentPiece, published_by: Option<ActorBody<'a>>) -> Self {
        let publication = &piece.publication;
        let published = publication.published;
        Self {
            state: publication.state(piece.latest_revision()).as_str(),
            revision: published.map(|published| RevisionId::of(piece.id, published.number)),
            published_at: published.map(|published| published.at),
            published_by,
            publish_at: publication.publish_at,
            unpublish_at: publication.unpublish_at,
        }
    }
}

const _: () = assert!(PublicationState::ALL.len() == 3);

/// The identifier of a piece. A malformed one is `None`, so that it gets the same 404 as that of an
/// absent piece.
#[derive(Debug, Clone, Copy)]
pub struct RequestedPiece(pub Option<ContentPieceId>);

impl FieldValue for RequestedPiece {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        Ok(Self(context.text(value)?.parse().ok()))
    }

    fn schema() -> Schema {
        schema_of::<schemas::ContentPieceId>()
    }
}

body! {
    /// The content pieces to publish: one, or those of a group.
    change PiecesToPublish {
        /// The content piece. Required without `contentGroupId`.
        id: required RequestedPiece,
        /// The content group whose pieces are published, at their latest revisions.
        content_group_id: required ContentGroupId,
        /// True to include the groups below it.
        subtree: required bool = true,
        /// The revision of the piece. Null for the latest one, which for a scheduled publication is
        /// the latest one at that time.
        revision: optional RequestedRevision,
        /// The time of the publication: an ISO 8601 date or date-time. It replaces an earlier one.
        /// Null cancels the scheduled publication, and publishes nothing.
        at: optional Timestamp = "2027-01-01T09:00:00+01:00",
        /// The time at which the piece is unpublished. Null cancels that.
        unpublish_at: optional Timestamp = "2027-02-01T09:00:00+01:00",
    }
}

body! {
    /// The content piece to unpublish.
    change PieceToUnpublish of ContentPieceId {
        /// The time at which it is unpublished: an ISO 8601 date or date-time. It replaces an
        /// earlier one. Null cancels it, and unpublishes nothing.
        at: optional Timestamp = "2027-02-01T09:00:00+01:00",
    }
}

body! {
    /// The content piece to preview.
    new PieceToPreview of ContentPieceId {}
}
