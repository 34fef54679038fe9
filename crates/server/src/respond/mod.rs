//! Responses and their parts.

pub(crate) mod compressed_file;
pub(crate) mod created;
pub(crate) mod entity_tag;
pub(crate) mod language;
pub(crate) mod large_response;
pub(crate) mod page_links;
pub(crate) mod pages;
pub(crate) mod response;
