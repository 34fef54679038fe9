//! Keeping documents as pieces, in batches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{ContentPiece, ContentPieceChange, ContentPieceFields};
use galley_domain::tag::{Color, TagLabel};
use galley_domain::variant::{VariantKey, VariantLabel, VariantName};
use galley_domain::{ContentGroupId, ContentPieceId, OrderKey, TagId, WorkspaceMemberId};
use galley_server::operations::content_pieces::{self, ContentPieceUpdate, NewContentPiece};
use galley_server::operations::{Expected, Scope, content_groups, tags, variants};
use galley_server::{Environment, Error};
use galley_storage::content_piece_list::{self, ListQuery, Position, Sort, SortKey};
use galley_storage::content_pieces::View;
use galley_storage::{Database, Tx, WriteTx, members};

use super::raw::Document;

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

/// Where the pieces go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) scope: Scope,
    pub(super) group: ContentGroupId,
    /// For every piece.
    pub(super) labels: Vec<TagLabel>,
    /// Whether folders become groups.
    pub(super) groups: bool,
    /// The language of the pieces themselves, where there are several.
    pub(super) language: Option<String>,
}

/// Keeps documents as pieces.
#[derive(Debug)]
pub(super) struct Loader {
    database: Database,
    environment: Environment,
    target: Arc<Target>,
    /// The pieces that earlier imports made, by the name of their source.
    known: Known,
    /// The groups of folders.
    groups: HashMap<Vec<String>, ContentGroupId>,
    /// The variants of languages.
    variants: HashMap<String, VariantKey>,
    /// The members, by what sources may call them.
    people: HashMap<String, WorkspaceMemberId>,
}

/// The pieces that are there.
#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<String, ContentPieceId>,
    ids: HashSet<ContentPieceId>,
}

impl Known {
    /// The piece that a document was exported from, or that was made of the same source.
    fn find(&self, document: &Document) -> Option<ContentPieceId> {
        let by_id = document.id.filter(|id| self.ids.contains(id));
        by_id.or_else(|| self.by_name.get(document.name.as_str()).copied())
    }
}

/// A document with all that was looked up for it.
#[derive(Debug, Clone)]
struct Prepared {
    document: Document,
    known: Option<ContentPieceId>,
    group: ContentGroupId,
    members: Vec<WorkspaceMemberId>,
    variant: Option<VariantKey>,
}

/// What a batch's transaction needs.
#[derive(Debug, Clone)]
struct Batch {
    environment: Environment,
    target: Arc<Target>,
    documents: Arc<Vec<Prepared>>,
}

impl Loader {
    pub(super) async fn new(
        database: Database,
        environment: Environment,
        target: Target,
    ) -> anyhow::Result<Self> {
        let known = known_pieces(&database, &target).await?;
        let people = people(&database, &target.scope).await?;
        let target = Arc::new(target);
        Ok(Self {
            database,
            environment,
            target,
            known,
            groups: HashMap::new(),
            variants: HashMap::new(),
            people,
        })
    }

    /// What would come of `documents`, as far as that can be said without keeping them.
    pub(super) fn compare(&self, documents: &[Document]) -> Vec<Outcome> {
        let outcome = |document: &Document| match self.known.find(document) {
            Some(_) => Outcome::Updated,
            None => Outcome::Created,
        };
        documents.iter().map(outcome).collect()
    }

