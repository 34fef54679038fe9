//! Rich text as a tree: from HTML, Markdown and the document JSON of TipTap and ProseMirror, and to
//! these formats and plain text.
//!
//! The tree's JSON opens unchanged in every TipTap editor. The conversion from HTML follows
//! ProseMirror's own parser. Its output never contains elements outside of the schema, nor URLs,
//! colours or sizes that aren't safe to render.
//!
//! This pure library stores and fetches nothing, and has no concept of users. The server uses it
//! for incoming content, and the command line for import and export.
//!
//! ```
//! use galley_content::{ContentLimits, Tree};
//!
//! let html = "<p>Hello <b>world</b><script>alert(1)</script>";
//! let tree = Tree::from_html(html, &ContentLimits::default())?;
//! assert_eq!(tree.to_html(), "<p>Hello <strong>world</strong></p>");
//! assert_eq!(tree.to_markdown(), "Hello **world**\n");
//! assert_eq!(tree.to_text(), "Hello world\n");
//! assert_eq!(Tree::from_json(&tree.to_json())?, tree);
//! # Ok::<(), galley_content::ContentError>(())
//! ```

mod color;
mod convert;
mod diff;
mod error;
mod json;
mod limits;
mod markdown;
mod marks;
mod names;
mod node;
mod parse;
mod render;
mod safety;
mod schema;
mod tree;
mod value;
mod warning;

pub use diff::TreeDiff;
pub use error::ContentError;
pub use json::{have_same_text, json_depth};
pub use limits::ContentLimits;
pub use markdown::markdown_to_html;
pub use tree::{Address, DocumentPart, Tree};
pub use warning::{ConversionEffect, ConversionWarning, SourcePosition};
