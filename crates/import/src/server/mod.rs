//! Writes pieces through a running server, by its public API.

mod assets;
mod client;
mod responses;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Context;
use futures_util::{StreamExt, TryStreamExt, stream};
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{CustomData, Description};
use galley_domain::import_source::ImportSource;
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::assets::AssetImporter;
use crate::authors::KnownMember;
use crate::destination::{
    CurrentPiece, Destination, ImportOutcome, KnownPiece, PreparedDocument, Task, WriteFailure,
    WriteResult,
};
use crate::group_path;
use crate::publication::{PiecePublication, PublicationChange};
use crate::raw::ContentForm;
use assets::ServerAssets;
use client::{ApiClient, CONCURRENCY};
use responses::{
    CreatedBatch, CreatedResource, RemoteGroup, RemoteKnownPiece, RemoteMember, RemotePiece,
    RemotePublication, RemoteSource, RemoteTag, RemoteVariant,
};

/// The number of items in a page of a list.
const PAGE_SIZE: usize = 1_000;

/// A workspace behind a server, as the token's owner sees it.
#[derive(Debug)]
pub struct ServerDestination {
    api: Arc<ApiClient>,
    /// All tags, loaded when the first one is needed.
    tags: Option<HashMap<String, TagId>>,
}

impl ServerDestination {
    /// Creates the destination behind a URL. The token decides on the workspace.
    pub fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        Ok(Self { api: Arc::new(ApiClient::new(url, token)?), tags: None })
    }

    /// Returns all items of a list with ids. The path ends in `?` or `&`.
    pub async fn list(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let cursor = |item: &Value| format!("&lastId={}", item["id"].as_str().unwrap_or_default());
        let listed = self.api.list(path, PAGE_SIZE, cursor).await.map_err(fatal_error);
        listed.with_context(|| format!("--url {}", self.api.base()))
    }

    /// Returns a resource.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let found = self.api.get(path).await.map_err(fatal_error);
        found.with_context(|| format!("--url {}", self.api.base()))
    }

    /// Returns the importer of files.
    pub(crate) fn assets(&self, group: ContentGroupId) -> AssetImporter {
        AssetImporter::new(Arc::new(ServerAssets(Arc::clone(&self.api))), group)
    }

    /// Creates the missing tags of the labels.
    async fn create_missing_tags(
        &mut self,
        labels: impl Iterator<Item = &TagLabel>,
    ) -> Result<(), WriteFailure> {
        let mut tags = match self.tags.take() {
            Some(tags) => tags,
            None => {
                let cursor = |tag: &RemoteTag| format!("&lastId={}", tag.id);
                let all = self.api.list("/tags/list?", PAGE_SIZE, cursor).await?;
                let mut tags = HashMap::new();
                for tag in all {
                    tags.entry(tag.label).or_insert(tag.id);
                }
                tags
            }
        };
        for label in labels {
            let label = label.as_str();
            if !tags.contains_key(label) {
                let made: CreatedResource<TagId> =
                    self.api.post("/tags", &json!({"label": label})).await?;
                tags.insert(label.to_owned(), made.id);
            }
        }
        self.tags = Some(tags);
        Ok(())
    }

    /// Creates pieces in their order: in one request, or one by one if the server rejects the
    /// batch.
    async fn create(
        &self,
        pieces: &[(&PreparedDocument, Value)],
    ) -> anyhow::Result<Vec<WriteResult>> {
        let bodies: Vec<_> = pieces.iter().map(|(_, body)| body).collect();
        let created = |made: CreatedResource<ContentPieceId>| WriteResult {
            id: Some(made.id),
            outcome: ImportOutcome::Created,
        };
        match self.api.post("/content-pieces/batch", &json!({"pieces": bodies})).await {
            Ok(CreatedBatch { pieces: made }) if made.len() == pieces.len() => {
                return Ok(made.into_iter().map(created).collect());
            }
            Ok(_) => return Err(self.api.not_a_galley_server()),
            Err(WriteFailure::Failed(error)) => return Err(error),
            Err(WriteFailure::Rejected(_) | WriteFailure::Conflict) => {}
        }
        let mut written = Vec::with_capacity(pieces.len());
        for (_, body) in pieces {
            written.push(match self.api.post("/content-pieces", body).await {
                Ok(made) => created(made),
                Err(failure) => write_result_of(failure)?,
            });
        }
        Ok(written)
    }

    fn new_piece(
        &self,
        one: &PreparedDocument,
        group: ContentGroupId,
        members: &[WorkspaceMemberId],
    ) -> Value {
        let mut body = self.fields(one);
        body["filename"] = one.document.name.as_str().into();
        body["contentGroupId"] = group.to_string().into();
        body["members"] = members.iter().map(ToString::to_string).collect();
        body
    }

    async fn update(
        &self,
        one: &PreparedDocument,
        id: ContentPieceId,
        version: Option<&str>,
    ) -> anyhow::Result<(WriteResult, Option<String>)> {
        let mut body = self.fields(one);
        body["id"] = id.to_string().into();
        if let Some(variant) = &one.variant {
            body["variant"] = variant.as_str().into();
        }
        match self.api.put_if::<IgnoredAny>("/content-pieces", &body, version).await {
            Ok((_, version)) => {
                Ok((WriteResult { id: Some(id), outcome: ImportOutcome::Updated }, Some(version)))
            }
            Err(failure) => Ok((write_result_of(failure)?, None)),
        }
    }

    /// Publishes, schedules or unpublishes the piece of a written document. Sources are noted
    /// later, so that the next import continues after a failure.
    async fn change_publication(
        &self,
        written: WriteResult,
        one: &PreparedDocument,
        version: Option<String>,
    ) -> anyhow::Result<WriteResult> {
        let is_conflict = written.outcome == ImportOutcome::Conflict;
        let id = written.id.filter(|_| !is_conflict || one.is_withdrawn());
        let Some(id) = id.filter(|_| one.publication != PublicationChange::NONE) else {
            return Ok(written);
        };
        match self.send_publication(id, one.publication, version.as_deref()).await {
            Ok(()) => Ok(written),
            Err(WriteFailure::Rejected(problem)) => {
                Ok(WriteResult { outcome: ImportOutcome::Rejected(problem), ..written })
            }
            Err(WriteFailure::Conflict) => {
                Ok(WriteResult { outcome: ImportOutcome::Conflict, ..written })
            }
            Err(WriteFailure::Failed(error)) => {
                Err(error.context(format!("{id} could not be published (see --no-publish)")))
            }
        }
    }

    async fn send_publication(
        &self,
        id: ContentPieceId,
        change: PublicationChange,
        version: Option<&str>,
    ) -> Result<(), WriteFailure> {
        let id = id.to_string();
        let post = async |path: &str, body: Value| {
            self.api.post_if::<IgnoredAny>(path, &body, version).await.map(drop)
        };
        if let Some(at) = change.schedule {
            let at = at.map(|at| at.to_string());
            post("/content-pieces/publish", json!({"id": id, "at": at})).await?;
        }
        if change.unpublish {
            post("/content-pieces/unpublish", json!({"id": id})).await?;
        }
        if change.publish {
            post("/content-pieces/publish", json!({"id": id})).await?;
        }
        Ok(())
    }

    /// Notes the sources of the written documents.
    async fn note_written(
        &self,
        documents: &[PreparedDocument],
        written: &[WriteResult],
    ) -> anyhow::Result<()> {
        let source = |(one, written): (&PreparedDocument, &WriteResult)| match written.outcome {
            ImportOutcome::Created | ImportOutcome::Updated | ImportOutcome::Unchanged => {
                Some(source_body(written.id?, one, &one.source))
            }
            ImportOutcome::Conflict | ImportOutcome::Rejected(_) => None,
        };
        self.note(documents.iter().zip(written).filter_map(source).collect()).await
    }

    async fn note(&self, sources: Vec<Value>) -> anyhow::Result<()> {
        if sources.is_empty() {
            return Ok(());
        }
        let body = json!({"sources": sources});
        match self.api.put::<IgnoredAny>("/content-pieces/sources", &body).await {
            // A piece was deleted meanwhile. The next import notes the sources that this request
            // didn't.
            Ok(_) | Err(WriteFailure::Rejected(_) | WriteFailure::Conflict) => Ok(()),
            Err(WriteFailure::Failed(error)) => Err(error),
        }
    }

    /// Reads the current state of a piece, or of a piece in a variant.
    async fn current_piece(
        &self,
        id: ContentPieceId,
        variant: Option<&VariantKey>,
    ) -> anyhow::Result<Option<CurrentPiece>> {
        let Some((piece, version)) = self.read_piece(id, None).await? else { return Ok(None) };
        let hash = piece.hash();
        let RemotePublication { state, publish_at } = piece.publication;
        let publication = PiecePublication { state, publish_at };
        let current = |cover_width, hash, version, equals_piece| CurrentPiece {
            hash,
            cover_width,
            version,
            publication,
            equals_piece,
        };
        let Some(variant) = variant else {
            return Ok(Some(current(piece.cover_width, hash, version, true)));
        };
        let Some((piece, version)) = self.read_piece(id, Some(variant)).await? else {
            return Ok(None);
        };
        let in_variant = piece.hash();
        let is_as_piece = in_variant == hash;
        Ok(Some(current(piece.cover_width, in_variant, version, is_as_piece)))
    }

    async fn read_piece(
        &self,
        id: ContentPieceId,
        variant: Option<&VariantKey>,
    ) -> anyhow::Result<Option<(RemotePiece, String)>> {
        let variant = variant.map(|key| format!("&variant={}", key.as_str())).unwrap_or_default();
        let path = format!("/content-pieces?id={id}&content=true&contentFormat=json{variant}");
        match self.api.get_with_version(&path).await {
            Ok(found) => Ok(Some(found)),
            Err(WriteFailure::Failed(error)) => Err(error),
            Err(WriteFailure::Rejected(_) | WriteFailure::Conflict) => Ok(None),
        }
    }

    /// Returns the request fields that come from the source.
    fn fields(&self, one: &PreparedDocument) -> Value {
        let document = &one.document;
        let tags = self.tags.iter().flat_map(|tags| {
            one.labels.iter().filter_map(|label| tags.get(label.as_str())).map(ToString::to_string)
        });
        let mut body = json!({
            "title": document.title.as_str(),
            "slug": document.slug.as_str(),
            "date": document.date.map(|date| date.to_string()),
            "description": document.description.as_ref().map(Description::as_str),
            "coverUrl": document.cover_url.as_ref().map(WebReference::as_str),
            "coverAlt": document.cover_alt.as_ref().map(ShortText::as_str),
            "canonicalLink": document.canonical_link.as_ref().map(WebReference::as_str),
            "customData": document.custom_data.as_ref().map(CustomData::as_str),
            "tags": tags.collect::<Vec<_>>(),
            "content": document.content,
        });
        if let Some(width) = &document.cover_width {
            body["coverWidth"] = width.as_str().into();
        }
        body
    }
}

