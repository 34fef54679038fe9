//! The operations: each reads or changes resources in one transaction, with its events.
//!
//! An operation is a function over a transaction. It checks preconditions, lets the domain compute
//! the change, stores it, and appends the events last. Endpoints and the program's commands call
//! the same operations, with parsed and validated values.

pub mod asset_files;
pub mod asset_import;
pub mod asset_maintenance;
pub mod asset_serving;
pub mod asset_uploads;
pub mod assets;
pub mod audit;
pub mod authority;
pub mod bulk_publishing;
pub mod content_groups;
pub mod content_pieces;
pub mod deliveries;
mod email_verification;
pub mod event_tickets;
pub mod events;
pub mod identity_provider;
pub mod import_sources;
pub mod imports;
pub mod invite_links;
pub mod invite_revocation;
pub mod invites;
pub mod members;
pub mod previews;
pub mod profile;
pub mod roles;
pub mod scheduled_publishing;
pub mod search;
pub mod sessions;
pub mod settings;
pub mod setup;
pub mod sign_in;
pub mod tags;
pub mod tokens;
pub mod trash;
pub mod variants;
pub mod webhook_access;
pub mod webhooks;
pub mod workspace;

use galley_api_types::event_envelope::{ChangeKind, ChangedResource};
use galley_domain::event::ResourceChange;
use galley_domain::publication::ContentView;
use galley_domain::{EventId, WorkspaceId};
use galley_storage::WriteTx;
use galley_storage::event_append::{self, NewEvent};
use serde::Serialize;

use crate::environment::Environment;
use crate::error::Error;

/// Returns the version of a resource that is restored with its id. The resource may have existed
/// here before and been deleted. Versions count changes, so no earlier version was as high, and no
/// client's `If-Match` matches this one.
pub fn restored_version(environment: &Environment) -> i64 {
    environment.now().ms()
}

/// Appends the event of any change of a resource.
async fn append_change(
    tx: &WriteTx<'_>,
    environment: &Environment,
    workspace: WorkspaceId,
    change: ResourceChange,
    resource: impl Serialize,
    kind: ChangeKind,
) -> Result<(), Error> {
    let data = ChangedResource::json(resource, kind);
    let changed = event(environment, change, data, None);
    Ok(event_append::append(tx, workspace, [changed], environment.now()).await?)
}

/// Creates an event to store with the change, of the current view.
fn event(
    environment: &Environment,
    occurrence: ResourceChange,
    data: String,
    data_before: Option<String>,
) -> NewEvent {
    let id = EventId::new(environment.new_id());
    let view = ContentView::Current;
    NewEvent { id, occurrence, view, data, data_before, custom_data_of: None }
}
