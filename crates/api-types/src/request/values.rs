//! The types of fields in request bodies.

use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::asset::{AssetFilename, FileHash};
use galley_domain::content_group::{ContentGroupName, PreviewUrl};
use galley_domain::content_piece::{CustomData, Slug, Title};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::event::EventType;
use galley_domain::import_source::{SourceHash, SourcePath};
use galley_domain::language::LanguageTag;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::publication::ContentView;
use galley_domain::revision::RevisionNote;
use galley_domain::role::RoleName;
use galley_domain::tag::{Color, TagLabel};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::trash::TrashedId;
use galley_domain::variant::{VariantKey, VariantLabel, VariantRef};
use galley_domain::webhook::{WebhookName, WebhookSecret, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    AssetId, ContentGroupId, ContentPieceId, DeliveryId, Invalid, RoleId, SessionId, TagId,
    Timestamp, TokenId, VariantId, WebhookId, WorkspaceMemberId,
};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AnyOfBuilder, KnownFormat, ObjectBuilder, Ref, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use super::fields::{FieldContext, FieldValue, Fields, Parsed, Reference, ResourceId};
use crate::content::{ContentFormat, ContentInputSchema};
use crate::schemas;

/// The pattern of a [`SourcePath`]: no empty parts, and none of one or two dots.
const SOURCE_PATH: &str =
    r"^(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f-\x9f]+(/(?!\.{1,2}(/|$))[^/\x00-\x1f\x7f-\x9f]+)*$";

/// The pattern of a variant's key: a word, or a language tag.
const LANGUAGE_TAG: &str = "^[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8})*$";
const VARIANT_KEY: &str = "^([a-z0-9_]{1,20}|[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8})*)$";

/// The pattern of one line without control characters.
const LINE: &str = r"^[^\x00-\x1f\x7f-\x9f]*$";

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Type(Type::String))
}

fn up_to(max: usize) -> ObjectBuilder {
    text().max_length(Some(max))
}

/// Returns the schema of a name: one line.
fn name() -> ObjectBuilder {
    up_to(255).min_length(Some(1)).pattern(Some(LINE))
}

/// Returns the schema that a type of `schemas` describes.
pub(crate) fn schema_of<T: PartialSchema>() -> Schema {
    match T::schema() {
        RefOr::T(schema) => schema,
        RefOr::Ref(reference) => AnyOfBuilder::new().item(reference).into(),
    }
}

/// Implements [`FieldValue`] for texts, by a parser and a schema. `true` sets `EMPTY_IS_ABSENT`,
/// and `or f` names the function that returns the schema with null.
macro_rules! texts {
    ($($type:ty $(, $empty_is_absent:literal $(or $nullable:ident)?)?: $parse:expr, $schema:expr;)*) => {$(
        impl FieldValue for $type {
            $(const EMPTY_IS_ABSENT: bool = $empty_is_absent;)?

            fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
                let parse: fn(String) -> Result<Self, Invalid> = $parse;
                parse(context.text(value)?).or_else(|invalid| context.reject(&invalid))
            }

            fn schema() -> Schema {
                $schema.into()
            }

            $($(
                fn nullable_schema() -> Schema {
                    $nullable().into()
                }
            )?)?
        }
    )*};
}

