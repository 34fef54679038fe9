//! `/profile`: the token's own user.

pub(crate) mod get;
mod schema;
pub(crate) mod update;
