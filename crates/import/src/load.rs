//! Writes documents as pieces, in batches.

use std::collections::{HashMap, HashSet};

use galley_domain::content_group::ContentGroupName;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, WorkspaceMemberId};

use crate::authors::MemberDirectory;
use crate::decision::{Candidate, Decider, Decision, DocumentAction, ImportTarget, KnownPieces};
use crate::destination::{Destination, ImportOutcome, PreparedDocument, Task, WriteFailure};
use crate::publication::PublicationChange;
use crate::raw::Document;

/// The result of importing one document.
#[derive(Debug)]
pub(crate) struct DocumentResult {
    /// The name of the source.
    pub(crate) name: String,
    /// The file and post that messages to the user name.
    pub(crate) place: String,
    pub(crate) outcome: ImportOutcome,
    /// The change of the piece's publication. Variants are published with their pieces.
    pub(crate) publication: PublicationChange,
}

/// The names of a document in reports.
struct DocumentNames {
    name: String,
    place: String,
    is_variant: bool,
}

impl DocumentNames {
    fn of(candidate: &Candidate) -> Self {
        let Candidate { document, variant, .. } = candidate;
        Self {
            name: document.name.as_str().to_owned(),
            place: document.place.clone(),
            is_variant: variant.is_some(),
        }
    }

    fn result(self, outcome: ImportOutcome, publication: PublicationChange) -> DocumentResult {
        let PublicationChange { is_withheld, .. } = publication;
        let of_variant = PublicationChange { is_withheld, ..PublicationChange::NONE };
        let publication = if self.is_variant { of_variant } else { publication };
        DocumentResult { name: self.name, place: self.place, outcome, publication }
    }
}

/// The component that writes documents as pieces.
#[derive(Debug)]
pub(crate) struct Loader<P> {
    place: P,
    decider: Decider,
    /// The ids of groups, by parent and name.
    groups: HashMap<(ContentGroupId, String), ContentGroupId>,
    members: MemberDirectory,
}

impl<P: Destination> Loader<P> {
    pub(crate) async fn new(mut place: P, target: ImportTarget) -> anyhow::Result<Self> {
        let mut known = KnownPieces::default();
        for piece in place.pieces(Some(target.group), target.groups).await? {
            known.add(piece);
        }
        let mut members = MemberDirectory::default();
        for member in place.members().await? {
            members.add(member);
        }
        let variants = match target.language {
            Some(_) => place.variants().await?,
            None => Vec::new(),
        };
        let decider = Decider { target, known, seen: HashSet::new(), variants };
        Ok(Self { place, decider, groups: HashMap::new(), members })
    }