texts! {
    AssetFilename: AssetFilename::parse, schema_of::<schemas::Filename>();
    Color: |text| text.parse(), schema_of::<schemas::ColorSchema>();
    ContentGroupName: ContentGroupName::parse, name();
    CustomData, true or custom_data: CustomData::parse, custom_data();
    DescriptionHtml: |text| Ok(DescriptionHtml(text)), up_to(65_536);
    EmailAddress: EmailAddress::parse, email();
    EventType: |text| text.parse(), schema_of::<schemas::Event>();
    ContentView: |text| text.parse(), schema_of::<schemas::View>();
    ExtensionName, true: ExtensionName::parse, up_to(100).pattern(Some(LINE));
    FileHash: |text| text.parse(), text().pattern(Some("^[0-9a-f]{64}$"));
    FullName: FullName::parse, schema_of::<schemas::FullName>();
    ContentFormat: |text| text.parse(), content_format();
    LanguageTag: LanguageTag::parse, text().max_length(Some(35)).pattern(Some(LANGUAGE_TAG));
    RevisionNote, true: RevisionNote::parse, name();
    RoleName: RoleName::parse, name();
    ShortText: ShortText::parse, up_to(1_024);
    Slug: Slug::parse, up_to(512).min_length(Some(1)).pattern(Some(r"^[^\s\x00-\x1f\x7f-\x9f]+$"));
    SourceHash: SourceHash::parse, source_hash();
    SourcePath: SourcePath::parse, up_to(1_024).min_length(Some(1)).pattern(Some(SOURCE_PATH));
    String: Ok, text();
    TagLabel: TagLabel::parse, name();
    Timestamp, true or clearable_time: time, time_schema();
    Title: Title::parse, up_to(1_024).min_length(Some(1));
    TokenName: TokenName::parse, name();
    Username: Username::parse, schema_of::<schemas::Username>();
    VariantKey: VariantKey::parse, text().max_length(Some(35)).pattern(Some(VARIANT_KEY));
    VariantLabel: VariantLabel::parse, name();
    PreviewUrl: PreviewUrl::parse, schema_of::<schemas::PreviewUrl>();
    WebReference: WebReference::parse, up_to(2_048).format(Some(custom_format("uri-reference")));
    WebhookName: WebhookName::parse, name();
    WebhookSecret, true: WebhookSecret::parse, up_to(255);
    WebhookUrl: WebhookUrl::parse, schema_of::<schemas::WebhookUrl>();
    WorkspaceName: WorkspaceName::parse, name();
}

/// A description as the client sent it, not yet sanitised.
#[derive(Debug, Clone)]
pub struct DescriptionHtml(pub String);

/// Content as the client sent it, not yet converted.
#[derive(Debug, Clone)]
pub enum ContentField {
    /// A text in the format that `contentFormat` names.
    Text(String),
    /// A tree, whose JSON text is part of the body.
    Tree,
}

impl FieldValue for ContentField {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        match value {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Object(_) => Ok(Self::Tree),
            other => context.wrong_type("a string or an object", &other),
        }
    }

    fn schema() -> Schema {
        schema_of::<ContentInputSchema>()
    }

    fn nullable_schema() -> Schema {
        let null = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null));
        AnyOfBuilder::new().item(Self::schema()).item(null).into()
    }
}

fn content_format() -> ObjectBuilder {
    text().enum_values(Some(ContentFormat::ALL.iter().map(|format| format.as_str())))
}

fn custom_format(name: &str) -> SchemaFormat {
    SchemaFormat::Custom(name.to_owned())
}

fn source_hash() -> ObjectBuilder {
    up_to(128).min_length(Some(1)).pattern(Some("^[A-Za-z0-9+/=_:-]+$"))
}

fn email() -> ObjectBuilder {
    let format = SchemaFormat::KnownFormat(KnownFormat::Email);
    up_to(254).min_length(Some(1)).format(Some(format)).pattern(Some(r"^(?!.*=\?)"))
}

/// Parses a time.
fn time(text: String) -> Result<Timestamp, Invalid> {
    Timestamp::parse_iso8601(&text).map_err(Invalid::from)
}

/// A time in a query. It is never constructed; as a `value_type`, it describes the parameter.
pub struct RequestedTime;

impl PartialSchema for RequestedTime {
    fn schema() -> RefOr<Schema> {
        time_schema().examples([json!("2026-11-20T09:30:00Z")]).into()
    }
}

impl ToSchema for RequestedTime {}

