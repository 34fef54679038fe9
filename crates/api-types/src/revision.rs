//! The JSON representation of a revision.

use galley_domain::content_piece::PieceField;
use galley_domain::revision::{Origin, Revision, RevisionNote};
use galley_domain::{ContentPieceId, Invalid, RevisionId, Timestamp, VariantId};
use serde::Serialize;
use serde_json::Value;
use utoipa::PartialSchema;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};

use crate::actor::ActorBody;
use crate::request::{FieldContext, FieldValue, Parsed, body, schema_of};
use crate::schemas;

/// A change of a content piece or of its overrides in a variant.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Revision)]
#[serde(rename_all = "camelCase")]
pub struct RevisionBody<'a> {
    #[schema(value_type = schemas::RevisionId)]
    id: RevisionId,
    /// The position among the changes of the piece and its variants, from 1 on.
    #[schema(example = 7)]
    number: i64,
    #[schema(value_type = schemas::ContentPieceId)]
    content_piece_id: ContentPieceId,
    /// The variant whose overrides changed. Null for a change of the piece itself.
    #[schema(value_type = Option<schemas::VariantId>)]
    variant_id: Option<VariantId>,
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    /// The author of the change. Null if it is older than the record of authors.
    #[schema(value_type = Option<ActorBody<'_>>)]
    created_by: Option<ActorBody<'a>>,
    /// The entry point of the change.
    #[schema(value_type = RevisionOrigin)]
    origin: &'static str,
    /// The changed fields. Empty for the first revision, and for autosaves that end where they
    /// began.
    #[schema(value_type = Vec<PieceFieldName>)]
    fields: Vec<&'static str>,
    /// The note, or null. A revision with a note is kept for ever.
    #[schema(example = "Before the review")]
    note: Option<&'a str>,
    /// True for an autosave that no other save completed.
    #[schema(example = false)]
    autosave: bool,
    /// The bytes that the change takes in the database.
    #[schema(example = 212)]
    size: i64,
}

/// The entry point of a change.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum RevisionOrigin {
    Api,
    Console,
    Import,
    Agent,
    Restore,
    Schedule,
}

const _: () = assert!(Origin::ALL.len() == 6);

/// A field of a content piece.
#[derive(ToSchema)]
#[schema(as = ContentPieceField, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum PieceFieldName {
    Date,
    Title,
    Description,
    Slug,
    CoverUrl,
    CoverAlt,
    CoverWidth,
    CanonicalLink,
    Filename,
    CustomData,
    Tags,
    Members,
    Content,
}

const _: () = assert!(PieceField::ALL.len() == 13);

impl<'a> RevisionBody<'a> {
    /// Creates the representation of a revision of a piece. `size` is that of its change in bytes.
    pub fn new(
        piece: ContentPieceId,
        revision: &'a Revision,
        size: i64,
        created_by: Option<ActorBody<'a>>,
    ) -> Self {
        Self {
            id: RevisionId::of(piece, revision.number),
            number: revision.number,
            content_piece_id: piece,
            variant_id: revision.variant,
            created_at: revision.created_at,
            created_by,
            origin: revision.origin.as_str(),
            fields: revision.fields.iter().map(|field| field.as_str()).collect(),
            note: revision.note.as_ref().map(RevisionNote::as_str),
            autosave: revision.is_autosave,
            size,
        }
    }
}

/// The identifier of a revision. A malformed one is `None`, so that it gets the same 404 as that of
/// an absent revision.
#[derive(Debug, Clone, Copy)]
pub struct RequestedRevision(pub Option<RevisionId>);

impl FieldValue for RequestedRevision {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        Ok(Self(context.text(value)?.parse().ok()))
    }

    fn schema() -> Schema {
        schema_of::<schemas::RevisionId>()
    }
}

/// The fields of a piece to restore, at least one.
#[derive(Debug, Clone)]
pub struct PieceFields(pub Vec<PieceField>);

/// The limit of names in a list. It exceeds their number, as repeats are accepted.
const FIELDS_LIMIT: usize = 100;

impl FieldValue for PieceFields {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let items = context.items(value, FIELDS_LIMIT, "fields")?;
        if items.is_empty() {
            let message = "must name a field, or be null for all fields";
            return context.reject(&Invalid::new("too_short", message));
        }
        let parse = |(index, item)| {
            let mut context = context.item(index);
            let name = context.text(item)?;
            name.parse().or_else(|invalid| context.reject(&invalid))
        };
        let fields: Vec<_> = items.into_iter().enumerate().map(parse).collect();
        fields.into_iter().collect::<Parsed<_>>().map(Self)
    }

    fn schema() -> Schema {
        let item = Ref::from_schema_name(PieceFieldName::name());
        let list = ArrayBuilder::new().items(item).min_items(Some(1));
        list.max_items(Some(FIELDS_LIMIT)).into()
    }

    fn add_referenced(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((PieceFieldName::name().into_owned(), PieceFieldName::schema()));
    }
}

body! {
    /// The revision to restore.
    new RevisionToRestore of ContentPieceId {
        revision: required RequestedRevision,
        /// The fields to restore, of the piece and of its variants. Null for all fields.
        fields: optional PieceFields,
    }
}

body! {
    /// A change of a revision.
    new RevisionChange of ContentPieceId {
        revision: required RequestedRevision,
    } also {
        /// The note, up to 255 characters without control characters. Null removes it.
        note: optional RevisionNote = "Before the review",
    }
}
