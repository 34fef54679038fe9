//! Each statement declares the data that it affects. These tests run each statement again, and
//! check that it changes no rows outside of that.

use std::collections::BTreeSet;

use galley_domain::ContentPieceId;
use galley_storage::{Affects, ChangeStatement};
use galley_testing::TestStore;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::conformance;

/// The workspace that contains a copy of every row, with the same ids.
const COPY_WORKSPACE: &str = "ws_00000000000000000000000000";

/// The tables that no cached response shows.
const UNCACHED_TABLES: [&str; 36] = [
    "content_piece_revisions",
    "asset_leftovers",
    "asset_upload_parts",
    "asset_uploads",
    "audit_entries",
    "content_piece_sources",
    "content_piece_variant_sources",
    "deliveries",
    "delivery_heartbeats",
    "delivery_leases",
    "delivery_sessions",
    "event_matches",
    "event_tickets",
    "events",
    "idempotency_keys",
    "invites",
    "key_check",
    "mails",
    "order_spreads",
    "preview_tokens",
    "rejected_credentials",
    "schema_migrations",
    "search_documents",
    "search_indexes",
    "search_partitions",
    "sessions",
    "sign_ins",
    "trash_entries",
    "trashed_groups",
    "trashed_parts",
    "trashed_piece_assets",
    "trashed_pieces",
    "webhook_queues",
    "webhook_recoveries",
    "webhooks",
    "workspace_sequences",
];

/// The tables of content besides those of pieces.
const CONTENT_TABLES: [&str; 6] =
    ["asset_files", "assets", "content_group_paths", "content_groups", "tags", "variants"];

/// Returns true if a statement records the last use of a token, which no cached response shows.
fn is_last_use(sql: &str) -> bool {
    sql.starts_with("UPDATE tokens SET last_used_at_ms")
}

/// A table whose rows belong to workspaces.
struct WorkspaceTable {
    name: String,
    columns: Vec<String>,
}

impl WorkspaceTable {
    /// Returns all such tables of a database, with referencing tables after the referenced ones.
    fn all(connection: &Connection) -> Vec<Self> {
        let names =
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        let mut statement = connection.prepare(names).unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let columns = |name: &str| -> Vec<String> {
            let columns = format!("SELECT name FROM pragma_table_info('{name}') ORDER BY cid");
            let mut statement = connection.prepare(&columns).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        names
            .map(Result::unwrap)
            .map(|name| Self { columns: columns(&name), name })
            .filter(|table| table.columns.iter().any(|column| column == "workspace_id"))
            .collect()
    }

    fn rows(&self, connection: &Connection) -> BTreeSet<Vec<String>> {
        let select = format!("SELECT {} FROM {}", self.columns.join(", "), self.name);
        let mut statement = connection.prepare(&select).unwrap();
        let count = self.columns.len();
        let read = |row: &rusqlite::Row<'_>| {
            (0..count)
                .map(|column| row.get::<_, Value>(column).map(|value| format!("{value:?}")))
                .collect()
        };
        statement.query_map([], read).unwrap().map(Result::unwrap).collect()
    }

    /// Returns the index of the column with the piece's id, for tables of pieces.
    fn piece_column(&self) -> Option<usize> {
        let name = match self.name.as_str() {
            "content_pieces" | "published_pieces" => "id",
            other if other.starts_with("content_piece_") => "content_piece_id",
            other if other.starts_with("published_piece_") => "content_piece_id",
            _ => return None,
        };
        self.columns.iter().position(|column| column == name)
    }

    /// Adds a copy in the other workspace of each row that has none.
    fn add_copies(&self, connection: &Connection) {
        let columns = |workspace: &str| {
            let column = |column: &String| match column.as_str() {
                "workspace_id" => workspace.to_owned(),
                other => other.to_owned(),
            };
            self.columns.iter().map(column).collect::<Vec<_>>().join(", ")
        };
        let sql = format!(
            "INSERT OR IGNORE INTO {name} ({own}) SELECT {twin} FROM {name} WHERE workspace_id <> '{COPY_WORKSPACE}'",
            name = self.name,
            own = columns("workspace_id"),
            twin = columns(&format!("'{COPY_WORKSPACE}'"))
        );
        connection.execute(&sql, []).unwrap();
    }
}

