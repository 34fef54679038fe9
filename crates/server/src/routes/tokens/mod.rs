//! `/tokens`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
mod schema;
pub(crate) mod update;

use galley_domain::access_token::GROUPS_MAX;
use galley_domain::{ContentGroupId, Invalid, Timestamp};
use serde_json::Value;

use crate::extract::fields::{FieldContext, Fields, known_references};

/// The path of the resource.
pub(crate) const PATH: &str = "/tokens";

/// Parses the groups of a limit. At least one is required, as an empty list could be mistaken for
/// no limit.
fn groups(value: Value, context: &mut FieldContext<'_>) -> Option<Vec<Option<ContentGroupId>>> {
    let groups = known_references::<ContentGroupId>("content group", GROUPS_MAX)(value, context)?;
    if groups.is_empty() {
        let message = "must name a group, or be null for access to all groups";
        context.refuse(&Invalid::new("too_short", message));
        return None;
    }
    Some(groups)
}

/// Rejects an expiry time in the past.
fn check_expiry(fields: &mut Fields, end: Option<Timestamp>, now: Timestamp) {
    if end.is_some_and(|end| end <= now) {
        fields.add_issue("expiresAt", &Invalid::new("invalid_date", "must be in the future"));
    }
}
