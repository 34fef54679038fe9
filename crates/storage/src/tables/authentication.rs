//! The rights of requests: what an access token or a session may do in a workspace.

use galley_domain::access_token::TokenHash;
use galley_domain::publication::ContentView;
use galley_domain::role::BaseType;
use galley_domain::{
    ContentGroupId, ContentPieceId, Credential, PermissionSet, SessionId, Timestamp, TokenId,
    UserId, WorkspaceId, WorkspaceMemberId,
};

use crate::engine::{Generation, Result, Row, Tx, params, read_row};
use crate::tables::{members, sessions};

/// The authentication of a request by its credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The credential.
    pub credential: Credential,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The credential's user.
    pub user: UserId,
    /// The user's membership.
    pub member: WorkspaceMemberId,
    /// The base type of the member's role.
    pub base_type: Option<BaseType>,
    /// The permissions of the role.
    pub role_permissions: PermissionSet,
    /// The intersection of the token's permissions with the role's.
    pub permissions: PermissionSet,
    /// The groups whose subtrees it may see; `None` for all.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// The view of the content.
    pub view: ContentView,
    /// The extension that it belongs to.
    pub extension: Option<String>,
    /// The time at which it expires.
    pub expires_at: Option<Timestamp>,
    /// The stored time of its last use.
    pub last_used_at: Option<Timestamp>,
    /// The piece that a preview token reads, and nothing else.
    pub preview_of: Option<ContentPieceId>,
    /// True for a session that reaches this workspace only.
    pub is_of_one_workspace: bool,
}

impl Authentication {
    /// Returns true if it has all permissions of its user's role, sees all content, and belongs to
    /// no extension.
    pub fn is_unlimited(&self) -> bool {
        self.permissions == self.role_permissions
            && self.content_groups.is_none()
            && self.view == ContentView::Current
            && self.preview_of.is_none()
            && self.extension.is_none()
    }

    /// Returns the time at which the credential itself expires. A session counts as unlimited, as
    /// its use extends it.
    pub fn grant_limit(&self) -> Option<Timestamp> {
        match self.credential {
            Credential::Token(_) => self.expires_at,
            Credential::Session(_) => None,
        }
    }
}

/// A session as it is in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAuthentication {
    /// The time at which the session expires.
    pub expires_at: Timestamp,
    /// Its rights in the workspace, if its user is a member.
    pub authentication: Option<Authentication>,
}

const OF_TOKEN: &str = "FROM tokens t
    JOIN workspace_members m ON m.workspace_id = t.workspace_id AND m.user_id = t.user_id
    JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id";

const TOKEN: &str = "t.id, t.workspace_id, t.user_id, m.id, r.base_type, r.permissions, \
    t.permissions, t.content_group_ids, t.extension, t.expires_at_ms, t.last_used_at_ms, \
    t.view";

fn read_token(row: &Row<'_>) -> Result<Authentication> {
    let id: TokenId = row.get(0)?;
    let mut found = read_row!(row, 1 => Authentication {
        workspace, user, member, base_type, role_permissions, permissions, content_groups,
        extension, expires_at, last_used_at, view;
        credential: Credential::Token(id), preview_of: None, is_of_one_workspace: false
    });
    found.permissions = found.permissions.intersection(found.role_permissions);
    Ok(found)
}

/// Finds the rights of the token with this hash, expired or not, if its user is still a member.
pub async fn find_by_token_hash(tx: &Tx<'_>, hash: &TokenHash) -> Result<Option<Authentication>> {
    let sql = format!("SELECT {TOKEN} {OF_TOKEN} WHERE t.hash = ?1");
    tx.find(&sql, params![hash], read_token).await
}

/// The start time of the database server, which differs after a failover.
const SERVER: &str = "(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";

fn server(tx: &Tx<'_>) -> &'static str {
    if tx.has_other_writers() { SERVER } else { "0" }
}

/// Like [`find_by_token_hash`], with the generation of its workspace. Data that is read afterwards
/// is at least as new.
pub async fn find_by_token_hash_with_generation(
    tx: &Tx<'_>,
    hash: &TokenHash,
) -> Result<Option<(Authentication, Generation)>> {
    let sql = format!(
        "SELECT {TOKEN}, {},
            CASE WHEN t.view = 'published' THEN s.published_generation ELSE s.generation END,
            CASE WHEN t.view = 'published' THEN NULL ELSE
                (SELECT e.id FROM events e WHERE e.workspace_id = t.workspace_id
                    ORDER BY e.sequence DESC LIMIT 1) END
         {OF_TOKEN}
         JOIN workspace_sequences s ON s.workspace_id = t.workspace_id
         WHERE t.hash = ?1",
        server(tx)
    );
    let read = |row: &Row<'_>| {
        let generation = Generation::of(row.get(12)?, row.get(13)?, row.get(14)?);
        Ok((read_token(row)?, generation))
    };
    tx.find(&sql, params![hash], read).await
}

