//! Parts of requests as arguments of handlers.

pub(crate) mod actor;
pub(crate) mod authentication;
pub(crate) mod body;
pub(crate) mod conditional;
pub(crate) mod head_request;
pub(crate) mod idempotency_key;
pub(crate) mod json;
pub(crate) mod known_parameters;
pub(crate) mod pagination;
pub(crate) mod prefer;
pub(crate) mod query;
pub(crate) mod request;
pub(crate) mod request_origin;
pub(crate) mod sign_in_client;
pub(crate) mod staleness;
pub(crate) mod tus;
pub(crate) mod upload;
