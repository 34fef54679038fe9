//! The tags, members and variants that pieces refer to, and their cache.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join3};
use galley_api_types::content_piece::ReferencedResources;
use galley_api_types::tag::tag_json;
use galley_domain::content_piece::ContentPiece;
use galley_domain::variant::VariantKey;
use galley_domain::{Actor, TagId, VariantId, WorkspaceId, WorkspaceMemberId};
use galley_storage::members::MemberProfile;
use galley_storage::{
    DataVersion, Database, LastModified, Result, Tx, WriteTx, members, tags, variants,
};
use quick_cache::sync::Cache;
use serde_json::value::RawValue;

/// Reads the tags, members and variants of `pieces`, each in one statement.
pub async fn of_pieces<'p>(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    pieces: impl Iterator<Item = &'p ContentPiece> + Clone + Send,
) -> Result<ReferencedResources> {
    let (tags, members, variants) = ids_of_pieces(pieces);
    find(tx, workspace, &tags, &members, &variants).await
}

/// Reads those of `tags`, `members` and `variants` that exist. The future is boxed, as the three
/// reads would otherwise enlarge that of every operation on pieces.
pub fn find<'r>(
    tx: &'r Tx<'_>,
    workspace: WorkspaceId,
    tags: &'r [TagId],
    members: &'r [WorkspaceMemberId],
    variants: &'r [VariantId],
) -> BoxFuture<'r, Result<ReferencedResources>> {
    Box::pin(async move {
        let (tags, members, variants) = try_join3(
            tags::find_all(tx, workspace, tags),
            members::profiles(tx, workspace, members),
            variants::find_all(tx, workspace, variants),
        )
        .await?;
        Ok(ReferencedResources {
            tags: tags.iter().map(|tag| (tag.id, tag_json(tag).into())).collect(),
            members: members.into_iter().map(|member| (member.id, Arc::new(member))).collect(),
            variants: variants.into_iter().map(|one| (one.id, Arc::new(one.key))).collect(),
            hides_emails: false,
        })
    })
}

/// The ids of tags, members and variants.
type ReferencedIds = (Vec<TagId>, Vec<WorkspaceMemberId>, Vec<VariantId>);

/// Like [`find`], for a write. Reads only rows that are not in the cache.
pub(crate) fn find_for_write<'r>(
    tx: &'r WriteTx<'_>,
    cache: Option<&'r ReferenceCache>,
    workspace: WorkspaceId,
    tags: &'r [TagId],
    members: &'r [WorkspaceMemberId],
    variants: &'r [VariantId],
) -> BoxFuture<'r, Result<ReferencedResources>> {
    let Some(cache) = cache else {
        return find(tx, workspace, tags, members, variants);
    };
    let ids = (tags.to_vec(), members.to_vec(), variants.to_vec());
    Box::pin(async move {
        let state = StateBeforeRead::of_write(tx, workspace);
        cache.find(state.as_ref(), tx, workspace, ids).await
    })
}

/// The limit of cached tags, of members, and of variants.
const CACHE_CAPACITY: usize = 10_000;

/// The tags, members and variants of recent reads. An entry is valid until a change in its
/// workspace affects more than one piece, such as a change of a tag or member.
#[derive(Debug)]
pub(crate) struct ReferenceCache {
    tags: Cache<(WorkspaceId, TagId), CachedRow<RawValue>>,
    members: Cache<(WorkspaceId, WorkspaceMemberId), CachedRow<MemberProfile>>,
    variants: Cache<(WorkspaceId, VariantId), CachedRow<VariantKey>>,
}

#[derive(Debug)]
struct CachedRow<T: ?Sized> {
    row: Arc<T>,
    /// The row was read at this version, or later.
    version: DataVersion,
}

impl<T: ?Sized> Clone for CachedRow<T> {
    fn clone(&self) -> Self {
        Self { row: Arc::clone(&self.row), version: self.version }
    }
}

/// The state of the database before a read.
#[derive(Debug)]
pub(crate) struct StateBeforeRead {
    version: DataVersion,
    last_modified: LastModified,
}

impl StateBeforeRead {
    /// Returns the state of a workspace, or `None` on PostgreSQL, where each comparison would need
    /// a query.
    pub(crate) fn of(database: &Database, workspace: WorkspaceId) -> Option<Self> {
        // The version is read before the rows, so each row is at least as new as its version.
        let version = database.data_version()?;
        Some(Self { version, last_modified: database.last_modified(workspace)? })
    }

