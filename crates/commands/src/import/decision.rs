//! Decides the change of a piece, and of its publication, for each document.

use std::collections::{HashMap, HashSet};

use galley_domain::import_source::ImportSource;
use galley_domain::publication::PublicationState;
use galley_domain::tag::TagLabel;
use galley_domain::text::ShortText;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId};

use super::destination::{CurrentPiece, Destination, ImportOutcome, KnownPiece, PublicationChange};
use super::fingerprint::{self, ImportedState, WrittenFields};
use super::language::{language_form, variant_key};
use super::raw::{Document, PublishingState};

/// The destination of the pieces.
#[derive(Debug, Clone)]
pub(super) struct ImportTarget {
    pub(super) group: ContentGroupId,
    /// The tags of every piece.
    pub(super) labels: Vec<TagLabel>,
    /// True if folders become groups.
    pub(super) groups: bool,
    /// The language of the pieces themselves, if the import has several languages.
    pub(super) language: Option<String>,
    /// True if pieces are updated even if they were edited since the last import.
    pub(super) overwrite: bool,
    /// True if pieces are published, scheduled and unpublished as their sources are.
    pub(super) publish: bool,
}

/// The existing pieces.
#[derive(Debug, Default)]
pub(super) struct KnownPieces {
    pub(super) by_name: HashMap<String, ContentPieceId>,
    pub(super) by_id: HashMap<ContentPieceId, KnownPiece>,
    /// True if `by_id` has the pieces of all groups.
    pub(super) has_all: bool,
}

impl KnownPieces {
    pub(super) fn add(&mut self, piece: KnownPiece) {
        if let Some(name) = &piece.source {
            self.by_name.entry(name.clone()).or_insert(piece.id);
        }
        self.by_id.insert(piece.id, piece);
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
pub(super) struct Candidate {
    pub(super) document: Document,
    pub(super) known: Option<ContentPieceId>,
    pub(super) variant: Option<VariantKey>,
    pub(super) labels: Vec<TagLabel>,
    /// The hash of the source itself.
    source_hash: String,
    /// The state that the piece gets.
    state: ImportedState,
    /// The source that the import notes for the piece.
    pub(super) source: ImportSource,
}

/// The decision on a candidate.
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) publication: PublicationChange,
}

/// The change of a candidate's piece.
pub(super) enum Action {
    Create,
    Update { id: ContentPieceId, version: Option<String> },
    Record { id: ContentPieceId },
}

/// The component that compares documents with the pieces of earlier imports.
#[derive(Debug)]
pub(super) struct Decider {
    pub(super) target: ImportTarget,
    /// The pieces of earlier imports.
    pub(super) known: KnownPieces,
    /// The sources seen in this import. Two sources with one name would overwrite each other in
    /// every import.
    pub(super) seen: HashSet<(String, Option<String>)>,
    pub(super) variants: Vec<VariantKey>,
}

impl Decider {
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

