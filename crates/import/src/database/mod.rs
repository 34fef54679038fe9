//! Writes pieces to the database directly, one transaction per batch.

mod batch;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galley_api_types::content_group::NewContentGroup;
use galley_api_types::variant::NewVariant;
use galley_application::operations::{content_groups, import_sources, variants};
use galley_application::{Environment, Error, Scope};
use galley_content::Tree;
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{ContentPiece, CustomData, Description};
use galley_domain::import_source::SourceHash;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{VariantKey, VariantLabel, VariantRef};
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, TagId, WorkspaceId};
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_list::{self, PieceListQuery, Position};
use galley_storage::content_piece_view::View;
use galley_storage::{self as storage, Database, Failure as _, IdPage, Tx, WriteTx, members};

use crate::authors::KnownMember;
use crate::destination::{
    CurrentPiece, Destination, ImportOutcome, KnownPiece, PreparedDocument, WriteFailure,
    WriteResult,
};
use crate::fingerprint::{self, WrittenFields};
use crate::group_path;
use crate::publication::PiecePublication;
use crate::raw::ContentForm;
use batch::{Batch, PAGE_SIZE};

/// More than a workspace has of any resource except content pieces.
const RESOURCE_LIST_LIMIT: i64 = 10_000;

/// A workspace in a database.
#[derive(Debug)]
pub struct DatabaseDestination {
    database: Database,
    environment: Environment,
    scope: Scope,
    /// True if a server uses the database at the same time.
    is_served: bool,
    /// Pieces of other imports before this id were among the known ones, or were found since.
    looked_until: ContentPieceId,
    /// The pieces that this import has created.
    created: HashSet<ContentPieceId>,
}

/// The largest difference between the clocks of two importers.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(2);

impl DatabaseDestination {
    /// Creates the destination of a workspace. The author of the changes is that of `scope`.
    /// `is_served` is true if servers use the database at the same time.
    pub fn new(
        database: Database,
        environment: Environment,
        scope: Scope,
        is_served: bool,
    ) -> Self {
        let looked_until = now_id(&environment);
        Self { database, environment, scope, is_served, looked_until, created: HashSet::new() }
    }

    async fn write_in_transaction(
        &mut self,
        documents: Vec<PreparedDocument>,
    ) -> Result<Vec<WriteResult>, Error> {
        let batch = Batch {
            environment: self.environment.clone(),
            scope: self.scope.clone(),
            documents: Arc::new(documents),
            looked_until: self.looked_until,
            created: Arc::new(std::mem::take(&mut self.created)),
        };
        let created = Arc::clone(&batch.created);
        let looked_until = now_id(&self.environment);
        let written = self.write_transaction(batch).await;
        self.created = Arc::unwrap_or_clone(created);
        if let Ok(written) = &written {
            let is_new = |one: &&WriteResult| one.outcome == ImportOutcome::Created;
            self.created.extend(written.iter().filter(is_new).filter_map(|one| one.id));
            self.looked_until = looked_until;
        }
        written
    }

    async fn write_transaction(&self, batch: Batch) -> Result<Vec<WriteResult>, Error> {
        let write = async move |tx: &WriteTx<'_>| Box::pin(batch.write(tx)).await;
        self.database.write("import.batch", write).await
    }
}

/// Returns an id before those of pieces that any importer creates from now on.
fn now_id(environment: &Environment) -> ContentPieceId {
    ContentPieceId::new(environment.new_id()).earlier(CLOCK_TOLERANCE)
}

/// Maps a storage error to a broken import, and any other error to a rejected document.
fn failure(error: Error) -> WriteFailure {
    match error.storage_error() {
        Some(_) => WriteFailure::Failed(anyhow::Error::new(error)),
        None => WriteFailure::Rejected(error.to_string()),
    }
}

