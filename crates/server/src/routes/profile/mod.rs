//! `/profile`: the token's own user.

pub(crate) mod get;
pub(crate) mod update;
