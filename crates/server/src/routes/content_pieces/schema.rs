//! Schemas of the requests to `/content-pieces`.

#![expect(dead_code, reason = "requests are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use serde_json::{Value, json};
use utoipa::openapi::schema::{AnyOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// A new content piece.
#[derive(ToSchema)]
#[schema(as = NewContentPiece, rename_all = "camelCase")]
pub(super) struct NewContentPieceSchema {
    #[schema(min_length = 1, max_length = 1024, example = "Hello")]
    title: String,
    /// The slug, without white space or control characters. It is stored unchanged and need not be
    /// unique.
    #[schema(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\s\x00-\x1f\x7f-\x9f]+$",
        example = "hello"
    )]
    slug: String,
    /// The tags, in this order. Duplicates are dropped.
    #[schema(max_items = 100, value_type = Vec<schemas::TagReference>)]
    tags: Vec<String>,
    /// The members, in this order. Duplicates are dropped.
    #[schema(max_items = 100, value_type = Vec<schemas::WorkspaceMemberReference>)]
    members: Vec<String>,
    /// The group that directly contains the piece.
    #[schema(value_type = schemas::ContentGroupId)]
    content_group_id: String,
    /// A time that the author chooses: an ISO 8601 date, or date and time. A time without an offset
    /// is in UTC. An empty string counts as absent.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    date: Option<String>,
    /// HTML, up to 65,536 bytes. Unsafe markup is removed.
    #[schema(max_length = 65536, example = "<p>A first piece.</p>")]
    description: Option<String>,
    /// The address of the cover image: an absolute http or https URL, or a relative reference.
    #[schema(
        format = "uri-reference",
        max_length = 2048,
        example = "https://example.org/cover.png"
    )]
    cover_url: Option<String>,
    /// The alternative text of the cover image.
    #[schema(max_length = 1024, example = "A harbour at dawn")]
    cover_alt: Option<String>,
    #[schema(max_length = 1024, example = "1200px")]
    cover_width: Option<String>,
    /// The canonical URL of the piece: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/hello")]
    canonical_link: Option<String>,
    #[schema(max_length = 1024, example = "hello.md")]
    filename: Option<String>,
    /// Custom JSON, up to 262,144 bytes: as a string, which is stored byte for byte, or as an
    /// object or array. An empty string counts as absent.
    #[schema(inline, required = false, value_type = CustomData)]
    custom_data: Option<Value>,
    /// HTML, up to 2 MiB by default.
    #[schema(example = "<p>Hello <b>world</b></p>")]
    content: Option<String>,
    /// The piece of the same group after which the new piece is inserted.
    #[schema(value_type = Option<schemas::ContentPieceId>, example = json!(null))]
    reference_id: Option<String>,
}

/// The content pieces to create.
#[derive(ToSchema)]
pub(super) struct NewContentPieces {
    /// The pieces, in the order of their creation.
    #[schema(min_items = 1, max_items = 100)]
    pieces: Vec<NewContentPieceSchema>,
}

