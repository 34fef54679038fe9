//! What requests for content pieces hold.

#![expect(dead_code, reason = "requests are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use serde_json::{Value, json};
use utoipa::openapi::schema::{AnyOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// A new content piece.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct NewContentPiece {
    #[schema(min_length = 1, max_length = 1024, example = "Hello")]
    title: String,
    /// Without white space and control characters; kept as given, not unique.
    #[schema(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\s\x00-\x1f\x7f-\x9f]+$",
        example = "hello"
    )]
    slug: String,
    /// In this order; repeats are dropped.
    #[schema(max_items = 100, value_type = Vec<schemas::TagReference>)]
    tags: Vec<String>,
    /// In this order; repeats are dropped.
    #[schema(max_items = 100, value_type = Vec<schemas::WorkspaceMemberReference>)]
    members: Vec<String>,
    /// The group that the piece is directly in.
    #[schema(value_type = schemas::ContentGroupId)]
    content_group_id: String,
    /// A time of the author's choosing: an ISO 8601 date, or date and time. Without an offset it is in
    /// UTC. An empty text counts as absent.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    date: Option<String>,
    /// HTML, to 65,536 bytes, cleaned of what is not safe to show.
    #[schema(max_length = 65536, example = "<p>A first piece.</p>")]
    description: Option<String>,
    /// The address of an image: an absolute http or https URL, or a relative reference.
    #[schema(
        format = "uri-reference",
        max_length = 2048,
        example = "https://example.org/cover.png"
    )]
    cover_url: Option<String>,
    /// What the cover shows, for those who can't see it.
    #[schema(max_length = 1024, example = "A harbour at dawn")]
    cover_alt: Option<String>,
    #[schema(max_length = 1024, example = "1200px")]
    cover_width: Option<String>,
    /// Where the piece is at home on the web: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/hello")]
    canonical_link: Option<String>,
    #[schema(max_length = 1024, example = "hello.md")]
    filename: Option<String>,
    /// JSON of your own, to 262,144 bytes: as a text, which is kept byte for byte, or as an object or
    /// array. An empty text counts as absent.
    #[schema(inline, required = false, value_type = CustomData)]
    custom_data: Option<Value>,
    /// HTML, by default to 2 MiB.
    #[schema(example = "<p>Hello <b>world</b></p>")]
    content: Option<String>,
    /// The piece of the same group right after which the new one stands.
    #[schema(value_type = Option<schemas::ContentPieceId>, example = json!(null))]
    reference_id: Option<String>,
}

/// New content pieces.
#[derive(ToSchema)]
pub(super) struct NewContentPieces {
    /// In the order in which they are made.
    #[schema(min_items = 1, max_items = 100)]
    pieces: Vec<NewContentPiece>,
}

/// A change of a content piece.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(super) struct ContentPieceChange {
    #[schema(value_type = schemas::ContentPieceId)]
    id: String,
    /// Null is for a variant only.
    #[schema(min_length = 1, max_length = 1024, example = "Hello")]
    title: Option<String>,
    /// Without white space and control characters; kept as given, not unique. Null is for a variant
    /// only.
    #[schema(
        min_length = 1,
        max_length = 512,
        pattern = r"^[^\s\x00-\x1f\x7f-\x9f]+$",
        example = "hello"
    )]
    slug: Option<String>,
    /// In this order; repeats are dropped. Null is for a variant only.
    #[schema(max_items = 100, value_type = Option<Vec<schemas::TagReference>>)]
    tags: Option<Vec<String>>,
    /// In this order; repeats are dropped. Null is for a variant only.
    #[schema(max_items = 100, value_type = Option<Vec<schemas::WorkspaceMemberReference>>)]
    members: Option<Vec<String>>,
    /// The group that the piece is directly in.
    #[schema(required = false, value_type = schemas::ContentGroupId)]
    content_group_id: String,
    /// A time of the author's choosing: an ISO 8601 date, or date and time. Without an offset it is in
    /// UTC. An empty text counts as absent.
    #[schema(inline, required = false, value_type = schemas::ClearableTime)]
    date: Option<String>,
    /// HTML, to 65,536 bytes, cleaned of what is not safe to show.
    #[schema(max_length = 65536, example = "<p>A first piece.</p>")]
    description: Option<String>,
    /// The address of an image: an absolute http or https URL, or a relative reference.
    #[schema(
        format = "uri-reference",
        max_length = 2048,
        example = "https://example.org/cover.png"
    )]
    cover_url: Option<String>,
    /// What the cover shows, for those who can't see it.
    #[schema(max_length = 1024, example = "A harbour at dawn")]
    cover_alt: Option<String>,
    #[schema(max_length = 1024, example = "1200px")]
    cover_width: Option<String>,
    /// Where the piece is at home on the web: an absolute http or https URL, or a relative reference.
    #[schema(format = "uri-reference", max_length = 2048, example = "https://example.org/hello")]
    canonical_link: Option<String>,
    #[schema(max_length = 1024, example = "hello.md")]
    filename: Option<String>,
    /// JSON of your own, to 262,144 bytes: as a text, which is kept byte for byte, or as an object or
    /// array. An empty text counts as absent.
    #[schema(inline, required = false, value_type = CustomData)]
    custom_data: Option<Value>,
    /// HTML, by default to 2 MiB; null empties the content.
    #[schema(example = "<p>Hello <b>world</b></p>")]
    content: Option<String>,
    /// The piece of the same group right after which this one is moved; null moves it to the front.
    #[schema(value_type = Option<schemas::ContentPieceId>, example = json!(null))]
    reference_id: Option<String>,
    /// The identifier or key of the variant to change: what is given is said in it instead of by the
    /// piece, and null takes that away.
    #[schema(example = json!(null))]
    variant: Option<String>,
}

/// Custom data, as a text of JSON or as JSON.
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

/// The parameters of the list of pieces.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct ListParameters {
    /// The pieces directly in one of these groups: identifiers, separated by commas, up to 100. May
    /// be given several times.
    content_group_id: Option<String>,
    /// Also those in the groups under them.
    #[param(default = false)]
    subtree: Option<bool>,
    /// Those with exactly this slug.
    slug: Option<String>,
    /// Those with this tag.
    tag_id: Option<String>,
    #[param(inline, default = "order")]
    sort: Option<Sort>,
    /// Which page, from 1. Without effect where a cursor is given.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// How many pieces at the most; with `content=true` up to 100.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The `order` of a piece: the list goes on after it.
    #[param(pattern = "^([0-9A-Za-z]{5})*(?!0{5})[0-9A-Za-z]{5}$")]
    last_order: Option<String>,
    /// Where the list goes on: as the `Link` header of its last part says.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// What the list is sorted by; a `-` in front is the reverse.
#[derive(ToSchema)]
enum Sort {
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
