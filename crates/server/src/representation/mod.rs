//! How resources look in JSON.

pub(crate) mod content_group;
pub(crate) mod content_piece;
pub(crate) mod tag;
pub(crate) mod variant;