/// A change of a content piece.
#[derive(ToSchema)]
#[schema(as = ContentPieceChange, rename_all = "camelCase")]
pub(super) struct ContentPieceChangeSchema {
    #[schema(value_type = schemas::ContentPieceId)]
    id: String,
    /// The title. Null is allowed for a variant only.
    #[schema(min_length = 1, max_length = 1024, example = "Hello")]
    title: Option<String>,
    /// The slug, without white space or control characters. It is stored unchanged and need not be
    /// unique. Null is allowed for a variant only.
    #[schema(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\s\x00-\x1f\x7f-\x9f]+$",
        example = "hello"
    )]
    slug: Option<String>,
    /// The tags, in this order. Duplicates are dropped. Null is allowed for a variant only.
    #[schema(max_items = 100, value_type = Option<Vec<schemas::TagReference>>)]
    tags: Option<Vec<String>>,
    /// The members, in this order. Duplicates are dropped. Null is allowed for a variant only.
    #[schema(max_items = 100, value_type = Option<Vec<schemas::WorkspaceMemberReference>>)]
    members: Option<Vec<String>>,
    /// The group that directly contains the piece.
    #[schema(required = false, value_type = schemas::ContentGroupId)]
    content_group_id: String,
    /// A time that the author chooses: an ISO 8601 date, or date and time. A time without an offset
    /// is in UTC. An empty string counts as absent.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    date: Option<String>,
    /// HTML, up to 65,536 bytes. Unsafe markup is removed.
    #[schema(max_length = 65536, example = "<p>A first piece.</p>")]
    description: Option<String>,
    /// The address of the cover image: an absolute http or https URL, or a relative reference.
    #[schema(
        format = "uri-reference",
        max_length = 2048,
        example = "https://example.org/cover.png"
    )]
    cover_url: Option<String>,
    /// The alternative text of the cover image.
    #[schema(max_length = 1024, example = "A harbour at dawn")]
    cover_alt: Option<String>,
    #[schema(max_length = 1024, example = "1200px")]
    cover_width: Option<String>,
    /// The canonical URL of the piece: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/hello")]
    canonical_link: Option<String>,
    #[schema(max_length = 1024, example = "hello.md")]
    filename: Option<String>,
    /// Custom JSON, up to 262,144 bytes: as a string, which is stored byte for byte, or as an
    /// object or array. An empty string counts as absent.
    #[schema(inline, required = false, value_type = CustomData)]
    custom_data: Option<Value>,
    /// HTML, up to 2 MiB by default. Null empties the content.
    #[schema(example = "<p>Hello <b>world</b></p>")]
    content: Option<String>,
    /// The piece of the same group after which this one is moved. Null moves it to the front.
    #[schema(value_type = Option<schemas::ContentPieceId>, example = json!(null))]
    reference_id: Option<String>,
    /// The identifier or key of the variant to change. The given fields become overrides in this
    /// variant, and null removes an override.
    #[schema(example = json!(null))]
    variant: Option<String>,
}

/// The schema of custom data: a string that contains JSON, an object, an array or null.
struct CustomData;

impl PartialSchema for CustomData {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::String))
            .content_media_type("application/json");
        let types = vec![Type::Object, Type::Array, Type::Null];
        let json = ObjectBuilder::new().schema_type(SchemaType::Array(types));
        AnyOfBuilder::new().item(text).item(json).examples([json!("{\"pinned\":true}")]).into()
    }
}

impl ToSchema for CustomData {}

/// The query parameters of the list of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct PieceListParameters {
    /// List the pieces directly in one of these groups: up to 100 identifiers, separated by commas.
    /// The parameter may be repeated.
    content_group_id: Option<String>,
    /// Include the pieces in all groups below these groups.
    #[param(default = false)]
    subtree: Option<bool>,
    /// List the pieces with exactly this slug.
    slug: Option<String>,
    /// List the pieces with this tag.
    tag_id: Option<String>,
    #[param(inline, default = "order")]
    sort: Option<SortSchema>,
    /// The page number, from 1. Ignored with `cursor` or `lastOrder`.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// The limit on pieces in a page. With `content=true` it is at most 100.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The `order` of a piece. The list continues after it.
    #[param(pattern = "^([0-9A-Za-z]{5})*(?!0{5})[0-9A-Za-z]{5}$")]
    last_order: Option<String>,
    /// The cursor of the next page, from the `Link` header of the previous response.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// The sort key of the list. A leading `-` reverses the order.
#[derive(ToSchema)]
#[schema(as = Sort)]
enum SortSchema {
    #[schema(rename = "order")]
    Order,
    #[schema(rename = "-order")]
    OrderDown,
    #[schema(rename = "date")]
    Date,
    #[schema(rename = "-date")]
    DateDown,
    #[schema(rename = "createdAt")]
    CreatedAt,
    #[schema(rename = "-createdAt")]
    CreatedAtDown,
    #[schema(rename = "updatedAt")]
    UpdatedAt,
    #[schema(rename = "-updatedAt")]
    UpdatedAtDown,
    #[schema(rename = "title")]
    Title,
    #[schema(rename = "-title")]
    TitleDown,
}
