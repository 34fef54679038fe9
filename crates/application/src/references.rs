//! The tags and members that pieces refer to.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::content_piece::ContentPiece;
use galley_domain::{TagId, WorkspaceId, WorkspaceMemberId};
use galley_storage::{Result, Tx, members, tags};

/// Reads the tags and members of `pieces`, in two statements.
pub async fn of_pieces<'p>(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    pieces: impl Iterator<Item = &'p ContentPiece> + Clone + Send,
) -> Result<ReferencedResources> {
    let tags = distinct(pieces.clone().flat_map(|piece| &piece.fields.tags));
    let members = distinct(pieces.flat_map(|piece| &piece.fields.members));
    find(tx, workspace, &tags, &members).await
}

/// Reads those of `tags` and `members` that exist.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    tags: &[TagId],
    members: &[WorkspaceMemberId],
) -> Result<ReferencedResources> {
    let (tags, members) = futures_util::future::try_join(
        tags::find_all(tx, workspace, tags),
        members::profiles(tx, workspace, members),
    )
    .await?;
    Ok(ReferencedResources {
        tags: tags.into_iter().map(|tag| (tag.id, tag)).collect(),
        members: members.into_iter().map(|member| (member.id, member)).collect(),
    })
}

fn distinct<'i, T: Copy + Ord + 'i>(items: impl Iterator<Item = &'i T>) -> Vec<T> {
    let mut items: Vec<T> = items.copied().collect();
    items.sort_unstable();
    items.dedup();
    items
}
