//! `/invites`, and the page where people accept one.

pub(crate) mod accept;
pub(crate) mod page;
mod schema;