    /// Keeps `documents`; variants when the pieces are there of which they are some.
    pub(super) async fn load(&mut self, documents: Vec<Document>) -> anyhow::Result<Vec<Outcome>> {
        let own = self.target.language.clone();
        let (pieces, variants): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|document| document.language.is_none() || document.language == own);
        let mut outcomes = self.load_together(pieces).await?;
        outcomes.extend(self.load_together(variants).await?);
        Ok(outcomes)
    }

    /// Keeps documents in one transaction; each in its own, where one of them is refused.
    async fn load_together(&mut self, documents: Vec<Document>) -> anyhow::Result<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(documents.len());
        let mut prepared = Vec::with_capacity(documents.len());
        for document in documents {
            let name = document.name.as_str().to_owned();
            match self.prepare(document).await {
                Ok(document) => prepared.push(document),
                Err(problem) => outcomes.push(Outcome::Refused(format!("{name}: {problem}"))),
            }
        }
        if prepared.is_empty() {
            return Ok(outcomes);
        }
        if let Ok(together) = self.write(prepared.clone()).await {
            outcomes.extend(together);
            return Ok(outcomes);
        }
        for document in prepared {
            let name = document.document.name.as_str().to_owned();
            match self.write(vec![document]).await {
                Ok(one) => outcomes.extend(one),
                Err(error) => outcomes.push(Outcome::Refused(format!("{name}: {error}"))),
            }
        }
        Ok(outcomes)
    }

    /// Looks up what a document names; makes groups and variants that aren't there.
    async fn prepare(&mut self, document: Document) -> Result<Prepared, String> {
        let known = self.known.find(&document);
        let language = document.language.as_ref();
        let variant =
            match language.filter(|language| Some(*language) != self.target.language.as_ref()) {
                Some(language) => Some(self.variant(language).await?),
                None => None,
            };
        if variant.is_some() && known.is_none() {
            let own = self.target.language.as_deref().unwrap_or_default();
            return Err(format!(
                "there is nothing of this name in {own}, of which it would be a variant"
            ));
        }
        let mut group = self.target.group;
        if self.target.groups && known.is_none() {
            group = self.group(&document.folders).await?;
        }
        let member = |name: &String| self.people.get(&name.to_lowercase()).copied();
        let mut members: Vec<WorkspaceMemberId> = Vec::new();
        for member in document.authors.iter().filter_map(member) {
            if !members.contains(&member) {
                members.push(member);
            }
        }
        Ok(Prepared { document, known, group, members, variant })
    }

    /// The group of a folder, below that of its parent.
    async fn group(&mut self, folders: &[String]) -> Result<ContentGroupId, String> {
        let mut group = self.target.group;
        for depth in 1..=folders.len() {
            let path = &folders[..depth];
            if let Some(known) = self.groups.get(path) {
                group = *known;
                continue;
            }
            let folder = &path[depth - 1];
            let name = ContentGroupName::parse(folder.as_str())
                .map_err(|invalid| format!("the folder {folder:?} {invalid}"))?;
            let (scope, environment) = (self.target.scope.clone(), self.environment.clone());
            let find_or_make = async move |tx: &WriteTx<'_>| {
                let children = galley_storage::content_groups::list_children(
                    tx,
                    scope.workspace,
                    Some(group),
                    None,
                    10_000,
                    0,
                );
                let found = children.await?.into_iter().find(|child| child.name == name);
                match found {
                    Some(found) => Ok::<_, Error>(found.id),
                    None => {
                        let made =
                            content_groups::create(tx, &environment, &scope, &name, Some(group));
                        Ok(made.await?.id)
                    }
                }
            };
            let made = self.database.write("import.group", find_or_make).await;
            group = made.map_err(|error| format!("the group {folder:?}: {error}"))?;
            self.groups.insert(path.to_vec(), group);
        }
        Ok(group)
    }

    /// The variant of a language.
    async fn variant(&mut self, language: &str) -> Result<VariantKey, String> {
        if let Some(known) = self.variants.get(language) {
            return Ok(known.clone());
        }
        let key = variant_key(language)?;
        let label =
            VariantLabel::parse(language).map_err(|invalid| format!("the language {invalid}"))?;
        let (scope, environment, wanted) =
            (self.target.scope.clone(), self.environment.clone(), key.clone());
        let find_or_make = async move |tx: &WriteTx<'_>| {
            let there =
                galley_storage::variants::list(tx, scope.workspace, None, 10_000, 0).await?;
            if !there.iter().any(|variant| variant.key == wanted) {
                variants::create(tx, &environment, &scope, &wanted, &label, None).await?;
            }
            Ok::<_, Error>(())
        };
        let made = self.database.write("import.variant", find_or_make).await;
        made.map_err(|error| format!("the variant {language:?}: {error}"))?;
        self.variants.insert(language.to_owned(), key.clone());
        Ok(key)
    }

    async fn write(&mut self, documents: Vec<Prepared>) -> Result<Vec<Outcome>, Error> {
        let batch = Batch {
            environment: self.environment.clone(),
            target: Arc::clone(&self.target),
            documents: Arc::new(documents),
        };
        let documents = Arc::clone(&batch.documents);
        let write = async move |tx: &WriteTx<'_>| batch.write(tx).await;
        let done = self.database.write("import.batch", write).await?;
        let names = documents.iter().map(|one| one.document.name.as_str().to_owned());
        self.known.by_name.extend(names.zip(done.iter().map(|(piece, _)| *piece)));
        Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

/// What a language's variant is called by programs.
pub(super) fn variant_key(language: &str) -> Result<VariantKey, String> {
    let key = language.to_ascii_lowercase().replace('-', "_");
    VariantKey::parse(key).map_err(|invalid| format!("the language {language:?} {invalid}"))
}

impl Batch {
    async fn write(&self, tx: &WriteTx<'_>) -> Result<Vec<(ContentPieceId, Outcome)>, Error> {
        let mut done = Vec::with_capacity(self.documents.len());
        for one in self.documents.iter() {
            let tags = self.tags(tx, &one.document).await?;
            done.push(match one.known {
                Some(id) => self.update(tx, one, id, tags).await?,
                None => {
                    let new = new_piece(one, tags);
                    let (environment, scope) = (&self.environment, &self.target.scope);
                    let made = content_pieces::create(tx, environment, scope, &new).await?;
                    (made.piece.id, Outcome::Created)
                }
            });
        }
        Ok(done)
    }

    /// The ids of the document's tags, made where they aren't there.
    async fn tags(&self, tx: &WriteTx<'_>, document: &Document) -> Result<Vec<TagId>, Error> {
        let scope = &self.target.scope;
        let mut ids = Vec::new();
        for label in self.target.labels.iter().chain(&document.tags) {
            let found = galley_storage::tags::find_by_label(tx, scope.workspace, label).await?;
            let id = match found {
                Some(tag) => tag.id,
                None => {
                    let color = Color::default();
                    tags::create(tx, &self.environment, scope, label, color).await?.id
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
    ) -> Result<(ContentPieceId, Outcome), Error> {
        let workspace = self.target.scope.workspace;
        let before = galley_storage::content_pieces::find(tx, workspace, id).await?;
        let update = ContentPieceUpdate {
            id,
            variant: one.variant.clone().map(VariantName::Key),
            change: change(&one.document, tags),
            content_group_id: None,
            reference_id: None,
            content: Some(Some(one.document.content.clone())),
        };
        let (environment, scope) = (&self.environment, &self.target.scope);
        let after = content_pieces::update(tx, environment, scope, &update, &Expected::Any).await?;
        let version = |piece: &ContentPiece| piece.version;
        let unchanged = before.as_ref().map(version) == Some(after.piece.version);
        Ok((id, if unchanged { Outcome::Unchanged } else { Outcome::Updated }))
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

/// The pieces of the group, or those below it too, that have a source's name.
async fn known_pieces(database: &Database, target: &Target) -> anyhow::Result<Known> {
    let mut known = Known::default();
    let mut after: Option<OrderKey> = None;
    loop {
        let query = ListQuery {
            groups: Some(vec![target.group]),
            subtree: target.groups,
            within: None,
            slug: None,
            tag: None,
            sort: Sort { key: SortKey::Order, descending: false },
            after: after.take().map(|order| Position::Order(order.as_str().to_owned())),
            limit: PAGE,
            offset: 0,
            view: View::default(),
        };
        let workspace = target.scope.workspace;
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(content_piece_list::list(tx, workspace, &query).await?)
        };
        let page = database.read_much("import.known_pieces", read).await?;
        let Some(last) = page.last() else { return Ok(known) };
        after = Some(last.0.order.clone());
        for (piece, _) in page {
            known.ids.insert(piece.id);
            if let Some(name) = piece.fields.filename {
                known.by_name.entry(name.into()).or_insert(piece.id);
            }
        }
    }
}

/// The members by their full names, usernames and addresses, in lower case.
async fn people(
    database: &Database,
    scope: &Scope,
) -> anyhow::Result<HashMap<String, WorkspaceMemberId>> {
    let workspace = scope.workspace;
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(members::list(tx, workspace, None, 10_000, 0).await?)
    };
    let mut people = HashMap::new();
    for member in database.read_much("import.people", read).await? {
        let user = member.user.into_iter();
        let of_user = user.flat_map(|user| [user.full_name, user.username, user.email]);
        let invited = [member.invited_name, member.invited_email].into_iter().flatten();
        for name in of_user.chain(invited) {
            people.entry(name.to_lowercase()).or_insert(member.id);
        }
    }
    Ok(people)
}
