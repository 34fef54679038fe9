//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use galley_domain::{Permission, PermissionSet};

use crate::settings::{self, Given};

/// The content group of imports and exports that name none: the first one of a new workspace.
pub(crate) const GROUP: &str = "Posts";

/// A self-hosted service for content-management and publishing workspaces.
///
/// Without a command it serves. Settings come from galley.toml, GALLEY_* variables and flags, each
/// over the one before; `galley config` prints what is in force.
#[derive(Parser)]
#[command(name = "galley", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) settings: Given,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The command line. The short help of each command leaves the settings out, which they have in common.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command()
        .after_help("Settings such as --data-dir and --listen: see --help")
        .after_long_help("`galley config` prints the settings in force.");
    command.mut_args(|argument| {
        let is_setting = argument.get_help_heading() == Some(settings::HEADING);
        argument.hide_short_help(is_setting)
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API (on an empty database, make a first workspace and token before)
    Serve,
    /// Make the first workspace and its token, without serving
    Init(InitArguments),
    /// Make, list and revoke access tokens
    #[command(subcommand)]
    Token(TokenCommand),
    /// Make, list and describe workspaces
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    /// Add and list members
    #[command(subcommand)]
    Member(MemberCommand),
    /// List, create, move and delete content groups
    #[command(subcommand)]
    Group(GroupCommand),
    /// Import Markdown, HTML, exports of WordPress or Ghost, and bundles
    Import(ImportArguments),
    /// Export a content group as Markdown files with front matter, or a workspace as a bundle
    Export(ExportArguments),
    /// Copy a whole store between SQLite and PostgreSQL, and compare it row by row
    Copy(CopyArguments),
    /// Make a backup of the store as one file, also while it is serving
    Backup(FileArguments),
    /// Fill an empty store from a backup
    Restore(FileArguments),
    /// Look whether a backup is whole, and say what is in it
    Verify(FileArguments),
    /// Receive webhooks' callbacks on this machine, show them and verify their signatures
    Listen(ListenArguments),
    /// Print the settings in force and where each comes from
    Config,
    /// Look for trouble: settings, data directory, database
    Check,
    /// Print the description of the API (OpenAPI 3.1)
    Openapi,
}

#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The workspace's name
    #[arg(long, value_name = "NAME", default_value = "My workspace")]
    pub(crate) workspace: String,
    /// The owner's e-mail address
    #[arg(long, value_name = "EMAIL", default_value = "owner@localhost")]
    pub(crate) email: String,
    /// Print the ids and the token as one JSON object, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The folder for the files: a new one, or that of an earlier export
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// What to write: Markdown files of a content group, or a bundle of JSON files with all of the workspace
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) format: ExportFormat,
    /// The id or path of the content group, which is exported with those below it [default: Posts]
    #[arg(long, value_name = "ID|PATH")]
    pub(crate) group: Option<String>,
    /// The workspace's id (needed where there are several)
    #[arg(long, value_name = "ID")]
    pub(crate) workspace: Option<String>,
}

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A group's pieces, for people
    Markdown,
    /// All of a workspace, to be restored
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    /// The store to copy: postgres://… or sqlite:PATH (a file, or a data directory)
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The store to fill, which must be empty
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Copy a store that is being served, as it is at this moment
    #[arg(long)]
    pub(crate) live: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FileArguments {
    /// The backup
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args)]
pub(crate) struct ListenArguments {
    /// The port on 127.0.0.1
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    pub(crate) port: u16,
    /// The webhook's secret, by which signatures are verified
    #[arg(long, env = "GALLEY_LISTEN_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub(crate) secret: Option<String>,
    /// What to answer: another status has the delivery tried again
    #[arg(long, value_name = "STATUS", default_value_t = 204)]
    #[arg(value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) status: u16,
}

