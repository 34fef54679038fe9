//! axum and tokio-postgres with the same statements as Galley for a piece, pipelined over one
//! connection, and nothing else.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, ensure};
use axum::Router;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_postgres::{Client, NoTls, Statement};

const PIECE: &str = "SELECT p.id, p.content_group_id, p.order_key, p.version, p.created_at_ms, p.updated_at_ms, p.date_ms, \
    p.title, p.description, p.slug, p.cover_url, p.cover_alt, p.cover_width, p.canonical_link, p.filename, (SELECT x.custom_data FROM content_piece_custom_data x \
    WHERE x.workspace_id = p.workspace_id AND x.content_piece_id = p.id), \
    p.tag_ids, p.member_ids, p.placed_at_ms, c.tree FROM content_pieces p JOIN content_piece_contents c \
    ON c.workspace_id = p.workspace_id AND c.content_piece_id = p.id WHERE p.workspace_id = $1 AND p.id = $2";
const TAGS: &str =
    "SELECT id, label, color, version FROM tags WHERE workspace_id = $1 AND id IN ($2, $3)";
const MEMBERS: &str = "SELECT m.id, u.id, u.avatar, u.username, u.full_name, u.email FROM workspace_members m \
    LEFT JOIN users u ON u.id = m.user_id WHERE m.workspace_id = $1 AND m.id IN ($2)";

struct PostgresFloorStore {
    client: Client,
    workspace: String,
    piece: Statement,
    tags: Statement,
    members: Statement,
}

pub(crate) fn serve(address: SocketAddr, url: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let workspace = client.query_one("SELECT id FROM workspaces", &[]).await?.get(0);
        let (piece, tags, members) = (
            client.prepare(PIECE).await?,
            client.prepare(TAGS).await?,
            client.prepare(MEMBERS).await?,
        );
        let store = Arc::new(PostgresFloorStore { client, workspace, piece, tags, members });
        let router = Router::new().route("/content-pieces", get(handle)).with_state(store);
        let listener = tokio::net::TcpListener::bind(address).await?;
        axum::serve(listener, router).await?;
        Ok(())
    })
}

/// Pins the database server to one core. This needs a server on the same machine, and the right to
/// do so.
pub(crate) fn keep_to(core: &str, url: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let own: i32 = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        anyhow::Ok(client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0))
    })?;
    // Connections are served by child processes of the server.
    let status = std::fs::read_to_string(format!("/proc/{own}/status"))?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.context("the process has no parent")?.trim();
    let pinned = Command::new("taskset").args(["-cp", core, parent]).output()?;
    ensure!(pinned.status.success(), "{}", String::from_utf8_lossy(&pinned.stderr).trim());
    Ok(())
}

async fn handle(
    State(store): State<Arc<PostgresFloorStore>>,
    Query(asked): Query<HashMap<String, String>>,
) -> Response {
    let body = piece(&store, &asked["id"]).await.expect("the piece is there");
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn piece(store: &PostgresFloorStore, id: &str) -> anyhow::Result<Vec<u8>> {
    let row = store.client.query_one(&store.piece, &[&store.workspace, &id]).await?;
    let text = |column: usize| row.get::<_, Option<&str>>(column);
    let (tags, member) = (text(16).unwrap_or_default(), text(17).unwrap_or_default());
    let (first, second) = tags.split_once(',').unwrap_or((tags, tags));
    let (tags, members) = futures_util::future::try_join(
        store.client.query(&store.tags, &[&store.workspace, &first, &second]),
        store.client.query(&store.members, &[&store.workspace, &member]),
    )
    .await?;
    let tags = tags.iter().map(|row| {
        json!({"id": row.get::<_, &str>(0), "label": row.get::<_, &str>(1), "color": row.get::<_, &str>(2)})
    });
    let members = members.iter().map(|row| {
        json!({"id": row.get::<_, &str>(0), "profile": {
            "id": row.get::<_, &str>(1), "avatar": row.get::<_, Option<&str>>(2), "username": row.get::<_, &str>(3),
            "fullName": row.get::<_, &str>(4), "email": row.get::<_, &str>(5)}})
    });
    let content: &RawValue = serde_json::from_str(row.get(19))?;
    let mut body = json!({
        "id": text(0), "date": row.get::<_, Option<i64>>(6), "title": text(7), "description": text(8), "coverUrl": text(10),
        "canonicalLink": text(13), "coverAlt": text(11), "filename": text(14), "coverWidth": text(12),
        "contentGroupId": text(1), "customData": text(15), "slug": text(9), "members": members.collect::<Vec<_>>(),
        "tags": tags.collect::<Vec<_>>(), "order": text(2), "createdAt": row.get::<_, i64>(4),
        "updatedAt": row.get::<_, i64>(5),
    })
    .to_string()
    .into_bytes();
    body.pop();
    body.extend_from_slice(b",\"content\":");
    body.extend_from_slice(content.get().as_bytes());
    body.push(b'}');
    Ok(body)
}
