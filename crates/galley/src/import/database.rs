//! Keeping pieces in the database itself: a batch is a transaction.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{ContentPiece, ContentPieceChange, ContentPieceFields};
use galley_domain::tag::Color;
use galley_domain::variant::{VariantKey, VariantLabel, VariantName};
use galley_domain::{
    ContentGroupId, ContentPieceId, OrderKey, TagId, WorkspaceId, WorkspaceMemberId,
};
use galley_server::operations::content_pieces::{self, ContentPieceUpdate, NewContentPiece};
use galley_server::operations::{Expected, Scope, content_groups, tags, variants};
use galley_server::{Environment, Error};
use galley_storage::content_piece_list::{self, ListQuery, Position, Sort, SortKey};
use galley_storage::content_pieces::View;
use galley_storage::{self as storage, Database, Failure as _, Tx, WriteTx, members};

use super::place::{Failure, Kept, KnownPiece, Outcome, Place, Prepared};
use super::raw::{Document, Form};
use crate::settings::Settings;
use crate::store;

/// How many known pieces are read at a time.
const PAGE: i64 = 1_000;

/// More than a workspace has of what isn't content.
const ALL: i64 = 10_000;

/// A workspace in a database.
#[derive(Debug)]
pub(super) struct InDatabase {
    database: Database,
    environment: Environment,
    scope: Scope,
    /// Whether a server works with the database meanwhile.
    is_served: bool,
}

impl InDatabase {
    pub(super) async fn open(settings: &Settings, workspace: Option<&str>) -> anyhow::Result<Self> {
        let environment = Environment::default();
        let database = store::open_existing(settings, &environment).await?;
        let workspace = store::workspace(&database, workspace).await?;
        let is_served = database.is_served().await?;
        Ok(Self { database, environment, scope: Scope::whole(workspace), is_served })
    }

    async fn write(&self, documents: Vec<Prepared>) -> Result<Vec<Kept>, Error> {
        let batch = Batch {
            environment: self.environment.clone(),
            scope: self.scope.clone(),
            documents: Arc::new(documents),
        };
        let write = async move |tx: &WriteTx<'_>| batch.write(tx).await;
        self.database.write("import.batch", write).await
    }
}

/// Whether the place is at fault, or what was to be kept.
fn failure(error: Error) -> Failure {
    match error.storage_error() {
        Some(_) => Failure::Broken(anyhow::Error::new(error)),
        None => Failure::Refused(error.to_string()),
    }
}

impl Place for InDatabase {
    /// Small enough for others' writes to come between.
    const BATCH: usize = 16;
    const FORM: Form = Form::Json;

    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        find_group(&self.database, self.scope.workspace, wanted).await
    }

    async fn pieces(
        &mut self,
        group: ContentGroupId,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>> {
        let mut known = Vec::new();
        let mut after: Option<OrderKey> = None;
        loop {
            let query = ListQuery {
                groups: Some(vec![group]),
                subtree,
                within: None,
                slug: None,
                tag: None,
                sort: Sort { key: SortKey::Order, descending: false },
                after: after.take().map(|order| Position::Order(order.as_str().to_owned())),
                limit: PAGE,
                offset: 0,
                view: View::default(),
            };
            let workspace = self.scope.workspace;
            let read = async move |tx: &Tx<'_>| {
                Ok::<_, Error>(content_piece_list::list(tx, workspace, &query).await?)
            };
            let page = self.database.read_much("import.known_pieces", read).await?;
            let Some(last) = page.last() else { return Ok(known) };
            after = Some(last.0.order.clone());
            known.extend(page.into_iter().map(|(piece, _)| KnownPiece {
                id: piece.id,
                source: piece.fields.filename.map(Into::into),
            }));
        }
    }

    async fn people(&self) -> anyhow::Result<Vec<(String, WorkspaceMemberId)>> {
        let workspace = self.scope.workspace;
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(members::list(tx, workspace, None, ALL, 0).await?)
        };
        let mut people = Vec::new();
        for member in self.database.read_much("import.people", read).await? {
            let user = member.user.into_iter();
            let of_user = user.flat_map(|user| [user.full_name, user.username, user.email]);
            let invited = [member.invited_name, member.invited_email].into_iter().flatten();
            people.extend(of_user.chain(invited).map(|name| (name, member.id)));
        }
        Ok(people)
    }

    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, Failure> {
        let (scope, environment) = (self.scope.clone(), self.environment.clone());
        let name = name.clone();
        let find_or_make = async move |tx: &WriteTx<'_>| {
            let (workspace, parent) = (scope.workspace, Some(parent));
            let children =
                storage::content_groups::list_children(tx, workspace, parent, None, ALL, 0);
            if let Some(found) = children.await?.into_iter().find(|child| child.name == name) {
                return Ok(found.id);
            }
            Ok(content_groups::create(tx, &environment, &scope, &name, parent).await?.id)
        };
        self.database.write("import.group", find_or_make).await.map_err(failure)
    }

    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), Failure> {
        let (scope, environment) = (self.scope.clone(), self.environment.clone());
        let (key, label) = (key.clone(), label.clone());
        let find_or_make = async move |tx: &WriteTx<'_>| {
            let there = storage::variants::list(tx, scope.workspace, None, ALL, 0).await?;
            if !there.iter().any(|variant| variant.key == key) {
                variants::create(tx, &environment, &scope, &key, &label, None).await?;
            }
            Ok(())
        };
        self.database.write("import.variant", find_or_make).await.map_err(failure)
    }

    async fn keep(&mut self, documents: Vec<Prepared>) -> anyhow::Result<Vec<Kept>> {
        let started = Instant::now();
        let kept = self.keep_together(documents).await?;
        if self.is_served {
            // As long as it kept others waiting, they are left alone.
            tokio::time::sleep(started.elapsed()).await;
        }
        Ok(kept)
    }

    async fn close(self) {
        self.database.close().await;
    }
}

