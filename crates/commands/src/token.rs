//! `galley token create|list|revoke`

use anyhow::{Context, bail};
use galley_application::operations::tokens::{self, TokenRequest};
use galley_application::{Environment, Error, Scope};
use galley_domain::access_token::{GROUPS_MAX, TokenName};
use galley_domain::content_piece::without_repeats;
use galley_domain::people::EmailAddress;
use galley_domain::permission::Resource;
use galley_domain::publication::ContentView;
use galley_domain::{
    ContentGroupId, Permission, PermissionSet, Timestamp, TokenId, UserId, WorkspaceId,
};
use galley_storage::tokens::TokenSummary;
use galley_storage::{Database, Tx, WriteTx, members, users, workspaces};

use crate::cli::administration::TokenCommand;
use crate::out::say;
use crate::settings::Settings;
use crate::store;
use galley_import::group_path;

const MS_PER_DAY: i64 = 24 * 60 * 60 * 1_000;

pub(crate) async fn run(settings: &Settings, command: &TokenCommand) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let done = match command {
        TokenCommand::Create {
            email,
            name,
            permissions,
            groups,
            view,
            expires_in_days,
            workspace,
        } => {
            let workspace = store::workspace(&database, workspace.as_deref()).await?;
            let permissions = permission_set(permissions, *view);
            if let Err(error) = tokens::check_view(*view, permissions) {
                bail!("--permission: {error}");
            }
            let groups = read_groups(&database, workspace, groups).await?;
            let days = expires_in_days.map(i64::from);
            let end = days.map(|days| environment.now().ms() + days * MS_PER_DAY);
            let token = environment.new_access_token();
            let request = TokenRequest {
                user: user(&database, workspace, email.as_deref()).await?,
                token: token.clone(),
                name: TokenName::parse(name.as_str()).context("--name")?,
                description: None,
                permissions,
                content_groups: groups,
                view: *view,
                extension: None,
                expires_at: end.map(Timestamp::from_ms),
            };
            let write = async move |tx: &WriteTx<'_>| {
                workspaces::lock(tx, workspace).await?;
                if members::find_by_user(tx, workspace, request.user).await?.is_none() {
                    return Ok(None);
                }
                tokens::create(tx, &environment, &Scope::whole(workspace), &request).await.map(Some)
            };
            let made = database.write::<_, Error, _>("tokens.create", write).await?;
            let id = made.context("the member was removed in the meantime")?.id;
            eprintln!("Created {id}. The token, shown once:");
            say!("{}", token.reveal());
            Ok(())
        }
        TokenCommand::List { workspace } => {
            let workspace = store::workspace(&database, workspace.as_deref()).await?;
            list(&database, workspace).await
        }
        TokenCommand::Revoke { id, workspace } => {
            let workspace = store::workspace(&database, workspace.as_deref()).await?;
            revoke(&database, environment, workspace, id).await
        }
    };
    database.close().await;
    done
}

/// Returns the named permissions, or the default ones of the view if none is named.
fn permission_set(named: &[Permission], view: ContentView) -> PermissionSet {
    match view {
        _ if !named.is_empty() => named.iter().copied().collect(),
        ContentView::Current => PermissionSet::ALL,
        ContentView::Published => {
            let content = [
                Resource::ContentPieces,
                Resource::ContentGroups,
                Resource::Tags,
                Resource::Variants,
                Resource::Assets,
            ];
            content.into_iter().map(Permission::read).collect()
        }
    }
}

async fn read_groups(
    database: &Database,
    workspace: WorkspaceId,
    texts: &[String],
) -> anyhow::Result<Option<Vec<ContentGroupId>>> {
    if texts.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        ids.push(group_path::find_in_database(database, workspace, text).await?);
    }
    let ids = without_repeats(ids);
    if ids.len() > GROUPS_MAX {
        bail!("a token can be limited to at most {GROUPS_MAX} groups");
    }
    Ok(Some(ids))
}

/// Returns the user of the member with this address, or of the first Admin.
async fn user(
    database: &Database,
    workspace: WorkspaceId,
    email: Option<&str>,
) -> anyhow::Result<UserId> {
    let Some(text) = email else {
        let find = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(members::find_first_admin(tx, workspace).await?)
        };
        let found = database.read("members.find_first_admin", find).await?;
        return found.map(|(_, user)| user).context("the workspace has no Admin");
    };
    let email = EmailAddress::parse(text).with_context(|| format!("--email {text:?}"))?;
    let find = async move |tx: &Tx<'_>| {
        let Some(user) = users::find_by_email(tx, &email).await? else { return Ok(None) };
        Ok::<_, Error>(members::find_by_user(tx, workspace, user.id).await?.map(|_| user.id))
    };
    let found = database.read("members.find_by_user", find).await?;
    found.with_context(|| format!("{text} is not a member: add one with `galley member add`"))
}

async fn list(database: &Database, workspace: WorkspaceId) -> anyhow::Result<()> {
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(galley_storage::tokens::list_with_users(tx, workspace).await?)
    };
    for TokenSummary { token, username } in database.read("tokens.list", read).await? {
        let end = token.expires_at.map_or_else(|| "never".to_owned(), |end| end.to_string());
        say!("{}  {}", token.id, token.name.as_str());
        say!("    of {}, created {}, expires {end}", username, token.created_at);
        say!("    {}", token.permissions);
        if let Some(groups) = &token.content_groups {
            let groups: Vec<_> = groups.iter().map(ToString::to_string).collect();
            say!("    limited to {}", groups.join(", "));
        }
    }
    Ok(())
}

async fn revoke(
    database: &Database,
    environment: Environment,
    workspace: WorkspaceId,
    id: &str,
) -> anyhow::Result<()> {
    let token = id.parse::<TokenId>().with_context(|| {
        format!("{id:?} is not a token's id (tok_…); `galley token list` prints them")
    })?;
    let write = async move |tx: &WriteTx<'_>| {
        tokens::revoke_by_operator(tx, &environment, &Scope::whole(workspace), token).await
    };
    if !database.write("tokens.delete", write).await? {
        bail!("the workspace has no token {id}");
    }
    eprintln!("Revoked {id}.");
    Ok(())
}
