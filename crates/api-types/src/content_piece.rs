//! The JSON representation of a content piece.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use galley_content::ConversionWarning;
use galley_domain::content_piece::{ContentPiece, CustomData, Description, Slug, Title};
use galley_domain::revision::RevisionNote;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::VariantKey;
use galley_domain::{
    Actor, ContentGroupId, ContentPieceId, OrderKey, TagId, Timestamp, UserId, VariantId,
    WorkspaceMemberId,
};
use galley_storage::members::MemberProfile;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::actor::ActorBody;
use crate::content::{Content, ContentFormat};
use crate::conversion_warning::ConversionWarningBody;
use crate::publication::{PublicationBody, PublicationJson};
use crate::request::{ContentField, DescriptionHtml, Objects, References, bodies, body};
use crate::revision::RevisionBody;
use crate::schemas;
use crate::tag::TagBody;

/// A content piece.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentPiece)]
#[serde(rename_all = "camelCase")]
pub struct ContentPieceBody<'a> {
    #[schema(value_type = schemas::ContentPieceId)]
    id: ContentPieceId,
    /// A time that the author chooses.
    #[schema(value_type = Option<schemas::Time>)]
    date: Option<Timestamp>,
    #[schema(example = "Hello")]
    title: &'a str,
    /// HTML, or plain text with `description=text`.
    #[schema(example = "<p>A first piece.</p>")]
    description: Option<&'a str>,
    /// The address of the cover image.
    #[schema(example = "https://example.org/cover.png")]
    cover_url: Option<&'a str>,
    /// The canonical URL of the piece.
    #[schema(example = "https://example.org/hello")]
    canonical_link: Option<&'a str>,
    /// The alternative text of the cover image.
    #[schema(example = "A harbour at dawn")]
    cover_alt: Option<&'a str>,
    #[schema(example = "hello.md")]
    filename: Option<&'a str>,
    #[schema(example = "1200px")]
    cover_width: Option<&'a str>,
    /// The group that directly contains the piece.
    #[schema(value_type = schemas::ContentGroupId)]
    content_group_id: ContentGroupId,
    #[schema(schema_with = schemas::custom_data)]
    custom_data: Option<CustomDataBody<'a>>,
    /// The slug. It need not be unique.
    #[schema(example = "hello")]
    slug: &'a str,
    members: Vec<PieceMemberBody<'a>>,
    #[schema(value_type = Vec<TagBody<'_>>)]
    tags: Vec<&'a RawValue>,
    /// The keys of the variants in which the piece overrides fields or its content.
    #[schema(value_type = Vec<String>, example = json!(["de"]))]
    variants: Vec<&'a str>,
    /// The sort key of the piece: bytewise order is list order. It is unique in the workspace.
    #[schema(value_type = String, example = "a0")]
    order: &'a OrderKey,
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    #[schema(value_type = schemas::Time)]
    updated_at: Timestamp,
    /// The author of the creation. Null if it is unknown.
    #[schema(value_type = Option<ActorBody<'_>>)]
    created_by: Option<ActorBody<'a>>,
    /// The author of the last change. Null if it is unknown.
    #[schema(value_type = Option<ActorBody<'_>>)]
    updated_by: Option<ActorBody<'a>>,
    #[schema(value_type = PublicationBody<'_>)]
    publication: PublicationJson<'a>,
    /// The changed variant, in the data of events only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    variant: Option<&'a str>,
    /// The content. Present only with `content=true`.
    #[schema(value_type = Content, required = false)]
    #[serde(skip_serializing_if = "is_written_apart")]
    content: (),
    /// The revision. Present only in `GET /content-pieces/revision`.
    #[schema(value_type = RevisionBody<'_>, required = false)]
    #[serde(skip_serializing_if = "is_written_apart")]
    revision: (),
    /// The parts of the sent content that the tree lacks, at most 500. Present only in responses to
    /// requests with content.
    #[schema(value_type = Vec<ConversionWarningBody<'_>>, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion_warnings: Option<Vec<ConversionWarningBody<'a>>>,
}

