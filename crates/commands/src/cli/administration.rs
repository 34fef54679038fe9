//! The arguments of the commands that administer workspaces: their members, tokens and groups.

use clap::{Args, Subcommand};
use galley_domain::publication::ContentView;
use galley_domain::{Permission, PermissionSet};

use super::content::parse_view;

#[derive(Debug, Args)]
pub struct SignInArguments {
    /// Sign in the member with this e-mail address
    #[arg(long, value_name = "EMAIL")]
    pub email: String,
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

fn parse_permission(text: &str) -> Result<Permission, String> {
    text.parse().map_err(|_| {
        let known: Vec<_> = PermissionSet::ALL.iter().map(|known| known.to_string()).collect();
        format!("the permissions are {} and the same with :read", known.join(", "))
    })
}