impl Destination for DatabaseDestination {
    /// Small enough that other writes run between batches.
    const BATCH: usize = 16;
    const FORM: ContentForm = ContentForm::Json;

    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        group_path::find_in_database(&self.database, self.scope.workspace, wanted).await
    }

    async fn pieces(
        &mut self,
        group: Option<ContentGroupId>,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>> {
        let mut known = Vec::new();
        let mut after: Option<OrderKey> = None;
        loop {
            let query = PieceListQuery {
                filters: PieceFilters {
                    groups: group.map(|group| vec![group]),
                    subtree,
                    ..PieceFilters::default()
                },
                after: after.take().map(|order| Position::Order(order.as_str().to_owned())),
                limit: PAGE_SIZE,
                ..PieceListQuery::default()
            };
            let scope = self.scope.clone();
            let read = async move |tx: &Tx<'_>| {
                let page = content_piece_list::list(tx, scope.workspace, &query).await?;
                let ids: Vec<_> = page.iter().map(|(piece, _)| piece.id).collect();
                let sources = import_sources::list_in(tx, &scope, &ids).await?;
                Ok::<_, Error>((page, sources))
            };
            let read = self.database.read_long("import.known_pieces", read);
            let (page, mut sources) = read.await?;
            let Some(last) = page.last() else { return Ok(known) };
            after = Some(last.0.order.clone());
            known.extend(page.into_iter().map(|(piece, _)| KnownPiece {
                id: piece.id,
                source: piece.fields.filename.map(Into::into),
                sources: sources.remove(&piece.id).unwrap_or_default(),
            }));
        }
    }

    async fn members(&self) -> anyhow::Result<Vec<KnownMember>> {
        let workspace = self.scope.workspace;
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(members::list(tx, workspace, &IdPage::first(RESOURCE_LIST_LIMIT)).await?)
        };
        let members = self.database.read_long("import.members", read).await?.into_iter();
        let known = members.map(|member| {
            let mut known = KnownMember {
                id: member.id,
                emails: Vec::from_iter(member.invited_email),
                username: None,
                names: Vec::from_iter(member.invited_name),
            };
            if let Some(user) = member.user {
                known.emails.push(user.email);
                known.username = Some(user.username);
                known.names.push(user.full_name);
            }
            known
        });
        Ok(known.collect())
    }

    async fn variants(&self) -> anyhow::Result<Vec<VariantKey>> {
        let workspace = self.scope.workspace;
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(
                storage::variants::list(tx, workspace, &IdPage::first(RESOURCE_LIST_LIMIT)).await?,
            )
        };
        let variants = self.database.read_long("import.variants", read).await?;
        Ok(variants.into_iter().map(|variant| variant.key).collect())
    }

    async fn current(
        &self,
        wanted: &[(ContentPieceId, Option<VariantKey>)],
    ) -> anyhow::Result<Vec<Option<CurrentPiece>>> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let (workspace, wanted) = (self.scope.workspace, wanted.to_vec());
        let read = async move |tx: &Tx<'_>| {
            let mut current = Vec::with_capacity(wanted.len());
            for (id, key) in &wanted {
                current.push(current_piece(tx, workspace, *id, key.as_ref()).await?);
            }
            Ok::<_, Error>(current)
        };
        Ok(self.database.read_long("import.current_pieces", read).await?)
    }

    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, WriteFailure> {
        let (scope, environment) = (self.scope.clone(), self.environment.clone());
        let name = name.clone();
        let find_or_make = async move |tx: &WriteTx<'_>| {
            let workspace = scope.workspace;
            let page = IdPage::first(RESOURCE_LIST_LIMIT);
            let children =
                storage::content_groups::list_children(tx, workspace, Some(parent), &page).await?;
            if let Some(found) = children.into_iter().find(|child| child.name == name) {
                return Ok(found.id);
            }
            let new = NewContentGroup {
                name: name.clone(),
                ancestor: Some(parent),
                unique_slugs: None,
                custom_data_schema: None,
                preview_url: None,
            };
            Ok(content_groups::create_in(tx, &environment, &scope, &new).await?.id)
        };
        self.database.write("import.group", find_or_make).await.map_err(failure)
    }

    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), WriteFailure> {
        let (scope, environment) = (self.scope.clone(), self.environment.clone());
        let new = NewVariant { key: key.clone(), label: label.clone(), description: None };
        let find_or_make = async move |tx: &WriteTx<'_>| {
            let there =
                storage::variants::list(tx, scope.workspace, &IdPage::first(RESOURCE_LIST_LIMIT))
                    .await?;
            if !there.iter().any(|variant| variant.key.is_same_as(&new.key)) {
                variants::create_in(tx, &environment, &scope, new.clone()).await?;
            }
            Ok(())
        };
        self.database.write("import.variant", find_or_make).await.map_err(failure)
    }

    async fn write(
        &mut self,
        documents: Vec<PreparedDocument>,
    ) -> anyhow::Result<Vec<WriteResult>> {
        let started = Instant::now();
        let written = self.write_batch(documents).await?;
        if self.is_served {
            // The import pauses for the time that its batch blocked other writers.
            tokio::time::sleep(started.elapsed()).await;
        }
        Ok(written)
    }
}

