//! The audit log of a bundle, in files of up to 1,000 entries.

use std::path::Path;

use anyhow::Context;
use galley_application::operations::audit::retained;
use galley_application::{Error, Scope};
use galley_domain::audit::AuditEntry;
use galley_domain::{Timestamp, WorkspaceId};
use galley_storage::{Database, Snapshot, Tx, WriteTx, audit};

use super::encode::text;
use super::files::{file, json_files};
use super::format::BundleAuditEntry;
use crate::export::folder::ExportFolder;

/// The folder of the entries.
const FOLDER: &str = "audit";

/// The number of entries in a file.
const ENTRIES: i64 = 1_000;

/// Writes the audit log, oldest entry first. So later exports add entries to the last file, until
/// the first entries expire.
pub(super) async fn export(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    folder: &mut ExportFolder,
) -> anyhow::Result<()> {
    let mut after = None;
    loop {
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(audit::list_after(tx, workspace, after, ENTRIES).await?)
        };
        let entries = snapshot.read("export.audit", read).await?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let path = format!("{FOLDER}/{}.json", first.id);
        after = Some(last.id);
        let entries = entries.into_iter().map(BundleAuditEntry::try_from);
        folder.write(&path, &text(&entries.collect::<serde_json::Result<Vec<_>>>()?)?);
    }
}

/// Restores the entries of a bundle that the workspace lacks. Returns messages about files with
/// problems.
pub(super) async fn restore(
    database: &Database,
    scope: &Scope,
    bundle: &Path,
    now: Timestamp,
) -> anyhow::Result<Vec<String>> {
    let (mut problems, workspace) = (Vec::new(), scope.workspace);
    for path in json_files(&bundle.join(FOLDER))? {
        match file(&path).and_then(|read| entries(read).context(path.display().to_string())) {
            Ok(entries) => {
                let entries = retained(entries, now);
                let write = async move |tx: &WriteTx<'_>| {
                    Ok::<_, Error>(audit::insert_missing(tx, workspace, &entries).await?)
                };
                database.write("bundle.audit", write).await?;
            }
            Err(problem) => problems.push(format!("{problem:#}")),
        }
    }
    Ok(problems)
}

fn entries(read: Vec<BundleAuditEntry>) -> anyhow::Result<Vec<AuditEntry>> {
    read.into_iter().map(AuditEntry::try_from).collect()
}
