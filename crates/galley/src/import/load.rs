//! Keeping documents as pieces, in batches.

use std::collections::HashMap;
use std::sync::Arc;

use galley_domain::content_piece::{ContentPiece, ContentPieceChange, ContentPieceFields};
use galley_domain::tag::{Color, TagLabel};
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, TagId};
use galley_server::operations::content_pieces::{self, ContentPieceUpdate, NewContentPiece};
use galley_server::operations::{Expected, Scope, tags};
use galley_server::{Environment, Error};
use galley_storage::content_piece_list::{self, ListQuery, Position, Sort, SortKey};
use galley_storage::content_pieces::View;
use galley_storage::{Database, Tx, WriteTx};

use super::document::Document;

/// How many files become pieces in one transaction.
pub(super) const BATCH: usize = 16;

/// How many known pieces are read at a time.
const PAGE: i64 = 1_000;

/// What came of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Updated,
    Unchanged,
    Refused(String),
}

/// Keeps documents as pieces of one group.
#[derive(Debug)]
pub(super) struct Loader {
    database: Database,
    environment: Environment,
    scope: Scope,
    group: ContentGroupId,
    labels: Vec<TagLabel>,
    /// The pieces that earlier imports made, by file name.
    known: HashMap<String, ContentPieceId>,
}

/// What a batch's transaction needs.
#[derive(Debug, Clone)]
struct Batch {
    environment: Environment,
    scope: Scope,
    group: ContentGroupId,
    documents: Arc<Vec<(Document, Option<ContentPieceId>)>>,
    labels: Arc<Vec<TagLabel>>,
}

