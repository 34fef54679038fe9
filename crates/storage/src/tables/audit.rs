//! The audit log. Its entries are inserted at the end of the transaction of their change, with the
//! events.

use std::collections::HashSet;

use galley_domain::audit::{AuditAction, AuditEntry};
use galley_domain::{AuditEntryId, Timestamp, TokenId, WorkspaceId, WorkspaceMemberId};

use crate::engine::{Affects, Result, Row, Tx, Value, WriteTx, in_list, params, read_row, row};

const COLUMNS: &str = "a.id, a.actor, a.action, a.target, a.revision, a.request_id, \
    a.remote_address, a.changes";

fn read(row: &Row<'_>) -> Result<AuditEntry> {
    Ok(read_row!(row, 0 => AuditEntry {
        id, actor, action, target, revision, request_id, remote_address, changes,
    }))
}

/// The author of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditActor {
    /// A token.
    Token(TokenId),
    /// A member, signed in or with any token.
    Member(WorkspaceMemberId),
    /// The server or the operator.
    System,
}

/// The filters and the page of a list of entries.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    /// The action.
    pub action: Option<AuditAction>,
    /// The author.
    pub actor: Option<AuditActor>,
    /// The id of the changed resource.
    pub target: Option<String>,
    /// The time from which on entries are listed.
    pub since: Option<Timestamp>,
    /// The time before which entries are listed.
    pub until: Option<Timestamp>,
    /// The id before which the page begins.
    pub before: Option<AuditEntryId>,
    /// The limit on entries.
    pub limit: i64,
    /// The number of entries to skip.
    pub offset: i64,
}

/// Lists entries, newest first.
pub async fn list(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>> {
    let mut params = row![workspace, query.limit, query.offset].to_vec();
    let mut filter = String::new();
    let mut add = |condition: &str, value: Value<'_>| {
        params.push(value.into_owned());
        filter.push_str(&format!(" AND {condition} ?{}", params.len()));
    };
    if let Some(since) = query.since {
        add("a.id >=", AuditEntryId::first_at(since).into());
    }
    if let Some(until) = query.until {
        add("a.id <", AuditEntryId::first_at(until).into());
    }
    if let Some(before) = query.before {
        add("a.id <", before.into());
    }
    if let Some(action) = query.action {
        add("a.action =", action.into());
    }
    if let Some(target) = &query.target {
        add("a.target =", target.as_str().into());
    }
    match query.actor {
        Some(AuditActor::System) => add("a.actor =", galley_domain::Actor::System.into()),
        Some(AuditActor::Token(token)) => add("a.actor LIKE", format!("{token} %").into()),
        Some(AuditActor::Member(member)) => add("a.actor LIKE", format!("%{member}").into()),
        None => {}
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM audit_entries a WHERE a.workspace_id = ?1{filter}
         ORDER BY a.id DESC LIMIT ?2 OFFSET ?3"
    );
    tx.query(&sql, &params, read).await
}

/// Lists entries after an id, oldest first.
pub async fn list_after(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    after: Option<AuditEntryId>,
    limit: i64,
) -> Result<Vec<AuditEntry>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM audit_entries a WHERE a.workspace_id = ?1 AND a.id > ?2
         ORDER BY a.id LIMIT ?3"
    );
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.query(&sql, params![workspace, after, limit], read).await
}

/// Appends an entry, to be inserted at the end of the transaction.
pub fn append(tx: &WriteTx<'_>, workspace: WorkspaceId, entry: AuditEntry) {
    tx.append_audit_entry(workspace, entry);
}

/// Inserts entries.
pub(crate) async fn insert(tx: &WriteTx<'_>, entries: &[(WorkspaceId, AuditEntry)]) -> Result<()> {
    let sql = "INSERT INTO audit_entries (workspace_id, id, actor, action, target, revision,
            request_id, remote_address, changes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let rows = entries.iter().map(|(workspace, entry)| {
        row! {
            *workspace, entry.id, entry.actor, entry.action, &entry.target, entry.revision,
            &entry.request_id, &entry.remote_address, &entry.changes
        }
    });
    tx.insert_each(sql, rows, Affects::Nothing).await
}

/// The number of entries that one statement looks up.
const ENTRIES_PER_LOOKUP: usize = 1_000;

/// Inserts the entries of another store that the workspace lacks.
pub async fn insert_missing(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    entries: &[AuditEntry],
) -> Result<()> {
    let mut missing = Vec::with_capacity(entries.len());
    for chunk in entries.chunks(ENTRIES_PER_LOOKUP) {
        let mut params = vec![Value::from(workspace)];
        let listed = in_list("a.id", chunk.iter().map(|entry| entry.id), &mut params);
        let sql = format!("SELECT a.id FROM audit_entries a WHERE a.workspace_id = ?1{listed}");
        let known: Vec<AuditEntryId> = tx.query(&sql, &params, |row| row.get(0)).await?;
        let known: HashSet<_> = known.into_iter().collect();
        let unknown = chunk.iter().filter(|entry| !known.contains(&entry.id));
        missing.extend(unknown.map(|entry| (workspace, entry.clone())));
    }
    insert(tx, &missing).await
}

/// Deletes up to `limit` entries from before a time. Returns their number.
pub async fn delete_expired(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    let sql = "DELETE FROM audit_entries WHERE workspace_id = ?1 AND id IN (
        SELECT a.id FROM audit_entries a WHERE a.workspace_id = ?1 AND a.id < ?2
        ORDER BY a.id LIMIT ?3)";
    let params = params![workspace, AuditEntryId::first_at(before), limit];
    tx.execute(sql, params, Affects::Nothing).await
}

/// Lists up to `limit` entries of a period that have an address.
pub async fn with_address(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    since: Timestamp,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<AuditEntryId>> {
    let sql = "SELECT a.id FROM audit_entries a
        WHERE a.workspace_id = ?1 AND a.id >= ?2 AND a.id < ?3 AND a.remote_address IS NOT NULL
        ORDER BY a.id LIMIT ?4";
    let (since, before) = (AuditEntryId::first_at(since), AuditEntryId::first_at(before));
    tx.query(sql, params![workspace, since, before, limit], |row| row.get(0)).await
}

/// Removes the addresses of entries.
pub async fn remove_addresses(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    entries: &[AuditEntryId],
) -> Result<()> {
    let sql = "UPDATE audit_entries SET remote_address = NULL WHERE workspace_id = ?1 AND id = ?2";
    tx.change_each(sql, entries.iter().map(|&id| row![workspace, id]), Affects::Nothing).await
}