fn time_schema() -> AnyOfBuilder {
    let of = |format| text().format(Some(SchemaFormat::KnownFormat(format)));
    let without_offset = concat!(
        r"^[12]\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T",
        r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?$"
    );
    AnyOfBuilder::new()
        .item(of(KnownFormat::DateTime))
        .item(of(KnownFormat::Date))
        .item(text().pattern(Some(without_offset)))
}

/// Returns the schema of a time that may also be empty or null.
fn clearable_time() -> AnyOfBuilder {
    let null = ObjectBuilder::new().schema_type(SchemaType::Type(Type::Null));
    time_schema().item(up_to(0)).item(null)
}

/// Returns the schema of custom data: a string that contains JSON, an object, an array or null.
fn custom_data() -> AnyOfBuilder {
    let types = vec![Type::Object, Type::Array, Type::Null];
    let structured = ObjectBuilder::new().schema_type(SchemaType::Array(types));
    AnyOfBuilder::new().item(text().content_media_type("application/json")).item(structured)
}

impl FieldValue for CustomDataSchema {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        match &value {
            Value::Object(_) => {
                Self::parse(value.to_string()).or_else(|invalid| context.reject(&invalid))
            }
            other => context.wrong_type("an object", other),
        }
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(SchemaType::Type(Type::Object)).into()
    }
}

impl FieldValue for bool {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        value.as_bool().map_or_else(|| context.wrong_type("a boolean", &value), Ok)
    }

    fn schema() -> Schema {
        ObjectBuilder::new().schema_type(SchemaType::Type(Type::Boolean)).into()
    }
}

/// Implements [`ResourceId`] for identifiers. For those with a noun, implements [`FieldValue`] as
/// well: a reference to a resource that must exist.
macro_rules! ids {
    ($($type:ident $(: $of:ident = $noun:literal)?;)*) => {$(
        impl ResourceId for $type {
            fn parse_id(fields: &mut Fields) -> Parsed<Option<Self>> {
                Ok(fields.required::<String>("id")?.parse().ok())
            }
        }

        $(
            impl FieldValue for $type {
                fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
                    let id = context.text(value)?.parse().ok();
                    context.reference(id, $noun, Reference::$of)
                }

                fn schema() -> Schema {
                    schema_of::<schemas::$type>()
                }
            }
        )?
    )*};
}

ids! {
    AssetId;
    ContentGroupId: ContentGroup = "content group";
    ContentPieceId: ContentPiece = "content piece";
    DeliveryId;
    RoleId: Role = "role";
    TagId: Tag = "tag";
    SessionId;
    TokenId;
    TrashedId;
    VariantId;
    WebhookId;
    WorkspaceMemberId: WorkspaceMember = "workspace member";
}

impl FieldValue for VariantRef {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        context.text(value)?.parse().or_else(|_| context.unknown_reference("variant"))
    }

    fn schema() -> Schema {
        text().into()
    }
}

/// The field `metadata` of a webhook: the group that limits its events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebhookMetadata {
    /// The group. `None` if the field is absent, `Some(None)` if it is null.
    pub content_group_id: Option<Option<ContentGroupId>>,
}

impl FieldValue for WebhookMetadata {
    fn parse(value: Value, context: &mut FieldContext<'_>) -> Parsed<Self> {
        let Value::Object(mut object) = value else {
            return context.wrong_type("an object", &value);
        };
        let mut context = context.within(crate::problem::Step::Field("contentGroupId".to_owned()));
        let content_group_id = match object.remove("contentGroupId") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(value) => Some(Some(ContentGroupId::parse(value, &mut context)?)),
        };
        Ok(Self { content_group_id })
    }

    fn schema() -> Schema {
        AnyOfBuilder::new().item(Ref::from_schema_name(schemas::NewWebhookMetadata::name())).into()
    }

    fn add_referenced(all: &mut Vec<(String, RefOr<Schema>)>) {
        let metadata = schemas::NewWebhookMetadata::schema();
        all.push((schemas::NewWebhookMetadata::name().into_owned(), metadata));
    }
}
