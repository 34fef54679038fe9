//! axum, rusqlite and serde_json with the same statements as Galley on the same file, and nothing
//! else. It checks no token, validates nothing and computes no entity tag.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::get;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

const COLUMNS: &str = "p.id, p.content_group_id, p.order_key, p.version, p.created_at_ms, p.updated_at_ms, p.date_ms, \
    p.title, p.description, p.slug, p.cover_url, p.cover_alt, p.cover_width, p.canonical_link, p.filename, \
    (SELECT x.custom_data FROM content_piece_custom_data x \
    WHERE x.workspace_id = p.workspace_id AND x.content_piece_id = p.id), p.tag_ids, p.member_ids, p.placed_at_ms";
const TREE: &str = ", c.tree";
const TREE_JOIN: &str = " JOIN content_piece_contents c ON c.workspace_id = p.workspace_id \
    AND c.content_piece_id = p.id";

#[derive(Clone)]
struct FloorStore {
    file: PathBuf,
    workspace: String,
}

pub(crate) fn serve(address: SocketAddr, file: PathBuf) -> anyhow::Result<()> {
    let workspace = open(&file)?.query_row("SELECT id FROM workspaces", [], |row| row.get(0))?;
    let router = Router::new()
        .route("/content-pieces", get(piece))
        .route("/content-pieces/list", get(list))
        .with_state(FloorStore { file, workspace });
    super::serve(address, router)
}

