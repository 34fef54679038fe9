//! The sources that pieces were imported from. They are an importer's records, not part of the
//! piece or its events.

use std::collections::HashMap;

use galley_api_types::problem::{Issue, Step};
use galley_domain::audit::AuditAction;
use galley_domain::content_piece::ContentPiece;
use galley_domain::import_source::ImportSource;
use galley_domain::variant::{VariantKey, VariantRef};
use galley_domain::{ContentGroupId, ContentPieceId, VariantId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery, Position, Sort, SortKey};
use galley_storage::import_sources::{self, PieceSource};
use galley_storage::{IdPage, Tx, WriteTx, content_pieces, variants};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::scope::Scope;

/// A source to record.
#[derive(Debug, Clone)]
pub struct NewSource {
    /// The piece.
    pub piece: ContentPieceId,
    /// The variant; `None` for the piece itself.
    pub variant: Option<VariantRef>,
    /// Its source.
    pub source: ImportSource,
}

/// The filters and the page of a list of sources.
#[derive(Debug, Clone)]
pub struct SourceListRequest {
    /// Lists only pieces in these groups.
    pub groups: Option<Vec<ContentGroupId>>,
    /// Includes the pieces in all groups below these groups.
    pub subtree: bool,
    /// The page.
    pub page: IdPage,
}

/// The sources of pieces, each with its variant's key.
pub type SourcesOfPieces = HashMap<ContentPieceId, Vec<(Option<VariantKey>, ImportSource)>>;

/// Lists pieces in the caller's scope, and their sources.
pub async fn list(
    caller: &Caller,
    request: SourceListRequest,
) -> Result<(Vec<ContentPiece>, SourcesOfPieces), Error> {
    let scope = caller.scope();
    scope.require_current_view()?;
    let read = async move |tx: &Tx<'_>| {
        let list = PieceListQuery {
            filters: PieceFilters {
                groups: request.groups.clone(),
                subtree: request.subtree,
                within: scope.content_groups.clone(),
                ..PieceFilters::default()
            },
            sort: Sort { key: SortKey::CreatedAt, descending: false },
            after: request.page.after.clone().map(Position::Id),
            limit: request.page.limit,
            offset: request.page.offset,
            ..PieceListQuery::default()
        };
        let listed = content_piece_list::list(tx, scope.workspace, &list).await?;
        let pieces: Vec<_> = listed.into_iter().map(|(piece, _)| piece).collect();
        let ids: Vec<_> = pieces.iter().map(|piece| piece.id).collect();
        let sources = list_in(tx, &scope, &ids).await?;
        Ok((pieces, sources))
    };
    caller.read_long("content_pieces.sources", read).await
}

/// Returns the sources of some pieces, each with its variant's key.
pub async fn list_in(
    tx: &Tx<'_>,
    scope: &Scope,
    pieces: &[ContentPieceId],
) -> Result<SourcesOfPieces, Error> {
    let sources = import_sources::list(tx, scope.workspace, pieces).await?;
    let mut keys: HashMap<VariantId, VariantKey> = HashMap::new();
    if sources.iter().any(|one| one.variant.is_some()) {
        let all = variants::list(tx, scope.workspace, &IdPage::default()).await?;
        keys.extend(all.into_iter().map(|variant| (variant.id, variant.key)));
    }
    let mut by_piece: HashMap<_, Vec<_>> = HashMap::new();
    for PieceSource { piece, variant, source } in sources {
        let key = variant.and_then(|variant| keys.get(&variant).cloned());
        by_piece.entry(piece).or_default().push((key, source));
    }
    Ok(by_piece)
}

/// Saves sources of pieces.
pub async fn save(caller: &Caller, sources: Vec<NewSource>) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        save_in(tx, &own.scope(), &sources).await?;
        let changes = AuditChanges::created(serde_json::json!({"sources": sources.len()}));
        own.record(tx, AuditAction::WorkspaceImport, own.workspace(), changes);
        Ok(())
    };
    caller.write("content_pieces.save_sources", write).await
}

/// Records sources, replacing earlier ones.
pub async fn save_in(tx: &WriteTx<'_>, scope: &Scope, new: &[NewSource]) -> Result<(), Error> {
    let mut issues = Vec::new();
    let unknown = |index: usize, field: &str, what: &str| {
        let [list, field] = ["sources".to_owned(), field.to_owned()].map(Step::Field);
        Issue::unknown_reference(vec![list, Step::Item(index), field], what)
    };
    // Both are locked until the end, as rows refer to them. Lock order: variants first, then pieces
    // by id, to avoid a deadlock between two requests.
    let mut found = Vec::with_capacity(new.len());
    for (index, one) in new.iter().enumerate() {
        let variant = match &one.variant {
            None => None,
            Some(name) => {
                let variant = variants::find_named_for_override(tx, scope.workspace, name).await?;
                if variant.is_none() {
                    issues.push(unknown(index, "variant", "variant"));
                }
                variant.map(|variant| variant.id)
            }
        };
        let source = one.source.clone();
        found.push((index, PieceSource { piece: one.piece, variant, source }));
    }
    Error::reject_issues(std::mem::take(&mut issues))?;
    found.sort_by_key(|(_, one)| one.piece);
    for (index, one) in &found {
        let found = content_pieces::find_for_update(tx, scope.workspace, one.piece).await?;
        if !found.is_some_and(|(_, path)| scope.contains(&path)) {
            issues.push(unknown(*index, "contentPieceId", "content piece"));
        }
    }
    Error::reject_issues(issues)?;
    for (_, one) in &found {
        import_sources::save(tx, scope.workspace, one).await?;
    }
    Ok(())
}
