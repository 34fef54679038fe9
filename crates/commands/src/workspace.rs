//! `galley workspace create|list|set`

use anyhow::Context;
use galley_application::operations::setup::{self, NewWorkspace};
use galley_application::operations::workspace::{self, BillingUpdate, WorkspaceUpdate};
use galley_application::{Environment, Error, Scope, VersionPrecondition};
use galley_domain::Timestamp;
use galley_domain::content_group::ContentGroupName;
use galley_domain::people::EmailAddress;
use galley_domain::workspace::{Billing, WorkspaceName};
use galley_storage::{Database, Tx, WriteTx, workspaces};

use crate::cli::administration::{BillingArguments, WorkspaceCommand};
use crate::out::say;
use crate::settings::Settings;
use crate::{first_start, init, store};

pub(crate) async fn run(settings: &Settings, command: &WorkspaceCommand) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let done = match command {
        WorkspaceCommand::Create { name, email, json } => {
            create(&database, &environment, name, email, *json).await
        }
        WorkspaceCommand::List => list(&database).await,
        WorkspaceCommand::Set { workspace, name, billing } => {
            let workspace = workspace.as_deref();
            set(&database, environment, workspace, name.as_deref(), billing).await
        }
    };
    database.close().await;
    done
}

async fn create(
    database: &Database,
    environment: &Environment,
    name: &str,
    email: &str,
    json: bool,
) -> anyhow::Result<()> {
    let token = environment.new_access_token();
    let new = NewWorkspace {
        name: WorkspaceName::parse(name).with_context(|| format!("--name {name:?}"))?.into(),
        email: EmailAddress::parse(email).with_context(|| format!("--email {email:?}"))?,
        group: ContentGroupName::parse(first_start::FIRST_GROUP).context("the group's name")?,
        token: token.clone(),
    };
    let environment = environment.clone();
    let write = async move |tx: &WriteTx<'_>| setup::create_workspace(tx, &environment, &new).await;
    let made = database.write("setup.create_workspace", write).await?;
    init::print(&made, name, &token, json)
}

async fn list(database: &Database) -> anyhow::Result<()> {
    let read = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    for (id, name) in database.read("workspaces.list", read).await? {
        say!("{id}  {name}");
    }
    Ok(())
}

async fn set(
    database: &Database,
    environment: Environment,
    named: Option<&str>,
    name: Option<&str>,
    billing: &BillingArguments,
) -> anyhow::Result<()> {
    let id = store::workspace(database, named).await?;
    let name = name
        .map(|name| WorkspaceName::parse(name).with_context(|| format!("--name {name:?}")))
        .transpose()?;
    let update = WorkspaceUpdate { name, billing: changed(billing)?, ..WorkspaceUpdate::default() };
    let write = async move |tx: &WriteTx<'_>| {
        let (scope, expected) = (Scope::whole(id), VersionPrecondition::Any);
        workspace::update_in(tx, &environment, &scope, &update, &expected).await
    };
    let workspace = database.write("workspaces.update", write).await?;
    let Billing {
        customer_id,
        subscription_status,
        subscription_plan,
        subscription_data,
        subscription_expires_at,
    } = workspace.billing;
    say!("{}  {}", workspace.id, workspace.name.as_str());
    for (what, value) in [
        ("customer-id", customer_id),
        ("subscription-status", subscription_status),
        ("subscription-plan", subscription_plan),
        ("subscription-data", subscription_data),
        ("subscription-expires-at", subscription_expires_at.map(|end| end.to_string())),
    ] {
        say!("    {what:<24}{}", value.as_deref().unwrap_or("-"));
    }
    Ok(())
}

/// Returns the given values as an update. An empty text clears a value.
fn changed(given: &BillingArguments) -> anyhow::Result<BillingUpdate> {
    let text = |given: &Option<String>| {
        given.clone().map(|text| Some(text).filter(|text| !text.is_empty()))
    };
    let subscription_data = text(&given.subscription_data);
    if let Some(data) = subscription_data.iter().flatten().next() {
        serde_json::from_str::<serde_json::Value>(data)
            .context("--subscription-data is not JSON")?;
    }
    let time = |text: String| {
        Timestamp::parse_iso8601(&text)
            .with_context(|| format!("--subscription-expires-at {text:?}"))
    };
    let subscription_expires_at =
        text(&given.subscription_expires_at).map(|end| end.map(time).transpose()).transpose()?;
    Ok(BillingUpdate {
        customer_id: text(&given.customer_id),
        subscription_status: text(&given.subscription_status),
        subscription_plan: text(&given.subscription_plan),
        subscription_data,
        subscription_expires_at,
    })
}
