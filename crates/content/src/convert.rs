//! Conversions of a tree: from HTML, Markdown and JSON, and to these formats and plain text.

use std::fmt;

use crate::error::ContentError;
use crate::limits::ContentLimits;
use crate::markdown::markdown_to_html;
use crate::tree::Tree;
use crate::warning::ConversionWarning;
use crate::{json, parse, render};

impl Tree {
    /// Parses HTML, valid or not. Everything outside of the schema is unwrapped or dropped, and
    /// everything unsafe is removed.
    pub fn from_html(html: &str, limits: &ContentLimits) -> Result<Self, ContentError> {
        parse::tree_from_html(html, limits)
    }

    /// Parses HTML as [`Tree::from_html`] does, and returns conversion warnings for everything that
    /// the tree lacks.
    ///
    /// The warnings are in the order of their first occurrence. There are at most 500 different
    /// ones, each with its count and the place of its first occurrence.
    ///
    /// ```
    /// use galley_content::{ContentLimits, ConversionEffect, Tree};
    ///
    /// let html = "<p class=lead>Hello <font color=red>world</font>";
    /// let (_, warnings) = Tree::from_html_with_warnings(html, &ContentLimits::default())?;
    /// assert_eq!(warnings[0].element, "p");
    /// assert_eq!(warnings[0].attribute.as_deref(), Some("class"));
    /// assert_eq!(warnings[1].effect, ConversionEffect::Unwrapped);
    /// assert_eq!(warnings[1].first.path, "p:nth-child(1) > font:nth-child(1)");
    /// # Ok::<(), galley_content::ContentError>(())
    /// ```
    pub fn from_html_with_warnings(
        html: &str,
        limits: &ContentLimits,
    ) -> Result<(Self, Vec<ConversionWarning>), ContentError> {
        parse::tree_and_warnings(html, limits)
    }

    /// Parses GitHub-flavoured Markdown. HTML in it is parsed like any other.
    pub fn from_markdown(markdown: &str, limits: &ContentLimits) -> Result<Self, ContentError> {
        Self::from_html(&markdown_to_html(markdown), limits)
    }

    /// Parses Markdown as [`Tree::from_markdown`] does, and returns conversion warnings for the
    /// HTML that it is converted to. Places are positions in that HTML.
    pub fn from_markdown_with_warnings(
        markdown: &str,
        limits: &ContentLimits,
    ) -> Result<(Self, Vec<ConversionWarning>), ContentError> {
        Self::from_html_with_warnings(&markdown_to_html(markdown), limits)
    }

    /// Parses a stored tree, and rejects it if it violates the schema or isn't safe to render.
    pub fn from_json(json: &str) -> Result<Self, ContentError> {
        json::read(json)
    }

    /// Parses a tree as [`Tree::from_json`] does, and also rejects everything that the tree would
    /// lack: unknown keys and attributes, and repeated marks. Adjacent texts with the same marks
    /// are joined, marks get their order, and missing attributes their defaults.
    ///
    /// ```
    /// use galley_content::{ContentError, Tree};
    ///
    /// let json =
    ///     r#"{"type":"doc","content":[{"type":"paragraph","attrs":{"textAlign":"left"}}]}"#;
    /// assert!(Tree::from_json(json).is_ok());
    /// let error = Tree::from_json_strict(json).unwrap_err();
    /// assert!(matches!(error, ContentError::InvalidTree { node, .. } if node == [0]));
    /// ```
    pub fn from_json_strict(json: &str) -> Result<Self, ContentError> {
        json::read_strict(json)
    }

    /// Serialises the tree as compact JSON, with keys in the order type, attrs, content, marks,
    /// text.
    ///
    /// A tree 100 levels deep has some 200 levels of JSON. Some JSON parsers reject that by default
    /// (`serde_json` has a limit of 128).
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Serialises the tree as [`Tree::to_json`] does, or returns `None` beyond `max` bytes. The
    /// JSON may be large, as it repeats a link's URL with each text of the link.
    pub fn to_json_within(&self, max: usize) -> Option<String> {
        json::write_within(self, max)
    }

    /// Renders HTML as TipTap does, without additional white space.
    pub fn to_html(&self) -> String {
        render::html(self)
    }

    /// Renders GitHub-flavoured Markdown, with inline HTML for content that Markdown lacks.
    pub fn to_markdown(&self) -> String {
        self.to_markdown_within(usize::MAX).unwrap_or_default()
    }

    /// Renders Markdown as [`Tree::to_markdown`] does, or returns `None` beyond `max` bytes. The
    /// Markdown may be many times larger than the tree, as each line repeats the prefixes of the
    /// quotes around it.
    pub fn to_markdown_within(&self, max: usize) -> Option<String> {
        render::markdown(self, max)
    }

    /// Renders plain text. Blocks are separated by a blank line, list items and table rows by a
    /// newline.
    pub fn to_text(&self) -> String {
        render::text(self)
    }
}

/// Two trees are equal if they represent the same document.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        // The tables may contain the same values in a different order.
        self.to_json() == other.to_json()
    }
}

impl Eq for Tree {}

/// Prints the JSON.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({})", self.to_json())
    }
}
