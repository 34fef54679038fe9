//! `/invites`, and the page on which invites are accepted.

pub(crate) mod accept;
pub(crate) mod page;
mod schema;