    /// Returns the results that an import of the documents would have, and writes nothing.
    pub(crate) async fn compare(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<DocumentResult>> {
        self.find_exported(&documents).await?;
        let mut results = Vec::with_capacity(documents.len());
        let mut candidates = Vec::with_capacity(documents.len());
        for document in documents {
            let own = (document.name.as_str().to_owned(), self.decider.target.language.clone());
            match self.candidate(document) {
                Ok(candidate) if candidate.variant.is_some() && candidate.known.is_none() => {
                    // An import would have created the piece by then.
                    let outcome = if self.decider.seen.contains(&own) {
                        ImportOutcome::Updated
                    } else {
                        ImportOutcome::Rejected(self.decider.missing_piece_message())
                    };
                    let names = DocumentNames::of(&candidate);
                    results.push(names.result(outcome, PublicationChange::NONE));
                }
                Ok(candidate) => candidates.push(candidate),
                Err(result) => results.push(result),
            }
        }
        let decisions = self.decider.decide(&self.place, &candidates).await?;
        let decided = candidates.into_iter().zip(decisions).map(|(candidate, decision)| {
            let names = DocumentNames::of(&candidate);
            match decision {
                Ok(Decision { action, publication, .. }) => {
                    let outcome = match action {
                        DocumentAction::Create => ImportOutcome::Created,
                        DocumentAction::Update { .. } => ImportOutcome::Updated,
                        DocumentAction::Record { .. } => ImportOutcome::Unchanged,
                        DocumentAction::Withdraw { .. } => ImportOutcome::Conflict,
                    };
                    names.result(outcome, publication)
                }
                Err(outcome) => names.result(outcome, PublicationChange::NONE),
            }
        });
        results.extend(decided);
        Ok(results)
    }

    /// Looks up the piece of a document, or returns the result if the document is rejected.
    fn candidate(&mut self, document: Document) -> Result<Candidate, DocumentResult> {
        let (name, place) = (document.name.as_str().to_owned(), document.place.clone());
        let names = DocumentNames { name, place, is_variant: false };
        let candidate = self.decider.candidate(document);
        candidate.map_err(|outcome| names.result(outcome, PublicationChange::NONE))
    }

    /// Writes documents. Variants follow their pieces.
    pub(crate) async fn load(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<DocumentResult>> {
        let own = self.decider.target.language.clone();
        let (pieces, mut variants): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|document| document.language.is_none() || document.language == own);
        let mut results = self.load_batch(pieces).await?;
        // Each batch has one variant of a piece, as it compares the piece's version.
        while !variants.is_empty() {
            let mut pieces = HashSet::new();
            let (batch, rest) = variants
                .into_iter()
                .partition(|document| pieces.insert(document.name.as_str().to_owned()));
            results.extend(self.load_batch(batch).await?);
            variants = rest;
        }
        Ok(results)
    }

    async fn load_batch(
        &mut self,
        documents: Vec<Document>,
    ) -> anyhow::Result<Vec<DocumentResult>> {
        self.find_exported(&documents).await?;
        let mut results = Vec::with_capacity(documents.len());
        let mut candidates = Vec::with_capacity(documents.len());
        for document in documents {
            match self.candidate(document) {
                Ok(candidate) if candidate.variant.is_some() && candidate.known.is_none() => {
                    let rejected = ImportOutcome::Rejected(self.decider.missing_piece_message());
                    let names = DocumentNames::of(&candidate);
                    results.push(names.result(rejected, PublicationChange::NONE));
                }
                Ok(candidate) => candidates.push(candidate),
                Err(result) => results.push(result),
            }
        }
        let decisions = self.decider.decide(&self.place, &candidates).await?;
        let mut prepared = Vec::with_capacity(candidates.len());
        let mut names_of_prepared = Vec::with_capacity(candidates.len());
        for (candidate, decision) in candidates.into_iter().zip(decisions) {
            let names = DocumentNames::of(&candidate);
            let outcome = match decision {
                Ok(decision) => match self.prepare(candidate, decision).await {
                    Ok(document) => {
                        prepared.push(document);
                        names_of_prepared.push(names);
                        continue;
                    }
                    Err(WriteFailure::Rejected(problem)) => ImportOutcome::Rejected(problem),
                    Err(WriteFailure::Conflict) => ImportOutcome::Conflict,
                    Err(WriteFailure::Failed(error)) => return Err(error),
                },
                Err(outcome) => outcome,
            };
            results.push(names.result(outcome, PublicationChange::NONE));
        }
        if prepared.is_empty() {
            return Ok(results);
        }
        let publications: Vec<_> = prepared.iter().map(|one| one.publication).collect();
        let written = self.place.write(prepared).await?;
        for ((names, publication), one) in
            names_of_prepared.into_iter().zip(publications).zip(written)
        {
            if let Some(id) = one.id {
                self.decider.known.by_name.insert(names.name.clone(), id);
            }
            results.push(names.result(one.outcome, publication));
        }
        Ok(results)
    }

    /// Finds the pieces that documents were exported from, including pieces outside the import's
    /// group.
    async fn find_exported(&mut self, documents: &[Document]) -> anyhow::Result<()> {
        let is_unknown = |id: &ContentPieceId| !self.decider.known.by_id.contains_key(id);
        let mut ids = documents.iter().filter_map(|document| document.id);
        if self.decider.known.has_all || !ids.any(|id| is_unknown(&id)) {
            return Ok(());
        }
        for piece in self.place.pieces(None, true).await? {
            self.decider.known.by_id.entry(piece.id).or_insert(piece);
        }
        self.decider.known.has_all = true;
        Ok(())
    }

    /// Resolves the names in a document. Creates missing groups and variants.
    async fn prepare(
        &mut self,
        candidate: Candidate,
        decision: Decision,
    ) -> Result<PreparedDocument, WriteFailure> {
        let Candidate { document, variant, labels, .. } = candidate;
        if let (Some(key), Some(language)) = (&variant, &document.language) {
            self.create_missing_variant(key, language).await?;
        }
        let Decision { action, publication, source, pending } = decision;
        let task = match action {
            DocumentAction::Record { id, version } => Task::Record { id, version },
            DocumentAction::Update { id, version } => Task::Update { id, version },
            DocumentAction::Withdraw { id } => Task::Withdraw { id },
            DocumentAction::Create => {
                let mut members: Vec<WorkspaceMemberId> = Vec::new();
                let found = document.authors.iter().filter_map(|author| self.members.find(author));
                for member in found {
                    if !members.contains(&member) {
                        members.push(member);
                    }
                }
                let mut group = self.decider.target.group;
                if self.decider.target.groups {
                    for folder in &document.folders {
                        group = self.group(group, folder).await?;
                    }
                }
                Task::Create { group, members }
            }
        };
        Ok(PreparedDocument { document, task, publication, variant, labels, source, pending })
    }

    /// Returns the id of the named group below a parent. Creates a missing group.
    async fn group(
        &mut self,
        parent: ContentGroupId,
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
        if self.decider.variants.contains(key) {
            return Ok(());
        }
        let label = VariantLabel::parse(language)
            .map_err(|invalid| WriteFailure::Rejected(format!("the language {invalid}")))?;
        let made = self.place.variant(key, &label).await;
        made.map_err(|failure| with_subject(&format!("the variant {language:?}"), failure))?;
        self.decider.variants.push(key.clone());
        Ok(())
    }
}

fn with_subject(what: &str, failure: WriteFailure) -> WriteFailure {
    match failure {
        WriteFailure::Rejected(problem) => WriteFailure::Rejected(format!("{what}: {problem}")),
        other => other,
    }
}
