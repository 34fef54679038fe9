//! Decides the change of a piece, and of its publication, for each document.

use std::collections::{HashMap, HashSet};

use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::publication::PublicationState;
use galley_domain::tag::TagLabel;
use galley_domain::text::ShortText;
use galley_domain::variant::VariantKey;
use galley_domain::{ContentGroupId, ContentPieceId};

use crate::destination::{CurrentPiece, Destination, ImportOutcome, KnownPiece};
use crate::fingerprint::{self, WrittenFields};
use crate::language::{language_form, variant_key};
use crate::publication::{
    self, PiecePublication, PublicationChange, Recorded, RecordedState, SourceState,
};
use crate::raw::Document;

/// The destination of the pieces.
#[derive(Debug, Clone)]
pub(crate) struct ImportTarget {
    pub(crate) group: ContentGroupId,
    /// The tags of every piece.
    pub(crate) labels: Vec<TagLabel>,
    /// True if folders become groups.
    pub(crate) groups: bool,
    /// The language of the pieces themselves, if the import has several languages.
    pub(crate) language: Option<String>,
    /// True if pieces are updated even if they were edited since the last import.
    pub(crate) overwrite: bool,
    /// True if pieces are published, scheduled and unpublished as their sources are.
    pub(crate) publish: bool,
}

/// The existing pieces.
#[derive(Debug, Default)]
pub(crate) struct KnownPieces {
    pub(crate) by_name: HashMap<String, ContentPieceId>,
    pub(crate) by_id: HashMap<ContentPieceId, KnownPiece>,
    /// True if `by_id` has the pieces of all groups.
    pub(crate) has_all: bool,
}

