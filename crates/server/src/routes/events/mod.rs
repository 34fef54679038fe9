//! `/events`: the workspace's events, as pages or as a stream.

pub(crate) mod list;
pub(crate) mod position;
mod stream;
pub(crate) mod ticket;
