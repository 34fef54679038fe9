//! Creation, update, revocation and reads of access tokens.

use std::collections::HashSet;

use galley_api_types::request::GroupLimit;
use galley_api_types::token::{TokenBody, TokenChange};
use galley_domain::access_token::{AccessToken, ExtensionName, TokenName};
use galley_domain::audit::AuditAction;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::text::ShortText;
use galley_domain::{
    ContentGroupId, Credential, Invalid, Permission, PermissionSet, Timestamp, TokenId, UserId,
    WorkspaceId,
};
use galley_storage::authentication::Authentication;
use galley_storage::tokens::{self, Token};
use galley_storage::{IdPage, Tx, WriteTx, content_groups, members, roles, workspaces};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::authority::Authority;
use crate::operations::content_pieces::unknown_item;
use crate::precondition::VersionPrecondition;
use crate::rejection::Rejection;
use crate::scope::Scope;

/// A token to create.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// The token's text.
    pub token: AccessToken,
    /// The user.
    pub user: UserId,
    /// The name.
    pub name: TokenName,
    /// The description, one sentence.
    pub description: Option<ShortText>,
    /// The maximum permissions, which the user's role limits further.
    pub permissions: PermissionSet,
    /// The groups to which its view of content is limited.
    pub content_groups: Option<Vec<ContentGroupId>>,
    /// The view of the content.
    pub view: ContentView,
    /// The extension that it belongs to.
    pub extension: Option<ExtensionName>,
    /// The expiry time.
    pub expires_at: Option<Timestamp>,
}

impl TokenRequest {
    /// Creates a request for a token without limits of its own: it has the permissions of its
    /// user's role.
    pub fn unlimited(token: AccessToken, user: UserId, name: &str) -> Self {
        Self {
            token,
            user,
            name: TokenName::from_stored(name),
            description: None,
            permissions: PermissionSet::ALL,
            content_groups: None,
            view: ContentView::Current,
            extension: None,
            expires_at: None,
        }
    }
}

/// Stores a token by the hash of its text, on behalf of the operator or of its authenticated user.
/// The caller's authority is not checked.
pub async fn create(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    request: &TokenRequest,
) -> Result<Token, Error> {
    let token = Token {
        id: TokenId::new(environment.new_id()),
        user: request.user,
        name: request.name.clone(),
        description: request.description.clone(),
        permissions: request.permissions,
        content_groups: request.content_groups.clone(),
        view: request.view,
        extension: request.extension.clone(),
        expires_at: request.expires_at,
        last_used_at: None,
        created_at: environment.now(),
        version: 1,
    };
    tokens::insert(tx, scope.workspace, &token, &request.token.hash()).await?;
    let changes = AuditChanges::created(TokenBody::from(&token));
    audit::record(tx, environment, scope, AuditAction::TokenCreate, token.id, changes);
    Ok(token)
}

/// The permission that every operation here requires.
const REQUIRED_PERMISSION: Permission = Permission::write(Resource::Tokens);

/// Returns a token that the caller may see.
pub async fn get(caller: &Caller, id: TokenId) -> Result<Token, Error> {
    let own = caller.clone();
    let read =
        async move |tx: &Tx<'_>| find(tx, own.token(), id).await?.ok_or_else(Error::not_found);
    caller.read("tokens.get", read).await
}

/// Lists the tokens that the caller may see.
pub async fn list(caller: &Caller, page: IdPage) -> Result<Vec<Token>, Error> {
    let own = caller.clone();
    let read = async move |tx: &Tx<'_>| list_in(tx, own.token(), &page).await;
    caller.read("tokens.list", read).await
}

/// Creates a token with at most the caller's rights.
pub async fn issue(
    caller: &Caller,
    new: TokenRequest,
    request: IdempotentRequest,
    respond: Respond<Token>,
) -> Result<CreatedResponse, Error> {
    let own = caller.clone();
    let create = async move |tx: &WriteTx<'_>| issue_in(tx, &own, &new).await;
    idempotency::create(caller, "tokens.create", request, None, create, respond).await
}

