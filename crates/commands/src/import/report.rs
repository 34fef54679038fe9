//! The report of an import: the results, and all findings by kind.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::destination::ImportOutcome;
use super::findings::{Finding, FindingGroup};
use super::load::DocumentResult;
use super::publication::PublicationChange;
use crate::out::{escape_for_terminal, say};

/// The results of an import so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    created: usize,
    updated: usize,
    unchanged: usize,
    published: usize,
    scheduled: usize,
    unpublished: usize,
    conflicts: Vec<String>,
    problems: Vec<String>,
    /// The kinds of findings, in the order of their first occurrence.
    kinds: Vec<FindingKind>,
    by_name: HashMap<(FindingGroup, String), usize>,
}

/// A kind of findings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingKind {
    group: FindingGroup,
    what: String,
    count: u64,
    places: Vec<FindingOccurrence>,
}

/// The findings of a kind in one source.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingOccurrence {
    source: String,
    count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
}

/// The report as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonReport<'a> {
    dry_run: bool,
    created: usize,
    updated: usize,
    unchanged: usize,
    published: usize,
    scheduled: usize,
    unpublished: usize,
    conflicts: &'a [String],
    problems: &'a [String],
    findings: &'a [FindingKind],
}

impl Report {
    pub(super) fn new(problems: Vec<String>) -> Self {
        Self { problems, ..Self::default() }
    }

    pub(super) fn add_problem(&mut self, problem: String) {
        self.problems.push(problem);
    }

    pub(super) fn add(&mut self, source: &str, finding: Finding) {
        let Finding { group, what, count, details } = finding;
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
    pub(super) fn count(&mut self, result: DocumentResult) {
        let DocumentResult { name, place, outcome, publication } = result;
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
            self.add(&name, Finding::unpublished(what));
        }
    }

    /// Prints the results and the findings by kind, each with its first source. Returns exit status
    /// 1 if there are problems.
    pub(super) fn print(&mut self, dry_run: bool) -> ExitCode {
        let Self { created, updated, unchanged, .. } = self;
        let (conflicts, problems) = (self.conflicts.len(), self.problems.len());
        let verb = if dry_run { "would be imported" } else { "imported" };
        say!(
            "{created} {verb}, {updated} updated, {unchanged} unchanged, {conflicts} with conflicts, \
             {problems} with problems"
        );
        let Self { published, scheduled, unpublished, .. } = *self;
        if published + scheduled + unpublished > 0 {
            let verb = if dry_run { "would be published" } else { "published" };
            say!("{published} {verb}, {scheduled} scheduled, {unpublished} unpublished");
        }
        self.kinds.sort_by_key(|kind| (kind.group, std::cmp::Reverse(kind.count)));
        let mut group = None;
        for kind in &self.kinds {
            if group.replace(kind.group) != Some(kind.group) {
                say!("{}:", kind.group.title());
            }
            let first = kind.places.first().map_or("", |place| place.source.as_str());
            say!(
                "{:>7} x {:<48} {}",
                kind.count,
                escape_for_terminal(&kind.what),
                escape_for_terminal(first)
            );
        }
        if !self.conflicts.is_empty() {
            say!(
                "Edited in Galley and changed at the source, not imported (--overwrite imports \
                 them):"
            );
            for conflict in &self.conflicts {
                say!("          {}", escape_for_terminal(conflict));
            }
        }
        for problem in &self.problems {
            eprintln!("{}", escape_for_terminal(problem));
        }
        if self.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Writes the whole report as JSON.
    pub(super) fn write(&self, path: &Path, dry_run: bool) -> anyhow::Result<()> {
        let whole = JsonReport {
            dry_run,
            created: self.created,
            updated: self.updated,
            unchanged: self.unchanged,
            published: self.published,
            scheduled: self.scheduled,
            unpublished: self.unpublished,
            conflicts: &self.conflicts,
            problems: &self.problems,
            findings: &self.kinds,
        };
        let text = serde_json::to_string_pretty(&whole)? + "\n";
        std::fs::write(path, text).with_context(|| format!("--report {}", path.display()))
    }
}
