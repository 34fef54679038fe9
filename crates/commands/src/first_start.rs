//! Creation of the first workspace, with an owner, a content group and a token.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use galley_application::operations::setup::{self, CreatedWorkspace, NewWorkspace};
use galley_application::{Environment, Error};
use galley_domain::access_token::AccessToken;
use galley_domain::content_group::ContentGroupName;
use galley_domain::people::EmailAddress;
use galley_storage::{Database, Error as StorageError, Failure, Tx, WriteTx, workspaces};

use crate::private_files;
use crate::settings::Settings;

/// The first content group's name.
pub(crate) const FIRST_GROUP: &str = "Posts";

/// Returns true if the database has no workspace yet.
pub(crate) async fn is_empty(database: &Database) -> anyhow::Result<bool> {
    let any = async |tx: &Tx<'_>| Ok::<_, Error>(workspaces::any(tx).await?);
    Ok(!database.read("workspaces.any", any).await?)
}

/// Returns the first token: the one of the settings, or a new one.
pub fn token(settings: &Settings, environment: &Environment) -> anyhow::Result<AccessToken> {
    match settings.init_token.as_deref() {
        Some(text) => AccessToken::parse(text).context(
            "GALLEY_INIT_TOKEN is not an access token: galley_, 43 characters and a checksum of 6",
        ),
        None => Ok(environment.new_access_token()),
    }
}

/// Creates the first workspace. Returns `None` if there is one already.
pub(crate) async fn create(
    database: &Database,
    environment: &Environment,
    name: &str,
    email: &str,
    token: &AccessToken,
) -> anyhow::Result<Option<CreatedWorkspace>> {
    let new = NewWorkspace {
        name: name.to_owned(),
        email: EmailAddress::parse(email).context("the owner's e-mail address")?,
        group: ContentGroupName::parse(FIRST_GROUP).context("the group's name")?,
        token: token.clone(),
    };
    let environment = environment.clone();
    let write =
        async move |tx: &WriteTx<'_>| setup::create_first_workspace(tx, &environment, &new).await;
    match database.write("setup.create_first_workspace", write).await {
        Ok(made) => Ok(made),
        // Two nodes started at once, and the other one has created the owner.
        Err(error) if matches!(error.storage_error(), Some(StorageError::Taken(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes the token to a file that only its owner can read, for unattended starts. An existing file
/// belongs to an earlier database, and is replaced.
pub(crate) fn write_token(settings: &Settings, token: &AccessToken) -> anyhow::Result<PathBuf> {
    let path = settings.data_dir.join("first-token.txt");
    let failed = || format!("the first token can't be stored in {}", path.display());
    if path.exists() {
        std::fs::remove_file(&path).with_context(failed)?;
    }
    let mut file = private_files::create(&path).with_context(failed)?;
    writeln!(file, "{}", token.reveal()).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    Ok(path)
}

/// Returns shell commands for a first request.
pub(crate) fn first_request(url: &str, token: &str, first: &CreatedWorkspace) -> String {
    let group = first.content_group;
    format!(
        "curl -s {url}/content-pieces \\
  -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
  -d '{{\"title\":\"Hello\",\"slug\":\"hello\",\"tags\":[],\"members\":[],\"contentGroupId\":\"{group}\",\"content\":\"<p>Hello <b>world</b></p>\"}}'
curl -s '{url}/content-pieces/list?content=true' -H 'Authorization: Bearer {token}'"
    )
}
