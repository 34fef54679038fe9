//! The first workspace: with an owner, a content group and a token.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use galley_domain::access_token::AccessToken;
use galley_domain::content_group::ContentGroupName;
use galley_server::operations::setup::{self, MadeWorkspace, NewWorkspace};
use galley_server::{Environment, Error};
use galley_storage::{Database, Tx, WriteTx, workspaces};

/// The first content group's name.
const GROUP: &str = "Posts";

/// A first workspace and its token.
#[derive(Debug)]
pub(crate) struct FirstWorkspace {
    pub(crate) made: MadeWorkspace,
    pub(crate) token: AccessToken,
}

/// Makes the first workspace; nothing, where there is one already.
pub(crate) async fn make(
    database: &Database,
    environment: &Environment,
    name: &str,
    email: &str,
    init_token: Option<&str>,
) -> anyhow::Result<Option<FirstWorkspace>> {
    let any = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::any(tx).await?);
    if database.read("workspaces.any", any).await? {
        return Ok(None);
    }
    let token = match init_token {
        Some(text) => AccessToken::parse(text).context(
            "GALLEY_INIT_TOKEN is not an access token: galley_, 43 characters and a checksum of 6",
        )?,
        None => environment.new_access_token(),
    };
    let new = NewWorkspace {
        name: name.to_owned(),
        email: email.to_owned(),
        group: ContentGroupName::parse(GROUP).context("the group's name")?,
        token: token.clone(),
    };
    let environment = environment.clone();
    let write =
        async move |tx: &WriteTx<'_>| setup::create_first_workspace(tx, &environment, &new).await;
    let made = database.write("setup.create_first_workspace", write).await?;
    Ok(made.map(|made| FirstWorkspace { made, token }))
}

/// Keeps the token in a file that its owner alone can read, for a start that nobody watches.
pub(crate) fn keep_token(data_dir: &Path, token: &AccessToken) -> anyhow::Result<PathBuf> {
    let path = data_dir.join("first-token.txt");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options
        .open(&path)
        .with_context(|| format!("the first token can't be kept in {}", path.display()))?;
    writeln!(file, "{}", token.reveal())?;
    file.sync_all()?;
    Ok(path)
}

/// A first request to try.
pub(crate) fn request_to_try(url: &str, token: &str, first: &MadeWorkspace) -> String {
    let group = first.content_group;
    format!(
        "curl -s {url}/content-pieces \\
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
  -d '{{\"title\":\"Hello\",\"slug\":\"hello\",\"tags\":[],\"members\":[],\"contentGroupId\":\"{group}\",\"content\":\"<p>Hello <b>world</b></p>\"}}'
curl -s '{url}/content-pieces/list?content=true' -H 'Authorization: Bearer {token}'"
    )
}
