//! The pieces of a group and their references, as of one snapshot of the store.

use std::collections::HashMap;

use galley_application::Error;
use galley_domain::content_group::ContentGroup;
use galley_domain::content_piece::ContentPiece;
use galley_domain::publication::{ContentView, PublicationState};
use galley_domain::variant::Variant;
use galley_domain::{ContentGroupId, TagId, VariantId, WorkspaceId, WorkspaceMemberId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery, Position, Sort, SortKey};
use galley_storage::content_piece_view::{PieceInView, View};
use galley_storage::{IdPage, Snapshot, Tx, content_groups, members, tags, variants};

/// The number of pieces in one read.
const PAGE: i64 = 32;

/// The data that pieces refer to.
pub(super) struct ExportSource {
    workspace: WorkspaceId,
    group: ContentGroupId,
    /// The groups below the exported one, each with its parent.
    groups: HashMap<ContentGroupId, (ContentGroup, Option<ContentGroupId>)>,
    tags: HashMap<TagId, String>,
    /// The usernames of members. Invited members have none.
    members: HashMap<WorkspaceMemberId, String>,
    pub(super) variants: Vec<Variant>,
    view: ContentView,
    /// True if files name the pieces whose latest revision is not published.
    pub(super) marks_drafts: bool,
}

impl ExportSource {
    pub(super) async fn read(
        snapshot: &Snapshot,
        workspace: WorkspaceId,
        group: ContentGroupId,
        view: ContentView,
    ) -> Result<Self, Error> {
        let read = async move |tx: &Tx<'_>| {
            let groups = content_groups::subtree(tx, workspace, &[group]).await?;
            let groups = groups.into_iter().map(|(group, parent)| (group.id, (group, parent)));
            let tags = tags::list(tx, workspace, None, &IdPage::default()).await?.into_iter();
            let members = members::list(tx, workspace, &IdPage::default()).await?.into_iter();
            let named = members.filter_map(|member| Some((member.id, member.user?.username)));
            let variants = variants::list(tx, workspace, &IdPage::default()).await?;
            // In a workspace that publishes nothing, all pieces are drafts.
            let published = PieceListQuery {
                limit: 1,
                view: View { of: ContentView::Published, ..View::default() },
                ..PieceListQuery::default()
            };
            let marks_drafts = view == ContentView::Current
                && !content_piece_list::list(tx, workspace, &published).await?.is_empty();
            Ok::<_, Error>(Self {
                workspace,
                group,
                groups: groups.collect(),
                tags: tags.map(|tag| (tag.id, tag.label.as_str().to_owned())).collect(),
                members: named.collect(),
                variants,
                view,
                marks_drafts,
            })
        };
        snapshot.read("export.source", read).await
    }

    /// Reads a page of pieces, in the order of their creation.
    pub(super) async fn page(
        &self,
        snapshot: &Snapshot,
        after: Option<Position>,
        variant: Option<VariantId>,
    ) -> Result<Vec<PieceInView>, Error> {
        let (workspace, group, of) = (self.workspace, self.group, self.view);
        let read = async move |tx: &Tx<'_>| {
            let query = PieceListQuery {
                filters: PieceFilters {
                    groups: Some(vec![group]),
                    subtree: true,
                    ..PieceFilters::default()
                },
                sort: Sort { key: SortKey::CreatedAt, descending: false },
                after: after.clone(),
                limit: PAGE,
                view: View { of, variant, content: true, ..View::default() },
                ..PieceListQuery::default()
            };
            Ok::<_, Error>(content_piece_list::list(tx, workspace, &query).await?)
        };
        snapshot.read("export.page", read).await
    }

    /// Returns the groups between the exported one and a piece, from the top.
    pub(super) fn folders(&self, mut group: ContentGroupId) -> Vec<&str> {
        let mut folders = Vec::new();
        while group != self.group
            && let Some((known, parent)) = self.groups.get(&group)
        {
            folders.push(known.name.as_str());
            let Some(parent) = parent else { break };
            group = *parent;
        }
        folders.reverse();
        folders
    }

    /// Returns true if the file of a piece names it a draft.
    pub(super) fn is_draft(&self, piece: &ContentPiece) -> bool {
        self.marks_drafts
            && piece.publication.state(piece.latest_revision()) != PublicationState::Published
    }

    pub(super) fn labels(&self, piece: &ContentPiece) -> Vec<&str> {
        piece.fields.tags.iter().filter_map(|tag| self.tags.get(tag)).map(String::as_str).collect()
    }

    pub(super) fn usernames(&self, piece: &ContentPiece) -> Vec<&str> {
        let members = piece.fields.members.iter();
        members.filter_map(|member| self.members.get(member)).map(String::as_str).collect()
    }
}
