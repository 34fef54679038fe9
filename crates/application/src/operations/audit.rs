//! Reads of the audit log, and its retention.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::Timestamp;
use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::publication::ContentView;
use galley_storage::audit::{self, AuditQuery};
use galley_storage::{Database, Tx, WriteTx, rejected_credentials, workspaces};
use serde_json::json;

use crate::audit::{AuditChanges, record};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::references::{self, members_and_actors};
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// Entries of the audit log, and the members who made the changes.
#[derive(Debug)]
pub struct AuditList {
    /// The entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// The members.
    pub referenced: ReferencedResources,
}

/// Lists entries. The log has changes of the whole workspace, so a limited token gets none.
pub async fn list(caller: &Caller, query: AuditQuery) -> Result<AuditList, Error> {
    let scope = caller.scope();
    if scope.content_groups.is_some() || scope.view == ContentView::Published {
        let detail = "the token is limited to some content, and the audit log has all of it";
        return Err(Rejection::new(Reason::OutsideGroupLimit, detail).into());
    }
    let read = async move |tx: &Tx<'_>| list_in(tx, &scope, &query).await;
    // The filters match few of the entries that are read.
    caller.read_long("audit.list", read).await
}

/// Lists entries in a transaction.
pub async fn list_in(tx: &Tx<'_>, scope: &Scope, query: &AuditQuery) -> Result<AuditList, Error> {
    let entries = audit::list(tx, scope.workspace, query).await?;
    let members = members_and_actors(&[], entries.iter().map(|entry| entry.actor));
    let mut referenced = references::find(tx, scope.workspace, &[], &members, &[]).await?;
    referenced.hides_emails = scope.hides_emails;
    Ok(AuditList { entries, referenced })
}

/// Records that pieces were created and updated by an import.
pub fn record_import(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    created: usize,
    updated: usize,
) {
    let changes = AuditChanges::created(json!({"created": created, "updated": updated}));
    let (action, target) = (AuditAction::WorkspaceImport, scope.workspace);
    record(tx, environment, scope, action, target, changes);
}

/// Records that pieces were restored from a bundle.
pub fn record_restoration(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    pieces: usize,
) {
    let changes = AuditChanges::created(json!({"pieces": pieces}));
    let (action, target) = (AuditAction::WorkspaceRestore, scope.workspace);
    record(tx, environment, scope, action, target, changes);
}

/// The limit on entries that one transaction changes, so that it doesn't block other writes for
/// long.
const ENTRIES_PER_TRANSACTION: i64 = 1_000;

fn days_before(now: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_ms(now.ms() - i64::from(days) * 24 * 60 * 60 * 1_000)
}

/// Deletes expired entries, and removes expired addresses of entries from `addresses_since` on.
/// Returns the time before which entries have no address any more.
pub async fn remove_expired(
    database: &Database,
    environment: &Environment,
    addresses_since: Timestamp,
) -> Result<Timestamp, Error> {
    let now = environment.now();
    let before = days_before(now, AuditEntry::RETENTION_DAYS);
    let addresses_before = days_before(now, AuditEntry::ADDRESS_RETENTION_DAYS);
    let list = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    for (workspace, _) in database.read_long("workspaces.list", list).await? {
        let delete = async move |tx: &WriteTx<'_>| {
            let limit = ENTRIES_PER_TRANSACTION;
            Ok::<_, Error>(audit::delete_expired(tx, workspace, before, limit).await?)
        };
        while database.write_in_background("audit.delete_expired", delete).await? > 0 {}
        loop {
            let list = async move |tx: &Tx<'_>| {
                let (since, limit) = (addresses_since, ENTRIES_PER_TRANSACTION);
                let found =
                    audit::with_address(tx, workspace, since, addresses_before, limit).await?;
                Ok::<_, Error>(found)
            };
            let entries = database.read_long("audit.with_address", list).await?;
            if entries.is_empty() {
                break;
            }
            let remove = async move |tx: &WriteTx<'_>| {
                Ok::<_, Error>(audit::remove_addresses(tx, workspace, &entries).await?)
            };
            database.write_in_background("audit.remove_addresses", remove).await?;
        }
    }
    let delete = async move |tx: &WriteTx<'_>| {
        Ok::<_, Error>(rejected_credentials::delete_expired(tx, addresses_before).await?)
    };
    database.write_in_background("rejected_credentials.delete_expired", delete).await?;
    Ok(addresses_before)
}
