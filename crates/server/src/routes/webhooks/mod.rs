//! `/webhooks`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod recover;
pub(crate) mod schema;
pub(crate) mod test;
pub(crate) mod update;
mod warning;

use galley_domain::event::EventType;
use galley_domain::{ContentGroupId, Invalid};
use serde_json::Value;

use crate::extract::fields::{RequestRegistration, field_of, known_reference};

/// The path of the resource.
pub(crate) const PATH: &str = "/webhooks";

fn event(text: String) -> Result<EventType, Invalid> {
    text.parse()
}

/// Parses the metadata of a webhook. Returns `Some(None)` if it has no `contentGroupId`.
fn metadata(
    value: Value,
    place: &mut RequestRegistration<'_>,
) -> Option<Option<Option<ContentGroupId>>> {
    field_of("contentGroupId", known_reference::<ContentGroupId>("content group"))(value, place)
}
