//! `/webhooks/deliveries`.

pub(crate) mod list;
pub(crate) mod retry;
mod schema;
