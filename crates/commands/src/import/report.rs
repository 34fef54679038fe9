//! Shows the report of an import, and writes it as JSON.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use galley_import::{AssetCounts, FindingKind, Report};
use indicatif::HumanBytes;
use serde::Serialize;

use crate::out::{counted, escape_for_terminal, say};

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
    assets: AssetCounts,
    findings: &'a [FindingKind],
}

/// Prints the results and the findings by kind, each with its first source. Returns exit status 1
/// if there are problems.
pub(super) fn print(report: &mut Report, dry_run: bool) -> ExitCode {
    report.sort();
    let Report { created, updated, unchanged, published, scheduled, unpublished, .. } = *report;
    let (conflicts, problems) = (report.conflicts.len(), report.problems.len());
    let verb = if dry_run { "would be imported" } else { "imported" };
    say!(
        "{created} {verb}, {updated} updated, {unchanged} unchanged, {conflicts} with conflicts, \
         {problems} with problems"
    );
    if published + scheduled + unpublished > 0 {
        let verb = if dry_run { "would be published" } else { "published" };
        say!("{published} {verb}, {scheduled} scheduled, {unpublished} unpublished");
    }
    let assets = report.assets;
    if assets.stored + assets.existing > 0 {
        let verb = if dry_run { "would be stored" } else { "stored" };
        say!(
            "{} with {} {verb}, {} existed already",
            counted(assets.stored, "file"),
            HumanBytes(assets.bytes),
            assets.existing
        );
    }
    let mut group = None;
    for kind in &report.kinds {
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
    if !report.conflicts.is_empty() {
        say!(
            "Edited in Galley and changed at the source, not imported (--overwrite imports them):"
        );
        for conflict in &report.conflicts {
            say!("          {}", escape_for_terminal(conflict));
        }
    }
    for problem in &report.problems {
        eprintln!("{}", escape_for_terminal(problem));
    }
    if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the whole report as JSON.
pub(super) fn write(report: &Report, path: &Path, dry_run: bool) -> anyhow::Result<()> {
    let whole = JsonReport {
        dry_run,
        created: report.created,
        updated: report.updated,
        unchanged: report.unchanged,
        published: report.published,
        scheduled: report.scheduled,
        unpublished: report.unpublished,
        conflicts: &report.conflicts,
        problems: &report.problems,
        assets: report.assets,
        findings: &report.kinds,
    };
    let text = serde_json::to_string_pretty(&whole)? + "\n";
    std::fs::write(path, text).with_context(|| format!("--report {}", path.display()))
}
