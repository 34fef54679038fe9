//! The JSON representations of resources.

pub(crate) mod content_group;
pub(crate) mod content_piece;
pub(crate) mod delivery;
pub(crate) mod dry_run;
pub(crate) mod import_source;
pub(crate) mod role;
pub(crate) mod tag;
pub(crate) mod token;
pub(crate) mod variant;
pub(crate) mod webhook;
pub(crate) mod workspace_member;
