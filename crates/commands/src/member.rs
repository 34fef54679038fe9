//! `galley member add|list`

use anyhow::{Context, bail};
use galley_application::operations::members::{self, Invitation};
use galley_application::{Environment, Error};
use galley_domain::people::{EmailAddress, FullName};
use galley_domain::role::Role;
use galley_domain::{RoleId, WorkspaceId};
use galley_storage::members::Member;
use galley_storage::{Database, IdPage, Tx, WriteTx, mails, roles};

use crate::cli::administration::MemberCommand;
use crate::out::say;
use crate::settings::Settings;
use crate::store;

pub(crate) async fn run(settings: &Settings, command: &MemberCommand) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let done = match command {
        MemberCommand::Add { email, name, role, workspace } => {
            let workspace = store::workspace(&database, workspace.as_deref()).await?;
            add(&database, environment, workspace, email, name.as_deref(), role).await
        }
        MemberCommand::List { workspace } => {
            let workspace = store::workspace(&database, workspace.as_deref()).await?;
            list(&database, workspace).await
        }
    };
    database.close().await;
    done
}

async fn add(
    database: &Database,
    environment: Environment,
    workspace: WorkspaceId,
    email: &str,
    name: Option<&str>,
    role: &str,
) -> anyhow::Result<()> {
    let address = EmailAddress::parse(email).with_context(|| format!("--email {email:?}"))?;
    let name = name.unwrap_or_else(|| email.split('@').next().unwrap_or(email));
    let invitation = Invitation {
        email: address,
        name: FullName::parse(name).context("--name")?,
        role: find_role(database, workspace, role).await?,
    };
    let write = async move |tx: &WriteTx<'_>| {
        members::add_without_invite(tx, &environment, workspace, &invitation).await
    };
    let member = database.write("members.add", write).await?;
    eprintln!("Added {email}. To create a token: galley token create --email {email}");
    say!("{}", member.id);
    Ok(())
}

/// Finds a role by its id or name. Exact matches take precedence over names in another case.
async fn find_role(
    database: &Database,
    workspace: WorkspaceId,
    id_or_name: &str,
) -> anyhow::Result<RoleId> {
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(roles::list(tx, workspace, &IdPage::default()).await?)
    };
    let all = database.read("roles.list", read).await?;
    let exactly =
        |role: &&Role| role.id.to_string() == id_or_name || role.name.as_str() == id_or_name;
    if let Some(role) = all.iter().find(exactly) {
        return Ok(role.id);
    }
    let in_any_case = |role: &&Role| role.name.as_str().eq_ignore_ascii_case(id_or_name);
    let mut meant = all.iter().filter(in_any_case);
    match (meant.next(), meant.next()) {
        (Some(role), None) => Ok(role.id),
        (Some(_), Some(_)) => {
            bail!("several roles have the name {id_or_name:?} in different cases: use an id")
        }
        (None, _) => {
            let names: Vec<_> = all.iter().map(|role| role.name.as_str()).collect();
            bail!("the role {id_or_name:?} does not exist; the roles are {}", names.join(", "))
        }
    }
}

async fn list(database: &Database, workspace: WorkspaceId) -> anyhow::Result<()> {
    let read = async move |tx: &Tx<'_>| {
        let members = galley_storage::members::list(tx, workspace, &IdPage::default()).await?;
        let roles = roles::list(tx, workspace, &IdPage::default()).await?;
        let failing = mails::list_failing(tx, workspace).await?;
        Ok::<_, Error>((members, roles, failing))
    };
    let (members, roles, failing) = database.read("members.list", read).await?;
    for member in members {
        let role = roles.iter().find(|role| role.id == member.role);
        let role = role.map_or("", |role| role.name.as_str());
        let mail = failing.iter().find(|mail| mail.member == Some(member.id));
        let mail = match mail {
            Some(mail) if member.user.is_some() => {
                format!("  (a mail was not sent: {})", mail.error)
            }
            Some(mail) if mail.is_abandoned => {
                format!(
                    "  (the mail was abandoned: {}; remove the invite and send another)",
                    mail.error
                )
            }
            Some(mail) => format!("  (the mail will be retried: {})", mail.error),
            None => String::new(),
        };
        say!("{}  {}  {role}{mail}", member.id, described(&member));
    }
    Ok(())
}

fn described(member: &Member) -> String {
    match &member.user {
        Some(user) => format!("{} <{}>, {}", user.full_name, user.email, user.username),
        None => {
            let name = member.invited_name.as_deref().unwrap_or_default();
            let email = member.invited_email.as_deref().unwrap_or_default();
            format!("{name} <{email}>, invited")
        }
    }
}
