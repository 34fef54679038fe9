//! Resources that requests share: caches, and bounds on load.

pub(crate) mod console_files;
pub(crate) mod openapi_document;
pub(crate) mod overload;
pub(crate) mod rate_limit;
pub(crate) mod request_memory;
pub(crate) mod response_cache;
pub(crate) mod sessions;
pub(crate) mod sign_in_limit;
pub(crate) mod stated_credential;
pub(crate) mod stream_limit;
pub(crate) mod token_cache;