/// Returns the rows that statements change outside their workspace or piece.
fn violations(statements: &[ChangeStatement], path: &std::path::Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    // Copies are inserted in any order.
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let tables = WorkspaceTable::all(&connection);
    let mut found = Vec::new();
    for statement in statements {
        for table in &tables {
            table.add_copies(&connection);
        }
        let before: Vec<_> = tables.iter().map(|table| table.rows(&connection)).collect();
        connection.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        let ran = connection.execute(&statement.sql, params_from_iter(&statement.params));
        connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        if let Err(error) = ran {
            found.push(format!("{error}: {}", statement.sql));
            continue;
        }
        let (workspace, piece) = match statement.affects {
            Affects::Piece(workspace, piece) | Affects::PublishedPiece(workspace, piece) => {
                (Some(workspace), Some(piece))
            }
            Affects::Content(workspace) | Affects::Access(workspace) => (Some(workspace), None),
            Affects::Nothing | Affects::Sessions => (None, None),
            Affects::Everything => continue,
        };
        for (table, before) in tables.iter().zip(before) {
            let of_workspace = workspace.map(|workspace| format!("Text(\"{workspace}\")"));
            let of_piece = |piece: ContentPieceId| format!("Text(\"{piece}\")");
            let is_uncached = UNCACHED_TABLES.contains(&table.name.as_str());
            let workspace_column =
                table.columns.iter().position(|column| column == "workspace_id").unwrap();
            for row in before.symmetric_difference(&table.rows(&connection)) {
                match &of_workspace {
                    _ if is_uncached => continue,
                    None if is_last_use(&statement.sql) => continue,
                    None => found.push(format!("cached {}: {}", table.name, statement.sql)),
                    Some(own) if row[workspace_column] != *own => {
                        found
                            .push(format!("another workspace's {}: {}", table.name, statement.sql));
                    }
                    Some(_) => {}
                }
                let is_content =
                    CONTENT_TABLES.contains(&table.name.as_str()) || table.piece_column().is_some();
                if !is_content && !matches!(statement.affects, Affects::Access(_)) {
                    found.push(format!("access by {}: {}", table.name, statement.sql));
                }
                let Some(piece) = piece else { continue };
                let named = table.piece_column().map(|column| row[column].clone());
                let is_published = table.name.starts_with("published_");
                if is_published != matches!(statement.affects, Affects::PublishedPiece(..)) {
                    found.push(format!("another view's {}: {}", table.name, statement.sql));
                }
                if named != Some(of_piece(piece)) {
                    found.push(format!("another piece's {}: {}", table.name, statement.sql));
                }
            }
        }
    }
    found.dedup();
    found
}

fn has_piece(statement: &ChangeStatement) -> bool {
    matches!(statement.affects, Affects::Piece(..) | Affects::PublishedPiece(..))
}

/// Creates a database with the schema and no rows.
async fn empty() -> (TestStore, std::path::PathBuf) {
    let store = TestStore::sqlite();
    let options = crate::store::options(store.url.clone(), galley_storage::ProcessRole::Command);
    galley_storage::Database::open(options).await.unwrap().close().await;
    let path = store.directory().join("galley.db");
    (store, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_change_no_rows_outside_their_workspace_or_piece() {
    let statements = conformance::changes().await;
    let naming = |named: fn(&ChangeStatement) -> bool| {
        let texts = statements.iter().filter(|one| named(one)).map(|one| one.sql.as_str());
        texts.collect::<BTreeSet<_>>().len()
    };
    let (workspaces, pieces) = (
        naming(|one| matches!(one.affects, Affects::Content(_) | Affects::Access(_))),
        naming(has_piece),
    );
    assert!(workspaces > 20 && pieces > 8, "{workspaces} name a workspace, {pieces} a piece");
    let (_store, path) = empty().await;
    assert_eq!(violations(&statements, &path), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_change_rows_outside_their_scope_are_detected() {
    let statements = conformance::changes().await;
    let is_update = |one: &&ChangeStatement| {
        has_piece(one) && one.sql.starts_with("UPDATE content_pieces SET order_key")
    };
    let place = statements.iter().position(|one| is_update(&one)).unwrap();
    for (condition, what) in [("id <> ''", "another piece's"), ("id = ?2", "another workspace's")] {
        let mut statements = statements[..=place].to_vec();
        let broken = statements.last_mut().unwrap();
        let (set, _) = broken.sql.split_once(" WHERE ").unwrap();
        let set =
            set.replace("order_key = ?3, ", "").replace("version = version + 1", "version = 9");
        broken.sql = match what {
            "another piece's" => {
                format!("{set} WHERE workspace_id = ?1 AND {condition} AND ?2 = ?2 AND ?3 = ?3")
            }
            _ => format!("{set} WHERE {condition} AND ?1 = ?1 AND ?3 = ?3"),
        };
        let (_store, path) = empty().await;
        let found = violations(&statements, &path);
        assert!(found.iter().any(|one| one.starts_with(what)), "{found:?}");
    }
}
