//! A batch: the documents that an import writes in one transaction.

use std::collections::HashSet;
use std::sync::Arc;

use galley_application::custom_data_schema::WorkBudget;
use galley_application::operations::audit::record_import;
use galley_application::operations::content_pieces::{
    self, ContentPieceUpdate, NewContentPiece, PublicationRequest,
};
use galley_application::operations::import_sources::{self, NewSource};
use galley_application::operations::tags;
use galley_application::{Environment, Error, Scope, VersionPrecondition};
use galley_domain::content_piece::{ContentPiece, ContentPieceChange, ContentPieceFields};
use galley_domain::tag::Color;
use galley_domain::variant::VariantRef;
use galley_domain::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use galley_storage::content_piece_list::{self, PieceListQuery, Position, Sort, SortKey};
use galley_storage::{self as storage, WriteTx, ordering};

use crate::destination::{ImportOutcome, PreparedDocument, Task, WriteResult};
use crate::publication::PublicationChange;
use crate::raw::Document;

/// The number of known pieces in one read.
pub(super) const PAGE_SIZE: i64 = 1_000;

/// The data of a batch's transaction.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    pub(super) environment: Environment,
    pub(super) scope: Scope,
    pub(super) documents: Arc<Vec<PreparedDocument>>,
    pub(super) looked_until: ContentPieceId,
    pub(super) created: Arc<HashSet<ContentPieceId>>,
}

impl Batch {
    pub(super) async fn write(&self, tx: &WriteTx<'_>) -> Result<Vec<WriteResult>, Error> {
        ordering::lock_imports(tx, self.scope.workspace).await?;
        // Publications take this lock before those of pieces.
        ordering::lock(tx, self.scope.workspace).await?;
        let others = self.pieces_of_other_imports(tx).await?;
        let mut done = Vec::with_capacity(self.documents.len());
        for one in self.documents.iter() {
            let mut created = None;
            let written = match &one.task {
                Task::Create { group, .. }
                    if others.contains(&(*group, one.document.name.as_str().to_owned())) =>
                {
                    let problem = "another import has created the piece meanwhile: import again";
                    done.push(WriteResult::rejected(problem.to_owned()));
                    continue;
                }
                Task::Create { group, members } => {
                    let new = new_piece(one, *group, members, self.tags(tx, one).await?);
                    let (environment, scope) = (&self.environment, &self.scope);
                    let budget = &mut WorkBudget::default();
                    let made = content_pieces::create_in(tx, environment, scope, &new, budget);
                    let piece = created.insert(made.await?.piece);
                    WriteResult { id: Some(piece.id), outcome: ImportOutcome::Created }
                }
                Task::Update { id, version } => {
                    Box::pin(self.update(tx, one, *id, version.as_deref())).await?
                }
                Task::Record { id, .. } => {
                    WriteResult { id: Some(*id), outcome: ImportOutcome::Unchanged }
                }
                Task::Withdraw { id } => {
                    WriteResult { id: Some(*id), outcome: ImportOutcome::Conflict }
                }
            };
            let is_conflict = written.outcome == ImportOutcome::Conflict;
            if let (Some(piece), false) = (written.id, is_conflict) {
                let variant = one.variant.clone().map(VariantRef::Key);
                let source = NewSource { piece, variant, source: one.source.clone() };
                import_sources::save_in(tx, &self.scope, &[source]).await?;
            }
            if let (Some(id), true) = (written.id, !is_conflict || one.is_withdrawn()) {
                Box::pin(self.change_publication(tx, id, created, one)).await?;
            }
            done.push(written);
        }
        let count =
            |wanted: ImportOutcome| done.iter().filter(|written| written.outcome == wanted).count();
        let (created, updated) = (count(ImportOutcome::Created), count(ImportOutcome::Updated));
        if created + updated > 0 {
            record_import(tx, &self.environment, &self.scope, created, updated);
        }
        Ok(done)
    }

    /// Returns the groups and source names of the pieces that other imports have created meanwhile.
    /// Otherwise two imports of the same files would create each piece twice.
    async fn pieces_of_other_imports(
        &self,
        tx: &WriteTx<'_>,
    ) -> Result<HashSet<(ContentGroupId, String)>, Error> {
        let creates = |one: &PreparedDocument| matches!(one.task, Task::Create { .. });
        let mut found = HashSet::new();
        if !self.documents.iter().any(creates) {
            return Ok(found);
        }
        let mut after = self.looked_until;
        loop {
            let query = PieceListQuery {
                sort: Sort { key: SortKey::CreatedAt, descending: false },
                after: Some(Position::Id(after.to_string())),
                limit: PAGE_SIZE,
                ..PieceListQuery::default()
            };
            let page = content_piece_list::list(tx, self.scope.workspace, &query).await?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = last.id;
            let others = page.into_iter().filter(|(piece, _)| !self.created.contains(&piece.id));
            found.extend(others.filter_map(|(piece, _)| {
                Some((piece.content_group_id, piece.fields.filename?.as_str().to_owned()))
            }));
        }
    }

