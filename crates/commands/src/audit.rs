//! `galley audit`

use anyhow::Context;
use galley_api_types::audit::AuditEntryBody;
use galley_api_types::content_piece::ReferencedResources;
use galley_application::operations::audit;
use galley_application::{Environment, Error, Scope};
use galley_domain::audit::AuditEntry;
use galley_domain::{Actor, Timestamp};
use galley_storage::audit::AuditQuery;
use galley_storage::{Database, Tx, rejected_credentials};
use serde_json::json;

use crate::cli::administration::AuditArguments;
use crate::out::{escape_for_terminal, say};
use crate::settings::Settings;
use crate::store;

/// The number of entries in one read.
const PAGE: i64 = 1_000;

pub(crate) async fn run(settings: &Settings, arguments: &AuditArguments) -> anyhow::Result<()> {
    let database = store::open_existing(settings, &Environment::default()).await?;
    let done = print(&database, arguments).await;
    database.close().await;
    done
}

async fn print(database: &Database, arguments: &AuditArguments) -> anyhow::Result<()> {
    let time = |name: &str, text: &Option<String>| {
        let time = text.as_deref().map(Timestamp::parse_iso8601).transpose();
        time.with_context(|| format!("--{name}"))
    };
    let (since, until) = (time("since", &arguments.since)?, time("until", &arguments.until)?);
    if arguments.rejected_credentials {
        return print_rejected(database, since, until, arguments.json).await;
    }
    let workspace = store::workspace(database, arguments.workspace.as_deref()).await?;
    let mut query = AuditQuery { since, until, limit: PAGE, ..AuditQuery::default() };
    loop {
        let (scope, page) = (Scope::whole(workspace), query.clone());
        let read = async move |tx: &Tx<'_>| audit::list_in(tx, &scope, &page).await;
        let found = database.read_long("audit.list", read).await?;
        let Some(last) = found.entries.last() else { return Ok(()) };
        query.before = Some(last.id);
        for entry in &found.entries {
            print_entry(entry, &found.referenced, arguments.json);
        }
    }
}

fn print_entry(entry: &AuditEntry, referenced: &ReferencedResources, as_json: bool) {
    if as_json {
        let body = AuditEntryBody::new(entry, referenced);
        say!("{}", serde_json::to_string(&body).expect("entries are JSON"));
        return;
    }
    let name = |member| {
        let user = referenced.members.get(&member)?.user.as_ref()?;
        Some(user.full_name.clone())
    };
    let author = match entry.actor {
        Actor::System => "system".to_owned(),
        Actor::Token { token, member } => name(member).unwrap_or_else(|| token.to_string()),
        Actor::Member(member) => name(member).unwrap_or_else(|| member.to_string()),
    };
    let address = entry.remote_address.as_deref();
    let address = address.map(|address| format!(" from {address}")).unwrap_or_default();
    let line = format!(
        "{}  {:<32}{}  by {author}{address}",
        entry.at(),
        entry.action.as_str(),
        entry.target
    );
    say!("{}", escape_for_terminal(&line));
}

async fn print_rejected(
    database: &Database,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    as_json: bool,
) -> anyhow::Result<()> {
    let since = since.unwrap_or(Timestamp::from_ms(0));
    let until = until.unwrap_or(Timestamp::from_ms(i64::MAX));
    let read = async move |tx: &Tx<'_>| {
        Ok::<_, Error>(rejected_credentials::list(tx, since, until).await?)
    };
    for found in database.read_long("rejected_credentials.list", read).await? {
        let address = Some(found.remote_address).filter(|address| !address.is_empty());
        if as_json {
            let line = json!({
                "minute": found.minute, "remoteAddress": address, "requests": found.requests,
            });
            say!("{line}");
        } else {
            let address = address.as_deref().unwrap_or("other addresses");
            say!("{}  {address:<40}{}", found.minute, found.requests);
        }
    }
    Ok(())
}