/// Returns true: the content and the revision are written as JSON texts.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_written_apart((): &()) -> bool {
    true
}

/// The custom data of a piece.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum CustomDataBody<'a> {
    /// The JSON text, as a string.
    Text(&'a str),
    /// The value of the text.
    Value(&'a RawValue),
}

/// A member in a content piece.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentPieceMember)]
struct PieceMemberBody<'a> {
    #[schema(value_type = schemas::WorkspaceMemberId)]
    id: WorkspaceMemberId,
    /// Null while the invite is pending.
    profile: Option<PieceMemberProfileBody<'a>>,
}

/// The user of a member.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ContentPieceMemberProfile)]
#[serde(rename_all = "camelCase")]
struct PieceMemberProfileBody<'a> {
    #[schema(value_type = schemas::UserId)]
    id: UserId,
    /// The address of the picture.
    #[schema(example = "https://example.org/ann.png")]
    avatar: Option<&'a str>,
    #[schema(example = "ann")]
    username: &'a str,
    #[schema(example = "Ann Example")]
    full_name: &'a str,
    /// Null without the permission `workspaceMemberships:read`.
    #[schema(example = "ann@example.org")]
    email: Option<&'a str>,
}

/// The tags, members and variants that pieces refer to.
#[derive(Debug, Default)]
pub struct ReferencedResources {
    /// Tags as JSON, which is written once for all pieces.
    pub tags: HashMap<TagId, Arc<RawValue>>,
    pub members: HashMap<WorkspaceMemberId, Arc<MemberProfile>>,
    pub variants: HashMap<VariantId, Arc<VariantKey>>,
    /// True if responses have no e-mail addresses of members and no names of actors.
    pub hides_emails: bool,
}

impl ReferencedResources {
    /// Returns the representation of an actor, with the name if it is shown.
    pub fn actor(&self, actor: Actor) -> ActorBody<'_> {
        self.actor_with_name(actor, !self.hides_emails)
    }

    fn actor_with_name(&self, actor: Actor, shows_name: bool) -> ActorBody<'_> {
        let member = actor.member().and_then(|id| self.members.get(&id));
        ActorBody::new(actor, member.filter(|_| shows_name).map(|member| &**member))
    }
}

/// The size of most pieces as JSON without content, in bytes.
const TYPICAL_SIZE: usize = 1_024;

impl<'a> ContentPieceBody<'a> {
    /// Creates the representation of a piece without its content. `description` has the requested
    /// format.
    pub fn new(
        piece: &'a ContentPiece,
        referenced: &'a ReferencedResources,
        description: Option<&'a str>,
    ) -> Self {
        Self::with_emails(piece, referenced, description, !referenced.hides_emails)
    }

    fn with_emails(
        piece: &'a ContentPiece,
        referenced: &'a ReferencedResources,
        description: Option<&'a str>,
        shows_emails: bool,
    ) -> Self {
        let fields = &piece.fields;
        let member = |id| {
            let member = referenced.members.get(id)?;
            Some(PieceMemberBody::new(member, shows_emails))
        };
        let actor = |actor: Option<Actor>| {
            actor.map(|actor| referenced.actor_with_name(actor, shows_emails))
        };
        let publisher = piece.publication.published.map(|published| published.by);
        let tag = |id| referenced.tags.get(id).map(|tag| &**tag);
        let variant = |id| referenced.variants.get(id).map(|key| key.as_str());
        Self {
            id: piece.id,
            date: fields.date,
            title: fields.title.as_str(),
            description,
            cover_url: fields.cover_url.as_ref().map(WebReference::as_str),
            canonical_link: fields.canonical_link.as_ref().map(WebReference::as_str),
            cover_alt: fields.cover_alt.as_ref().map(ShortText::as_str),
            filename: fields.filename.as_ref().map(ShortText::as_str),
            cover_width: fields.cover_width.as_ref().map(ShortText::as_str),
            content_group_id: piece.content_group_id,
            custom_data: fields
                .custom_data
                .as_ref()
                .map(|data| CustomDataBody::Text(data.as_str())),
            slug: fields.slug.as_str(),
            members: fields.members.iter().filter_map(member).collect(),
            tags: fields.tags.iter().filter_map(tag).collect(),
            variants: piece.variants.iter().filter_map(variant).collect(),
            content: (),
            revision: (),
            order: &piece.order,
            created_at: piece.created_at,
            updated_at: piece.updated_at,
            created_by: actor(piece.created_by),
            updated_by: actor(piece.updated_by),
            publication: PublicationJson::new(piece, actor(publisher)),
            variant: None,
            conversion_warnings: None,
        }
    }

