//! Rendering of a tree as HTML, Markdown and plain text.

mod html;
mod markdown;
mod space;
mod text;

pub(crate) use html::{Renderer, escape_attribute, escape_text, html};
pub(crate) use markdown::markdown;
pub(crate) use text::text;
