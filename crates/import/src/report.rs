//! The report of an import: the results, and all findings by kind.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::assets::AssetCounts;
use crate::destination::ImportOutcome;
use crate::findings::{FindingGroup, ImportFinding};
use crate::load::DocumentResult;
use crate::publication::PublicationChange;

/// The results of an import so far.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of created pieces.
    pub created: usize,
    /// The number of updated pieces.
    pub updated: usize,
    /// The number of unchanged pieces.
    pub unchanged: usize,
    /// The number of published pieces.
    pub published: usize,
    /// The number of scheduled pieces.
    pub scheduled: usize,
    /// The number of unpublished pieces.
    pub unpublished: usize,
    /// The sources that were changed since the last import, like their pieces.
    pub conflicts: Vec<String>,
    /// Messages about sources that can't be imported.
    pub problems: Vec<String>,
    /// The files that became assets.
    pub assets: AssetCounts,
    /// The named files to which documents refer, and true for those that are no assets.
    pub referred_files: BTreeMap<String, bool>,
    /// The kinds of findings, in the order of their first occurrence.
    pub kinds: Vec<FindingKind>,
    /// Each document, if the import lists them.
    pub documents: Vec<DocumentReport>,
    lists_documents: bool,
    by_name: HashMap<(FindingGroup, String), usize>,
}

/// The result of a document.
#[derive(Debug)]
pub struct DocumentReport {
    /// The name of the source, and of the post in an export.
    pub source: String,
    /// The result.
    pub outcome: ImportOutcome,
}

/// A kind of findings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingKind {
    /// The group of the kind.
    pub group: FindingGroup,
    /// The kind, as a plural that follows a count.
    pub what: String,
    /// The number of occurrences.
    pub count: u64,
    /// The sources with occurrences.
    pub places: Vec<FindingOccurrence>,
}

/// The findings of a kind in one source.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingOccurrence {
    /// The name of the source.
    pub source: String,
    /// The number of occurrences.
    pub count: u64,
    /// The addresses or names concerned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Report {
    pub(crate) fn new(problems: Vec<String>, lists_documents: bool) -> Self {
        Self { problems, lists_documents, ..Self::default() }
    }

    pub(crate) fn add_problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    pub(crate) fn add(&mut self, source: &str, finding: ImportFinding) {
        let ImportFinding { group, what, count, details } = finding;
        let key = (group, what);
        let place = match self.by_name.get(&key) {
            Some(&place) => place,
            None => {
                let kind = FindingKind { group, what: key.1.clone(), count: 0, places: Vec::new() };
                self.kinds.push(kind);
                self.by_name.insert(key, self.kinds.len() - 1);
                self.kinds.len() - 1
            }
        };
        let kind = &mut self.kinds[place];
        kind.count += count;
        match kind.places.last_mut().filter(|last| last.source == source) {
            Some(last) => {
                last.count += count;
                last.details.extend(details);
            }
            None => {
                kind.places.push(FindingOccurrence { source: source.to_owned(), count, details });
            }
        }
    }

    /// Counts the result of a document.
    pub(crate) fn count(&mut self, result: DocumentResult) {
        let DocumentResult { name, place, outcome, publication } = result;
        if self.lists_documents {
            let report = DocumentReport { source: place.clone(), outcome: outcome.clone() };
            self.documents.push(report);
        }
        match outcome {
            ImportOutcome::Created => self.created += 1,
            ImportOutcome::Updated => self.updated += 1,
            ImportOutcome::Unchanged => self.unchanged += 1,
            ImportOutcome::Conflict => self.conflicts.push(place),
            ImportOutcome::Rejected(problem) => {
                return self.problems.push(format!("{place}: {problem}"));
            }
        }
        let PublicationChange { schedule, unpublish, publish, is_withheld } = publication;
        self.published += usize::from(publish);
        self.scheduled += usize::from(schedule.flatten().is_some());
        self.unpublished += usize::from(unpublish);
        if is_withheld {
            let what = "published posts whose pieces were changed or unpublished in Galley";
            self.add(&name, ImportFinding::unpublished(what));
        }
    }

    /// Sorts the kinds of findings by group, each group by frequency.
    pub fn sort(&mut self) {
        self.kinds.sort_by_key(|kind| (kind.group, std::cmp::Reverse(kind.count)));
    }
}