    pub(super) fn missing_piece_message(&self) -> String {
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
    pub(super) fn candidate(&mut self, document: Document) -> Result<Candidate, ImportOutcome> {
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
        let source_hash = fingerprint::of_source(&document, texts());
        let imported_hash = WrittenFields::of(&document, texts().collect()).hash();
        let recorded = known.and_then(|id| self.known.source(id, variant.as_ref()));
        let recorded = recorded.map(|recorded| &recorded.source_hash);
        let recorded_state = recorded.and_then(|recorded| fingerprint::split_state(recorded).1);
        let state = match document.state {
            _ if !self.target.publish => recorded_state.unwrap_or(ImportedState::Unpublished),
            PublishingState::Published => ImportedState::Published,
            PublishingState::Scheduled => ImportedState::Scheduled,
            _ => ImportedState::Unpublished,
        };
        // An exported file doesn't replace the piece's own source: that source stays recorded.
        let recorded = recorded.filter(|_| document.id.is_some()).cloned();
        let recorded = recorded.unwrap_or_else(|| fingerprint::with_state(&source_hash, state));
        let source = ImportSource { source_hash: recorded, imported_hash };
        Ok(Candidate { document, known, variant, labels, source_hash, state, source })
    }

    /// Decides the action for each candidate, or its outcome if it needs none. Only pieces whose
    /// source changed are read.
    pub(super) async fn decide(
        &self,
        destination: &impl Destination,
        candidates: &[Candidate],
    ) -> anyhow::Result<Vec<Result<Decision, ImportOutcome>>> {
        let mut decisions = Vec::with_capacity(candidates.len());
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for (place, candidate) in candidates.iter().enumerate() {
            let Some(id) = candidate.known else {
                let publication = self.publication(candidate, None);
                decisions.push(Ok(Decision { action: Action::Create, publication }));
                continue;
            };
            let state = self.recorded(candidate).and_then(|(_, state)| state);
            let is_same_state = state.is_none_or(|state| state == candidate.state);
            decisions.push(Err(ImportOutcome::Unchanged));
            if self.is_same_source(candidate) && is_same_state && !self.target.overwrite {
                continue;
            }
            wanted.push((id, candidate.variant.clone().filter(|key| self.variants.contains(key))));
            places.push(place);
        }
        let current = destination.current(&wanted).await?;
        for ((place, current), (id, _)) in places.into_iter().zip(current).zip(wanted) {
            decisions[place] = self.decide_on(&candidates[place], id, current);
        }
        Ok(decisions)
    }

    /// Returns the hash and the state that an earlier import recorded for the source.
    fn recorded(&self, candidate: &Candidate) -> Option<(&str, Option<ImportedState>)> {
        let source = self.known.source(candidate.known?, candidate.variant.as_ref())?;
        Some(fingerprint::split_state(&source.source_hash))
    }

    fn is_same_source(&self, candidate: &Candidate) -> bool {
        self.recorded(candidate).is_some_and(|(hash, _)| hash == candidate.source_hash)
    }

    fn decide_on(
        &self,
        candidate: &Candidate,
        id: ContentPieceId,
        current: Option<CurrentPiece>,
    ) -> Result<Decision, ImportOutcome> {
        let Candidate { document, variant, source, .. } = candidate;
        let current = current.ok_or_else(|| {
            let problem = "its piece was deleted during the import: import it again";
            ImportOutcome::Rejected(problem.to_owned())
        })?;
        let publication = self.publication(candidate, Some(&current));
        if variant.as_ref().is_some_and(|key| !self.variants.contains(key)) {
            // A variant that doesn't exist yet has no overrides to compare with.
            return Ok(Decision { action: Action::Update { id, version: None }, publication });
        }
        let width = document.cover_width.as_ref().map(ShortText::as_str);
        let has_width = width.is_none_or(|width| current.cover_width.as_deref() == Some(width));
        let is_unchanged = self.is_same_source(candidate) && !self.target.overwrite;
        if is_unchanged || current.hash == source.imported_hash && has_width {
            let is_done = publication == PublicationChange::Publish
                && current.state == PublicationState::Published;
            let publication = if is_done { PublicationChange::Keep } else { publication };
            return Ok(Decision { action: Action::Record { id }, publication });
        }
        let was_edited = match self.known.source(id, variant.as_ref()) {
            Some(recorded) => recorded.imported_hash != current.hash,
            // A variant that doesn't override anything yet.
            None => variant.is_none() || !current.equals_piece,
        };
        if was_edited && !self.target.overwrite {
            return Err(ImportOutcome::Conflict);
        }
        let version = (!self.target.overwrite).then_some(current.version);
        Ok(Decision { action: Action::Update { id, version }, publication })
    }

    /// Decides how the publication of a piece follows that of its source. Changes that were made in
    /// Galley win: an import publishes no pending changes and no unpublished piece.
    fn publication(
        &self,
        candidate: &Candidate,
        current: Option<&CurrentPiece>,
    ) -> PublicationChange {
        let Candidate { document, known, variant, state, .. } = candidate;
        if !self.target.publish {
            return PublicationChange::Keep;
        }
        let is_scheduled = current.is_some_and(|current| current.is_scheduled);
        let current = current.map_or(PublicationState::Draft, |current| current.state);
        if variant.is_some() || known.is_some_and(|known| document.id == Some(known)) {
            // A variant is published with its piece. The file of an export has the state that the
            // piece has already.
            return match (state, current) {
                (ImportedState::Published, PublicationState::Published) => {
                    PublicationChange::Publish
                }
                (ImportedState::Published, PublicationState::Changed) => {
                    PublicationChange::Withhold
                }
                _ => PublicationChange::Keep,
            };
        }
        let recorded = self.recorded(candidate).and_then(|(_, state)| state);
        match (state, current, recorded) {
            (ImportedState::Published, PublicationState::Published, _) => {
                PublicationChange::Publish
            }
            (ImportedState::Published, PublicationState::Changed, _)
            | (ImportedState::Published, PublicationState::Draft, Some(ImportedState::Published)) => {
                PublicationChange::Withhold
            }
            (ImportedState::Published, PublicationState::Draft, _) => PublicationChange::Publish,
            // The schedule of an earlier import was cancelled, or has run.
            (ImportedState::Scheduled, _, Some(ImportedState::Scheduled)) if !is_scheduled => {
                PublicationChange::Keep
            }
            (ImportedState::Scheduled, PublicationState::Draft, _)
                if recorded != Some(ImportedState::Published) =>
            {
                document.publish_at.map_or(PublicationChange::Keep, PublicationChange::Schedule)
            }
            (
                ImportedState::Unpublished,
                _,
                Some(ImportedState::Published | ImportedState::Scheduled),
            ) => PublicationChange::Unpublish,
            (ImportedState::Scheduled | ImportedState::Unpublished, ..) => PublicationChange::Keep,
        }
    }
}
