//! The differences between two trees.
//!
//! Equal blocks are aligned first, then similar blocks of the regions between them, then the words
//! of paired textblocks. Changes of marks and attributes are steps of their own. A moved block is
//! deleted at one place and inserted at the other.
//!
//! The time is linear in the size of the trees: `sequence` and `similarity` bound their searches.
//! In large trees with many changes, the steps are therefore not always the fewest.

mod attributes;
mod blocks;
mod describe;
mod html;
mod inline;
mod json;
mod sequence;
mod similarity;
mod steps;
mod subtrees;
mod text;
mod words;

use crate::tree::Tree;
use steps::{DiffStep, DiffSteps};

/// The differences between two trees, as JSON, HTML or text.
///
/// ```
/// use galley_content::{ContentLimits, Tree, TreeDiff};
///
/// let limits = ContentLimits::default();
/// let before = Tree::from_html("<h1>Title</h1><p>An important old word</p>", &limits)?;
/// let after = Tree::from_html("<h1>Title</h1><p>An important new <b>word</b></p>", &limits)?;
/// let diff = TreeDiff::between(&before, &after);
/// assert_eq!(
///     diff.to_text(),
///     "  # Title\n~ An important [-old-]{+new+} {~word~}[bold added]\n"
/// );
/// assert_eq!(
///     diff.to_html(),
///     "<h1>Title</h1><p>An important <del>old</del><ins>new</ins> \
///      <strong><span data-diff=\"bold added\">word</span></strong></p>"
/// );
/// # Ok::<(), galley_content::ContentError>(())
/// ```
#[derive(Debug)]
pub struct TreeDiff<'t> {
    steps: DiffSteps<'t>,
}

impl<'t> TreeDiff<'t> {
    /// Compares two trees.
    pub fn between(before: &'t Tree, after: &'t Tree) -> Self {
        Self { steps: blocks::steps(before, after) }
    }

    /// Returns true if both trees represent the same document.
    pub fn is_empty(&self) -> bool {
        self.steps.list.iter().all(|step| matches!(step, DiffStep::Equal { .. }))
    }

    /// Serialises the diff as compact JSON. Applied to the tree before, it gives exactly the tree
    /// after.
    ///
    /// The JSON is an array of steps for the children of the document, in order:
    ///
    /// | step | meaning |
    /// |---|---|
    /// | `{"equal": n}` | the next `n` children are kept |
    /// | `{"delete": [node, …]}` | the next children, which are these, are deleted |
    /// | `{"insert": [node, …]}` | these nodes are inserted |
    /// | `{"change": {"type", "attrs"?, "content"?}}` | the next child is kept with changes |
    ///
    /// `type` is a name, or `{"from", "to"}` if the type is changed. `attrs` has the changed
    /// attributes as `{"name": {"from", "to"}}`. An attribute that the type before lacks has no
    /// `from`, and one that the type after lacks has no `to`. `content` is an array of steps for
    /// the node's children.
    ///
    /// In paragraphs, headings and code blocks, the steps are the ones of inline content. A length
    /// is in UTF-16 code units, and a line break has the length 1. These are the units of
    /// JavaScript's strings and of ProseMirror's positions.
    ///
    /// | step | meaning |
    /// |---|---|
    /// | `{"equal": n}` | the next `n` units are kept |
    /// | `{"delete": [node, …]}` | the next texts and line breaks, which are these, are deleted |
    /// | `{"insert": [node, …]}` | these texts and line breaks are inserted |
    /// | `{"format": n, "remove"?: [mark, …], "add"?: [mark, …]}` | the next `n` units are kept |
    ///
    /// The marks in `remove` are removed from the kept units, and those in `add` are added in the
    /// schema's order.
    /// A mark whose attributes are changed is in both `remove` and `add`. Adjacent texts with the
    /// same marks are one text of the result.
    ///
    /// ```
    /// use galley_content::{ContentLimits, Tree, TreeDiff};
    ///
    /// let limits = ContentLimits::default();
    /// let before = Tree::from_html("<h2>Old news</h2><p>Text</p>", &limits)?;
    /// let after = Tree::from_html("<h3>New <i>news</i></h3><p>Text</p>", &limits)?;
    /// assert_eq!(
    ///     TreeDiff::between(&before, &after).to_json(),
    ///     concat!(
    ///         r#"[{"change":{"type":"heading","attrs":{"level":{"from":2,"to":3}},"content":["#,
    ///         r#"{"delete":[{"type":"text","text":"Old"}]},"#,
    ///         r#"{"insert":[{"type":"text","text":"New"}]},"#,
    ///         r#"{"equal":1},{"format":4,"add":[{"type":"italic"}]}]}},{"equal":1}]"#,
    ///     )
    /// );
    /// # Ok::<(), galley_content::ContentError>(())
    /// ```
    pub fn to_json(&self) -> String {
        self.to_json_within(usize::MAX).unwrap_or_default()
    }

    /// Serialises the diff as [`TreeDiff::to_json`] does, or returns `None` beyond `max` bytes. The
    /// JSON repeats a link's URL with each text of the link, as a tree's JSON does.
    pub fn to_json_within(&self, max: usize) -> Option<String> {
        json::write(&self.steps, max)
    }

    /// Renders the tree after, merged with the deleted parts of the tree before.
    ///
    /// Deleted and inserted texts and blocks are in `del` and `ins`. These are inside of list items
    /// and table cells, as lists and tables permit no other children. The attribute `data-diff`
    /// describes the change of a block's attributes, and the `span` of a text's marks. Inserted and
    /// deleted items, rows and cells have the values `inserted` and `deleted`. All other elements
    /// are the ones of [`Tree::to_html`], so the HTML is as safe to render.
    pub fn to_html(&self) -> String {
        self.to_html_within(usize::MAX).unwrap_or_default()
    }

    /// Renders HTML as [`TreeDiff::to_html`] does, or returns `None` beyond `max` bytes. The HTML
    /// may repeat a link's URL with each change of the link's text.
    pub fn to_html_within(&self, max: usize) -> Option<String> {
        html::render(&self.steps, max)
    }

    /// Renders text for a terminal. Returns an empty text if nothing is changed.
    ///
    /// Each block without child blocks is a line, which starts with `- ` if it is deleted, `+ ` if
    /// inserted, `~ ` if changed and two spaces if unchanged. Three unchanged blocks are shown
    /// before and after a change, and `@@` stands for the others before the next change. Quotes,
    /// items, cells and headings have a prefix like in Markdown.
    ///
    /// Changed words are in `[-…-]` and `{+…+}`. `{~…~}` contains a text with changed marks, and
    /// brackets behind it describe them. Changed attributes are in brackets before the text.
    /// Control characters, which terminals may interpret, are replaced.
    pub fn to_text(&self) -> String {
        text::render(&self.steps)
    }
}
