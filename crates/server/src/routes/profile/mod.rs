//! `/profile`: the profile of the token's user.

pub(crate) mod get;
mod schema;
pub(crate) mod update;