impl Loader {
    pub(super) async fn new(
        database: Database,
        environment: Environment,
        scope: Scope,
        group: ContentGroupId,
        labels: Vec<String>,
    ) -> anyhow::Result<Self> {
        let known = known_pieces(&database, &scope, group).await?;
        let labels = labels
            .into_iter()
            .map(|label| {
                TagLabel::parse(label).map_err(|invalid| anyhow::anyhow!("--tag {invalid}"))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { database, environment, scope, group, labels, known })
    }

    /// What would come of `documents`, as far as that can be said without keeping them.
    pub(super) fn compare(&self, documents: Vec<Document>) -> Vec<Outcome> {
        let outcome = |document: Document| match self.known.get(document.name.as_str()) {
            Some(_) => Outcome::Updated,
            None => Outcome::Created,
        };
        documents.into_iter().map(outcome).collect()
    }

    /// Keeps `documents` in one transaction; each in its own, where one of them is refused.
    pub(super) async fn load(&mut self, documents: Vec<Document>) -> anyhow::Result<Vec<Outcome>> {
        if documents.is_empty() {
            return Ok(Vec::new());
        }
        let together = self.write(documents.clone()).await;
        if let Ok(outcomes) = together {
            return Ok(outcomes);
        }
        let mut outcomes = Vec::with_capacity(documents.len());
        for document in documents {
            let name = document.name.as_str().to_owned();
            match self.write(vec![document]).await {
                Ok(one) => outcomes.extend(one),
                Err(error) => outcomes.push(Outcome::Refused(format!("{name}: {error}"))),
            }
        }
        Ok(outcomes)
    }

    async fn write(&mut self, documents: Vec<Document>) -> Result<Vec<Outcome>, Error> {
        let with_known = |document: Document| {
            let known = self.known.get(document.name.as_str()).copied();
            (document, known)
        };
        let batch = Batch {
            environment: self.environment.clone(),
            scope: self.scope.clone(),
            group: self.group,
            documents: Arc::new(documents.into_iter().map(with_known).collect()),
            labels: Arc::new(self.labels.clone()),
        };
        let documents = Arc::clone(&batch.documents);
        let write = async move |tx: &WriteTx<'_>| batch.write(tx).await;
        let done = self.database.write("import.batch", write).await?;
        let names = documents.iter().map(|(document, _)| document.name.as_str().to_owned());
        self.known.extend(names.zip(done.iter().map(|(piece, _)| *piece)));
        Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

impl Batch {
    async fn write(&self, tx: &WriteTx<'_>) -> Result<Vec<(ContentPieceId, Outcome)>, Error> {
        let mut done = Vec::with_capacity(self.documents.len());
        for (document, known) in self.documents.iter() {
            let tags = self.tags(tx, document).await?;
            done.push(match known {
                Some(id) => self.update(tx, document, *id, tags).await?,
                None => {
                    let new = self.new_piece(document, tags);
                    let made = content_pieces::create(tx, &self.environment, &self.scope, &new);
                    (made.await?.piece.id, Outcome::Created)
                }
            });
        }
        Ok(done)
    }

    /// The ids of the document's tags, made where they aren't there.
    async fn tags(&self, tx: &WriteTx<'_>, document: &Document) -> Result<Vec<TagId>, Error> {
        let mut ids = Vec::new();
        for label in self.labels.iter().chain(&document.tags) {
            let found =
                galley_storage::tags::find_by_label(tx, self.scope.workspace, label).await?;
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
        document: &Document,
        id: ContentPieceId,
        tags: Vec<TagId>,
    ) -> Result<(ContentPieceId, Outcome), Error> {
        let workspace = self.scope.workspace;
        let before = galley_storage::content_pieces::find(tx, workspace, id).await?;
        let update = ContentPieceUpdate {
            id,
            variant: None,
            change: change(document, tags),
            content_group_id: None,
            reference_id: None,
            content: Some(Some(document.content.clone())),
        };
        let (environment, scope) = (&self.environment, &self.scope);
        let after = content_pieces::update(tx, environment, scope, &update, &Expected::Any).await?;
        let version = |piece: &ContentPiece| piece.version;
        let unchanged = before.as_ref().map(version) == Some(after.piece.version);
        Ok((id, if unchanged { Outcome::Unchanged } else { Outcome::Updated }))
    }

    fn new_piece(&self, document: &Document, tags: Vec<TagId>) -> NewContentPiece {
        let document = document.clone();
        NewContentPiece {
            fields: ContentPieceFields {
                date: document.date,
                title: document.title,
                description: document.description,
                slug: document.slug,
                cover_url: document.cover_url,
                cover_alt: document.cover_alt,
                cover_width: None,
                canonical_link: document.canonical_link,
                filename: Some(document.name),
                custom_data: document.custom_data,
                tags,
                members: Vec::new(),
            },
            content_group_id: self.group,
            reference_id: None,
            content: document.content,
        }
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
        cover_width: None,
        canonical_link: Some(document.canonical_link),
        filename: None,
        custom_data: Some(document.custom_data),
        tags: Some(Some(tags)),
        members: None,
    }
}

/// The pieces of the group that have a file name.
async fn known_pieces(
    database: &Database,
    scope: &Scope,
    group: ContentGroupId,
) -> anyhow::Result<HashMap<String, ContentPieceId>> {
    let mut known = HashMap::new();
    let mut after: Option<OrderKey> = None;
    loop {
        let query = ListQuery {
            groups: Some(vec![group]),
            subtree: false,
            within: None,
            slug: None,
            tag: None,
            sort: Sort { key: SortKey::Order, descending: false },
            after: after.take().map(|order| Position::Order(order.as_str().to_owned())),
            limit: PAGE,
            offset: 0,
            view: View::default(),
        };
        let workspace = scope.workspace;
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(content_piece_list::list(tx, workspace, &query).await?)
        };
        let page = database.read_much("import.known_pieces", read).await?;
        let Some(last) = page.last() else { return Ok(known) };
        after = Some(last.0.order.clone());
        for (piece, _) in page {
            if let Some(name) = piece.fields.filename {
                known.entry(name.into()).or_insert(piece.id);
            }
        }
    }
}