    /// Returns the ids of the document's tags. Creates missing ones.
    async fn tags(&self, tx: &WriteTx<'_>, one: &PreparedDocument) -> Result<Vec<TagId>, Error> {
        let mut ids = Vec::new();
        for label in &one.labels {
            let found = storage::tags::find_by_label(tx, self.scope.workspace, label).await?;
            let id = match found {
                Some(tag) => tag.id,
                None => {
                    let color = Color::default();
                    tags::create_in(tx, &self.environment, &self.scope, label, color).await?.id
                }
            };
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    async fn update(
        &self,
        tx: &WriteTx<'_>,
        one: &PreparedDocument,
        id: ContentPieceId,
        version: Option<&str>,
    ) -> Result<WriteResult, Error> {
        let before = storage::content_pieces::find(tx, self.scope.workspace, id).await?;
        let expected = version.and_then(|version| version.parse::<i64>().ok());
        if let (Some(before), Some(expected)) = (&before, expected)
            && before.version != expected
        {
            return Ok(WriteResult { id: Some(id), outcome: ImportOutcome::Conflict });
        }
        let expected = expected
            .map_or(VersionPrecondition::Any, |version| VersionPrecondition::OneOf(vec![version]));
        let tags = self.tags(tx, one).await?;
        let update = ContentPieceUpdate {
            variant: one.variant.clone().map(VariantRef::Key),
            change: change(&one.document, tags),
            content: Some(Some(one.document.content.clone())),
            ..ContentPieceUpdate::of(id)
        };
        let (environment, scope) = (&self.environment, &self.scope);
        let after = content_pieces::update_in(tx, environment, scope, &update, &expected).await?;
        let version = |piece: &ContentPiece| piece.version;
        let unchanged = before.as_ref().map(version) == Some(after.piece.version);
        let outcome = if unchanged { ImportOutcome::Unchanged } else { ImportOutcome::Updated };
        Ok(WriteResult { id: Some(id), outcome })
    }
}

impl Batch {
    async fn change_publication(
        &self,
        tx: &WriteTx<'_>,
        id: ContentPieceId,
        created: Option<ContentPiece>,
        one: &PreparedDocument,
    ) -> Result<(), Error> {
        let (environment, scope) = (&self.environment, &self.scope);
        let change = one.publication;
        if let (Some(piece), PublicationChange::PUBLISH) = (created, change) {
            // The new piece needs no lock, and has no variants yet.
            return content_pieces::publish_piece(tx, environment, scope, &piece, None).await;
        }
        let expected = match &one.task {
            Task::Record { version, .. } => version.parse().ok(),
            _ => None,
        };
        let expected = expected
            .map_or(VersionPrecondition::Any, |version| VersionPrecondition::OneOf(vec![version]));
        let publication = |at| PublicationRequest { id, revision: None, at, unpublish_at: None };
        if let Some(at) = change.schedule {
            let request = publication(Some(at));
            content_pieces::publish_in(tx, environment, scope, &request, &expected).await?;
        }
        if change.unpublish {
            content_pieces::unpublish_in(tx, environment, scope, id, None, &expected).await?;
        }
        if change.publish {
            let request = publication(None);
            content_pieces::publish_in(tx, environment, scope, &request, &expected).await?;
        }
        Ok(())
    }
}

fn new_piece(
    one: &PreparedDocument,
    group: ContentGroupId,
    members: &[WorkspaceMemberId],
    tags: Vec<TagId>,
) -> NewContentPiece {
    let document = one.document.clone();
    NewContentPiece {
        fields: ContentPieceFields {
            date: document.date,
            title: document.title,
            description: document.description,
            slug: document.slug,
            cover_url: document.cover_url,
            cover_alt: document.cover_alt,
            cover_width: document.cover_width,
            canonical_link: document.canonical_link,
            filename: Some(document.name),
            custom_data: document.custom_data,
            tags,
            members: members.to_vec(),
        },
        content_group_id: group,
        reference_id: None,
        content: document.content,
    }
}

/// Returns the fields that come from the file. Fields that only the service has (members, the
/// cover's width) stay.
fn change(document: &Document, tags: Vec<TagId>) -> ContentPieceChange {
    let document = document.clone();
    ContentPieceChange {
        date: Some(document.date),
        title: Some(Some(document.title)),
        description: Some(document.description),
        slug: Some(Some(document.slug)),
        cover_url: Some(document.cover_url),
        cover_alt: Some(document.cover_alt),
        cover_width: document.cover_width.map(Some),
        canonical_link: Some(document.canonical_link),
        filename: None,
        custom_data: Some(document.custom_data),
        tags: Some(Some(tags)),
        members: None,
    }
}