const SESSION: &str = "s.id, s.user_id, s.expires_at_ms, s.last_used_at_ms, m.workspace_id, m.id, \
    r.base_type, r.permissions, s.workspace_id";

/// Joins a session with its user's membership in one workspace, if there is one.
const OF_SESSION: &str = "FROM sessions s
    LEFT JOIN workspace_members m ON m.user_id = s.user_id AND m.workspace_id = ?2
        AND (s.workspace_id IS NULL OR s.workspace_id = m.workspace_id)
    LEFT JOIN roles r ON r.workspace_id = m.workspace_id AND r.id = m.role_id";

fn read_session(row: &Row<'_>) -> Result<SessionAuthentication> {
    let (id, user): (SessionId, UserId) = (row.get(0)?, row.get(1)?);
    let expires_at: Timestamp = row.get(2)?;
    let workspace: Option<WorkspaceId> = row.get(4)?;
    let Some(workspace) = workspace else {
        return Ok(SessionAuthentication { expires_at, authentication: None });
    };
    let permissions: PermissionSet = row.get(7)?;
    let authentication = Authentication {
        credential: Credential::Session(id),
        workspace,
        user,
        member: row.get(5)?,
        base_type: row.get(6)?,
        role_permissions: permissions,
        permissions,
        content_groups: None,
        view: ContentView::Current,
        extension: None,
        expires_at: Some(expires_at),
        last_used_at: row.get(3)?,
        preview_of: None,
        is_of_one_workspace: row.get::<Option<WorkspaceId>>(8)?.is_some(),
    };
    Ok(SessionAuthentication { expires_at, authentication: Some(authentication) })
}

/// Finds the session with this hash, expired or not, with its rights in `workspace` or, without it,
/// in the first workspace of its user.
pub async fn find_by_session_hash(
    tx: &Tx<'_>,
    hash: &TokenHash,
    workspace: Option<WorkspaceId>,
) -> Result<Option<SessionAuthentication>> {
    let workspace = match workspace {
        Some(workspace) => workspace,
        None => {
            let Some(session) = sessions::find_by_hash(tx, hash).await? else { return Ok(None) };
            let (expires_at, user) = (session.expires_at, session.user);
            match session.workspace.or(members::first_workspace(tx, user).await?) {
                Some(workspace) => workspace,
                None => {
                    return Ok(Some(SessionAuthentication { expires_at, authentication: None }));
                }
            }
        }
    };
    let sql = format!("SELECT {SESSION} {OF_SESSION} WHERE s.hash = ?1");
    tx.find(&sql, params![hash, workspace], read_session).await
}

/// Like [`find_by_session_hash`], with the generation of the workspace if the user is a member.
pub async fn find_by_session_hash_with_generation(
    tx: &Tx<'_>,
    hash: &TokenHash,
    workspace: WorkspaceId,
) -> Result<Option<(SessionAuthentication, Option<Generation>)>> {
    let sql = format!(
        "SELECT {SESSION}, {}, q.generation,
            (SELECT e.id FROM events e WHERE e.workspace_id = ?2
                ORDER BY e.sequence DESC LIMIT 1)
         {OF_SESSION}
         LEFT JOIN workspace_sequences q ON q.workspace_id = m.workspace_id
         WHERE s.hash = ?1",
        server(tx)
    );
    let read = |row: &Row<'_>| {
        let number: Option<i64> = row.get(10)?;
        let generation = match number {
            Some(number) => Some(Generation::of(row.get(9)?, number, row.get(11)?)),
            None => None,
        };
        Ok((read_session(row)?, generation))
    };
    tx.find(&sql, params![hash, workspace], read).await
}

/// Finds the current rights of a credential in a workspace, expired or not, if its user is still a
/// member.
pub async fn find(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    credential: Credential,
) -> Result<Option<Authentication>> {
    match credential {
        Credential::Token(id) => {
            let sql = format!("SELECT {TOKEN} {OF_TOKEN} WHERE t.workspace_id = ?1 AND t.id = ?2");
            tx.find(&sql, params![workspace, id], read_token).await
        }
        Credential::Session(id) => {
            let sql = format!("SELECT {SESSION} {OF_SESSION} WHERE s.id = ?1");
            let found = tx.find(&sql, params![id, workspace], read_session).await?;
            Ok(found.and_then(|session| session.authentication))
        }
    }
}