    /// Returns the state of a workspace before a write, or `None` if the write's transaction has
    /// changed rows that pieces share, and on PostgreSQL.
    fn of_write(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Option<Self> {
        let (version, last_modified) = tx.committed_state(workspace)?;
        Some(Self { version, last_modified })
    }

    /// Removes those of `ids` whose rows are cached, and returns these rows.
    fn take_cached<I: Copy + Eq + Hash, T: ?Sized>(
        &self,
        cache: &Cache<(WorkspaceId, I), CachedRow<T>>,
        workspace: WorkspaceId,
        ids: &mut Vec<I>,
    ) -> HashMap<I, Arc<T>> {
        let mut known = HashMap::with_capacity(ids.len());
        ids.retain(|&id| match cache.get(&(workspace, id)) {
            Some(cached) if self.last_modified.shared_is_unchanged_since(cached.version) => {
                known.insert(id, cached.row);
                false
            }
            _ => true,
        });
        known
    }

    fn cache<I: Copy + Eq + Hash, T: ?Sized>(
        &self,
        cache: &Cache<(WorkspaceId, I), CachedRow<T>>,
        workspace: WorkspaceId,
        found: &HashMap<I, Arc<T>>,
    ) {
        for (&id, row) in found {
            let row = CachedRow { row: Arc::clone(row), version: self.version };
            cache.insert((workspace, id), row);
        }
    }
}

impl Default for ReferenceCache {
    fn default() -> Self {
        Self {
            tags: Cache::new(CACHE_CAPACITY),
            members: Cache::new(CACHE_CAPACITY),
            variants: Cache::new(CACHE_CAPACITY),
        }
    }
}

impl ReferenceCache {
    /// Like [`of_pieces`], but reads only rows that are not in the cache.
    pub(crate) async fn of_pieces<'p>(
        &self,
        state: Option<&StateBeforeRead>,
        tx: &Tx<'_>,
        workspace: WorkspaceId,
        pieces: impl Iterator<Item = &'p ContentPiece> + Clone + Send,
    ) -> Result<ReferencedResources> {
        self.find(state, tx, workspace, ids_of_pieces(pieces)).await
    }

    /// Like [`find`], but reads only rows that are not in the cache.
    async fn find(
        &self,
        state: Option<&StateBeforeRead>,
        tx: &Tx<'_>,
        workspace: WorkspaceId,
        (mut tags, mut members, mut variants): ReferencedIds,
    ) -> Result<ReferencedResources> {
        let Some(state) = state else {
            return find(tx, workspace, &tags, &members, &variants).await;
        };
        let mut known = ReferencedResources {
            tags: state.take_cached(&self.tags, workspace, &mut tags),
            members: state.take_cached(&self.members, workspace, &mut members),
            variants: state.take_cached(&self.variants, workspace, &mut variants),
            hides_emails: false,
        };
        if tags.is_empty() && members.is_empty() && variants.is_empty() {
            return Ok(known);
        }
        let found = find(tx, workspace, &tags, &members, &variants).await?;
        state.cache(&self.tags, workspace, &found.tags);
        state.cache(&self.members, workspace, &found.members);
        state.cache(&self.variants, workspace, &found.variants);
        known.tags.extend(found.tags);
        known.members.extend(found.members);
        known.variants.extend(found.variants);
        Ok(known)
    }
}

/// Returns the tags, members and variants of pieces, each once. The authors are among the members.
fn ids_of_pieces<'p>(pieces: impl Iterator<Item = &'p ContentPiece> + Clone) -> ReferencedIds {
    let tags = distinct(pieces.clone().flat_map(|piece| &piece.fields.tags).copied());
    let members = pieces.clone().flat_map(|piece| &piece.fields.members);
    let actors = |piece: &'p ContentPiece| {
        let publisher = piece.publication.published.map(|published| published.by);
        [piece.created_by, piece.updated_by, publisher].into_iter()
    };
    let members = members_and_actors(members, pieces.clone().flat_map(actors).flatten());
    (tags, members, distinct(pieces.flat_map(|piece| &piece.variants).copied()))
}

/// Returns members, and the members of actors, each once.
pub fn members_and_actors<'m>(
    members: impl IntoIterator<Item = &'m WorkspaceMemberId>,
    actors: impl IntoIterator<Item = Actor>,
) -> Vec<WorkspaceMemberId> {
    let actors = actors.into_iter().filter_map(Actor::member);
    distinct(members.into_iter().copied().chain(actors))
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}