/// Updates a token.
pub async fn update(
    caller: &Caller,
    id: TokenId,
    change: TokenChange,
    expires_at: Option<Option<Timestamp>>,
    expected: VersionPrecondition,
) -> Result<Token, Error> {
    let own = caller.clone();
    let write =
        async move |tx: &WriteTx<'_>| update_in(tx, &own, id, &change, expires_at, &expected).await;
    caller.write("tokens.update", write).await
}

/// Revokes a token.
pub async fn revoke(
    caller: &Caller,
    id: TokenId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| revoke_in(tx, &own, id, &expected).await;
    caller.write("tokens.delete", write).await
}

/// Creates a token on behalf of another one, whose permissions, groups and expiry it can't exceed.
async fn issue_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    request: &TokenRequest,
) -> Result<Token, Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    authority.require_permissions(request.permissions)?;
    authority.require_extension(request.extension.as_ref().map(ExtensionName::as_str))?;
    authority.require_expiry(request.expires_at)?;
    authority.require_view(request.view)?;
    check_view(request.view, request.permissions)?;
    authority.require_groups(tx, request.content_groups.as_deref()).await?;
    check_groups(tx, actor.workspace, request.content_groups.as_deref()).await?;
    create(tx, environment, &caller.scope(), request).await
}

/// Updates a token. The update applies to every later request.
async fn update_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: TokenId,
    change: &TokenChange,
    expires_at: Option<Option<Timestamp>>,
    expected: &VersionPrecondition,
) -> Result<Token, Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    let before = find(tx, authority.token(), id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(before.version)?;
    let mut token = before.clone();
    token.name = change.name.clone().unwrap_or(token.name);
    token.description = change.description.clone().unwrap_or(token.description);
    token.permissions = change.permissions.unwrap_or(token.permissions);
    if let Some(groups) = &change.content_group_ids {
        token.content_groups = groups.as_ref().map(|GroupLimit(groups)| groups.clone());
    }
    token.view = change.view.unwrap_or(token.view);
    token.extension = change.extension.clone().unwrap_or(token.extension);
    token.expires_at = expires_at.unwrap_or(token.expires_at);
    if token == before {
        return Ok(before);
    }
    check_does_not_exceed(tx, &authority, &before).await?;
    authority.require_expiry(token.expires_at)?;
    if token.permissions != before.permissions {
        authority.require_permissions(token.permissions)?;
    }
    authority.require_view(token.view)?;
    check_view(token.view, token.permissions)?;
    authority.require_extension(token.extension.as_ref().map(ExtensionName::as_str))?;
    if token.content_groups != before.content_groups {
        authority.require_groups(tx, token.content_groups.as_deref()).await?;
        check_groups(tx, actor.workspace, token.content_groups.as_deref()).await?;
    }
    token.version += 1;
    tokens::update(tx, actor.workspace, &token).await?;
    let changes = AuditChanges::updated(TokenBody::from(&before), TokenBody::from(&token));
    caller.record(tx, AuditAction::TokenUpdate, id, changes);
    Ok(token)
}

