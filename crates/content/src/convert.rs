//! Conversions of a tree: from HTML, Markdown and JSON, and to these and plain text.

use std::fmt;

use crate::error::ContentError;
use crate::limits::Limits;
use crate::loss::Loss;
use crate::markdown::markdown_to_html;
use crate::tree::Tree;
use crate::{json, parse, render};

impl Tree {
    /// Reads HTML, whatever its state: everything the schema lacks is unwrapped or dropped, and
    /// nothing unsafe gets through.
    pub fn from_html(html: &str, limits: &Limits) -> Result<Self, ContentError> {
        parse::tree_from_html(html, limits)
    }

    /// Reads HTML as [`Tree::from_html`] does, and tells what of it the tree lacks, in the order in
    /// which it first comes: at most 500 different losses, each with how often and where first.
    ///
    /// ```
    /// use galley_content::{Effect, Limits, Tree};
    ///
    /// let html = "<p class=lead>Hello <font color=red>world</font>";
    /// let (_, losses) = Tree::from_html_with_losses(html, &Limits::default())?;
    /// assert_eq!((losses[0].element.as_str(), losses[0].attribute.as_deref()), ("p", Some("class")));
    /// assert_eq!((losses[1].element.as_str(), losses[1].effect), ("font", Effect::Unwrapped));
    /// assert_eq!(losses[1].first.path, "p:nth-child(1) > font:nth-child(1)");
    /// # Ok::<(), galley_content::ContentError>(())
    /// ```
    pub fn from_html_with_losses(
        html: &str,
        limits: &Limits,
    ) -> Result<(Self, Vec<Loss>), ContentError> {
        parse::tree_and_losses(html, limits)
    }

    /// Reads GitHub-flavoured Markdown. HTML in it is read like any other.
    pub fn from_markdown(markdown: &str, limits: &Limits) -> Result<Self, ContentError> {
        Self::from_html(&markdown_to_html(markdown), limits)
    }

    /// Reads Markdown as [`Tree::from_markdown`] does, and tells what of the HTML that it stands for
    /// the tree lacks; places are those in that HTML.
    pub fn from_markdown_with_losses(
        markdown: &str,
        limits: &Limits,
    ) -> Result<(Self, Vec<Loss>), ContentError> {
        Self::from_html_with_losses(&markdown_to_html(markdown), limits)
    }

    /// Reads a stored tree back, checking it against the schema and for safety.
    pub fn from_json(json: &str) -> Result<Self, ContentError> {
        json::read(json)
    }

    /// Writes the tree as compact JSON, keys in the order type, attrs, content, marks, text.
    ///
    /// A tree 100 levels deep is some 200 levels of JSON, which is more than some readers take
    /// unless told to (`serde_json` stops at 128).
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Writes the tree as [`Tree::to_json`] does, unless that would take more than `max` bytes: a
    /// long address is written again with each text of its link.
    pub fn to_json_within(&self, max: usize) -> Option<String> {
        json::write_within(self, max)
    }

    /// Renders HTML as TipTap does, without white space of its own.
    pub fn to_html(&self) -> String {
        render::html(self)
    }

    /// Renders GitHub-flavoured Markdown, with inline HTML for what Markdown can't say.
    pub fn to_markdown(&self) -> String {
        self.to_markdown_within(usize::MAX).unwrap_or_default()
    }

    /// Renders Markdown as [`Tree::to_markdown`] does, unless that would take more than `max` bytes: each line begins with what
    /// the quotes around it want there, which may make many times what the tree has.
    pub fn to_markdown_within(&self, max: usize) -> Option<String> {
        render::markdown(self, max)
    }

    /// Renders plain text: blocks separated by a blank line, list items and table rows by a
    /// newline.
    pub fn to_text(&self) -> String {
        render::text(self)
    }
}

/// Two trees are equal if they are the same document.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        // The tables may hold the same values in a different order.
        self.to_json() == other.to_json()
    }
}

impl Eq for Tree {}

/// Shows the JSON.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({})", self.to_json())
    }
}
