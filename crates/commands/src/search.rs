//! `galley search`

use anyhow::Context;
use galley_application::operations::content_pieces::RequestedFilters;
use galley_application::operations::search::{self, SearchPage, SearchRequest};
use galley_application::search::indexer;
use galley_application::{Environment, Error, Scope};
use galley_domain::WorkspaceId;
use galley_domain::variant::VariantRef;
use galley_storage::content_piece_filters::PieceFilters;
use galley_storage::content_piece_view::View;
use galley_storage::{Database, Tx, content_piece_list, workspaces};
use serde_json::json;

use crate::cli::content::{SearchArguments, SearchCommand};
use crate::out::{escape_for_terminal, say};
use crate::settings::Settings;
use crate::{progress, store};

pub(crate) async fn run(settings: &Settings, arguments: &SearchArguments) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let done = match &arguments.command {
        Some(SearchCommand::Rebuild { workspace }) => {
            rebuild(&database, &environment, workspace.as_deref()).await
        }
        None => print_hits(&database, arguments).await,
    };
    database.close().await;
    done
}

async fn rebuild(
    database: &Database,
    environment: &Environment,
    workspace: Option<&str>,
) -> anyhow::Result<()> {
    let named = match workspace {
        Some(id) => Some(store::workspace(database, Some(id)).await?),
        None => None,
    };
    let list = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::list(tx).await?);
    for (workspace, name) in database.read("workspaces.list", list).await? {
        if named.is_some_and(|named| named != workspace) {
            continue;
        }
        let all = count(database, workspace).await?;
        let bar = progress::bar("pieces", all);
        let position = |rebuilt: i64| bar.set_position(u64::try_from(rebuilt).unwrap_or_default());
        let rebuilt = indexer::rebuild(database, environment, workspace, position).await?;
        bar.finish_and_clear();
        let line = format!("{workspace} ({name}): {rebuilt} pieces indexed");
        say!("{}", escape_for_terminal(&line));
    }
    Ok(())
}

async fn count(database: &Database, workspace: WorkspaceId) -> Result<u64, Error> {
    let read = async move |tx: &Tx<'_>| {
        let (filters, view) = (PieceFilters::default(), View::default());
        Ok(content_piece_list::count(tx, workspace, &filters, view, i64::MAX).await?)
    };
    let count = database.read_long::<_, Error, _>("content_pieces.count", read).await?;
    Ok(u64::try_from(count).unwrap_or_default())
}

async fn print_hits(database: &Database, arguments: &SearchArguments) -> anyhow::Result<()> {
    let workspace = store::workspace(database, arguments.workspace.as_deref()).await?;
    let variant = arguments.variant.as_deref().map(str::parse::<VariantRef>);
    let variant = variant.transpose().ok().context("--variant is no key or id of a variant")?;
    let request = SearchRequest {
        query: arguments.query.join(" "),
        filters: RequestedFilters::default(),
        variant,
        view: View { skips_custom_data: true, ..View::default() },
        per_page: arguments.limit.into(),
        after: None,
    };
    let scope = Scope { view: arguments.view, ..Scope::whole(workspace) };
    let read = async move |tx: &Tx<'_>| {
        let page = search::search_in(tx, &scope, &request).await?;
        Ok::<_, Error>((page, indexer::is_behind(tx, workspace).await?))
    };
    let found = database.read_long("search", read).await;
    let (page, is_behind) = match &arguments.variant {
        Some(variant) => found.with_context(|| format!("--variant {variant}"))?,
        None => found?,
    };
    for hit in &page.hits {
        print_hit(&page, hit, arguments.json)?;
    }
    if is_behind {
        eprintln!(
            "The index lacks the latest changes. A running server adds them soon; without a server:\n\
             galley search rebuild"
        );
    }
    Ok(())
}

fn print_hit(page: &SearchPage, hit: &search::FoundPiece, as_json: bool) -> Result<(), Error> {
    let (piece, highlights) = (hit.piece(), page.highlights(hit)?);
    let title = piece.fields.title.as_str();
    let passage = highlights.content.into_iter().next().or(highlights.description);
    let passage = passage.map(|passage| passage.text);
    if as_json {
        let line = json!({"id": piece.id.to_string(), "title": title, "score": hit.score,
            "passage": passage});
        say!("{line}");
        return Ok(());
    }
    say!("{}  {:<6}  {}", piece.id, hit.score, escape_for_terminal(title));
    if let Some(passage) = passage {
        let words: Vec<&str> = passage.split_whitespace().collect();
        say!("    {}", escape_for_terminal(&words.join(" ")));
    }
    Ok(())
}
