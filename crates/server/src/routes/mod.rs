//! The endpoints, a file each.

pub(crate) mod content_groups;
pub(crate) mod content_pieces;
pub(crate) mod docs;
pub(crate) mod openapi;
pub(crate) mod problems;
pub(crate) mod service;
pub(crate) mod tags;