fn open(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Galley sets this, too. Without it, SQLite prepares statements again for each set of
    // parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

thread_local! {
    static CONNECTION: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

impl FloorStore {
    fn read<T>(&self, read: impl FnOnce(&Connection, &str) -> rusqlite::Result<T>) -> T {
        CONNECTION.with_borrow_mut(|connection| {
            let connection = connection
                .get_or_insert_with(|| open(&self.file).expect("the store can be opened"));
            let transaction = |connection: &Connection| {
                connection.prepare_cached("BEGIN")?.raw_execute()?;
                let result = read(connection, &self.workspace)?;
                connection.prepare_cached("COMMIT")?.raw_execute()?;
                Ok::<_, rusqlite::Error>(result)
            };
            transaction(connection).expect("the store can be read")
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PieceQuery {
    id: Option<String>,
    #[serde(default)]
    content: bool,
    last_order: Option<String>,
}

async fn piece(State(store): State<FloorStore>, Query(asked): Query<PieceQuery>) -> Response {
    let found = store.read(|connection, workspace| {
        let (tree, join) = if asked.content { (TREE, TREE_JOIN) } else { ("", "") };
        let sql =
            format!("SELECT {COLUMNS}{tree} FROM content_pieces p{join} WHERE p.workspace_id = ?1 AND p.id = ?2");
        let mut statement = connection.prepare_cached(&sql)?;
        let row = statement.query_row((workspace, &asked.id), |row| PieceRow::read(row, asked.content))?;
        let referenced = ReferencedRows::of(connection, workspace, std::slice::from_ref(&row))?;
        Ok((row, referenced))
    });
    let (row, referenced) = &found;
    json(&row.body(referenced))
}

async fn list(State(store): State<FloorStore>, Query(asked): Query<PieceQuery>) -> Response {
    let (rows, referenced) = store.read(|connection, workspace| {
        let (tree, join) = if asked.content { (TREE, TREE_JOIN) } else { ("", "") };
        let sql = format!(
            "SELECT {COLUMNS}{tree} FROM content_pieces p{join} WHERE p.workspace_id = ?1 \
             AND (p.order_key) > (?3) ORDER BY p.order_key LIMIT ?2 OFFSET 0"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement
            .query_map((workspace, 21, asked.last_order.as_deref().unwrap_or("")), |row| {
                PieceRow::read(row, asked.content)
            })?
            .collect::<Result<Vec<_>, _>>()?;
        let referenced = ReferencedRows::of(connection, workspace, &rows)?;
        Ok((rows, referenced))
    });
    json(&rows.iter().map(|row| row.body(&referenced)).collect::<Vec<_>>())
}

fn json(body: &impl Serialize) -> Response {
    let bytes = serde_json::to_vec(body).expect("it is JSON");
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

struct PieceRow {
    id: String,
    content_group_id: String,
    order: String,
    created_at: i64,
    updated_at: i64,
    date: Option<i64>,
    title: String,
    description: Option<String>,
    slug: String,
    cover_url: Option<String>,
    cover_alt: Option<String>,
    cover_width: Option<String>,
    canonical_link: Option<String>,
    filename: Option<String>,
    custom_data: Option<String>,
    tags: Vec<String>,
    members: Vec<String>,
    tree: Option<String>,
}

impl PieceRow {
    fn read(row: &Row<'_>, content: bool) -> rusqlite::Result<Self> {
        let list = |column: usize| {
            let text = row.get_ref(column)?.as_str()?;
            let ids = text.split(',').filter(|id| !id.is_empty()).map(ToOwned::to_owned);
            Ok::<_, rusqlite::Error>(ids.collect())
        };
        Ok(Self {
            id: row.get(0)?,
            content_group_id: row.get(1)?,
            order: row.get(2)?,
            created_at: row.get(4)?,
            updated_at: row.get(5)?,
            date: row.get(6)?,
            title: row.get(7)?,
            description: row.get(8)?,
            slug: row.get(9)?,
            cover_url: row.get(10)?,
            cover_alt: row.get(11)?,
            cover_width: row.get(12)?,
            canonical_link: row.get(13)?,
            filename: row.get(14)?,
            custom_data: row.get(15)?,
            tags: list(16)?,
            members: list(17)?,
            tree: if content { Some(row.get(19)?) } else { None },
        })
    }

    fn body<'a>(&'a self, referenced: &'a ReferencedRows) -> PieceBody<'a> {
        PieceBody {
            id: &self.id,
            date: self.date,
            title: &self.title,
            description: self.description.as_deref(),
            cover_url: self.cover_url.as_deref(),
            canonical_link: self.canonical_link.as_deref(),
            cover_alt: self.cover_alt.as_deref(),
            filename: self.filename.as_deref(),
            cover_width: self.cover_width.as_deref(),
            content_group_id: &self.content_group_id,
            custom_data: self.custom_data.as_deref(),
            slug: &self.slug,
            members: self.members.iter().filter_map(|id| referenced.members.get(id)).collect(),
            tags: self.tags.iter().filter_map(|id| referenced.tags.get(id)).collect(),
            content: self
                .tree
                .as_deref()
                .map(|tree| serde_json::from_str(tree).expect("it is JSON")),
            order: &self.order,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PieceBody<'a> {
    id: &'a str,
    date: Option<i64>,
    title: &'a str,
    description: Option<&'a str>,
    cover_url: Option<&'a str>,
    canonical_link: Option<&'a str>,
    cover_alt: Option<&'a str>,
    filename: Option<&'a str>,
    cover_width: Option<&'a str>,
    content_group_id: &'a str,
    custom_data: Option<&'a str>,
    slug: &'a str,
    members: Vec<&'a FloorMember>,
    tags: Vec<&'a FloorTag>,
    content: Option<&'a RawValue>,
    order: &'a str,
    created_at: i64,
    updated_at: i64,
}

#[derive(Serialize)]
struct FloorTag {
    id: String,
    label: String,
    color: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FloorMember {
    id: String,
    profile: FloorProfile,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FloorProfile {
    id: String,
    avatar: Option<String>,
    username: String,
    full_name: String,
    email: String,
}

struct ReferencedRows {
    tags: HashMap<String, FloorTag>,
    members: HashMap<String, FloorMember>,
}

impl ReferencedRows {
    fn of(connection: &Connection, workspace: &str, rows: &[PieceRow]) -> rusqlite::Result<Self> {
        let tags = distinct(rows.iter().flat_map(|row| &row.tags));
        let members = distinct(rows.iter().flat_map(|row| &row.members));
        let mut found = Self { tags: HashMap::new(), members: HashMap::new() };
        let sql = format!(
            "SELECT id, label, color, version FROM tags WHERE workspace_id = ?1 AND id IN ({})",
            numbers(tags.len())
        );
        let mut statement = connection.prepare_cached(&sql)?;
        bind(&mut statement, workspace, &tags)?;
        let mut result = statement.raw_query();
        while let Some(row) = result.next()? {
            let tag = FloorTag { id: row.get(0)?, label: row.get(1)?, color: row.get(2)? };
            found.tags.insert(tag.id.clone(), tag);
        }
        let sql = format!(
            "SELECT m.id, u.id, u.avatar, u.username, u.full_name, u.email FROM workspace_members m \
             LEFT JOIN users u ON u.id = m.user_id WHERE m.workspace_id = ?1 AND m.id IN ({})",
            numbers(members.len())
        );
        let mut statement = connection.prepare_cached(&sql)?;
        bind(&mut statement, workspace, &members)?;
        let mut result = statement.raw_query();
        while let Some(row) = result.next()? {
            let profile = FloorProfile {
                id: row.get(1)?,
                avatar: row.get(2)?,
                username: row.get(3)?,
                full_name: row.get(4)?,
                email: row.get(5)?,
            };
            let id: String = row.get(0)?;
            found.members.insert(id.clone(), FloorMember { id, profile });
        }
        Ok(found)
    }
}

fn distinct<'a>(ids: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut ids: Vec<_> = ids.map(String::as_str).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn numbers(count: usize) -> String {
    let numbers: Vec<_> =
        (0..count.next_power_of_two()).map(|index| format!("?{}", index + 2)).collect();
    numbers.join(", ")
}

fn bind(
    statement: &mut rusqlite::Statement<'_>,
    workspace: &str,
    ids: &[&str],
) -> rusqlite::Result<()> {
    statement.raw_bind_parameter(1, workspace)?;
    for index in 0..ids.len().next_power_of_two() {
        statement.raw_bind_parameter(index + 2, ids.get(index).or(ids.last()))?;
    }
    Ok(())
}