impl KnownPieces {
    pub(crate) fn add(&mut self, piece: KnownPiece) {
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
pub(crate) struct Candidate {
    pub(crate) document: Document,
    pub(crate) known: Option<ContentPieceId>,
    pub(crate) variant: Option<VariantKey>,
    pub(crate) labels: Vec<TagLabel>,
    /// The hash of the source without its files.
    text_hash: String,
    /// The hash of the source with its files.
    source_hash: String,
    /// The hash of the fields to write.
    imported_hash: SourceHash,
}

/// The decision on a candidate.
pub(crate) struct Decision {
    pub(crate) action: DocumentAction,
    pub(crate) publication: PublicationChange,
    /// The source to note for the piece.
    pub(crate) source: ImportSource,
    /// The source to note before an update.
    pub(crate) pending: Option<ImportSource>,
}

/// The change of a candidate's piece.
pub(crate) enum DocumentAction {
    Create,
    Update { id: ContentPieceId, version: Option<String> },
    Record { id: ContentPieceId, version: String },
    Withdraw { id: ContentPieceId },
}

/// The component that compares documents with the pieces of earlier imports.
#[derive(Debug)]
pub(crate) struct Decider {
    pub(crate) target: ImportTarget,
    /// The pieces of earlier imports.
    pub(crate) known: KnownPieces,
    /// The sources seen in this import. Two sources with one name would overwrite each other in
    /// every import.
    pub(crate) seen: HashSet<(String, Option<String>)>,
    pub(crate) variants: Vec<VariantKey>,
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

    pub(crate) fn missing_piece_message(&self) -> String {
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
    pub(crate) fn candidate(&mut self, document: Document) -> Result<Candidate, ImportOutcome> {
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
        let text_hash = fingerprint::of_source(&document, texts());
        let source_hash = fingerprint::with_files(&text_hash, &document.files);
        let imported_hash = WrittenFields::of(&document, texts().collect()).hash();
        Ok(Candidate { document, known, variant, labels, text_hash, source_hash, imported_hash })
    }

    /// Decides the action for each candidate, or its outcome if it needs none. Only pieces whose
    /// source changed are read.
    pub(crate) async fn decide(
        &self,
        destination: &impl Destination,
        candidates: &[Candidate],
    ) -> anyhow::Result<Vec<Result<Decision, ImportOutcome>>> {
        let mut decisions = Vec::with_capacity(candidates.len());
        let (mut wanted, mut places) = (Vec::new(), Vec::new());
        for (place, candidate) in candidates.iter().enumerate() {
            let Some(id) = candidate.known else {
                let publication = self.publication(candidate, PiecePublication::NEW, true);
                let state = self.state_after(candidate, PiecePublication::NEW);
                decisions.push(Ok(Decision {
                    action: DocumentAction::Create,
                    publication,
                    source: self.source_after(candidate, state),
                    pending: None,
                }));
                continue;
            };
            decisions.push(Err(ImportOutcome::Unchanged));
            if self.is_same(candidate) && !self.target.overwrite {
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

    /// Returns the source that an earlier import recorded.
    fn recorded(&self, candidate: &Candidate) -> Option<&ImportSource> {
        self.known.source(candidate.known?, candidate.variant.as_ref())
    }

    fn recorded_state(&self, candidate: &Candidate) -> Recorded {
        match self.recorded(candidate).map(|source| fingerprint::split_state(&source.source_hash)) {
            None => Recorded::Nothing,
            Some((_, None)) => Recorded::WithoutState,
            Some((_, Some(state))) => Recorded::State(state),
        }
    }

    fn is_same_source(&self, candidate: &Candidate) -> bool {
        let recorded = self.recorded(candidate);
        recorded.is_some_and(|recorded| {
            let (hash, _) = fingerprint::split_state(&recorded.source_hash);
            // Without some of its files, the source would undo their import.
            hash == candidate.source_hash
                || fingerprint::loses_files(hash, &candidate.text_hash, &candidate.document.files)
        })
    }

    /// Returns true if neither the source nor its state changed since the last import.
    fn is_same(&self, candidate: &Candidate) -> bool {
        let state = RecordedState::from(SourceState::of(&candidate.document));
        let is_same_state = match self.recorded_state(candidate) {
            Recorded::Nothing => false,
            Recorded::WithoutState => true,
            Recorded::State(recorded) => recorded == state || !self.target.publish,
        };
        is_same_state && self.is_same_source(candidate)
    }

    /// Returns true if the document was exported from its piece.
    fn is_own_export(candidate: &Candidate) -> bool {
        candidate.known.is_some() && candidate.known == candidate.document.id
    }

    /// Returns the state to record. Without publication, it tells the next import what remains.
    fn state_after(&self, candidate: &Candidate, before: PiecePublication) -> RecordedState {
        let source = SourceState::of(&candidate.document);
        if self.target.publish {
            return source.into();
        }
        match (source, self.recorded_state(candidate)) {
            (SourceState::Published, Recorded::State(RecordedState::Published))
                if before.state != PublicationState::Published =>
            {
                RecordedState::Published
            }
            (SourceState::Published, _) => RecordedState::Pending,
            (_, Recorded::State(recorded)) => recorded,
            (_, Recorded::Nothing | Recorded::WithoutState) => RecordedState::Unpublished,
        }
    }

    /// Returns the source to record with a state. An exported file doesn't replace the piece's own
    /// source.
    fn source_after(&self, candidate: &Candidate, state: RecordedState) -> ImportSource {
        let own = self.recorded(candidate).filter(|_| Self::is_own_export(candidate));
        let source_hash = match own {
            Some(own) => own.source_hash.clone(),
            None => {
                let recorded = self.recorded(candidate).filter(|_| self.is_same_source(candidate));
                let hash = recorded.map_or(&*candidate.source_hash, |recorded| {
                    fingerprint::split_state(&recorded.source_hash).0
                });
                fingerprint::with_state(hash, state)
            }
        };
        ImportSource { source_hash, imported_hash: candidate.imported_hash.clone() }
    }

    fn decide_on(
        &self,
        candidate: &Candidate,
        id: ContentPieceId,
        current: Option<CurrentPiece>,
    ) -> Result<Decision, ImportOutcome> {
        let Candidate { document, variant, imported_hash, .. } = candidate;
        let current = current.ok_or_else(|| {
            let problem = "its piece was deleted during the import: import it again";
            ImportOutcome::Rejected(problem.to_owned())
        })?;
        let before = current.publication;
        let source = self.source_after(candidate, self.state_after(candidate, before));
        let decision = |action, publication| Decision {
            action,
            publication,
            source: source.clone(),
            pending: None,
        };
        let update = |version| {
            let publication = self.publication(candidate, before, true);
            let pending = self.recorded(candidate).filter(|_| publication.publish);
            let pending = pending.filter(|_| !Self::is_own_export(candidate)).map(|recorded| {
                let (hash, _) = fingerprint::split_state(&recorded.source_hash);
                let source_hash = fingerprint::with_state(hash, RecordedState::Pending);
                ImportSource { source_hash, imported_hash: recorded.imported_hash.clone() }
            });
            Decision { pending, ..decision(DocumentAction::Update { id, version }, publication) }
        };
        if variant.as_ref().is_some_and(|key| !self.variants.contains(key)) {
            // A variant that doesn't exist yet has no overrides to compare with.
            return Ok(update(None));
        }
        let width = document.cover_width.as_ref().map(ShortText::as_str);
        let has_width = width.is_none_or(|width| current.cover_width.as_deref() == Some(width));
        let is_equal = current.hash == *imported_hash;
        let is_unchanged = self.is_same_source(candidate) && !self.target.overwrite;
        if is_unchanged || is_equal && has_width {
            let mut publication = self.publication(candidate, before, is_equal);
            publication.publish &= before.state != PublicationState::Published;
            if publication == PublicationChange::NONE && self.recorded(candidate) == Some(&source) {
                return Err(ImportOutcome::Unchanged);
            }
            let version = current.version;
            return Ok(decision(DocumentAction::Record { id, version }, publication));
        }
        let was_edited = match self.known.source(id, variant.as_ref()) {
            Some(recorded) => recorded.imported_hash != current.hash,
            // A variant that doesn't override anything yet.
            None => variant.is_none() || !current.equals_piece,
        };
        if was_edited && !self.target.overwrite {
            // The text stays, but a source that is not public any more withdraws its piece.
            let publication = self.publication(candidate, before, false);
            if publication.unpublish || publication.schedule == Some(None) {
                return Ok(decision(DocumentAction::Withdraw { id }, publication));
            }
            return Err(ImportOutcome::Conflict);
        }
        Ok(update((!self.target.overwrite).then_some(current.version)))
    }

    fn publication(
        &self,
        candidate: &Candidate,
        before: PiecePublication,
        is_own: bool,
    ) -> PublicationChange {
        let source = SourceState::of(&candidate.document);
        let recorded = match self.recorded_state(candidate) {
            // An overwritten piece has the fields of its source, and no others are pending.
            Recorded::State(_)
                if self.target.overwrite && before.state == PublicationState::Changed =>
            {
                Recorded::State(RecordedState::Pending)
            }
            recorded => recorded,
        };
        if !self.target.publish {
            PublicationChange::NONE
        } else if candidate.variant.is_some() || Self::is_own_export(candidate) {
            publication::follow_piece(source, before, recorded, is_own)
        } else {
            publication::follow(source, before, recorded, is_own)
        }
    }
}
