//! Schemas that many endpoints share: identifiers, times and the response to a creation.
//!
//! The types are never constructed. As a `value_type`, they describe the JSON form of a domain
//! type. Schemas of strings are inlined where they are used.

#![expect(dead_code, reason = "only their schemas are used")]

use galley_domain::event::EventType;
use galley_domain::permission::{Permission as PermissionOf, Resource};
use galley_domain::publication::ContentView;
use serde_json::json;
use utoipa::openapi::schema::{Object, Schema, SchemaType};
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

/// The digits of the identifiers in examples.
const DIGITS: &str = "01kah3v9k8d4x7w2m5n6p8q9rs";

macro_rules! ids {
    ($($name:ident = $prefix:literal, $doc:literal;)*) => {$(
        #[doc = concat!("The identifier of ", $doc, ".")]
        pub struct $name;

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
    AssetId = "ast_", "an asset";
    VariantId = "var_", "a variant";
    ContentGroupId = "cg_", "a content group";
    ContentPieceId = "cp_", "a content piece";
    RevisionId = "rev_", "a revision of a content piece";
    WebhookId = "wh_", "a webhook";
    EventId = "evt_", "an event";
    DeliveryId = "dlv_", "the delivery of an event to a webhook";
    TokenId = "tok_", "a token";
    SessionId = "ses_", "a session";
    AuditEntryId = "aud_", "an entry of the audit log";
}

/// The identifier of an author.
pub struct ActorId;

impl PartialSchema for ActorId {
    fn schema() -> RefOr<Schema> {
        text("The identifier of a token or of a workspace member.")
            .pattern(Some("^(tok|wm)_[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$"))
            .examples([json!(format!("tok_{DIGITS}"))])
            .into()
    }
}

impl ToSchema for ActorId {}

/// The identifier of an entry of the trash.
pub struct TrashedId;

impl PartialSchema for TrashedId {
    fn schema() -> RefOr<Schema> {
        text("The identifier of the deleted content piece or content group.")
            .pattern(Some("^c[pg]_[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}$"))
            .examples([json!(format!("cp_{DIGITS}"))])
            .into()
    }
}

impl ToSchema for TrashedId {}

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

/// Returns the schema of custom data in a response: a string, or any JSON value.
pub(crate) fn custom_data() -> Object {
    let types =
        vec![Type::String, Type::Null, Type::Object, Type::Array, Type::Number, Type::Boolean];
    ObjectBuilder::new()
        .schema_type(SchemaType::Array(types))
        .description(Some(
            "Custom JSON, as a string: a string as it was sent, an object or array as compact \
             JSON. With `customData=object`, it is the value of this JSON.",
        ))
        .examples([json!("{\"pinned\":true}")])
        .build()
}

/// A time in a response.
pub struct Time;

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        text("A time in UTC with milliseconds (RFC 3339).")
            .format(Some(format))
            .pattern(Some(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"))
            .examples([json!("2026-11-20T09:30:00.000Z")])
            .into()
    }
}

impl ToSchema for Time {}

/// The invisible characters, as the inside of a character class. White space and control characters
/// are not among them.
const INVISIBLE_CHARACTERS: &str = concat!(
    "\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{202a}-\u{202e}",
    "\u{2060}-\u{206f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}",
    "\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}",
);

/// Returns the character class of the visible characters.
fn visible_characters() -> String {
    let blank = r"\s\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
    format!("[^{blank}{INVISIBLE_CHARACTERS}]")
}

/// Defines schemas of request fields that are strings with a pattern.
macro_rules! texts {
    ($($name:ident = $doc:literal, $max:literal, $example:literal, $pattern:expr;)*) => {$(
        #[doc = $doc]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = text($doc).min_length(Some(1)).max_length(Some($max));
                text.pattern(Some($pattern)).examples([json!($example)]).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

/// The pattern of a file's name: no path.
const FILENAME: &str = r"^(?!\.{1,2}$)[^/\\\x00-\x1f\x7f-\x9f]+$";

texts! {
    Filename = "The name of a file.", 255, "photo.jpg", FILENAME;
    Username = "The short name of a user.", 64, "ann", format!("^{}+$", visible_characters());
    FullName = "The display name of a user.", 255, "Ann Example", full_name_pattern();
}

/// The URL to which a webhook's events are sent.
pub struct WebhookUrl;

impl PartialSchema for WebhookUrl {
    fn schema() -> RefOr<Schema> {
        text("An absolute http or https URL.")
            .min_length(Some(1))
            .max_length(Some(2_048))
            .format(Some(SchemaFormat::Custom("uri".to_owned())))
            .pattern(Some(r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\x00-\x20\x7f-\xa0]+$"))
            .examples([json!("https://example.org/hooks/galley")])
            .into()
    }
}

impl ToSchema for WebhookUrl {}

/// The URL of the page that shows drafts.
pub struct PreviewUrl;

impl PartialSchema for PreviewUrl {
    fn schema() -> RefOr<Schema> {
        text("An absolute http or https URL with the placeholder `{token}`, and optionally `{id}`.")
            .min_length(Some(1))
            .max_length(Some(2_048))
            .format(Some(SchemaFormat::Custom("uri-template".to_owned())))
            .pattern(Some(r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\x00-\x20\x7f-\xa0]*\{token\}"))
            .examples([json!("https://example.org/preview?id={id}&token={token}")])
            .into()
    }
}

impl ToSchema for PreviewUrl {}

/// Returns the pattern of full names: one line without controls of text direction, and with at
/// least one visible character.
fn full_name_pattern() -> String {
    let other = r"[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]";
    format!("^{other}*{}{other}*$", visible_characters())
}

/// The color of a tag.
pub struct ColorSchema;

impl PartialSchema for ColorSchema {
    fn schema() -> RefOr<Schema> {
        text("A color's name.")
            .enum_values(Some(galley_domain::tag::Color::ALL.iter().map(|color| color.as_str())))
            .examples([json!("blue")])
            .into()
    }
}

impl ToSchema for ColorSchema {}

macro_rules! words {
    ($($name:ident = $doc:literal, $example:literal, $words:expr;)*) => {$(
        #[doc = $doc]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                text($doc).enum_values(Some($words)).examples([json!($example)]).into()
            }
        }

        impl ToSchema for $name {}
    )*};
}

words! {
    Permission = "A permission of a role or token.", "contentPieces:read", permissions();
    Event = "The type of an event.", "contentPieceAdded",
        EventType::ALL.iter().map(|event| event.as_str());
    View = "A view of the content: `current` has all pieces with their latest changes, `published` has\n        published pieces only, each at its published revision.", "current",
        ContentView::ALL.iter().map(|view| view.as_str());
    PublicationState = "The state of a piece's publication.", "changed",
        galley_domain::publication::PublicationState::ALL.iter().map(|state| state.as_str());
    AuditAction = "The kind of a change: the kind of the resource, and a verb.", "contentPiece.update",
        galley_domain::audit::AuditAction::ALL.iter().map(|action| action.as_str());
    SignInMethod = "The method of a sign-in.", "mail",
        galley_domain::session::SignInMethod::ALL.iter().map(|method| method.as_str());
    BaseType = "The base type of a role.", "viewer", ["admin", "viewer"];
    DisabledReason = "The reason why a webhook is disabled.", "requested",
        galley_domain::webhook::DisabledReason::ALL.iter().map(|reason| reason.as_str());
    DeliveryStatus = "The status of a delivery.", "delivered",
        galley_domain::delivery::DeliveryStatus::ALL.iter().map(|status| status.as_str());
}

fn permissions() -> Vec<String> {
    let of = |&what| [PermissionOf::read(what), PermissionOf::write(what)];
    Resource::ALL.iter().flat_map(of).map(|permission| permission.to_string()).collect()
}

/// An event in the feed.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct EventEnvelope {
    #[schema(value_type = Event)]
    r#type: String,
    #[schema(value_type = Time)]
    timestamp: String,
    /// The number of the event among the workspace's events, in the order of their commits.
    #[schema(minimum = 1, example = 1042)]
    sequence: i64,
    #[schema(value_type = WorkspaceId)]
    workspace_id: String,
    /// The resource as its GET returns it directly after the change or, for a removal, before it.
    #[schema(value_type = Object)]
    data: String,
}

/// The response to a creation, unless the request prefers the whole resource.
#[derive(ToSchema)]
pub struct Created {
    /// The identifier of the new resource.
    #[schema(example = "tag_01kah3v9k8d4x7w2m5n6p8q9rs")]
    id: String,
}

/// A tag: its identifier, or the object that GET returns. The object's other fields are ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum TagReference {
    /// Its identifier.
    Id(TagId),
    /// An object with the identifier.
    Object(TagObject),
}

/// A tag as GET returns it.
#[derive(ToSchema)]
pub struct TagObject {
    #[schema(value_type = TagId)]
    id: String,
}

/// A content group: its identifier, or the object that GET returns. The object's other fields are
/// ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ContentGroupReference {
    /// Its identifier.
    Id(ContentGroupId),
    /// An object with the identifier.
    Object(ContentGroupObject),
}

/// A content group as GET returns it.
#[derive(ToSchema)]
pub struct ContentGroupObject {
    #[schema(value_type = ContentGroupId)]
    id: String,
}

/// A workspace member: its identifier, or the object that GET returns. The object's other fields
/// are ignored.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum WorkspaceMemberReference {
    /// Its identifier.
    Id(WorkspaceMemberId),
    /// An object with the identifier.
    Object(WorkspaceMemberObject),
}

/// A workspace member as GET returns it.
#[derive(ToSchema)]
pub struct WorkspaceMemberObject {
    #[schema(value_type = WorkspaceMemberId)]
    id: String,
}

/// The scope of the event.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct NewWebhookMetadata {
    /// The group to watch, with all groups below it. Required for events of pieces.
    #[schema(value_type = Option<ContentGroupId>)]
    content_group_id: Option<String>,
}

/// Returns a name with a capital first letter.
pub fn capitalized(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}
