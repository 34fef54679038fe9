//! Rich text as a tree: HTML and Markdown in, and the document JSON of TipTap and ProseMirror; and
//! from the tree HTML, Markdown and plain text.
//!
//! The tree opens as it is in every TipTap editor. What is made of HTML follows ProseMirror's own
//! parser; what is not in the schema never comes out, nor does an address, colour or size that isn't
//! safe to render.
//!
//! Nothing here stores, fetches or knows of users: a pure library, used by the server for what comes
//! in and by the command line for import and export.
//!
//! ```
//! use galley_content::{Limits, Tree};
//!
//! let tree = Tree::from_html("<p>Hello <b>world</b><script>alert(1)</script>", &Limits::default())?;
//! assert_eq!(tree.to_html(), "<p>Hello <strong>world</strong></p>");
//! assert_eq!(tree.to_markdown(), "Hello **world**\n");
//! assert_eq!(tree.to_text(), "Hello world\n");
//! assert_eq!(Tree::from_json(&tree.to_json())?, tree);
//! # Ok::<(), galley_content::ContentError>(())
//! ```

mod color;
mod convert;
mod error;
mod json;
mod limits;
mod loss;
mod markdown;
mod marks;
mod node;
mod parse;
mod render;
mod safety;
mod schema;
mod tree;
mod value;

pub use error::ContentError;
pub use limits::Limits;
pub use loss::{Effect, Loss, Place};
pub use markdown::markdown_to_html;
pub use tree::{Part, Tree};