/// Without the secret.
impl std::fmt::Debug for ListenArguments {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ListenArguments").field("port", &self.port).finish_non_exhaustive()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token for a member, and print it once
    Create {
        /// The member's e-mail address (default: the workspace's first Admin)
        #[arg(long, value_name = "EMAIL")]
        email: Option<String>,
        /// What people call it
        #[arg(long, default_value = "command line")]
        name: String,
        /// What it allows, such as contentPieces:read (repeatable; default: everything)
        #[arg(long = "permission", value_name = "PERMISSION", value_parser = parse_permission)]
        permissions: Vec<Permission>,
        /// The id or path of a content group to which its view is limited (repeatable; default: none)
        #[arg(long = "group", value_name = "ID|PATH")]
        groups: Vec<String>,
        /// After how many days it ends (default: never)
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..))]
        expires_in_days: Option<u32>,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List the workspace's tokens
    List {
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Revoke a token: it stops working at once
    Revoke {
        /// The token's id, as `galley token list` shows it
        id: String,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Make another workspace with its owner, a content group and a token
    Create {
        /// The workspace's name
        #[arg(long, value_name = "NAME")]
        name: String,
        /// The owner's e-mail address: a user who is there, or a new one
        #[arg(long, value_name = "EMAIL")]
        email: String,
        /// Print the ids and the token as one JSON object, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// List the workspaces
    List,
    /// Rename a workspace, or say how its billing stands; an empty value takes one away
    Set {
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        /// What people call it
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        billing: BillingArguments,
    },
}

#[derive(Debug, Args)]
pub(crate) struct BillingArguments {
    /// The payment provider's identifier of the customer
    #[arg(long, value_name = "ID")]
    pub(crate) customer_id: Option<String>,
    /// The subscription's status
    #[arg(long, value_name = "STATUS")]
    pub(crate) subscription_status: Option<String>,
    /// The subscription's plan
    #[arg(long, value_name = "PLAN")]
    pub(crate) subscription_plan: Option<String>,
    /// The payment provider's own data, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) subscription_data: Option<String>,
    /// When the billing cycle ends: an ISO 8601 date or date-time
    #[arg(long, value_name = "TIME")]
    pub(crate) subscription_expires_at: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Make somebody a member, without an invite
    Add {
        /// Their e-mail address
        #[arg(long, value_name = "EMAIL")]
        email: String,
        /// Their full name (default: what stands before the @)
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The role's id or name
        #[arg(long, value_name = "ID|NAME", default_value = "Editor")]
        role: String,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// List members and invites
    List {
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// List all content groups with their ids and paths
    List {
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Create a content group, and those above it that aren't there
    Create {
        /// The path, such as Published/News
        path: String,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Move a content group with all that it holds
    Move {
        /// The id or path of the group
        #[arg(value_name = "ID|PATH")]
        group: String,
        /// The id or path of the group to move it into; / for the top
        #[arg(value_name = "ID|PATH")]
        to: String,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
    /// Delete a content group
    Delete {
        /// The id or path of the group
        #[arg(value_name = "ID|PATH")]
        group: String,
        /// Delete also the groups and up to 10,000 pieces that it holds
        #[arg(long)]
        recursive: bool,
        /// The workspace's id (needed where there are several)
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
    },
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ImportArguments {
    /// Markdown or HTML files, exports of WordPress (.xml) or Ghost (.json), or folders to look for them in; or a
    /// bundle, which is restored with its ids
    #[arg(required = true, value_name = "DIR|FILE")]
    pub(crate) sources: Vec<PathBuf>,
    /// The id or path of the content group for the pieces, such as Published/News [default: Posts]
    #[arg(long, value_name = "ID|PATH")]
    pub(crate) group: Option<String>,
    /// Make content groups of folders, below the one that is named
    #[arg(long)]
    pub(crate) groups: bool,
    /// Languages, separated by commas: pieces are in the first; what stands in a folder of another one's name
    /// (de/a.md), or has it before its extension (a.de.md), is a variant
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    pub(crate) variants: Vec<String>,
    /// Leave out drafts, and what else is not published
    #[arg(long)]
    pub(crate) no_drafts: bool,
    /// The path of the content group for new drafts; scheduled, private and password-protected posts go into
    /// groups of their own below it
    #[arg(long, value_name = "PATH", default_value = "Drafts")]
    pub(crate) drafts_group: String,
    /// Import also where a piece was edited in Galley since the last import, and so undo the edits
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Write the whole report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// A tag for every imported piece, made if it isn't there (repeatable)
    #[arg(long = "tag", value_name = "LABEL")]
    pub(crate) tags: Vec<String>,
    /// The workspace's id (needed where there are several)
    #[arg(long, value_name = "ID")]
    pub(crate) workspace: Option<String>,
    /// Import through a running server, whose address this is
    #[arg(long, value_name = "URL", requires = "token", conflicts_with = "workspace")]
    pub(crate) url: Option<String>,
    /// An access token of that server
    #[arg(long, env = "GALLEY_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Read and check everything, but change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Without the token.
impl std::fmt::Debug for ImportArguments {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ImportArguments")
            .field("sources", &self.sources)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

fn parse_permission(text: &str) -> Result<Permission, String> {
    text.parse().map_err(|_| {
        let known: Vec<_> = PermissionSet::ALL.iter().map(|known| known.to_string()).collect();
        format!("there are {} and the same with :read", known.join(", "))
    })
}