    /// Adds the warnings of the conversion of its content.
    #[must_use]
    pub fn with_conversion_warnings(self, warnings: &'a [ConversionWarning]) -> Self {
        let warnings = warnings.iter().map(ConversionWarningBody::from).collect();
        Self { conversion_warnings: Some(warnings), ..self }
    }

    /// Replaces the string of the custom data by its value.
    #[must_use]
    pub fn with_custom_data_value(self, value: &'a RawValue) -> Self {
        Self { custom_data: Some(CustomDataBody::Value(value)), ..self }
    }

    /// Writes the piece with its content, which is JSON already. As a `RawValue`, it would be
    /// validated first, which takes a tenth of an uncached read.
    pub fn write_json(&self, content: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        if content.is_none() {
            return Ok(serde_json::to_writer(out, self)?);
        }
        let mut json = Vec::with_capacity(TYPICAL_SIZE);
        serde_json::to_writer(&mut json, self)?;
        write_with_content(json, content, out)
    }

    /// Writes the selected fields of the piece, and its content.
    pub fn write_selected_json(
        &self,
        selection: FieldSelection,
        content: Option<&str>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let fields: HashMap<&str, &RawValue> = serde_json::from_slice(&json)?;
        let named = FieldSelection::NAMES.iter().filter(|name| selection.contains(name));
        let selected = named.filter_map(|&name| Some((name, *fields.get(name)?)));
        let mut json = Vec::with_capacity(TYPICAL_SIZE);
        serde_json::Serializer::new(&mut json).collect_map(selected)?;
        write_with_content(json, content, out)
    }

    /// Returns the JSON of a piece as the data of an event: without content, with the stored
    /// description, all e-mail addresses and the names of actors. After a change of a variant,
    /// `piece` is the piece as it is in this variant.
    pub fn event_data(
        piece: &'a ContentPiece,
        referenced: &'a ReferencedResources,
        variant: Option<&'a VariantKey>,
    ) -> String {
        let description = piece.fields.description.as_ref().map(Description::as_str);
        let body = Self::with_emails(piece, referenced, description, true);
        let body = Self { variant: variant.map(VariantKey::as_str), ..body };
        serde_json::to_string(&body).expect("resources are JSON")
    }
}

/// Writes the JSON object of a piece with its content.
fn write_with_content(
    mut json: Vec<u8>,
    content: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(content) = content else { return out.write_all(&json) };
    json.pop();
    json.extend_from_slice(b",\"content\":");
    out.write_all(&json)?;
    out.write_all(content.as_bytes())?;
    out.write_all(b"}")
}

/// A selection of the fields of a piece. It always has the id.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldSelection {
    /// The bits of the names in [`FieldSelection::NAMES`].
    bits: u32,
}

impl FieldSelection {
    /// The names of the fields of a piece.
    pub const NAMES: &[&str] = &[
        "id",
        "date",
        "title",
        "description",
        "coverUrl",
        "canonicalLink",
        "coverAlt",
        "filename",
        "coverWidth",
        "contentGroupId",
        "customData",
        "slug",
        "members",
        "tags",
        "variants",
        "order",
        "createdAt",
        "updatedAt",
        "createdBy",
        "updatedBy",
        "publication",
        "content",
    ];

    /// Adds a field. Returns false if there is none of this name.
    pub fn add(&mut self, name: &str) -> bool {
        let found = Self::NAMES.iter().position(|known| *known == name);
        self.bits |= found.map_or(0, |index| 1 << index);
        found.is_some()
    }

