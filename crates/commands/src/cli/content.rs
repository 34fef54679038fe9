//! The arguments of the commands that read or change content: pieces, assets and types.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use galley_domain::Invalid;
use galley_domain::publication::ContentView;

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Write the files to this folder: a new one, or that of an earlier export
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Write Markdown files of a content group, or a bundle of JSON files with the whole workspace
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub format: ExportFormat,
    /// Export the content group with this id or path, and the groups below it [default: Posts]
    #[arg(long, value_name = "ID|PATH")]
    pub group: Option<String>,
    /// Export the content in this view: `published` has published pieces only, each at its
    /// published revision
    #[arg(long, value_name = "VIEW", default_value = "current", value_parser = parse_view)]
    pub view: ContentView,
    /// Use the workspace with this id (required if there are several)
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// Markdown files with the pieces of a group, for reading
    Markdown,
    /// A bundle with the whole workspace, for restoring
    Json,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ImportArguments {
    /// Import these Markdown or HTML files, exports of WordPress (.xml) or Ghost (.json), or
    /// folders with such files; or restore this bundle with its ids
    #[arg(required = true, value_name = "DIR|FILE")]
    pub sources: Vec<PathBuf>,
    /// Import into the content group with this id or path, such as Published/News [default: Posts]
    #[arg(long, value_name = "ID|PATH")]
    pub group: Option<String>,
    /// Search images and linked files also in this folder, such as wp-content/uploads; repeatable
    #[arg(long = "assets", value_name = "DIR")]
    pub asset_folders: Vec<PathBuf>,
    /// Fetch images from the web, if their addresses are absolute
    #[arg(long)]
    pub fetch_assets: bool,
    /// Bring no files along: addresses of images stay as they are
    #[arg(long, conflicts_with_all = ["asset_folders", "fetch_assets"])]
    pub no_assets: bool,
    /// Create content groups from folders, below the named group
    #[arg(long)]
    pub groups: bool,
    /// Import these languages, separated by commas. The first is that of the pieces. Files in a
    /// folder with another language's name (de/a.md) or with it before their extension (a.de.md)
    /// become variants
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    pub variants: Vec<String>,
    /// Omit drafts and other unpublished sources
    #[arg(long)]
    pub no_drafts: bool,
    /// Leave all new pieces as drafts, and change no publication. Without it, pieces are published,
    /// scheduled and unpublished as their sources are
    #[arg(long)]
    pub no_publish: bool,
    /// Overwrite pieces that were edited in Galley since the last import
    #[arg(long)]
    pub overwrite: bool,
    /// Write the whole report as JSON to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Add this tag to every imported piece; create it if necessary (repeatable)
    #[arg(long = "tag", value_name = "LABEL")]
    pub tags: Vec<String>,
    #[command(flatten)]
    pub place: WorkspaceArguments,
    /// Read and validate everything, but change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub struct TypesArguments {
    /// Write the types into this file, instead of printing them
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Only compare the types with the file, and fail if they differ
    #[arg(long, requires = "out")]
    pub check: bool,
    #[command(flatten)]
    pub place: WorkspaceArguments,
}

/// The workspace of a command: in the database, or behind a server.
#[derive(Args)]
pub struct WorkspaceArguments {
    /// Use the workspace with this id (required if there are several)
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
    /// Work through the running server at this address
    #[arg(long, value_name = "URL", requires = "token", conflicts_with = "workspace")]
    pub url: Option<String>,
    /// Authenticate with this access token of the server
    #[arg(long, env = "GALLEY_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

impl WorkspaceArguments {
    /// Returns the address of a server and the token, unless the command works on the database.
    pub fn server(&self) -> anyhow::Result<Option<(&str, &str)>> {
        let Some(url) = &self.url else { return Ok(None) };
        Ok(Some((url, self.token.as_deref().context("--url requires --token")?)))
    }
}

/// Omits the token.
impl std::fmt::Debug for WorkspaceArguments {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WorkspaceArguments")
            .field("workspace", &self.workspace)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub enum AssetsCommand {
    /// List assets, oldest first: id, size, media type and filename
    List {
        /// List only assets to which no piece refers, in either view, a variant or the trash
        #[arg(long)]
        unused: bool,
        /// List only this media type, such as image/png, or those that begin so, such as image/
        #[arg(long, value_name = "TYPE")]
        r#type: Option<String>,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Compare the files in the store with the database, for all workspaces
    Check {
        /// Read each file, and compare its SHA-256
        #[arg(long)]
        hashes: bool,
        /// Remove files of the workspaces that are older than a day and that no asset has
        #[arg(long)]
        remove_orphans: bool,
    },
    /// Delete assets to which no piece refers, in either view, a variant or the trash
    Prune {
        /// Keep assets that were uploaded in the last DAYS days
        #[arg(long, value_name = "DAYS", default_value_t = 30)]
        older_than: u32,
        /// Only list what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Copy the files of all workspaces into another store, and compare their SHA-256
    Copy {
        /// Copy into this folder or bucket, as in asset-store-url
        #[arg(long, value_name = "FOLDER|URL")]
        to: String,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SearchArguments {
    #[command(subcommand)]
    pub command: Option<SearchCommand>,
    /// Find pieces with all of these: words, "phrases" and prefix*, but not -excluded ones.
    /// title:word matches in titles only. Put the query in quotes
    #[arg(required = true, value_name = "QUERY")]
    pub query: Vec<String>,
    /// Search pieces in this variant: its key or id
    #[arg(long, value_name = "KEY|ID")]
    pub variant: Option<String>,
    /// Search pieces as they are in this view, `current` or `published`
    #[arg(long, value_name = "VIEW", default_value = "current", value_parser = parse_view)]
    pub view: ContentView,
    /// Print at most this number of pieces
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub limit: u16,
    /// Print a JSON object for each piece
    #[arg(long)]
    pub json: bool,
    /// Use the workspace with this id (required if there are several)
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum SearchCommand {
    /// Build the search index again, of all workspaces, even while it is being served
    Rebuild {
        /// Only the index of the workspace with this id
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

pub(super) fn parse_view(text: &str) -> Result<ContentView, String> {
    text.parse().map_err(|invalid: Invalid| invalid.to_string())
}
