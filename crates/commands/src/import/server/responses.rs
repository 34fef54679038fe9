//! The parts of the API's responses that an import reads.

use galley_domain::import_source::SourceHash;
use galley_domain::publication::PublicationState;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId, TagId, Timestamp, WorkspaceMemberId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::super::fingerprint::{self, WrittenFields};

#[derive(Debug, Deserialize)]
pub(super) struct CreatedResource<Id> {
    pub(super) id: Id,
}

#[derive(Debug, Deserialize)]
pub(super) struct CreatedBatch {
    pub(super) pieces: Vec<CreatedResource<ContentPieceId>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteGroup {
    pub(super) id: ContentGroupId,
    pub(super) name: String,
}

/// A piece with its sources.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteKnownPiece {
    pub(super) id: ContentPieceId,
    pub(super) filename: Option<String>,
    pub(super) sources: Vec<RemoteSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteSource {
    pub(super) variant: Option<VariantKey>,
    pub(super) source_hash: SourceHash,
    pub(super) imported_hash: SourceHash,
}

/// A piece as an import compares it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemotePiece {
    pub(super) title: String,
    pub(super) slug: String,
    pub(super) date: Option<String>,
    pub(super) description: Option<String>,
    pub(super) cover_url: Option<String>,
    pub(super) cover_alt: Option<String>,
    pub(super) cover_width: Option<String>,
    pub(super) canonical_link: Option<String>,
    pub(super) custom_data: Option<String>,
    pub(super) tags: Vec<RemoteTag>,
    pub(super) content: Box<RawValue>,
    pub(super) publication: RemotePublication,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemotePublication {
    #[serde(deserialize_with = "publication_state")]
    pub(super) state: PublicationState,
    #[serde(deserialize_with = "optional_time")]
    pub(super) publish_at: Option<Timestamp>,
}

fn optional_time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| Timestamp::parse_iso8601(&text)).transpose().map_err(D::Error::custom)
}

fn publication_state<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<PublicationState, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map_err(D::Error::custom)
}

impl RemotePiece {
    pub(super) fn hash(&self) -> SourceHash {
        let written = WrittenFields {
            title: &self.title,
            slug: &self.slug,
            date: self.date.clone(),
            description: self.description.as_deref(),
            cover_url: self.cover_url.as_deref(),
            cover_alt: self.cover_alt.as_deref(),
            canonical_link: self.canonical_link.as_deref(),
            custom_data: self.custom_data.as_deref(),
            labels: self.tags.iter().map(|tag| tag.label.as_str()).collect(),
            content_hash: &fingerprint::of_content(self.content.get()),
        };
        written.hash()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteMember {
    pub(super) id: WorkspaceMemberId,
    pub(super) email: String,
    pub(super) name: String,
    pub(super) profile: Option<RemoteProfile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteProfile {
    pub(super) full_name: String,
    pub(super) username: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteTag {
    pub(super) id: TagId,
    pub(super) label: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteVariant {
    pub(super) id: String,
    pub(super) key: VariantKey,
}
