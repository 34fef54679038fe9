//! The parsed HTML, as a table of nodes that refer to one another by index.
//!
//! It stores only data that the conversion needs: elements with the attributes of `Attribute`,
//! texts, and the positions of comments. Each name is stored once. A node takes 32 bytes besides
//! its text and attributes, as an input may consist almost only of elements.

use foldhash::{HashMap, HashMapExt};
use html5ever::tendril::StrTendril;
use html5ever::{QualName, local_name};

use super::attributes::{Attribute, Attributes, other_names};
use super::tag::ElementKind;

/// The index of a node in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// The index for "no node" and "no attributes".
const NONE: u32 = u32::MAX;

/// The number of nodes per block, and the initial capacity of the first block.
const BLOCK: usize = 4096;
const FIRST_BLOCK: usize = 256;

/// The number of names that are searched before the hash table is.
const COMMON_NAMES: usize = 24;

#[derive(Debug)]
struct DomNode {
    parent: u32,
    previous: u32,
    next: u32,
    first: u32,
    last: u32,
    /// The index of an element's name.
    name: u32,
    /// The index of the text or attributes.
    payload: u32,
    /// The number of formatting elements with attributes around this node, including itself.
    formatting: u16,
    sort_and_blocks: SortAndBlocks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeSort {
    Document,
    Element,
    /// A formatting element with attributes, known or unknown.
    Formatting,
    Text,
    Comment,
}

/// The sort of a node, and the number of block-level elements around it, including itself. Packed
/// into two bytes, as a document may have half a million nodes.
#[derive(Debug, Clone, Copy)]
struct SortAndBlocks(u16);

impl SortAndBlocks {
    const BLOCKS_MAX: u16 = (1 << 13) - 1;

    const fn new(sort: NodeSort, blocks: u16) -> Self {
        let blocks = if blocks < Self::BLOCKS_MAX { blocks } else { Self::BLOCKS_MAX };
        Self((sort as u16) << 13 | blocks)
    }

    const fn sort(self) -> NodeSort {
        match self.0 >> 13 {
            0 => NodeSort::Document,
            1 => NodeSort::Element,
            2 => NodeSort::Formatting,
            3 => NodeSort::Text,
            _ => NodeSort::Comment,
        }
    }

    const fn blocks(self) -> u16 {
        self.0 & Self::BLOCKS_MAX
    }
}

impl DomNode {
    fn is_element(&self) -> bool {
        matches!(self.sort_and_blocks.sort(), NodeSort::Element | NodeSort::Formatting)
    }
}

/// A parsed document.
#[derive(Debug)]
pub(crate) struct Dom {
    /// In blocks, as a growing vector would be copied and for that time use twice the memory.
    nodes: Vec<Vec<DomNode>>,
    len: usize,
    content_nodes: usize,
    text_len: usize,
    names: Vec<(QualName, ElementKind)>,
    name_indexes: HashMap<QualName, u32>,
    texts: Vec<StrTendril>,
    attributes: Vec<Attributes>,
    /// The lines and unknown attributes of elements, if the caller needs them for conversion
    /// warnings.
    origins: Option<Box<Origins>>,
}

/// The lines and unknown attributes of elements, in the order of the elements' creation and so of
/// their indexes.
#[derive(Debug)]
struct Origins {
    line: u32,
    /// The first element of each line.
    lines: Vec<(NodeId, u32)>,
    /// The names of unknown attributes, for elements that have any.
    others: Vec<(NodeId, Box<[String]>)>,
}

impl Origins {
    fn add(&mut self, element: NodeId, others: Box<[String]>) {
        if self.lines.last().is_none_or(|(_, line)| *line != self.line) {
            self.lines.push((element, self.line));
        }
        if !others.is_empty() {
            self.others.push((element, others));
        }
    }
}

impl Dom {
    pub(crate) const DOCUMENT: NodeId = NodeId(0);