fn source_body(id: ContentPieceId, one: &PreparedDocument, source: &ImportSource) -> Value {
    json!({
        "contentPieceId": id.to_string(),
        "variant": one.variant.as_ref().map(VariantKey::as_str),
        "sourceHash": source.source_hash.as_str(),
        "importedHash": source.imported_hash.as_str(),
    })
}

/// Returns the result of a document that was not written. Fails if no further document could be
/// written either.
fn write_result_of(failure: WriteFailure) -> anyhow::Result<WriteResult> {
    match failure {
        WriteFailure::Rejected(problem) => Ok(WriteResult::rejected(problem)),
        WriteFailure::Conflict => Ok(WriteResult { id: None, outcome: ImportOutcome::Conflict }),
        WriteFailure::Failed(error) => Err(error),
    }
}

fn fatal_error(failure: WriteFailure) -> anyhow::Error {
    match failure {
        WriteFailure::Rejected(problem) => anyhow::anyhow!(problem),
        WriteFailure::Conflict => anyhow::anyhow!("it was changed during the import"),
        WriteFailure::Failed(error) => error,
    }
}

impl ServerDestination {
    async fn list_children(
        &self,
        parent: Option<ContentGroupId>,
    ) -> Result<Vec<RemoteGroup>, WriteFailure> {
        let ancestor = parent.map(|parent| format!("ancestor={parent}&")).unwrap_or_default();
        let path = format!("/content-groups/list?{ancestor}");
        self.api.list(&path, PAGE_SIZE, |group: &RemoteGroup| format!("&lastId={}", group.id)).await
    }

