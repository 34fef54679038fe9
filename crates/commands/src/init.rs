//! `galley init`

use anyhow::bail;
use galley_application::Environment;
use galley_application::operations::setup::CreatedWorkspace;
use galley_domain::access_token::AccessToken;
use galley_domain::people::EmailAddress;
use galley_domain::workspace::WorkspaceName;
use galley_storage::ProcessRole;
use serde::Serialize;

use crate::cli::InitArguments;
use crate::out::say;
use crate::settings::Settings;
use crate::{first_start, key, store};

/// The default name of the first workspace.
pub(crate) const DEFAULT_WORKSPACE_NAME: &str = "My workspace";

/// The default address of the first owner.
pub(crate) const DEFAULT_OWNER_EMAIL: &str = "owner@localhost";

/// The output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitOutput<'a> {
    workspace_id: String,
    user_id: String,
    member_id: String,
    content_group_id: String,
    roles: RoleIds,
    token: &'a str,
}

#[derive(Serialize)]
struct RoleIds {
    admin: String,
    editor: String,
    viewer: String,
}

pub(crate) async fn run(settings: &Settings, arguments: &InitArguments) -> anyhow::Result<()> {
    if let Err(invalid) = WorkspaceName::parse(arguments.workspace.as_str()) {
        bail!("--workspace {}", invalid.message);
    }
    if EmailAddress::parse(arguments.email.as_str()).is_err() {
        bail!("--email must be an e-mail address, such as ann@example.org");
    }
    let environment = Environment::default();
    let (name, email) = (&arguments.workspace, &arguments.email);
    // Settings are validated before anything is created.
    let token = first_start::token(settings, &environment)?;
    key::check_given(settings)?;
    let database = store::open(settings, &environment, ProcessRole::Command).await?;
    key::load(settings, &database).await?;
    let made = first_start::create(&database, &environment, name, email, &token).await?;
    database.close().await;
    let Some(made) = made else {
        bail!("the database has a workspace already: `galley token create` creates another token");
    };
    print(&made, name, &token, arguments.json)
}

/// Prints a new workspace's token, or all its ids and the token as JSON.
pub(crate) fn print(
    made: &CreatedWorkspace,
    name: &str,
    token: &AccessToken,
    json: bool,
) -> anyhow::Result<()> {
    let token = token.reveal();
    if !json {
        say!("Created the workspace {name:?}. Its access token, shown once:\n\n  {token}");
        return Ok(());
    }
    let [admin, editor, viewer] = made.roles.map(|role| role.to_string());
    let made = InitOutput {
        workspace_id: made.workspace.to_string(),
        user_id: made.user.to_string(),
        member_id: made.member.to_string(),
        content_group_id: made.content_group.to_string(),
        roles: RoleIds { admin, editor, viewer },
        token,
    };
    say!("{}", serde_json::to_string(&made)?);
    Ok(())
}
