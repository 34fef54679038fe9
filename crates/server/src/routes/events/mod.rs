//! `/events`: what happened, as pages or as a stream.

mod feed;
pub(crate) mod list;
mod stream;