/// Revokes a token. The revocation applies to every later request.
async fn revoke_in(
    tx: &WriteTx<'_>,
    caller: &Caller,
    id: TokenId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let (environment, actor) = (caller.environment(), caller.token());
    let authority = Authority::with_permission(tx, environment, actor, REQUIRED_PERMISSION).await?;
    let token = find(tx, authority.token(), id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(token.version)?;
    if actor.credential != Credential::Token(token.id) {
        check_does_not_exceed(tx, &authority, &token).await?;
    }
    tokens::delete(tx, actor.workspace, id).await?;
    let changes = AuditChanges::deleted(TokenBody::from(&token));
    caller.record(tx, AuditAction::TokenDelete, id, changes);
    Ok(())
}

/// Revokes a token on behalf of the operator. Returns false if there is none.
pub async fn revoke_by_operator(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    id: TokenId,
) -> Result<bool, Error> {
    workspaces::lock(tx, scope.workspace).await?;
    let Some(token) = tokens::find(tx, scope.workspace, id).await? else { return Ok(false) };
    tokens::delete(tx, scope.workspace, id).await?;
    let changes = AuditChanges::deleted(TokenBody::from(&token));
    audit::record(tx, environment, scope, AuditAction::TokenDelete, id, changes);
    Ok(true)
}

/// Rejects an operation on a token that has more permissions than the caller's, or lasts longer.
async fn check_does_not_exceed(
    tx: &WriteTx<'_>,
    authority: &Authority,
    token: &Token,
) -> Result<(), Error> {
    let workspace = authority.token().workspace;
    let member = members::find_by_user(tx, workspace, token.user).await?;
    let role = match member {
        Some(member) => roles::find(tx, workspace, member.role).await?,
        None => None,
    };
    let role_permissions = role.map_or(PermissionSet::default(), |role| role.permissions);
    authority.require_permissions(token.permissions.intersection(role_permissions))?;
    authority.require_expiry(token.expires_at)?;
    authority.require_view(token.view)?;
    authority.require_extension(token.extension.as_ref().map(ExtensionName::as_str))?;
    authority.require_groups(tx, token.content_groups.as_deref()).await
}

/// Rejects permissions that a token of this view can't have.
pub fn check_view(view: ContentView, permissions: PermissionSet) -> Result<(), Error> {
    let beyond = permissions.beyond_published_view().filter(|_| view == ContentView::Published);
    let Some(permission) = beyond else { return Ok(()) };
    let message = format!("must not contain {permission} with the view published");
    Err(Rejection::of_field("permissions", &Invalid::new("conflict", message)).into())
}

/// Rejects groups that do not exist.
async fn check_groups(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    groups: Option<&[ContentGroupId]>,
) -> Result<(), Error> {
    let groups = groups.unwrap_or_default();
    let existing = content_groups::existing(tx, workspace, groups, None).await?;
    let indexed = groups.iter().enumerate();
    let missing = indexed.filter(|(_, group)| !existing.contains(group));
    let issues = missing.map(|(index, _)| unknown_item("contentGroupIds", index, "content group"));
    Error::reject_issues(issues.collect())
}

/// Returns the user whose tokens the actor may see, or `None` for the tokens of all users.
fn visible_user(actor: &Authentication) -> Option<UserId> {
    let sees_all = Scope::of_token(actor).sees_all_tokens;
    if sees_all { None } else { Some(actor.user) }
}

/// Returns a token that the actor may see.
pub async fn find(
    tx: &Tx<'_>,
    actor: &Authentication,
    id: TokenId,
) -> Result<Option<Token>, Error> {
    let Some(token) = tokens::find(tx, actor.workspace, id).await? else { return Ok(None) };
    let own = visible_user(actor).is_none_or(|user| user == token.user);
    let groups = token.content_groups.as_deref().unwrap_or_default();
    let shown = own
        && (actor.credential == Credential::Token(token.id)
            || Scope::of_token(actor).contains_all(tx, groups).await?);
    Ok(shown.then_some(token))
}

/// Lists the tokens that the actor may see.
async fn list_in(tx: &Tx<'_>, actor: &Authentication, page: &IdPage) -> Result<Vec<Token>, Error> {
    let (workspace, user) = (actor.workspace, visible_user(actor));
    if actor.content_groups.is_none() {
        return Ok(tokens::list(tx, workspace, user, page).await?);
    }
    // The groups of each token decide if it is visible, so all tokens of the user are read.
    let all = IdPage { limit: i64::MAX, offset: 0, ..page.clone() };
    let mut tokens = tokens::list(tx, workspace, user, &all).await?;
    let named: HashSet<_> = tokens
        .iter()
        .filter_map(|token| token.content_groups.as_ref())
        .flatten()
        .copied()
        .collect();
    let named: Vec<_> = named.into_iter().collect();
    let within = actor.content_groups.as_deref();
    let mut seen = HashSet::new();
    for chunk in named.chunks(1_000) {
        seen.extend(content_groups::existing(tx, workspace, chunk, within).await?);
    }
    tokens.retain(|token| {
        let groups = token.content_groups.as_deref().unwrap_or_default();
        actor.credential == Credential::Token(token.id)
            || groups.iter().all(|group| seen.contains(group))
    });
    let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(tokens.into_iter().skip(count(page.offset)).take(count(page.limit)).collect())
}
