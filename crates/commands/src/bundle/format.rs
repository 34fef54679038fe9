//! The JSON of a bundle's files.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anyhow::Context;
use galley_domain::access_token::ExtensionName;
use galley_domain::asset::{Asset, AssetFilename};
use galley_domain::audit::AuditEntry;
use galley_domain::content_group::{ContentGroupName, PreviewUrl};
use galley_domain::content_piece::{
    ContentPieceFields, ContentPieceOverrides, CustomData, Description, Slug, Title,
};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::import_source::SourceHash;
use galley_domain::language::LanguageTag;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::publication::ContentView;
use galley_domain::revision::RevisionNote;
use galley_domain::role::{Role, RoleName};
use galley_domain::tag::{Tag, TagLabel};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{Variant, VariantKey, VariantLabel};
use galley_domain::webhook::{Webhook, WebhookName, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    Actor, AssetId, AuditEntryId, ContentGroupId, ContentPieceId, OrderKey, RoleId, TagId,
    Timestamp, UserId, VariantId, WebhookId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::members::Member;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The format version that this program writes, and the latest that it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The depth limit of nested arrays and objects: a tree of 100 levels is some 200 of JSON.
const NESTING_LIMIT: usize = 300;

/// Parses one JSON text. It may nest deeper than serde_json's default limit.
pub(super) fn from_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    if galley_content::json_depth(text) > NESTING_LIMIT {
        return Err(serde_json::Error::custom(format!("nested over {NESTING_LIMIT} levels")));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Declares the types of a bundle's JSON. A field with a condition is omitted where it is true.
macro_rules! bundle_types {
    ($($(#[$meta:meta])* $type:ident {
        $($(#[$field_meta:meta])* $field:ident: $field_type:ty $(= $omitted_if:literal)?,)*
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $type {$(
            $(#[$field_meta])*
            $(#[serde(skip_serializing_if = $omitted_if)])?
            pub(super) $field: $field_type,
        )*}
    )*};
}

bundle_types! {
    Manifest {
        /// The format version, [`FORMAT_VERSION`].
        galley_bundle: u32,
        workspace: BundleWorkspace,
    }

    BundleWorkspace {
        id: WorkspaceId,
        name: WorkspaceName,
        description: Option<ShortText> = "Option::is_none",
        logo: Option<WebReference> = "Option::is_none",
        language: Option<LanguageTag> = "Option::is_none",
    }

    BundleRole {
        id: RoleId,
        name: RoleName,
        description: Option<ShortText> = "Option::is_none",
        permissions: Vec<String>,
        base_type: Option<String> = "Option::is_none",
    }

    BundleMember {
        id: WorkspaceMemberId,
        role_id: RoleId,
        /// The address of an invited member.
        invited_email: Option<EmailAddress> = "Option::is_none",
        invited_name: Option<FullName> = "Option::is_none",
        /// Null while the invite is pending.
        user: Option<BundleUser>,
    }

    BundleUser {
        id: UserId,
        email: EmailAddress,
        username: Username,
        full_name: FullName,
        avatar: Option<WebReference> = "Option::is_none",
    }

    BundleTag {
        id: TagId,
        label: TagLabel,
        color: String,
    }

    /// An asset. Its file is `assets/files/<hash>`.
    BundleAsset {
        id: AssetId,
        /// The unguessable part of its address.
        key: String,
        filename: AssetFilename,
        alt: Option<ShortText> = "Option::is_none",
        content_group_id: Option<ContentGroupId> = "Option::is_none",
        created_at: Timestamp,
        /// The SHA-256 of the file, in hexadecimal digits.
        hash: String,
    }

    BundleVariant {
        id: VariantId,
        key: VariantKey,
        label: VariantLabel,
        description: Option<ShortText> = "Option::is_none",
    }

    /// A group. Its parent precedes it in the file.
    BundleGroup {
        id: ContentGroupId,
        name: ContentGroupName,
        ancestor: Option<ContentGroupId>,
        #[serde(default)]
        unique_slugs: bool = "std::ops::Not::not",
        /// The text of the schema.
        custom_data_schema: Option<CustomDataSchema> = "Option::is_none",
        preview_url: Option<PreviewUrl> = "Option::is_none",
    }

    /// A webhook, without its secret.
    BundleWebhook {
        id: WebhookId,
        name: WebhookName,
        description: Option<ShortText> = "Option::is_none",
        url: WebhookUrl,
        event: String,
        /// All events, if there are several.
        events: Option<Vec<String>> = "Option::is_none",
        content_group_id: Option<ContentGroupId> = "Option::is_none",
        /// True if it sends the events of the published view.
        #[serde(default)]
        published_view: bool = "std::ops::Not::not",
        extension: Option<ExtensionName> = "Option::is_none",
        enabled: bool,
        /// True if events are sent without the e-mail addresses of members.
        #[serde(default)]
        hides_emails: bool = "std::ops::Not::not",
    }

    BundlePiece {
        id: ContentPieceId,
        content_group_id: ContentGroupId,
        order: OrderKey,
        created_at: Timestamp,
        updated_at: Timestamp,
        created_by: Option<Actor> = "Option::is_none",
        updated_by: Option<Actor> = "Option::is_none",
        title: Title,
        slug: Slug,
        date: Option<Timestamp> = "Option::is_none",
        description: Option<Description> = "Option::is_none",
        cover_url: Option<WebReference> = "Option::is_none",
        cover_alt: Option<ShortText> = "Option::is_none",
        cover_width: Option<ShortText> = "Option::is_none",
        canonical_link: Option<WebReference> = "Option::is_none",
        filename: Option<ShortText> = "Option::is_none",
        custom_data: Option<CustomData> = "Option::is_none",
        tags: Vec<TagId>,
        members: Vec<WorkspaceMemberId>,
        content: Value,
        /// Its overrides in variants.
        #[serde(default)]
        variants: BTreeMap<VariantId, BundleOverride> = "BTreeMap::is_empty",
        /// The sources that it was imported from.
        #[serde(default)]
        sources: Vec<NotedSource> = "Vec::is_empty",
        publication: Option<BundlePublication> = "Option::is_none",
    }

    /// The publication of a piece, and its schedule.
    BundlePublication {
        published: Option<BundlePublishedRevision> = "Option::is_none",
        publish_at: Option<Timestamp> = "Option::is_none",
        /// The number of the revision that is published then; absent for the latest one.
        publish_revision: Option<i64> = "Option::is_none",
        unpublish_at: Option<Timestamp> = "Option::is_none",
    }

    /// A published revision.
    BundlePublishedRevision {
        /// Its number.
        revision: i64,
        at: Timestamp,
        by: Actor,
    }

    /// A deleted group with the groups below it.
    BundleTrashedGroup {
        /// The group that contained it.
        content_group_id: Option<ContentGroupId> = "Option::is_none",
        deleted_at: Timestamp,
        deleted_by: Actor,
        /// The groups, beginning with the deleted one. Each follows its parent.
        groups: Vec<BundleGroup>,
    }

    /// A deleted piece.
    BundleTrashedPiece {
        /// The group with which it was deleted, unless it was deleted alone.
        deleted_with: Option<ContentGroupId> = "Option::is_none",
        deleted_at: Timestamp,
        deleted_by: Actor,
        piece: BundlePiece,
    }

    /// A change in the audit log.
    BundleAuditEntry {
        id: AuditEntryId,
        actor: Actor,
        action: String,
        target: String,
        revision: Option<i64> = "Option::is_none",
        request_id: Option<String> = "Option::is_none",
        remote_address: Option<IpAddr> = "Option::is_none",
        /// The changed fields, each with its values.
        changes: Option<Vec<Map<String, Value>>> = "Option::is_none",
    }

    /// A change of a piece, or of its overrides in a variant.
    BundleRevision {
        number: i64,
        variant: Option<VariantId> = "Option::is_none",
        created_at: Timestamp,
        created_by: Option<Actor> = "Option::is_none",
        origin: String,
        fields: Vec<String>,
        note: Option<RevisionNote> = "Option::is_none",
        /// True if it is kept for the states of other revisions only.
        #[serde(default)]
        hidden: bool = "std::ops::Not::not",
        /// True if it was published.
        #[serde(default)]
        published: bool = "std::ops::Not::not",
        /// The values of the fields before the change. Those without a value are omitted.
        #[serde(default)]
        before: BundleOverride,
    }

    /// The source of a piece, or of a piece in a variant.
    NotedSource {
        variant: Option<VariantId> = "Option::is_none",
        source_hash: SourceHash,
        imported_hash: SourceHash,
    }

    #[derive(Default)]
    BundleOverride {
        title: Option<Title> = "Option::is_none",
        slug: Option<Slug> = "Option::is_none",
        date: Option<Timestamp> = "Option::is_none",
        description: Option<Description> = "Option::is_none",
        cover_url: Option<WebReference> = "Option::is_none",
        cover_alt: Option<ShortText> = "Option::is_none",
        cover_width: Option<ShortText> = "Option::is_none",
        canonical_link: Option<WebReference> = "Option::is_none",
        filename: Option<ShortText> = "Option::is_none",
        custom_data: Option<CustomData> = "Option::is_none",
        tags: Option<Vec<TagId>> = "Option::is_none",
        members: Option<Vec<WorkspaceMemberId>> = "Option::is_none",
        content: Option<Value> = "Option::is_none",
    }
}

/// Builds a value of a type with a piece's fields from another one with fields of the same names.
macro_rules! with_fields_of {
    ($source:expr => $type:path { $($more:tt)* }) => {{
        let source = $source;
        $type {
            date: source.date,
            title: source.title,
            description: source.description,
            slug: source.slug,
            cover_url: source.cover_url,
            cover_alt: source.cover_alt,
            cover_width: source.cover_width,
            canonical_link: source.canonical_link,
            filename: source.filename,
            custom_data: source.custom_data,
            tags: source.tags,
            members: source.members,
            $($more)*
        }
    }};
}
pub(super) use with_fields_of;

impl BundlePiece {
    pub(super) fn into_fields(self) -> ContentPieceFields {
        with_fields_of!(self => ContentPieceFields {})
    }
}

impl BundleOverride {
    pub(super) fn new(overrides: ContentPieceOverrides, content: Option<Value>) -> Self {
        with_fields_of!(overrides => BundleOverride { content })
    }

    pub(super) fn into_overrides(self) -> ContentPieceOverrides {
        with_fields_of!(self => ContentPieceOverrides {})
    }
}

impl TryFrom<AuditEntry> for BundleAuditEntry {
    type Error = serde_json::Error;

    fn try_from(entry: AuditEntry) -> serde_json::Result<Self> {
        let changes = entry.changes.as_deref().map(serde_json::from_str).transpose()?;
        Ok(Self {
            id: entry.id,
            actor: entry.actor,
            action: entry.action.as_str().to_owned(),
            target: entry.target,
            revision: entry.revision,
            request_id: entry.request_id,
            remote_address: entry.remote_address.and_then(|address| address.parse().ok()),
            changes,
        })
    }
}

impl TryFrom<BundleAuditEntry> for AuditEntry {
    type Error = anyhow::Error;

    fn try_from(read: BundleAuditEntry) -> anyhow::Result<Self> {
        Ok(Self {
            id: read.id,
            actor: read.actor,
            action: read.action.parse().with_context(|| format!("{}: action", read.id))?,
            target: read.target,
            revision: read.revision,
            request_id: read.request_id,
            remote_address: read.remote_address.map(|address| address.to_string()),
            changes: read.changes.map(|changes| serde_json::to_string(&changes)).transpose()?,
        })
    }
}

impl From<Asset> for BundleAsset {
    fn from(asset: Asset) -> Self {
        Self {
            hash: asset.file.hash(),
            id: asset.id,
            key: asset.key.to_string(),
            filename: asset.filename,
            alt: asset.alt,
            content_group_id: asset.content_group_id,
            created_at: asset.created_at,
        }
    }
}

impl From<Role> for BundleRole {
    fn from(role: Role) -> Self {
        Self {
            id: role.id,
            name: role.name,
            description: role.description,
            permissions: role.permissions.iter().map(|one| one.to_string()).collect(),
            base_type: role.base_type.map(|base| base.as_str().to_owned()),
        }
    }
}

impl From<Member> for BundleMember {
    fn from(member: Member) -> Self {
        Self {
            id: member.id,
            role_id: member.role,
            invited_email: member.invited_email.map(EmailAddress::from_stored),
            invited_name: member.invited_name.map(FullName::from_stored),
            user: member.user.map(|user| BundleUser {
                id: user.id,
                email: EmailAddress::from_stored(user.email),
                username: Username::from_stored(user.username),
                full_name: FullName::from_stored(user.full_name),
                avatar: user.avatar.map(WebReference::from_stored),
            }),
        }
    }
}

impl From<Tag> for BundleTag {
    fn from(tag: Tag) -> Self {
        Self { id: tag.id, label: tag.label, color: tag.color.as_str().to_owned() }
    }
}

impl From<Variant> for BundleVariant {
    fn from(variant: Variant) -> Self {
        Self {
            id: variant.id,
            key: variant.key,
            label: variant.label,
            description: variant.description,
        }
    }
}

impl From<Webhook> for BundleWebhook {
    fn from(webhook: Webhook) -> Self {
        let events = webhook.events.as_slice();
        let names = || events.iter().map(|event| event.as_str().to_owned()).collect();
        Self {
            id: webhook.id,
            name: webhook.name,
            description: webhook.description,
            url: webhook.url,
            event: webhook.event.as_str().to_owned(),
            events: (events.len() > 1).then(names),
            content_group_id: webhook.content_group_id,
            published_view: webhook.view == ContentView::Published,
            extension: webhook.extension.map(ExtensionName::from_stored),
            enabled: webhook.enabled,
            hides_emails: webhook.hides_emails,
        }
    }
}