    pub(crate) fn new() -> Self {
        let mut dom = Self {
            nodes: Vec::new(),
            len: 0,
            content_nodes: 0,
            text_len: 0,
            names: Vec::new(),
            name_indexes: HashMap::new(),
            texts: Vec::new(),
            attributes: Vec::new(),
            origins: None,
        };
        dom.create(NodeSort::Document, NONE, NONE);
        dom
    }

    /// Creates a document that stores the lines and unknown attributes of its elements.
    pub(crate) fn with_origins() -> Self {
        let origins = Origins { line: 1, lines: Vec::new(), others: Vec::new() };
        Self { origins: Some(Box::new(origins)), ..Self::new() }
    }

    /// Sets the line of the HTML for elements created from now on.
    pub(crate) fn set_line(&mut self, line: u64) {
        if let Some(origins) = &mut self.origins {
            origins.line = u32::try_from(line).unwrap_or(u32::MAX);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of texts, and of elements that may become a node of the tree.
    pub(crate) fn content_nodes(&self) -> usize {
        self.content_nodes
    }

    /// Returns the depth of the last created node, but at most `max`.
    pub(crate) fn depth_of_last(&self, max: usize) -> usize {
        let last = NodeId(index(self.len - 1));
        std::iter::successors(Some(last), |&node| self.parent(node)).take(max).count()
    }

    /// Returns the length of all texts.
    pub(crate) fn text_len(&self) -> usize {
        self.text_len
    }

    pub(crate) fn create_element(
        &mut self,
        name: QualName,
        attributes: Vec<html5ever::Attribute>,
    ) -> NodeId {
        let is_formatting = !attributes.is_empty() && is_formatting(&name.local);
        let sort = if is_formatting { NodeSort::Formatting } else { NodeSort::Element };
        let name = self.intern_name(name);
        self.content_nodes += usize::from(self.names[name as usize].1.makes_node());
        let others = self.origins.is_some().then(|| other_names(&attributes));
        let known: Attributes = attributes
            .into_iter()
            .filter_map(|given| Some((Attribute::of(&given.name)?, given.value)))
            .collect();
        let payload = if known.is_empty() {
            NONE
        } else {
            self.attributes.push(known);
            index(self.attributes.len() - 1)
        };
        let element = self.create(sort, name, payload);
        if let (Some(origins), Some(others)) = (&mut self.origins, others) {
            origins.add(element, others);
        }
        element
    }

    pub(crate) fn create_text(&mut self, text: StrTendril) -> NodeId {
        self.text_len += text.len();
        self.content_nodes += 1;
        self.texts.push(text);
        let payload = index(self.texts.len() - 1);
        self.create(NodeSort::Text, NONE, payload)
    }

    pub(crate) fn create_comment(&mut self) -> NodeId {
        self.create(NodeSort::Comment, NONE, NONE)
    }

    fn create(&mut self, sort: NodeSort, name: u32, payload: u32) -> NodeId {
        if self.len.is_multiple_of(BLOCK) {
            self.nodes.push(Vec::with_capacity(if self.len == 0 { FIRST_BLOCK } else { BLOCK }));
        }
        let node = DomNode {
            parent: NONE,
            previous: NONE,
            next: NONE,
            first: NONE,
            last: NONE,
            name,
            payload,
            formatting: 0,
            sort_and_blocks: SortAndBlocks::new(sort, 0),
        };
        if let Some(block) = self.nodes.last_mut() {
            block.push(node);
        }
        self.len += 1;
        NodeId(index(self.len - 1))
    }

    fn intern_name(&mut self, name: QualName) -> u32 {
        // A document uses few different names, and repeats them.
        let common = self.names.iter().take(COMMON_NAMES).position(|(known, _)| *known == name);
        if let Some(place) = common.or_else(|| self.name_indexes.get(&name).map(|&at| at as usize))
        {
            return index(place);
        }
        let place = index(self.names.len());
        self.names.push((name.clone(), ElementKind::from_name(&name.local)));
        if self.names.len() > COMMON_NAMES {
            self.name_indexes.insert(name, place);
        }
        place
    }
}

/// Read access.
impl Dom {
    pub(crate) fn body(&self) -> Option<NodeId> {
        let html = self.child_named(Self::DOCUMENT, &local_name!("html"))?;
        self.child_named(html, &local_name!("body"))
    }

    fn child_named(&self, parent: NodeId, name: &html5ever::LocalName) -> Option<NodeId> {
        self.children(parent)
            .find(|&child| self.qual_name(child).is_some_and(|found| found.local == *name))
    }

    pub(crate) fn qual_name(&self, node: NodeId) -> Option<&QualName> {
        let node = self.node(node);
        node.is_element().then(|| &self.names[node.name as usize].0)
    }

    /// Returns the meaning of an element's name, or `None` for other nodes.
    pub(crate) fn tag(&self, node: NodeId) -> Option<ElementKind> {
        let node = self.node(node);
        node.is_element().then(|| self.names[node.name as usize].1)
    }

    pub(crate) fn is_element(&self, node: NodeId) -> bool {
        self.node(node).is_element()
    }

    pub(crate) fn text(&self, node: NodeId) -> Option<&str> {
        let node = self.node(node);
        (node.sort_and_blocks.sort() == NodeSort::Text).then(|| &*self.texts[node.payload as usize])
    }

    pub(crate) fn attribute(&self, node: NodeId, name: Attribute) -> Option<&str> {
        let node = self.node(node);
        if !node.is_element() || node.payload == NONE {
            return None;
        }
        let attributes = &self.attributes[node.payload as usize];
        attributes.iter().find(|(given, _)| *given == name).map(|(_, value)| &**value)
    }

    /// Returns the known attributes of an element.
    pub(crate) fn attributes(&self, node: NodeId) -> impl Iterator<Item = (Attribute, &str)> {
        let node = self.node(node);
        let there = node.is_element() && node.payload != NONE;
        let attributes = there.then(|| &self.attributes[node.payload as usize]);
        attributes.into_iter().flatten().map(|(name, value)| (*name, &**value))
    }

    /// Returns the names of an element's unknown attributes, if the document stores them.
    pub(crate) fn other_attributes(&self, node: NodeId) -> impl Iterator<Item = &str> {
        let others = self.origins.as_ref().and_then(|origins| {
            let place = origins.others.binary_search_by_key(&node, |(known, _)| *known).ok()?;
            Some(&origins.others[place].1)
        });
        others.into_iter().flatten().map(String::as_str)
    }

    /// Returns the line of an element, or 0 if the document doesn't store lines.
    pub(crate) fn line(&self, node: NodeId) -> u64 {
        let Some(origins) = &self.origins else { return 0 };
        let later = origins.lines.partition_point(|(first, _)| *first <= node);
        later.checked_sub(1).map_or(0, |place| origins.lines[place].1.into())
    }

    /// Returns the name of an element.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        self.qual_name(node).map_or("", |name| &*name.local)
    }

    pub(crate) fn parent(&self, node: NodeId) -> Option<NodeId> {
        some(self.node(node).parent)
    }

    pub(crate) fn first_child(&self, node: NodeId) -> Option<NodeId> {
        some(self.node(node).first)
    }

    pub(crate) fn last_child(&self, node: NodeId) -> Option<NodeId> {
        some(self.node(node).last)
    }

    pub(crate) fn next_sibling(&self, node: NodeId) -> Option<NodeId> {
        some(self.node(node).next)
    }

    pub(crate) fn previous_sibling(&self, node: NodeId) -> Option<NodeId> {
        some(self.node(node).previous)
    }

    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first_child(node), |&child| self.next_sibling(child))
    }