impl DatabaseDestination {
    /// Writes documents in one transaction, or each in its own if one of them is rejected.
    async fn write_batch(
        &mut self,
        documents: Vec<PreparedDocument>,
    ) -> anyhow::Result<Vec<WriteResult>> {
        match self.write_in_transaction(documents.clone()).await.map_err(failure) {
            Ok(written) => return Ok(written),
            Err(WriteFailure::Failed(error)) => return Err(error),
            Err(WriteFailure::Rejected(_) | WriteFailure::Conflict) => {}
        }
        let mut written = Vec::with_capacity(documents.len());
        for document in documents {
            match self.write_in_transaction(vec![document.clone()]).await.map_err(failure) {
                Ok(one) => written.extend(one),
                Err(WriteFailure::Rejected(problem)) => {
                    written.push(WriteResult::rejected(problem));
                }
                Err(WriteFailure::Conflict) => {
                    written.push(WriteResult { id: None, outcome: ImportOutcome::Conflict });
                }
                Err(WriteFailure::Failed(error)) => return Err(error),
            }
        }
        Ok(written)
    }
}

/// Reads the current state of a piece, or of a piece in a variant.
async fn current_piece(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
    key: Option<&VariantKey>,
) -> Result<Option<CurrentPiece>, Error> {
    let shown = async |variant| {
        let view = View { variant, content: true, ..View::default() };
        storage::content_piece_view::find_visible(tx, workspace, id, None, view).await
    };
    let Some((piece, content)) = shown(None).await? else { return Ok(None) };
    let hash = hash(tx, workspace, &piece, content.as_deref()).await?;
    let version = piece.version.to_string();
    let publication = PiecePublication {
        state: piece.publication.state(piece.latest_revision()),
        publish_at: piece.publication.publish_at,
    };
    let width = |piece: ContentPiece| piece.fields.cover_width.map(Into::into);
    let Some(key) = key else {
        return Ok(Some(CurrentPiece {
            hash,
            cover_width: width(piece),
            version,
            publication,
            equals_piece: true,
        }));
    };
    let name = VariantRef::Key(key.clone());
    let variant = storage::variants::find_named(tx, workspace, &name).await?;
    let shown = shown(variant.map(|variant| variant.id)).await?;
    let Some((piece, content)) = shown else { return Ok(None) };
    let in_variant = self::hash(tx, workspace, &piece, content.as_deref()).await?;
    let is_as_piece = in_variant == hash;
    Ok(Some(CurrentPiece {
        hash: in_variant,
        cover_width: width(piece),
        version,
        publication,
        equals_piece: is_as_piece,
    }))
}

/// Returns the hash of the fields that an import writes.
async fn hash(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    content: Option<&str>,
) -> Result<SourceHash, Error> {
    let fields = &piece.fields;
    let tags = storage::tags::find_all(tx, workspace, &fields.tags).await?;
    let label = |id: &TagId| tags.iter().find(|tag| tag.id == *id).map(|tag| tag.label.as_str());
    let empty = Tree::empty().to_json();
    let written = WrittenFields {
        title: fields.title.as_str(),
        slug: fields.slug.as_str(),
        date: fields.date.map(|date| date.to_string()),
        description: fields.description.as_ref().map(Description::as_str),
        cover_url: fields.cover_url.as_ref().map(WebReference::as_str),
        cover_alt: fields.cover_alt.as_ref().map(ShortText::as_str),
        canonical_link: fields.canonical_link.as_ref().map(WebReference::as_str),
        custom_data: fields.custom_data.as_ref().map(CustomData::as_str),
        labels: fields.tags.iter().filter_map(label).collect(),
        content_hash: &fingerprint::of_content(content.unwrap_or(&empty)),
    };
    Ok(written.hash())
}
