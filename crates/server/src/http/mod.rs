//! The HTTP layer: routing, authentication, reading requests and writing responses.

pub(crate) mod actor;
pub(crate) mod answers;
pub mod app;
pub(crate) mod body;
#[doc(hidden)]
pub mod checks;
pub(crate) mod client_socket;
pub(crate) mod compression;
pub(crate) mod conditional;
pub mod cors;
pub(crate) mod edge;
pub(crate) mod fields;
pub(crate) mod idempotency;
pub(crate) mod json;
pub(crate) mod named;
pub(crate) mod overload;
pub(crate) mod page;
pub(crate) mod prefer;
pub(crate) mod query;
pub(crate) mod rate_limit;
pub(crate) mod response;
pub(crate) mod room;
pub mod router;
pub mod serve;
pub(crate) mod stream_places;