impl InDatabase {
    /// In one transaction; each in its own, where one of them is refused.
    async fn keep_together(&self, documents: Vec<Prepared>) -> anyhow::Result<Vec<Kept>> {
        match self.write(documents.clone()).await.map_err(failure) {
            Ok(kept) => return Ok(kept),
            Err(Failure::Broken(error)) => return Err(error),
            Err(Failure::Refused(_)) => {}
        }
        let mut kept = Vec::with_capacity(documents.len());
        for document in documents {
            match self.write(vec![document.clone()]).await.map_err(failure) {
                Ok(one) => kept.extend(one),
                Err(Failure::Refused(problem)) => kept.push(document.refused(&problem)),
                Err(Failure::Broken(error)) => return Err(error),
            }
        }
        Ok(kept)
    }
}

/// The group of this id, or the oldest one at the top of this name.
pub(crate) async fn find_group(
    database: &Database,
    workspace: WorkspaceId,
    wanted: &str,
) -> anyhow::Result<ContentGroupId> {
    let read = async move |tx: &Tx<'_>| {
        let top = storage::content_groups::list_children(tx, workspace, None, None, ALL, 0);
        Ok::<_, Error>(top.await?)
    };
    let top = database.read("content_groups.list_children", read).await?;
    if let Ok(id) = wanted.parse::<ContentGroupId>() {
        let find = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(storage::content_groups::existing(tx, workspace, &[id], None).await?)
        };
        let found = database.read("content_groups.existing", find).await?;
        return found.into_iter().next().with_context(|| format!("there is no content group {id}"));
    }
    if let Some(group) = top.iter().find(|group| group.name.as_str() == wanted) {
        return Ok(group.id);
    }
    let names: Vec<_> = top.iter().map(|group| group.name.as_str()).collect();
    bail!("there is no content group {wanted:?} at the top; there are {names:?}")
}

/// What a batch's transaction needs.
#[derive(Debug, Clone)]
struct Batch {
    environment: Environment,
    scope: Scope,
    documents: Arc<Vec<Prepared>>,
}

impl Batch {
    async fn write(&self, tx: &WriteTx<'_>) -> Result<Vec<Kept>, Error> {
        let mut done = Vec::with_capacity(self.documents.len());
        for one in self.documents.iter() {
            let tags = self.tags(tx, one).await?;
            done.push(match one.known {
                Some(id) => self.update(tx, one, id, tags).await?,
                None => {
                    let new = new_piece(one, tags);
                    let made = content_pieces::create(tx, &self.environment, &self.scope, &new);
                    Kept { id: Some(made.await?.piece.id), outcome: Outcome::Created }
                }
            });
        }
        Ok(done)
    }

    /// The ids of the document's tags, made where they aren't there.
    async fn tags(&self, tx: &WriteTx<'_>, one: &Prepared) -> Result<Vec<TagId>, Error> {
        let mut ids = Vec::new();
        for label in &one.labels {
            let found = storage::tags::find_by_label(tx, self.scope.workspace, label).await?;
            let id = match found {
                Some(tag) => tag.id,
                None => {
                    let color = Color::default();
                    tags::create(tx, &self.environment, &self.scope, label, color).await?.id
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
        one: &Prepared,
        id: ContentPieceId,
        tags: Vec<TagId>,
    ) -> Result<Kept, Error> {
        let before = storage::content_pieces::find(tx, self.scope.workspace, id).await?;
        let update = ContentPieceUpdate {
            id,
            variant: one.variant.clone().map(VariantName::Key),
            change: change(&one.document, tags),
            content_group_id: None,
            reference_id: None,
            content: Some(Some(one.document.content.clone())),
        };
        let (environment, scope) = (&self.environment, &self.scope);
        let after = content_pieces::update(tx, environment, scope, &update, &Expected::Any).await?;
        let version = |piece: &ContentPiece| piece.version;
        let unchanged = before.as_ref().map(version) == Some(after.piece.version);
        let outcome = if unchanged { Outcome::Unchanged } else { Outcome::Updated };
        Ok(Kept { id: Some(id), outcome })
    }
}

fn new_piece(one: &Prepared, tags: Vec<TagId>) -> NewContentPiece {
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
            members: one.members.clone(),
        },
        content_group_id: one.group,
        reference_id: None,
        content: document.content,
    }
}

/// Whatever the file says. What only the service knows (members, width of the cover) stays.
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
