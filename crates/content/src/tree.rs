//! The document tree and its construction.
//!
//! `TreeBuilder` appends nodes in document order, independently of the schema. Its callers
//! (`parse::context` and `json`) ensure that the nodes are valid.

use std::hash::Hash;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use crate::marks::{ColorId, Flag, Link, LinkId, Marks};
use crate::node::{
    CellAttrs, CellId, ImageAttrs, ImageId, LanguageId, ListAttrs, ListId, MarksId, Node, NodeKind,
};
use crate::safety::{is_safe_href, is_safe_image_src};
use crate::value::AttrValue;

/// A document: the content of a piece as a TipTap tree, always valid against the schema and safe to
/// render.
#[derive(Clone)]
pub struct Tree {
    nodes: Vec<Node>,
    text: String,
    marks: Vec<Marks>,
    links: Vec<Arc<Link>>,
    colors: Vec<Arc<str>>,
    languages: Vec<Arc<str>>,
    lists: Vec<ListAttrs>,
    images: Vec<ImageAttrs>,
    cells: Vec<CellAttrs>,
}

impl Tree {
    /// Returns a document with one empty paragraph.
    pub fn empty() -> Self {
        let mut builder = TreeBuilder::new();
        let doc = builder.open(NodeKind::Doc);
        let paragraph = builder.open(NodeKind::Paragraph);
        builder.close(paragraph);
        builder.close(doc);
        builder.finish()
    }
}

/// A part of a document that contains a reference, or that others may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPart<'t> {
    /// The text of a heading.
    Heading(String),
    /// The URL of a link.
    Link(&'t str),
    /// The URL of an image.
    Image(String),
    /// A text outside of code.
    Text(&'t str),
}

impl Tree {
    /// Visits the headings, links, images and texts in document order. A link over several texts is
    /// visited once.
    pub fn visit_parts(&self, mut visit: impl FnMut(DocumentPart<'_>)) {
        let mut link_before = None;
        for step in self.walk() {
            let WalkStep::Enter(node) = step else { continue };
            let mut link = None;
            match self.kind(node) {
                NodeKind::Heading { .. } => {
                    let texts = self.children(node).filter_map(|child| match self.kind(child) {
                        NodeKind::Text { start, end, .. } => Some(self.text(start, end)),
                        _ => None,
                    });
                    visit(DocumentPart::Heading(texts.collect()));
                }
                NodeKind::Image(image) => {
                    if let Some(src) = &self.image(image).src {
                        visit(DocumentPart::Image(src.to_string()));
                    }
                }
                NodeKind::HardBreak { marks } => link = self.marks(marks).link,
                NodeKind::Text { start, end, marks } => {
                    let marks = self.marks(marks);
                    link = marks.link;
                    if let Some(id) = link.filter(|_| link != link_before) {
                        visit(DocumentPart::Link(&self.link(id).href));
                    }
                    if !marks.has(Flag::Code) && !self.is_in_code_block(node) {
                        visit(DocumentPart::Text(self.text(start, end)));
                    }
                }
                _ => {}
            }
            link_before = link;
        }
    }

    /// Returns true if a text is that of a code block, which has no other child.
    fn is_in_code_block(&self, text: usize) -> bool {
        text > 0 && matches!(self.kind(text - 1), NodeKind::CodeBlock(_))
    }
}

impl Tree {
    /// Replaces the URLs of links and images by those that `replace` returns. Unsafe ones are
    /// ignored.
    pub fn replace_addresses(&mut self, mut replace: impl FnMut(Address<'_>) -> Option<String>) {
        for link in &mut self.links {
            let replaced = replace(Address::Link(&link.href)).filter(|href| is_safe_href(href));
            if let Some(href) = replaced {
                *link = Arc::new(Link { href: href.into(), ..Link::clone(link) });
            }
        }
        for image in &mut self.images {
            let Some(src) = image.src.as_ref().map(ToString::to_string) else { continue };
            let replaced = replace(Address::Image(&src)).filter(|src| is_safe_image_src(src));
            if let Some(src) = replaced {
                image.src = Some(AttrValue::Text(src.into()));
            }
        }
    }
}

/// A URL in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address<'t> {
    /// That of a link.
    Link(&'t str),
    /// That of an image.
    Image(&'t str),
}

impl Tree {
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn kind(&self, node: usize) -> NodeKind {
        self.nodes[node].kind
    }

    /// Returns the index after the last descendant.
    pub(crate) fn end(&self, node: usize) -> usize {
        self.nodes[node].end as usize
    }

    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let end = self.end(node);
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |&child| Some(self.end(child)).filter(|&next| next < end))
    }

    pub(crate) fn text(&self, start: u32, end: u32) -> &str {
        &self.text[start as usize..end as usize]
    }

    pub(crate) fn marks(&self, id: MarksId) -> Marks {
        self.marks[id.0 as usize]
    }

    /// Returns the table of marks, which [`MarksId`] is an index of.
    pub(crate) fn all_marks(&self) -> &[Marks] {
        &self.marks
    }

    pub(crate) fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0 as usize]
    }

    pub(crate) fn color(&self, id: ColorId) -> &str {
        &self.colors[id.0 as usize]
    }

    pub(crate) fn language(&self, id: LanguageId) -> &str {
        &self.languages[id.0 as usize]
    }

    pub(crate) fn list(&self, id: ListId) -> &ListAttrs {
        &self.lists[id.0 as usize]
    }

    pub(crate) fn image(&self, id: ImageId) -> &ImageAttrs {
        &self.images[id.0 as usize]
    }

    pub(crate) fn cell(&self, id: CellId) -> &CellAttrs {
        &self.cells[id.0 as usize]
    }

    /// Traverses the tree in document order.
    pub(crate) fn walk(&self) -> Walk<'_> {
        self.walk_from(0)
    }

    /// Traverses one node with its descendants.
    pub(crate) fn walk_from(&self, node: usize) -> Walk<'_> {
        Walk { tree: self, next: node, end: self.end(node), open: Vec::new() }
    }
}

