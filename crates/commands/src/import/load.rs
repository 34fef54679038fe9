//! Writes documents as pieces, in batches.

use std::collections::{HashMap, HashSet};

use galley_domain::content_group::ContentGroupName;
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::tag::TagLabel;
use galley_domain::text::ShortText;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use super::destination::{
    CurrentPiece, Destination, ImportOutcome, KnownPiece, PreparedDocument, Task, WriteFailure,
};
use super::fingerprint::{self, WrittenFields};
use super::language::{language_form, variant_key};
use super::raw::{Document, PublishingState};

/// The destination of the pieces.
#[derive(Debug, Clone)]
pub(super) struct ImportTarget {
    pub(super) group: ContentGroupId,
    /// The path of the group for unpublished sources.
    pub(super) drafts: String,
    /// The tags of every piece.
    pub(super) labels: Vec<TagLabel>,
    /// True if folders become groups.
    pub(super) groups: bool,
    /// The language of the pieces themselves, if the import has several languages.
    pub(super) language: Option<String>,
    /// True if pieces are updated even if they were edited since the last import.
    pub(super) overwrite: bool,
}

/// The component that writes documents as pieces.
#[derive(Debug)]
pub(super) struct Loader<P> {
    place: P,
    target: ImportTarget,
    /// The pieces of earlier imports.
    known: KnownPieces,
    /// The sources seen in this import. Two sources with one name would overwrite each other in
    /// every import.
    seen: HashSet<(String, Option<String>)>,
    /// The ids of groups, by parent (none: the top level) and name.
    groups: HashMap<(Option<ContentGroupId>, String), ContentGroupId>,
    variants: Vec<VariantKey>,
    /// The members, by their possible names in sources, in lower case.
    people: HashMap<String, WorkspaceMemberId>,
}

/// The existing pieces.
#[derive(Debug, Default)]
struct KnownPieces {
    by_name: HashMap<String, ContentPieceId>,
    by_id: HashMap<ContentPieceId, KnownPiece>,
    /// The pieces in the groups for unpublished sources.
    unpublished: HashSet<ContentPieceId>,
    /// True if `by_id` has the pieces of all groups.
    has_all: bool,
}

impl KnownPieces {
    fn add(&mut self, piece: KnownPiece) {
        if let Some(name) = &piece.source {
            self.by_name.entry(name.clone()).or_insert(piece.id);
        }
        self.by_id.insert(piece.id, piece);
    }

    /// Adds a piece of the groups for unpublished sources. Imports into all groups share these
    /// groups. So the piece's source name counts only if an import into this group recorded it.
    fn add_unpublished(&mut self, mut piece: KnownPiece, target: ContentGroupId) {
        let is_of_target = piece.sources.iter().any(|(variant, source)| {
            variant.is_none() && fingerprint::is_of_group(&source.source_hash, target)
        });
        if !is_of_target {
            piece.source = None;
        }
        self.unpublished.insert(piece.id);
        self.add(piece);
    }

    /// Returns the piece that a document was exported from, or that was imported from the same
    /// source.
    fn find(&self, document: &Document) -> Option<ContentPieceId> {
        let by_id = document.id.filter(|id| self.by_id.contains_key(id));
        by_id.or_else(|| self.by_name.get(document.name.as_str()).copied())
    }

    fn source(&self, id: ContentPieceId, variant: Option<&VariantKey>) -> Option<&ImportSource> {
        let piece = self.by_id.get(&id)?;
        let of_variant = |one: &&(Option<VariantKey>, _)| one.0.as_ref() == variant;
        piece.sources.iter().find(of_variant).map(|(_, source)| source)
    }
}

/// A document whose decision is pending.
struct Candidate {
    document: Document,
    known: Option<ContentPieceId>,
    variant: Option<VariantKey>,
    labels: Vec<TagLabel>,
    /// The hash of the source itself.
    source_hash: SourceHash,
    /// The source that the import notes for the piece.
    source: ImportSource,
}

/// The decision on a candidate.
enum Decision {
    Create,
    Update { version: Option<String> },
    Record,
    Done(ImportOutcome),
}

