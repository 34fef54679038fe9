//! The parts of the API's responses that an import reads.

use galley_domain::import_source::SourceHash;
use galley_domain::publication::PublicationState;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId, TagId, Timestamp, WorkspaceMemberId};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::fingerprint::{self, WrittenFields};

#[derive(Debug, Deserialize)]
pub(crate) struct CreatedResource<Id> {
    pub(crate) id: Id,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CreatedBatch {
    pub(crate) pieces: Vec<CreatedResource<ContentPieceId>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RemoteGroup {
    pub(crate) id: ContentGroupId,
    pub(crate) name: String,
}

/// A piece with its sources.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteKnownPiece {
    pub(crate) id: ContentPieceId,
    pub(crate) filename: Option<String>,
    pub(crate) sources: Vec<RemoteSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteSource {
    pub(crate) variant: Option<VariantKey>,
    pub(crate) source_hash: SourceHash,
    pub(crate) imported_hash: SourceHash,
}

/// A piece as an import compares it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemotePiece {
    pub(crate) title: String,
    pub(crate) slug: String,
    pub(crate) date: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) cover_url: Option<String>,
    pub(crate) cover_alt: Option<String>,
    pub(crate) cover_width: Option<String>,
    pub(crate) canonical_link: Option<String>,
    pub(crate) custom_data: Option<String>,
    pub(crate) tags: Vec<RemoteTag>,
    pub(crate) content: Box<RawValue>,
    pub(crate) publication: RemotePublication,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemotePublication {
    #[serde(deserialize_with = "publication_state")]
    pub(crate) state: PublicationState,
    #[serde(deserialize_with = "optional_time")]
    pub(crate) publish_at: Option<Timestamp>,
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
    pub(crate) fn hash(&self) -> SourceHash {
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
pub(crate) struct RemoteMember {
    pub(crate) id: WorkspaceMemberId,
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) profile: Option<RemoteProfile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemoteProfile {
    pub(crate) full_name: String,
    pub(crate) username: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RemoteTag {
    pub(crate) id: TagId,
    pub(crate) label: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RemoteVariant {
    pub(crate) id: String,
    pub(crate) key: VariantKey,
}