/// A step of a traversal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WalkStep {
    Enter(usize),
    Leave(usize),
}

/// An iterator that enters and leaves each node, including leaves.
pub(crate) struct Walk<'a> {
    tree: &'a Tree,
    next: usize,
    end: usize,
    open: Vec<usize>,
}

impl Iterator for Walk<'_> {
    type Item = WalkStep;

    fn next(&mut self) -> Option<WalkStep> {
        if let Some(&node) = self.open.last()
            && self.tree.end(node) == self.next
        {
            self.open.pop();
            return Some(WalkStep::Leave(node));
        }
        (self.next < self.end).then(|| {
            let node = self.next;
            self.next += 1;
            self.open.push(node);
            WalkStep::Enter(node)
        })
    }
}

/// A builder that appends nodes in document order.
pub(crate) struct TreeBuilder {
    tree: Tree,
    marks: HashMap<Marks, MarksId>,
    links: HashMap<Arc<Link>, u32>,
    colors: HashMap<Arc<str>, u32>,
    languages: HashMap<Arc<str>, u32>,
}

impl TreeBuilder {
    pub(crate) fn new() -> Self {
        Self {
            tree: Tree {
                nodes: Vec::new(),
                text: String::new(),
                marks: Vec::new(),
                links: Vec::new(),
                colors: Vec::new(),
                languages: Vec::new(),
                lists: Vec::new(),
                images: Vec::new(),
                cells: Vec::new(),
            },
            marks: HashMap::new(),
            links: HashMap::new(),
            colors: HashMap::new(),
            languages: HashMap::new(),
        }
    }

    /// Reserves capacity for nodes and text, so that the tables needn't be copied as they grow.
    pub(crate) fn reserve(&mut self, nodes: usize, text_len: usize) {
        self.tree.nodes.reserve_exact(nodes);
        self.tree.text.reserve_exact(text_len);
    }

    /// Appends a node that may have children. `close` marks their end.
    pub(crate) fn open(&mut self, kind: NodeKind) -> usize {
        self.tree.nodes.push(Node { kind, end: 0 });
        self.tree.nodes.len() - 1
    }