impl<P: Destination> Loader<P> {
    pub(super) async fn new(mut place: P, target: ImportTarget) -> anyhow::Result<Self> {
        let mut known = KnownPieces::default();
        for piece in place.pieces(Some(target.group), target.groups).await? {
            known.add(piece);
        }
        if let Some(drafts) =
            place.find_path(&target.drafts).await?.filter(|it| *it != target.group)
        {
            for piece in place.pieces(Some(drafts), true).await? {
                known.add_unpublished(piece, target.group);
            }
        }
        let mut people = HashMap::new();
        for (name, member) in place.people().await? {
            people.entry(name.to_lowercase()).or_insert(member);
        }
        let variants = match target.language {
            Some(_) => place.variants().await?,
            None => Vec::new(),
        };
        let (seen, groups) = (HashSet::new(), HashMap::new());
        Ok(Self { place, target, known, seen, groups, variants, people })
    }

    pub(super) async fn close(self) {
        self.place.close().await;
    }

    /// Returns the outcomes that an import of the documents would have, and writes nothing.
    pub(super) async fn compare(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<(String, ImportOutcome)>> {
        self.find_exported(&documents).await?;
        let mut outcomes = Vec::with_capacity(documents.len());
        let mut candidates = Vec::with_capacity(documents.len());
        for document in documents {
            let own = (document.name.as_str().to_owned(), self.target.language.clone());
            let place = document.place.clone();
            match self.candidate(document) {
                Ok(candidate) if candidate.variant.is_some() && candidate.known.is_none() => {
                    // An import would have created the piece by then.
                    let outcome = if self.seen.contains(&own) {
                        ImportOutcome::Updated
                    } else {
                        ImportOutcome::Rejected(self.missing_piece_message())
                    };
                    outcomes.push((place, outcome));
                }
                Ok(candidate) => candidates.push(candidate),
                Err(outcome) => outcomes.push((place, outcome)),
            }
        }
        let decisions = self.decide(&candidates).await?;
        let decided = candidates.into_iter().zip(decisions).map(|(candidate, decision)| {
            let outcome = match decision {
                Decision::Create => ImportOutcome::Created,
                Decision::Update { .. } => ImportOutcome::Updated,
                Decision::Record => ImportOutcome::Unchanged,
                Decision::Done(outcome) => outcome,
            };
            (candidate.document.place, outcome)
        });
        outcomes.extend(decided);
        Ok(outcomes)
    }

    /// Writes documents. Variants follow their pieces.
    pub(super) async fn load(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<(String, ImportOutcome)>> {
        let own = self.target.language.clone();
        let (pieces, variants): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|document| document.language.is_none() || document.language == own);
        let mut outcomes = self.load_batch(pieces).await?;
        outcomes.extend(self.load_batch(variants).await?);
        Ok(outcomes)
    }

    async fn load_batch(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<(String, ImportOutcome)>> {
        self.find_exported(&documents).await?;
        let mut outcomes = Vec::with_capacity(documents.len());
        let mut candidates = Vec::with_capacity(documents.len());
        for document in documents {
            let place = document.place.clone();
            match self.candidate(document) {
                Ok(candidate) if candidate.variant.is_some() && candidate.known.is_none() => {
                    let rejected = ImportOutcome::Rejected(self.missing_piece_message());
                    outcomes.push((place, rejected));
                }
                Ok(candidate) => candidates.push(candidate),
                Err(outcome) => outcomes.push((place, outcome)),
            }
        }
        let decisions = self.decide(&candidates).await?;
        let mut prepared = Vec::with_capacity(candidates.len());
        for (candidate, decision) in candidates.into_iter().zip(decisions) {
            let place = candidate.document.place.clone();
            if let Decision::Done(outcome) = decision {
                outcomes.push((place, outcome));
                continue;
            }
            match self.prepare(candidate, decision).await {
                Ok(document) => prepared.push(document),
                Err(WriteFailure::Rejected(problem)) => {
                    outcomes.push((place, ImportOutcome::Rejected(problem)));
                }
                Err(WriteFailure::Conflict) => outcomes.push((place, ImportOutcome::Conflict)),
                Err(WriteFailure::Failed(error)) => return Err(error),
            }
        }
        if prepared.is_empty() {
            return Ok(outcomes);
        }
        let name = |one: &PreparedDocument| {
            (one.document.name.as_str().to_owned(), one.document.place.clone())
        };
        let names: Vec<_> = prepared.iter().map(name).collect();
        let written = self.place.write(prepared).await?;
        for ((name, place), one) in names.into_iter().zip(written) {
            if let Some(id) = one.id {
                self.known.by_name.insert(name, id);
            }
            outcomes.push((place, one.outcome));
        }
        Ok(outcomes)
    }

    /// Finds the pieces that documents were exported from, including pieces outside the import's
    /// group.
    async fn find_exported(&mut self, documents: &[Document]) -> anyhow::Result<()> {
        let is_unknown = |id: &ContentPieceId| !self.known.by_id.contains_key(id);
        let mut ids = documents.iter().filter_map(|document| document.id);
        if self.known.has_all || !ids.any(|id| is_unknown(&id)) {
            return Ok(());
        }
        for piece in self.place.pieces(None, true).await? {
            self.known.by_id.entry(piece.id).or_insert(piece);
        }
        self.known.has_all = true;
        Ok(())
    }

    /// Returns true if an unpublished source has a piece in a published group.
    pub(super) fn has_published_piece(&self, document: &Document) -> bool {
        let known = self.known.find(document);
        known.is_some_and(|id| !self.known.unpublished.contains(&id))
    }

    fn reject_duplicate(&mut self, document: &Document) -> Option<ImportOutcome> {
        let name = document.name.as_str().to_owned();
        let is_new = self.seen.insert((name, document.language.clone()));
        let of_id = document.id.is_none_or(|id| {
            !self.known.by_id.contains_key(&id)
                || self.seen.insert((id.to_string(), document.language.clone()))
        });
        (!is_new || !of_id)
            .then(|| ImportOutcome::Rejected("an earlier source has the same id".to_owned()))
    }

    fn missing_piece_message(&self) -> String {
        let own = self.target.language.as_deref().unwrap_or_default();
        format!("it would be a variant of a piece with this name in {own}, which does not exist")
    }

    /// Returns the key of a language's variant: that of an existing variant, if there is one.
    fn variant_of(&self, language: &str) -> Result<VariantKey, String> {
        let key = variant_key(language)?;
        let known = || self.variants.iter();
        let found = known()
            .find(|known| known.is_same_as(&key))
            .or_else(|| known().find(|known| language_form(known) == language_form(&key)));
        Ok(found.cloned().unwrap_or(key))
    }

    /// Looks up the piece of a document, and computes the hashes of the source and of the fields to
    /// write.
    fn candidate(&mut self, document: Document) -> Result<Candidate, ImportOutcome> {
        if let Some(rejected) = self.reject_duplicate(&document) {
            return Err(rejected);
        }
        let language = document.language.as_deref();
        let variant = language.filter(|it| Some(*it) != self.target.language.as_deref());
        let variant = variant.map(|language| self.variant_of(language)).transpose();
        let variant = variant.map_err(ImportOutcome::Rejected)?;
        let known = self.known.find(&document);
        let mut labels: Vec<TagLabel> = Vec::new();
        for label in self.target.labels.iter().chain(&document.tags) {
            if !labels.contains(label) {
                labels.push(label.clone());
            }
        }
        let texts = || labels.iter().map(TagLabel::as_str);
        let source_hash = fingerprint::of_source(&document, texts(), self.target.group);
        let imported_hash = WrittenFields::of(&document, texts().collect()).hash();
        // An exported file doesn't replace the piece's own source: that source stays recorded.
        let recorded = known.filter(|_| document.id.is_some());
        let recorded = recorded.and_then(|id| self.known.source(id, variant.as_ref()));
        let recorded =
            recorded.map_or_else(|| source_hash.clone(), |recorded| recorded.source_hash.clone());
        let source = ImportSource { source_hash: recorded, imported_hash };
        Ok(Candidate { document, known, variant, labels, source_hash, source })
    }

    /// Decides the action for each candidate. Only pieces whose source changed are read.
    async fn decide(&self, candidates: &[Candidate]) -> anyhow::Result<Vec<Decision>> {
        let mut decisions = Vec::with_capacity(candidates.len());
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for candidate in candidates {
            let Some(id) = candidate.known else {
                decisions.push(Decision::Create);
                continue;
            };
            let recorded = self.known.source(id, candidate.variant.as_ref());
            let is_same = recorded.is_some_and(|it| it.source_hash == candidate.source_hash);
            if is_same && !self.target.overwrite {
                decisions.push(Decision::Done(ImportOutcome::Unchanged));
                continue;
            }
            decisions.push(Decision::Update { version: None });
            // A variant that doesn't exist yet has no overrides to compare with.
            if candidate.variant.as_ref().is_none_or(|key| self.variants.contains(key)) {
                wanted.push((id, candidate.variant.clone()));
                places.push(decisions.len() - 1);
            }
        }
        let current = self.place.current(&wanted).await?;
        for (place, current) in places.into_iter().zip(current) {
            decisions[place] = self.decide_on(&candidates[place], current);
        }
        Ok(decisions)
    }

    fn decide_on(&self, candidate: &Candidate, current: Option<CurrentPiece>) -> Decision {
        let Candidate { document, known, variant, source, .. } = candidate;
        let Some(current) = current else {
            let problem = "its piece was deleted during the import: import it again";
            return Decision::Done(ImportOutcome::Rejected(problem.to_owned()));
        };
        let width = document.cover_width.as_ref().map(ShortText::as_str);
        let has_width = width.is_none_or(|width| current.cover_width.as_deref() == Some(width));
        if current.hash == source.imported_hash && has_width {
            return Decision::Record;
        }
        let recorded = known.and_then(|id| self.known.source(id, variant.as_ref()));
        let was_edited = match recorded {
            Some(recorded) => recorded.imported_hash != current.hash,
            // A variant that doesn't override anything yet.
            None => variant.is_none() || !current.equals_piece,
        };
        if was_edited && !self.target.overwrite {
            return Decision::Done(ImportOutcome::Conflict);
        }
        let version = (!self.target.overwrite).then_some(current.version);
        Decision::Update { version }
    }

    /// Resolves the names in a document. Creates missing groups and variants.
    async fn prepare(
        &mut self,
        candidate: Candidate,
        decision: Decision,
    ) -> Result<PreparedDocument, WriteFailure> {
        let Candidate { document, known, variant, labels, source, .. } = candidate;
        if let (Some(key), Some(language)) = (&variant, &document.language) {
            self.create_missing_variant(key, language).await?;
        }
        let task = match (decision, known) {
            (Decision::Record, Some(id)) => Task::Record { id },
            (Decision::Update { version }, Some(id)) => {
                // The source was a draft and is published now.
                let is_published =
                    document.state == PublishingState::Published && variant.is_none();
                let moves = is_published && self.known.unpublished.contains(&id);
                let group = if moves { Some(self.group_of(&document).await?) } else { None };
                Task::Update { id, version, group }
            }
            _ => {
                let member = |name: &String| self.people.get(&name.to_lowercase()).copied();
                let mut members: Vec<WorkspaceMemberId> = Vec::new();
                for member in document.authors.iter().filter_map(member) {
                    if !members.contains(&member) {
                        members.push(member);
                    }
                }
                Task::Create { group: self.group_of(&document).await?, members }
            }
        };
        Ok(PreparedDocument { document, task, variant, labels, source })
    }

    /// Returns the group of a new piece, by its state and folders.
    async fn group_of(&mut self, document: &Document) -> Result<ContentGroupId, WriteFailure> {
        let mut group = match document.state {
            PublishingState::Published => self.target.group,
            state => {
                let drafts = self.target.drafts.clone();
                let mut group = None;
                for name in drafts.split('/').chain(state.group()) {
                    group = Some(self.group(group, name).await?);
                }
                group.unwrap_or(self.target.group)
            }
        };
        if self.target.groups {
            for folder in &document.folders {
                group = self.group(Some(group), folder).await?;
            }
        }
        Ok(group)
    }

    /// Returns the id of the named group below a parent or at the top level. Creates a missing
    /// group.
    async fn group(
        &mut self,
        parent: Option<ContentGroupId>,
        name: &str,
    ) -> Result<ContentGroupId, WriteFailure> {
        let key = (parent, name.to_owned());
        if let Some(known) = self.groups.get(&key) {
            return Ok(*known);
        }
        let parsed = ContentGroupName::parse(name)
            .map_err(|invalid| WriteFailure::Rejected(format!("the group {name:?} {invalid}")))?;
        let made = self.place.group(parent, &parsed).await;
        let group =
            made.map_err(|failure| with_subject(&format!("the group {name:?}"), failure))?;
        self.groups.insert(key, group);
        Ok(group)
    }

    async fn create_missing_variant(
        &mut self,
        key: &VariantKey,
        language: &str,
    ) -> Result<(), WriteFailure> {
        if self.variants.contains(key) {
            return Ok(());
        }
        let label = VariantLabel::parse(language)
            .map_err(|invalid| WriteFailure::Rejected(format!("the language {invalid}")))?;
        let made = self.place.variant(key, &label).await;
        made.map_err(|failure| with_subject(&format!("the variant {language:?}"), failure))?;
        self.variants.push(key.clone());
        Ok(())
    }
}

fn with_subject(what: &str, failure: WriteFailure) -> WriteFailure {
    match failure {
        WriteFailure::Rejected(problem) => WriteFailure::Rejected(format!("{what}: {problem}")),
        other => other,
    }
}