    /// Returns the elements below `root`, in document order.
    pub(crate) fn descendants(&self, root: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.first_child(root), move |&node| {
            self.first_child(node).or_else(|| self.next_outside(node, root))
        })
        .filter(|&node| self.is_element(node))
    }

    /// Returns the next node in document order that is not below `node`, but still below `root`.
    fn next_outside(&self, node: NodeId, root: NodeId) -> Option<NodeId> {
        let mut node = node;
        while node != root {
            if let Some(next) = self.next_sibling(node) {
                return Some(next);
            }
            node = self.parent(node)?;
        }
        None
    }

    pub(crate) fn blocks_deep(&self, node: NodeId) -> usize {
        self.node(node).sort_and_blocks.blocks().into()
    }

    /// Returns the number of other such elements around a formatting element with attributes, or 0
    /// for any other node. The parser compares each new one with all open ones.
    pub(crate) fn formatting_around(&self, node: NodeId) -> usize {
        let node = self.node(node);
        match node.sort_and_blocks.sort() {
            NodeSort::Formatting => usize::from(node.formatting - 1),
            _ => 0,
        }
    }

    fn node(&self, node: NodeId) -> &DomNode {
        let at = node.0 as usize;
        &self.nodes[at / BLOCK][at % BLOCK]
    }
}

