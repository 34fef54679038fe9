//! Reads of the audit log, and its retention.

use galley_api_types::content_piece::ReferencedResources;
use galley_domain::Timestamp;
use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::publication::ContentView;
use galley_storage::audit::{self, AuditQuery};
use galley_storage::{Database, Tx, WriteTx, rejected_credentials, workspaces};
use serde_json::{Value, json};

use crate::audit::{AuditChanges, record, without_values};
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
    let mut entries = audit::list(tx, scope.workspace, query).await?;
    let members = members_and_actors(&[], entries.iter().map(|entry| entry.actor));
    let mut referenced = references::find(tx, scope.workspace, &[], &members, &[]).await?;
    referenced.hides_emails = scope.hides_emails;
    for entry in &mut entries {
        let hides_tokens = !scope.sees_all_tokens && entry.action.target_type() == "token";
        if hides_tokens || (scope.hides_emails && entry.action.is_of_person()) {
            entry.changes = entry.changes.as_deref().and_then(without_values);
        }
    }
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
    let counts = json!({"created": created, "updated": updated});
    record_counts(tx, environment, scope, AuditAction::WorkspaceImport, &counts);
}

/// Records that a workspace is restored from a bundle with so many pieces.
pub fn record_restoration(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    pieces: usize,
) {
    let counts = json!({"pieces": pieces});
    record_counts(tx, environment, scope, AuditAction::WorkspaceRestore, &counts);
}

fn record_counts(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    action: AuditAction,
    counts: &Value,
) {
    record(tx, environment, scope, action, scope.workspace, AuditChanges::created(counts));
}

/// Returns the entries of another store that may be kept, without addresses that may not.
pub fn retained(entries: Vec<AuditEntry>, now: Timestamp) -> Vec<AuditEntry> {
    let kept_since = days_before(now, AuditEntry::RETENTION_DAYS);
    let addresses_since = days_before(now, AuditEntry::ADDRESS_RETENTION_DAYS);
    let kept = entries.into_iter().filter(|entry| entry.at() >= kept_since);
    kept.map(|entry| {
        let keeps_address = entry.at() >= addresses_since;
        let remote_address = entry.remote_address.clone().filter(|_| keeps_address);
        AuditEntry { remote_address, ..entry }
    })
    .collect()
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
        let mut since = addresses_since;
        loop {
            let list = async move |tx: &Tx<'_>| {
                let limit = ENTRIES_PER_TRANSACTION;
                let found =
                    audit::with_address(tx, workspace, since, addresses_before, limit).await?;
                Ok::<_, Error>(found)
            };
            let entries = database.read_long("audit.with_address", list).await?;
            let Some(latest) = entries.last() else { break };
            // The earlier entries have no address any more.
            since = latest.created_at();
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
