//! A content piece in JSON.

use std::collections::HashMap;

use galley_domain::content_piece::{ContentPiece, CustomData, Description};
use galley_domain::tag::Tag;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, TagId, Timestamp, UserId};
use galley_domain::{WorkspaceId, WorkspaceMemberId};
use galley_storage::members::{self, MemberProfile};
use galley_storage::{Result, Tx, tags};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::representation::tag::TagBody;

/// A piece.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentPieceBody<'a> {
    id: ContentPieceId,
    date: Option<Timestamp>,
    title: &'a str,
    description: Option<&'a str>,
    cover_url: Option<&'a str>,
    canonical_link: Option<&'a str>,
    cover_alt: Option<&'a str>,
    filename: Option<&'a str>,
    cover_width: Option<&'a str>,
    content_group_id: ContentGroupId,
    custom_data: Option<&'a str>,
    slug: &'a str,
    members: Vec<MemberBody<'a>>,
    tags: Vec<TagBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a RawValue>,
    order: &'a OrderKey,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// In an event's data: the variant that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<&'a str>,
}

/// A member as a piece shows it.
#[derive(Debug, Serialize)]
struct MemberBody<'a> {
    id: WorkspaceMemberId,
    profile: Option<ProfileBody<'a>>,
}

/// The user behind a member.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileBody<'a> {
    id: UserId,
    avatar: Option<&'a str>,
    username: &'a str,
    full_name: &'a str,
    email: &'a str,
}

/// The tags and members that pieces name.
#[derive(Debug, Default)]
pub(crate) struct Referenced {
    pub(crate) tags: HashMap<TagId, Tag>,
    pub(crate) members: HashMap<WorkspaceMemberId, MemberProfile>,
}

impl Referenced {
    /// Reads what `pieces` name: two statements, however many pieces these are.
    pub(crate) async fn of<'p>(
        tx: &Tx<'_>,
        workspace: WorkspaceId,
        pieces: impl Iterator<Item = &'p ContentPiece> + Clone + Send,
    ) -> Result<Self> {
        let tags = distinct(pieces.clone().flat_map(|piece| &piece.fields.tags));
        let members = distinct(pieces.flat_map(|piece| &piece.fields.members));
        Self::find(tx, workspace, &tags, &members).await
    }

    /// Reads those of `tags` and `members` that are there.
    pub(crate) async fn find(
        tx: &Tx<'_>,
        workspace: WorkspaceId,
        tags: &[TagId],
        members: &[WorkspaceMemberId],
    ) -> Result<Self> {
        let (tags, members) = futures_util::future::try_join(
            tags::find_all(tx, workspace, tags),
            members::profiles(tx, workspace, members),
        )
        .await?;
        Ok(Self {
            tags: tags.into_iter().map(|tag| (tag.id, tag)).collect(),
            members: members.into_iter().map(|member| (member.id, member)).collect(),
        })
    }
}

fn distinct<'i, T: Copy + Ord + 'i>(items: impl Iterator<Item = &'i T>) -> Vec<T> {
    let mut items: Vec<T> = items.copied().collect();
    items.sort_unstable();
    items.dedup();
    items
}

impl<'a> ContentPieceBody<'a> {
    /// The piece as clients see it. `content` is JSON, `description` what is shown as such.
    pub(crate) fn new(
        piece: &'a ContentPiece,
        referenced: &'a Referenced,
        description: Option<&'a str>,
        content: Option<&'a RawValue>,
    ) -> Self {
        let fields = &piece.fields;
        let member = |id| referenced.members.get(id).map(MemberBody::from);
        let tag = |id| referenced.tags.get(id).map(TagBody::from);
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
            custom_data: fields.custom_data.as_ref().map(CustomData::as_str),
            slug: fields.slug.as_str(),
            members: fields.members.iter().filter_map(member).collect(),
            tags: fields.tags.iter().filter_map(tag).collect(),
            content,
            order: &piece.order,
            created_at: piece.created_at,
            updated_at: piece.updated_at,
            variant: None,
        }
    }

    /// The piece as an event's data: without content, its description as it is kept. Where a
    /// variant was changed, it is the piece as it is in this one.
    pub(crate) fn event_data(
        piece: &'a ContentPiece,
        referenced: &'a Referenced,
        variant: Option<&'a VariantKey>,
    ) -> String {
        let description = piece.fields.description.as_ref().map(Description::as_str);
        let body = Self::new(piece, referenced, description, None);
        let body = Self { variant: variant.map(VariantKey::as_str), ..body };
        serde_json::to_string(&body).expect("resources are JSON")
    }
}

impl<'a> From<&'a MemberProfile> for MemberBody<'a> {
    fn from(member: &'a MemberProfile) -> Self {
        let profile = member.user.as_ref().map(|user| ProfileBody {
            id: user.id,
            avatar: user.avatar.as_deref(),
            username: &user.username,
            full_name: &user.full_name,
            email: &user.email,
        });
        Self { id: member.id, profile }
    }
}