/// Changes.
impl Dom {
    pub(crate) fn push_text(&mut self, node: NodeId, text: &StrTendril) {
        self.text_len += text.len();
        let payload = self.node(node).payload;
        self.texts[payload as usize].push_tendril(text);
    }

    /// Appends `child`, which must have no parent, to `parent`.
    pub(crate) fn append(&mut self, parent: NodeId, child: NodeId) {
        let last = self.last_child(parent);
        self.link(parent, last, child, None);
    }

    /// Inserts `child`, which must have no parent, before `sibling`, which must have one.
    pub(crate) fn insert_before(&mut self, sibling: NodeId, child: NodeId) {
        if let Some(parent) = self.parent(sibling) {
            let previous = self.previous_sibling(sibling);
            self.link(parent, previous, child, Some(sibling));
        }
    }

    fn link(
        &mut self,
        parent: NodeId,
        previous: Option<NodeId>,
        child: NodeId,
        next: Option<NodeId>,
    ) {
        let blocks = self.node(parent).sort_and_blocks.blocks();
        let formatting = self.node(parent).formatting;
        let is_block = self.tag(child).is_some_and(ElementKind::counts_as_block);
        let node = self.node_mut(child);
        node.parent = parent.0;
        node.previous = raw(previous);
        node.next = raw(next);
        let sort = node.sort_and_blocks.sort();
        node.sort_and_blocks = SortAndBlocks::new(sort, blocks + u16::from(is_block));
        node.formatting = formatting.saturating_add(u16::from(sort == NodeSort::Formatting));
        match previous {
            Some(previous) => self.node_mut(previous).next = child.0,
            None => self.node_mut(parent).first = child.0,
        }
        match next {
            Some(next) => self.node_mut(next).previous = child.0,
            None => self.node_mut(parent).last = child.0,
        }
    }

    /// Removes a node, with its descendants, from its parent.
    pub(crate) fn detach(&mut self, node: NodeId) {
        let Some(parent) = self.parent(node) else { return };
        let (previous, next) = (self.previous_sibling(node), self.next_sibling(node));
        match previous {
            Some(previous) => self.node_mut(previous).next = raw(next),
            None => self.node_mut(parent).first = raw(next),
        }
        match next {
            Some(next) => self.node_mut(next).previous = raw(previous),
            None => self.node_mut(parent).last = raw(previous),
        }
        let node = self.node_mut(node);
        node.parent = NONE;
        node.previous = NONE;
        node.next = NONE;
    }

    fn node_mut(&mut self, node: NodeId) -> &mut DomNode {
        let at = node.0 as usize;
        &mut self.nodes[at / BLOCK][at % BLOCK]
    }
}

/// Returns true for elements that the parser reopens in the next paragraph (HTML Standard, section
/// 13.2.4.3). Elements that never nest in themselves are excluded.
fn is_formatting(name: &str) -> bool {
    const NAMES: [&str; 12] =
        ["b", "big", "code", "em", "font", "i", "s", "small", "strike", "strong", "tt", "u"];
    NAMES.contains(&name)
}

fn some(node: u32) -> Option<NodeId> {
    (node != NONE).then_some(NodeId(node))
}

fn raw(node: Option<NodeId>) -> u32 {
    node.map_or(NONE, |node| node.0)
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("the node budget is far below four billion")
}
