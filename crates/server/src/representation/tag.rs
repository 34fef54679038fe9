//! A tag in JSON.

use galley_domain::TagId;
use galley_domain::tag::{Color, Tag};
use serde::Serialize;

/// A tag.
#[derive(Debug, Serialize)]
pub(crate) struct TagBody<'a> {
    id: TagId,
    label: &'a str,
    color: Color,
}

impl<'a> From<&'a Tag> for TagBody<'a> {
    fn from(tag: &'a Tag) -> Self {
        Self { id: tag.id, label: tag.label.as_str(), color: tag.color }
    }
}