    pub(crate) fn close(&mut self, node: usize) {
        self.tree.nodes[node].end = index(self.tree.nodes.len());
    }

    pub(crate) fn leaf(&mut self, kind: NodeKind) {
        let node = self.open(kind);
        self.close(node);
    }

    /// Appends text. It extends the text before it if `join` is set and the marks are the same.
    pub(crate) fn text(&mut self, text: &str, marks: MarksId, join: bool) {
        let start = index(self.tree.text.len());
        self.tree.text.push_str(text);
        let new_end = index(self.tree.text.len());
        if join
            && let Some(Node { kind: NodeKind::Text { end, marks: before, .. }, .. }) =
                self.tree.nodes.last_mut()
            && *before == marks
        {
            *end = new_end;
        } else {
            self.leaf(NodeKind::Text { start, end: new_end, marks });
        }
    }

    /// Returns the length of all text so far.
    pub(crate) fn text_len(&self) -> usize {
        self.tree.text.len()
    }

    /// Returns the text from `from` on, which must be in the last text node.
    pub(crate) fn text_from(&self, from: usize) -> &str {
        &self.tree.text[from..]
    }

    /// Truncates the last node, a text, so that all text has length `len`. Removes it if it is
    /// empty then.
    pub(crate) fn truncate_text(&mut self, len: usize) {
        self.tree.text.truncate(len);
        if let Some(Node { kind: NodeKind::Text { start, end, .. }, .. }) =
            self.tree.nodes.last_mut()
        {
            *end = index(len);
            if *start == *end {
                self.tree.nodes.pop();
            }
        }
    }

    pub(crate) fn marks(&mut self, marks: Marks) -> MarksId {
        let table = &mut self.tree.marks;
        *self.marks.entry(marks).or_insert_with(|| {
            table.push(marks);
            MarksId(index(table.len() - 1))
        })
    }

    pub(crate) fn link(&mut self, link: Link) -> LinkId {
        LinkId(intern(&mut self.links, &mut self.tree.links, Arc::new(link)))
    }

    pub(crate) fn color(&mut self, color: &str) -> ColorId {
        ColorId(intern(&mut self.colors, &mut self.tree.colors, color.into()))
    }

    pub(crate) fn language(&mut self, language: &str) -> LanguageId {
        LanguageId(intern(&mut self.languages, &mut self.tree.languages, language.into()))
    }

    pub(crate) fn list(&mut self, list: ListAttrs) -> ListId {
        ListId(push_or_last(&mut self.tree.lists, list))
    }

    pub(crate) fn image(&mut self, image: ImageAttrs) -> ImageId {
        ImageId(push_or_last(&mut self.tree.images, image))
    }

    pub(crate) fn cell(&mut self, cell: CellAttrs) -> CellId {
        CellId(push_or_last(&mut self.tree.cells, cell))
    }

    pub(crate) fn finish(mut self) -> Tree {
        // Shrinking copies the table, so it must free at least half of it.
        if self.tree.nodes.len() < self.tree.nodes.capacity() / 2 {
            self.tree.nodes.shrink_to_fit();
        }
        if self.tree.text.len() < self.tree.text.capacity() / 2 {
            self.tree.text.shrink_to_fit();
        }
        self.tree
    }
}

/// Returns the index of a value in its table, and adds a new value.
fn intern<K: Hash + Eq + Clone>(seen: &mut HashMap<K, u32>, table: &mut Vec<K>, value: K) -> u32 {
    *seen.entry(value).or_insert_with_key(|value| {
        table.push(value.clone());
        index(table.len() - 1)
    })
}

/// Appends a value unless it equals the last one, as most cells and lists do.
fn push_or_last<T: PartialEq>(table: &mut Vec<T>, value: T) -> u32 {
    if table.last() != Some(&value) {
        table.push(value);
    }
    index(table.len() - 1)
}

/// Converts an index to 32 bits. The limit on request size is far below their range.
fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a document is smaller than 4 GiB")
}
