//! Schemas of what occurs everywhere: identifiers, times, the answer to a create.
//!
//! The types here are never made; they say in a `value_type` what JSON holds in the place of a
//! domain type. Those that are texts are written out where they are used.

#![expect(dead_code, reason = "only their schemas are used")]

use galley_content::Effect;
use galley_domain::event::EventType;
use galley_domain::permission::{Permission as PermissionOf, Resource};
use serde_json::json;
use utoipa::openapi::schema::{Object, Schema, SchemaType};
use utoipa::openapi::{ObjectBuilder, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

/// The digits of the identifiers in examples.
const DIGITS: &str = "01kah3v9k8d4x7w2m5n6p8q9rs";

macro_rules! ids {
    ($($name:ident = $prefix:literal, $doc:literal;)*) => {$(
        #[doc = concat!("The identifier of ", $doc, ".")]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                id($prefix, concat!("The identifier of ", $doc, "."))
            }
        }

        impl ToSchema for $name {}
    )*};
}

ids! {
    WorkspaceId = "ws_", "a workspace";
    UserId = "usr_", "a user";
    WorkspaceMemberId = "wm_", "a workspace member";
    RoleId = "role_", "a role";
    TagId = "tag_", "a tag";
    VariantId = "var_", "a variant";
    ContentGroupId = "cg_", "a content group";
    ContentPieceId = "cp_", "a content piece";
    WebhookId = "wh_", "a webhook";
    EventId = "evt_", "an event";
    DeliveryId = "dlv_", "the delivery of an event to a webhook";
    TokenId = "tok_", "a token";
}

fn id(prefix: &str, description: &str) -> RefOr<Schema> {
    let object = text(description)
        .pattern(Some(format!("^{prefix}[0-7][0-9abcdefghjkmnpqrstvwxyz]{{25}}$")))
        .examples([json!(format!("{prefix}{DIGITS}"))]);
    object.into()
}

fn text(description: &str) -> ObjectBuilder {
    let text = Object::with_type(SchemaType::Type(Type::String));
    ObjectBuilder::from(text).description(Some(description))
}

/// A time, as answers have it.
pub(crate) struct Time;

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format =
            utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime);
        text("A time in UTC with milliseconds (RFC 3339).")
            .format(Some(format))
            .pattern(Some(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"))
            .examples([json!("2026-11-20T09:30:00.000Z")])
            .into()
    }
}

impl ToSchema for Time {}

/// One of the colors of tags.
pub(crate) struct Color;

impl PartialSchema for Color {
    fn schema() -> RefOr<Schema> {
        text("A color's name.")
            .enum_values(Some(galley_domain::tag::Color::NAMES.iter().copied()))
            .examples([json!("blue")])
            .into()
    }
}

impl ToSchema for Color {}

macro_rules! words {
    ($($name:ident = $doc:literal, $example:literal, $words:expr;)*) => {$(
        #[doc = $doc]
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text($doc).enum_values(Some($words)).examples([json!($example)]).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

words! {
    Permission = "What a role or token allows.", "contentPieces:read", permissions();
    Event = "What a webhook is told of.", "contentPieceAdded",
        EventType::ALL.iter().map(|event| event.as_str());
    BaseType = "What a role is at its base.", "viewer", ["admin", "viewer"];
    DisabledReason = "Why a webhook sends nothing.", "requested",
        galley_domain::webhook::DisabledReason::ALL.iter().map(|reason| reason.as_str());
    DeliveryStatus = "How far a delivery has come.", "delivered",
        galley_domain::delivery::Status::ALL.iter().map(|status| status.as_str());
    LossEffect = "What becomes of what is lost.", "unwrapped",
        [Effect::Dropped, Effect::Unwrapped].map(Effect::as_str);
}

fn permissions() -> Vec<String> {
    let of = |&what| [PermissionOf::read(what), PermissionOf::write(what)];
    Resource::ALL.iter().flat_map(of).map(|permission| permission.to_string()).collect()
}

/// An event, as the feed shows it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct EventEnvelope {
    #[schema(value_type = Event)]
    r#type: String,
    #[schema(value_type = Time)]
    timestamp: String,
    /// Counts the workspace's events in the order in which they were committed.
    #[schema(minimum = 1, example = 1042)]
    sequence: i64,
    #[schema(value_type = WorkspaceId)]
    workspace_id: String,
    /// The resource as its GET gives it just after the change; for a removal, before.
    #[schema(value_type = Object, example = json!({"id": "cg_01kah3v9k8d4x7w2m5n6p8q9rs", "name": "Posts", "ancestors": [], "descendants": []}))]
    data: String,
}

/// The answer to a create, unless the resource is preferred.
#[derive(ToSchema)]
pub(crate) struct Created {
    /// The identifier of the new resource.
    #[schema(example = "tag_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: String,
}

/// A tag, by its identifier or as a GET gave it: what else the object has is ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum TagReference {
    /// Its identifier.
    Id(TagId),
    /// An object that has the identifier.
    Object(TagObject),
}

/// A tag as a GET gave it.
#[derive(ToSchema)]
pub(crate) struct TagObject {
    #[schema(value_type = TagId)]
    id: String,
}

/// A content group, by its identifier or as a GET gave it: what else the object has is ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum ContentGroupReference {
    /// Its identifier.
    Id(ContentGroupId),
    /// An object that has the identifier.
    Object(ContentGroupObject),
}

/// A content group as a GET gave it.
#[derive(ToSchema)]
pub(crate) struct ContentGroupObject {
    #[schema(value_type = ContentGroupId)]
    id: String,
}

/// A workspace member, by its identifier or as a GET gave it: what else the object has is ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub(crate) enum WorkspaceMemberReference {
    /// Its identifier.
    Id(WorkspaceMemberId),
    /// An object that has the identifier.
    Object(WorkspaceMemberObject),
}

/// A workspace member as a GET gave it.
#[derive(ToSchema)]
pub(crate) struct WorkspaceMemberObject {
    #[schema(value_type = WorkspaceMemberId)]
    id: String,
}