    async fn children(
        &self,
        parent: Option<ContentGroupId>,
    ) -> anyhow::Result<group_path::Children> {
        let groups = self.list_children(parent).await.map_err(fatal_error)?;
        Ok(groups.into_iter().map(|group| (group.id, group.name)).collect())
    }
}

impl Destination for ServerDestination {
    /// Small enough that other clients' requests run between batches.
    const BATCH: usize = 8;
    const FORM: ContentForm = ContentForm::Html;

    /// Sends the first request without retries: a wrong address is reported at once.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        let first = format!("/content-groups/list?perPage={PAGE_SIZE}");
        let first = self.api.get_once::<Vec<RemoteGroup>>(&first).await.map_err(fatal_error);
        first.with_context(|| format!("--url {}", self.api.base()))?;
        if let Ok(id) = wanted.parse::<ContentGroupId>() {
            let path = format!("/content-groups?id={id}");
            let found = self.api.get::<RemoteGroup>(&path).await.map_err(fatal_error);
            return Ok(found.with_context(|| format!("the content group {id}"))?.id);
        }
        group_path::existing(async |parent| self.children(parent).await, wanted).await
    }

    async fn pieces(
        &mut self,
        group: Option<ContentGroupId>,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>> {
        let group = group.map(|group| format!("contentGroupId={group}&")).unwrap_or_default();
        let path = format!("/content-pieces/sources?{group}subtree={subtree}&");
        let cursor = |piece: &RemoteKnownPiece| format!("&lastId={}", piece.id);
        let pieces = self.api.list(&path, PAGE_SIZE, cursor).await.map_err(fatal_error)?;
        let known = |RemoteKnownPiece { id, filename, sources }: RemoteKnownPiece| {
            let sources = sources.into_iter().map(|source| {
                let RemoteSource { variant, source_hash, imported_hash } = source;
                (variant, ImportSource { source_hash, imported_hash })
            });
            KnownPiece { id, source: filename, sources: sources.collect() }
        };
        Ok(pieces.into_iter().map(known).collect())
    }

    async fn members(&self) -> anyhow::Result<Vec<KnownMember>> {
        let path = "/workspace-memberships/list-members?";
        let cursor = |member: &RemoteMember| format!("&lastId={}", member.id);
        let members = self.api.list(path, PAGE_SIZE, cursor).await.map_err(fatal_error)?;
        let known = members.into_iter().map(|RemoteMember { id, email, name, profile }| {
            let (mut names, mut username) = (vec![name], None);
            if let Some(profile) = profile {
                names.push(profile.full_name);
                username = Some(profile.username);
            }
            KnownMember { id, emails: vec![email], username, names }
        });
        Ok(known.collect())
    }

    async fn variants(&self) -> anyhow::Result<Vec<VariantKey>> {
        let cursor = |variant: &RemoteVariant| format!("&lastId={}", variant.id);
        let there =
            self.api.list("/variants/list?", PAGE_SIZE, cursor).await.map_err(fatal_error)?;
        Ok(there.into_iter().map(|variant| variant.key).collect())
    }

    async fn current(
        &self,
        wanted: &[(ContentPieceId, Option<VariantKey>)],
    ) -> anyhow::Result<Vec<Option<CurrentPiece>>> {
        let reads = wanted.iter().map(|(id, variant)| self.current_piece(*id, variant.as_ref()));
        stream::iter(reads).buffered(CONCURRENCY).try_collect().await
    }

    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, WriteFailure> {
        let children = self.list_children(Some(parent)).await?;
        if let Some(found) = children.into_iter().find(|child| child.name == name.as_str()) {
            return Ok(found.id);
        }
        let body = json!({"name": name.as_str(), "ancestor": parent.to_string()});
        Ok(self.api.post::<CreatedResource<ContentGroupId>>("/content-groups", &body).await?.id)
    }

    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), WriteFailure> {
        let body = json!({"key": key.as_str(), "label": label.as_str()});
        self.api.post::<Value>("/variants", &body).await.map(drop)
    }

    async fn write(
        &mut self,
        documents: Vec<PreparedDocument>,
    ) -> anyhow::Result<Vec<WriteResult>> {
        let changes = documents.iter().filter(|one| !matches!(one.task, Task::Record { .. }));
        self.create_missing_tags(changes.flat_map(|one| &one.labels)).await.map_err(fatal_error)?;
        let this = &*self;
        let (mut places, mut new, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        let mut done: Vec<(usize, WriteResult, Option<String>)> =
            Vec::with_capacity(documents.len());
        for (place, one) in documents.iter().enumerate() {
            let unwritten = |id, outcome| WriteResult { id: Some(id), outcome };
            match &one.task {
                Task::Create { group, members } => {
                    places.push(place);
                    new.push((one, this.new_piece(one, *group, members)));
                }
                Task::Update { id, version } => updates.push((place, one, *id, version)),
                Task::Record { id, version } => {
                    let written = unwritten(*id, ImportOutcome::Unchanged);
                    done.push((place, written, Some(version.clone())));
                }
                Task::Withdraw { id } => {
                    done.push((place, unwritten(*id, ImportOutcome::Conflict), None));
                }
            }
        }
        let pending = updates.iter().filter_map(|(_, one, id, _)| {
            one.pending.as_ref().map(|source| source_body(*id, one, source))
        });
        this.note(pending.collect()).await?;
        let updates = updates.into_iter().map(async |(place, one, id, version)| {
            let (written, version) = this.update(one, id, version.as_deref()).await?;
            Ok::<_, anyhow::Error>((place, written, version))
        });
        let updates = stream::iter(updates).buffer_unordered(CONCURRENCY);
        done.extend(updates.try_collect::<Vec<_>>().await?);
        if !new.is_empty() {
            let created = this.create(&new).await?;
            done.extend(places.into_iter().zip(created).map(|(at, written)| (at, written, None)));
        }
        done.sort_unstable_by_key(|(place, ..)| *place);
        let publications = done.into_iter().zip(&documents);
        let publications = publications.map(async |((_, written, version), one)| {
            this.change_publication(written, one, version).await
        });
        let publications = stream::iter(publications).buffered(CONCURRENCY);
        let written: Vec<_> = publications.try_collect().await?;
        this.note_written(&documents, &written).await?;
        Ok(written)
    }
}