    /// Returns true if the field is selected.
    pub fn contains(self, name: &str) -> bool {
        let found = Self::NAMES.iter().position(|known| *known == name);
        found.is_some_and(|index| index == 0 || self.bits & (1 << index) != 0)
    }
}

impl<'a> PieceMemberBody<'a> {
    fn new(member: &'a MemberProfile, shows_email: bool) -> Self {
        let profile = member.user.as_ref().map(|user| PieceMemberProfileBody {
            id: user.id,
            avatar: user.avatar.as_deref(),
            username: &user.username,
            full_name: &user.full_name,
            email: shows_email.then_some(&user.email),
        });
        Self { id: member.id, profile }
    }
}

bodies! {
    /// A new content piece.
    NewPieceFields as "NewContentPiece",
    /// A change of a content piece.
    PieceFieldsChange as "ContentPieceChange" of ContentPieceId {
        /// The title. In a change of a variant, null removes the override.
        title: overridable Title = "Hello",
        /// The slug, without white space or control characters. It is stored unchanged and need not
        /// be unique. In a change of a variant, null removes the override.
        slug: overridable Slug = "hello",
        /// The tags, in this order. Duplicates are dropped. In a change of a variant, null removes
        /// the override.
        tags: overridable References<TagId>,
        /// The members, in this order. Duplicates are dropped. In a change of a variant, null
        /// removes the override.
        members: overridable References<WorkspaceMemberId>,
        /// The group that directly contains the piece.
        content_group_id: required ContentGroupId,
        /// A time that the author chooses: an ISO 8601 date, or date and time. A time without an
        /// offset is in UTC. An empty string counts as absent.
        date: optional Timestamp = "2027-01-01T09:00:00+01:00",
        /// The address of the cover image: an absolute http or https URL, or a relative reference.
        cover_url: optional WebReference = "https://example.org/cover.png",
        /// The alternative text of the cover image.
        cover_alt: optional ShortText = "A harbour at dawn",
        cover_width: optional ShortText = "1200px",
        /// The canonical URL of the piece: an absolute http or https URL, or a relative reference.
        canonical_link: optional WebReference = "https://example.org/hello",
        filename: optional ShortText = "hello.md",
        /// Custom JSON, up to 262,144 bytes: as a string, which is stored byte for byte, or as an
        /// object or array. An empty string counts as absent.
        custom_data: optional CustomData = "{\"pinned\":true}",
        /// The piece of the same group after which this one is placed. In a change, null moves it
        /// to the front.
        reference_id: optional ContentPieceId,
    } also {
        /// HTML, up to 65,536 bytes. Unsafe markup is removed.
        description: optional DescriptionHtml = "<p>A first piece.</p>",
        /// The content: a tree, or a text in the format of `contentFormat`, up to 2 MiB by default.
        /// Null empties the content. The rendering of the stored content changes nothing.
        content: optional ContentField = "<p>Hello <b>world</b></p>",
        /// The format of `content`. Without it, a text is HTML.
        content_format: optional ContentFormat = "json",
    } also_in_change {
        /// The identifier or key of the variant to change. The given fields become overrides in
        /// this variant, and null removes an override.
        variant: optional String = serde_json::Value::Null,
        /// True for an automatic save: it replaces the author's latest one of the last ten minutes,
        /// and its event is sent with the next change, or after a minute without one.
        autosave: defaulted bool = false,
        /// A note on the revision, up to 255 characters without control characters.
        note: optional RevisionNote = serde_json::Value::Null,
    }
}

body! {
    /// Content to convert.
    new ContentConversion {} also {
        /// The content: a tree, or a text in the format of `contentFormat`, up to 2 MiB by default.
        content: required ContentField = "<p>Hello <b>world</b></p>",
        /// The format of `content`. Without it, a text is HTML.
        content_format: optional ContentFormat = "json",
    }
}

body! {
    /// The content pieces to create.
    new NewContentPieces {
        /// The pieces, in the order of their creation.
        pieces: required Objects<NewPieceFields>,
    }
}
