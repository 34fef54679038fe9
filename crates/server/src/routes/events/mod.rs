//! `/events`: the workspace's events, as pages or as a stream.

mod feed;
pub(crate) mod list;
mod stream;
