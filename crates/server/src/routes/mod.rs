//! The endpoints, a file each.

pub(crate) mod content_groups;
pub(crate) mod content_pieces;
pub(crate) mod service;
pub(crate) mod tags;
pub(crate) mod variants;
