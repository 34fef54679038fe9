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

use crate::extract::fields::{Fields, known_reference};

/// The path of the resource.
pub(crate) const PATH: &str = "/webhooks";

fn event(text: String) -> Result<EventType, Invalid> {
    text.parse()
}

/// Parses the metadata of a webhook, which limits it to a content group.
fn content_group_id(fields: &mut Fields) -> Option<Option<ContentGroupId>> {
    let group = known_reference::<ContentGroupId>("content group");
    fields.clearable_in("metadata", "contentGroupId", group)
}
