//! The operations: each reads or changes resources in one transaction, with its events.
//!
//! An operation is a function over a transaction. It checks preconditions, lets the domain compute
//! the change, stores it, and appends the events last. Endpoints and the program's commands call
//! the same operations, with parsed and validated values.

pub mod authority;
pub mod content_groups;
pub mod content_pieces;
pub mod deliveries;
pub mod events;
pub mod import_sources;
pub mod invite_revocation;
pub mod invites;
pub mod members;
pub mod profile;
pub mod roles;
pub mod setup;
pub mod tags;
pub mod tokens;
pub mod variants;
pub mod webhook_access;
pub mod webhooks;
pub mod workspace;

use galley_domain::EventId;
use galley_domain::event::ResourceChange;
use galley_storage::event_append::NewEvent;

use crate::environment::Environment;

/// Returns the version of a resource that is restored with its id. The resource may have existed
/// here before and been deleted. Versions count changes, so no earlier version was as high, and no
/// client's `If-Match` matches this one.
pub fn restored_version(environment: &Environment) -> i64 {
    environment.now().ms()
}

/// Creates an event to store with the change.
fn event(
    environment: &Environment,
    occurrence: ResourceChange,
    data: String,
    data_before: Option<String>,
) -> NewEvent {
    let id = EventId::new(environment.new_id());
    NewEvent { id, occurrence, data, data_before, custom_data_of: None }
}
