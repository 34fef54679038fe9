//! The steps that every request passes through.

pub(crate) mod cached_file;
pub(crate) mod cached_response;
pub(crate) mod completion;
pub(crate) mod compression;
pub(crate) mod conditional_get;
pub(crate) mod cors;
pub(crate) mod error_response;
pub(crate) mod malformed_request;
pub(crate) mod matched_route;
pub(crate) mod pipeline;
pub(crate) mod request_context;
pub(crate) mod request_id;
pub(crate) mod request_log;
pub(crate) mod request_trace;
pub(crate) mod response_memory;
pub(crate) mod tus;
