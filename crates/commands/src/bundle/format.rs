//! The JSON of a bundle's files.

use std::collections::BTreeMap;

use galley_domain::access_token::ExtensionName;
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{
    ContentPieceFields, ContentPieceOverrides, CustomData, Description, Slug, Title,
};
use galley_domain::import_source::SourceHash;
use galley_domain::people::{EmailAddress, FullName, Username};
use galley_domain::role::{Role, RoleName};
use galley_domain::tag::{Tag, TagLabel};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{Variant, VariantKey, VariantLabel};
use galley_domain::webhook::{Webhook, WebhookName, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    ContentGroupId, ContentPieceId, OrderKey, RoleId, TagId, Timestamp, UserId, VariantId,
    WebhookId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::members::Member;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format version that this program writes, and the latest that it reads.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The depth limit of nested arrays and objects: a tree of 100 levels is some 200 of JSON.
const NESTING_LIMIT: usize = 300;

/// Parses one JSON text. It may nest deeper than serde_json's default limit.
pub(super) fn from_json<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    if depth(text) > NESTING_LIMIT {
        return Err(serde_json::Error::custom(format!("nested over {NESTING_LIMIT} levels")));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Returns the maximum nesting depth of a JSON text.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for &byte in text {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Manifest {
    /// The format version, [`FORMAT_VERSION`].
    pub(super) galley_bundle: u32,
    pub(super) workspace: BundleWorkspace,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleWorkspace {
    pub(super) id: WorkspaceId,
    pub(super) name: WorkspaceName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logo: Option<WebReference>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleRole {
    pub(super) id: RoleId,
    pub(super) name: RoleName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<ShortText>,
    pub(super) permissions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_type: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleMember {
    pub(super) id: WorkspaceMemberId,
    pub(super) role_id: RoleId,
    /// The address of an invited member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) invited_email: Option<EmailAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) invited_name: Option<FullName>,
    /// Null while the invite is pending.
    pub(super) user: Option<BundleUser>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleUser {
    pub(super) id: UserId,
    pub(super) email: EmailAddress,
    pub(super) username: Username,
    pub(super) full_name: FullName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) avatar: Option<WebReference>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleTag {
    pub(super) id: TagId,
    pub(super) label: TagLabel,
    pub(super) color: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleVariant {
    pub(super) id: VariantId,
    pub(super) key: VariantKey,
    pub(super) label: VariantLabel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<ShortText>,
}

/// A group. Its parent precedes it in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleGroup {
    pub(super) id: ContentGroupId,
    pub(super) name: ContentGroupName,
    pub(super) ancestor: Option<ContentGroupId>,
}

/// A webhook, without its secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleWebhook {
    pub(super) id: WebhookId,
    pub(super) name: WebhookName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<ShortText>,
    pub(super) url: WebhookUrl,
    pub(super) event: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_group_id: Option<ContentGroupId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extension: Option<ExtensionName>,
    pub(super) enabled: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundlePiece {
    pub(super) id: ContentPieceId,
    pub(super) content_group_id: ContentGroupId,
    pub(super) order: OrderKey,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) title: Title,
    pub(super) slug: Slug,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<Description>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_url: Option<WebReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_alt: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_width: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) canonical_link: Option<WebReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom_data: Option<CustomData>,
    pub(super) tags: Vec<TagId>,
    pub(super) members: Vec<WorkspaceMemberId>,
    pub(super) content: Value,
    /// Its overrides in variants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) variants: BTreeMap<VariantId, BundleOverride>,
    /// The sources that it was imported from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sources: Vec<NotedSource>,
}

/// The source of a piece, or of a piece in a variant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NotedSource {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) variant: Option<VariantId>,
    pub(super) source_hash: SourceHash,
    pub(super) imported_hash: SourceHash,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BundleOverride {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<Title>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) slug: Option<Slug>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) date: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<Description>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_url: Option<WebReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_alt: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cover_width: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) canonical_link: Option<WebReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filename: Option<ShortText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) custom_data: Option<CustomData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<Vec<TagId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) members: Option<Vec<WorkspaceMemberId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Value>,
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
        Self {
            id: webhook.id,
            name: webhook.name,
            description: webhook.description,
            url: webhook.url,
            event: webhook.event.as_str().to_owned(),
            content_group_id: webhook.content_group_id,
            extension: webhook.extension.map(ExtensionName::from_stored),
            enabled: webhook.enabled,
        }
    }
}
