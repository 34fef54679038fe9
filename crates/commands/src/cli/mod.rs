//! The command line: commands, arguments, and their help texts.

#![allow(missing_docs, reason = "doc comments are help texts here")]

pub mod administration;
pub mod content;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use self::administration::{
    AuditArguments, GroupCommand, MemberCommand, SignInArguments, TokenCommand, WorkspaceCommand,
};
use self::content::{
    AssetsCommand, ExportArguments, ImportArguments, SearchArguments, TypesArguments,
};
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
