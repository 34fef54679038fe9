//! The command line: commands, arguments, and their help texts.

#![allow(missing_docs, reason = "doc comments are help texts here")]

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use galley_domain::publication::ContentView;
use galley_domain::{Invalid, Permission, PermissionSet};

use crate::settings::{self, Settings};

/// The default content group of imports and exports: the first group of a new workspace.
pub const DEFAULT_GROUP: &str = "Posts";

/// A self-hosted service for content-management and publishing workspaces.
///
/// Without a command, it serves the API. Settings come from galley.toml, GALLEY_* variables and
/// flags; each overrides the previous ones. `galley config` prints the effective settings.
#[derive(Parser)]
#[command(name = "galley", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Builds the command line. The short help of each command omits the settings, as all commands
/// share them.
pub fn command() -> clap::Command {
    let command = Cli::command()
        .after_help("Settings such as --data-dir and --listen: see --help")
        .after_long_help("`galley config` prints the effective settings.");
    command.mut_args(|argument| {
        let is_setting = argument.get_help_heading() == Some(settings::HEADING);
        let argument = argument.hide_short_help(is_setting);
        if is_setting { settings::without_empty_variables(argument) } else { argument }
    })
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API (on an empty database, create a first workspace and token)
    Serve,
    /// Create the first workspace and its token, without serving
    Init(InitArguments),
    /// Create, list and revoke access tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Create, list and update workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Print a link that signs in a member, once and within 15 minutes
    SignIn(SignInArguments),
    /// Add and list members
    #[command(subcommand)]
    Member(MemberCommand),
    /// List, create, move and delete content groups
    #[command(subcommand)]
    Group(GroupCommand),
    /// List, check, copy and prune assets
    #[command(subcommand)]
    Assets(AssetsCommand),
    /// Search content pieces, or rebuild the search index
    Search(SearchArguments),
    /// Print TypeScript types of the custom data, groups and variants
    Types(TypesArguments),
    /// Print the audit log, newest entry first
    Audit(AuditArguments),
    /// Import Markdown, HTML, exports of WordPress or Ghost, and bundles
    Import(ImportArguments),
    /// Export a content group as Markdown files with front matter, or a workspace as a bundle
    Export(ExportArguments),
    /// Copy a whole store between SQLite and PostgreSQL, and compare it row by row
    Copy(CopyArguments),
    /// Create a backup of the store as one file, even while it is being served
    Backup(BackupArguments),
    /// Restore a backup into an empty store
    Restore(FileArguments),
    /// Check a backup's integrity and list its contents
    Verify(FileArguments),
    /// Receive webhook callbacks on this machine, print them and verify their signatures
    Listen(ListenArguments),
    /// Print the effective settings and their sources
    Config {
        /// Print a settings file with all settings as comments instead
        #[arg(long)]
        template: bool,
    },
    /// Check the installation for problems, and state the remedy of each
    Doctor(DoctorArguments),
    /// Upgrade the database's schema to this program's version
    Upgrade(UpgradeArguments),
    /// Ask the running server whether it is ready, for health checks of containers
    Healthcheck,
    /// Print the OpenAPI document (OpenAPI 3.1)
    Openapi,
    /// Print the completion script of a shell
    Completion {
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Write the manual pages of all commands
    Manpage {
        /// Write the pages into this directory, which is created if necessary
        #[arg(long, value_name = "DIR")]
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub struct SignInArguments {
    /// Sign in the member with this e-mail address
    #[arg(long, value_name = "EMAIL")]
    pub email: String,
}

#[derive(Debug, Args)]
pub struct InitArguments {
    /// Use this name for the workspace
    #[arg(long, value_name = "NAME", default_value = "My workspace")]
    pub workspace: String,
    /// Use this e-mail address for the owner
    #[arg(long, value_name = "EMAIL", default_value = "owner@localhost")]
    pub email: String,
    /// Print only one JSON object with the ids and the token
    #[arg(long)]
    pub json: bool,
}

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
pub struct AuditArguments {
    /// Print changes at this ISO 8601 date or date-time, or later
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Print changes before this ISO 8601 date or date-time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Print one JSON object per line, as the API returns entries
    #[arg(long)]
    pub json: bool,
    /// Print instead how many requests had rejected credentials, by minute and address, in all
    /// workspaces
    #[arg(long)]
    pub rejected_credentials: bool,
    /// Use the workspace with this id (required if there are several)
    #[arg(long, value_name = "ID")]
    pub workspace: Option<String>,
}

#[derive(Debug, Args)]
pub struct CopyArguments {
    /// Copy this store: postgres://… or sqlite:PATH (a file, or a data directory)
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// Copy into this store, which must be empty
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Copy a store that is being served, in its current state
    #[arg(long)]
    pub live: bool,
    /// Copy the files of assets into this folder or bucket, as in asset-store-url [default: beside
    /// a SQLite database]
    #[arg(long, value_name = "FOLDER|URL")]
    pub assets_to: Option<String>,
}

#[derive(Debug, Args)]
pub struct BackupArguments {
    /// Write this file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Leave out the files of assets, such as those in a bucket with backups of its own
    #[arg(long)]
    pub without_assets: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Check the age of the newest backup in this folder [default: backups in the data directory]
    #[arg(long, value_name = "DIR")]
    pub backups: Option<PathBuf>,
    /// Fail if the newest backup is older than this many hours
    #[arg(long, value_name = "HOURS", default_value_t = 26)]
    pub backup_age: u32,
}

#[derive(Debug, Args)]
pub struct UpgradeArguments {
    /// Describe the pending migrations, with the time and space that they need; change nothing
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
pub struct FileArguments {
    /// Use this backup file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Args)]
pub struct ListenArguments {
    /// Listen on this port of 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    pub port: u16,
    /// Verify signatures with this webhook secret
    #[arg(long, env = "GALLEY_LISTEN_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub secret: Option<String>,
    /// Respond with this status: the sender retries unless it is 2xx, or 410, which disables the
    /// webhook
    #[arg(long, value_name = "STATUS", default_value_t = 204)]
    #[arg(value_parser = clap::value_parser!(u16).range(200..=599))]
    pub status: u16,
}

/// Omits the secret.
impl std::fmt::Debug for ListenArguments {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ListenArguments").field("port", &self.port).finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token for a member, and print it once
    Create {
        /// Create the token for the member with this e-mail address (default: the workspace's first
        /// Admin)
        #[arg(long, value_name = "EMAIL")]
        email: Option<String>,
        /// Use this name for the token
        #[arg(long, default_value = "command line")]
        name: String,
        /// Grant this permission, such as contentPieces:read (repeatable; default: all)
        #[arg(long = "permission", value_name = "PERMISSION", value_parser = parse_permission)]
        permissions: Vec<Permission>,
        /// Limit the token's scope to the content group with this id or path (repeatable; default:
        /// none)
        #[arg(long = "group", value_name = "ID|PATH")]
        groups: Vec<String>,
        /// Let the token read the content in this view: `published` shows published pieces only,
        /// and then the default permissions are those to read content
        #[arg(long, value_name = "VIEW", default_value = "current", value_parser = parse_view)]
        view: ContentView,
        /// Let the token expire after this many days (default: never)
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires_in_days: Option<u32>,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List the workspace's tokens
    List {
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Revoke a token with immediate effect
    Revoke {
        /// Revoke the token with this id, as printed by `galley token list`
        id: String,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// Create another workspace with its owner, a content group and a token
    Create {
        /// Use this name for the workspace
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Make the user with this e-mail address the owner; create the user if necessary
        #[arg(long, value_name = "EMAIL")]
        email: String,
        /// Print only one JSON object with the ids and the token
        #[arg(long)]
        json: bool,
    },
    /// List the workspaces
    List,
    /// Rename a workspace, or update its billing data (an empty value clears a field)
    Set {
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        /// Set the workspace's name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        billing: BillingArguments,
    },
}

#[derive(Debug, Args)]
pub struct BillingArguments {
    /// Set the payment provider's identifier of the customer
    #[arg(long, value_name = "ID")]
    pub customer_id: Option<String>,
    /// Set the subscription's status
    #[arg(long, value_name = "STATUS")]
    pub subscription_status: Option<String>,
    /// Set the subscription's plan
    #[arg(long, value_name = "PLAN")]
    pub subscription_plan: Option<String>,
    /// Set the payment provider's own data, as JSON
    #[arg(long, value_name = "JSON")]
    pub subscription_data: Option<String>,
    /// Set the end of the billing cycle, as an ISO 8601 date or date-time
    #[arg(long, value_name = "TIME")]
    pub subscription_expires_at: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum MemberCommand {
    /// Add a member without an invite
    Add {
        /// Use this e-mail address for the member
        #[arg(long, value_name = "EMAIL")]
        email: String,
        /// Use this full name for the member (default: the part of the address before the @)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Assign the role with this id or name
        #[arg(long, value_name = "ID|NAME", default_value = "Editor")]
        role: String,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List members and invites
    List {
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    /// List all content groups with their ids and paths
    List {
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Create a content group, and its missing parents
    Create {
        /// Create the group with this path, such as Published/News
        path: String,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Move a content group with its contents
    Move {
        /// Move the group with this id or path
        #[arg(value_name = "ID|PATH")]
        group: String,
        /// Move it into the group with this id or path; / for the top level
        #[arg(value_name = "ID|PATH")]
        to: String,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Delete a content group
    Delete {
        /// Delete the group with this id or path
        #[arg(value_name = "ID|PATH")]
        group: String,
        /// Delete also the groups and up to 10,000 pieces in it
        #[arg(long)]
        recursive: bool,
        /// Use the workspace with this id (required if there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
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

fn parse_view(text: &str) -> Result<ContentView, String> {
    text.parse().map_err(|invalid: Invalid| invalid.to_string())
}

fn parse_permission(text: &str) -> Result<Permission, String> {
    text.parse().map_err(|_| {
        let known: Vec<_> = PermissionSet::ALL.iter().map(|known| known.to_string()).collect();
        format!("the permissions are {} and the same with :read", known.join(", "))
    })
}
