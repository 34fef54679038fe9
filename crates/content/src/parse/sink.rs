//! The sink of html5ever, which builds a `Dom` and counts the cost.
//!
//! The HTML standard amplifies some inputs. Unclosed formatting elements are reopened in every
//! paragraph, and every end tag may inspect all open elements. The sink can't stop html5ever, so it
//! only counts. `parse::dom_from_html` feeds the parser in pieces and checks the counts between
//! them.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, LocalName, Namespace, QualName};

use super::dom::{Dom, NodeId};

/// The number of attribute bytes that cost as much as one inspection of an element.
const ATTRIBUTE_BYTES_PER_STEP: usize = 8;

/// The sink of the HTML parser.
#[derive(Debug)]
pub(crate) struct Sink {
    dom: RefCell<Dom>,
    steps: Cell<usize>,
    comparisons: Cell<usize>,
    blocks_deep: Cell<usize>,
}

impl Sink {
    pub(crate) fn new(dom: Dom) -> Self {
        Self {
            dom: RefCell::new(dom),
            steps: Cell::new(0),
            comparisons: Cell::new(0),
            blocks_deep: Cell::new(0),
        }
    }

    /// Returns the number of times that the parser has inspected or moved an element.
    pub(crate) fn steps(&self) -> usize {
        self.steps.get()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.dom.borrow().len()
    }

    /// Returns the number of open elements, but at most `max`.
    pub(crate) fn open_elements(&self, max: usize) -> usize {
        self.dom.borrow().depth_of_last(max)
    }

    /// Returns an upper bound of the parser's comparisons of formatting elements with attributes.
    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons.get()
    }

    /// Returns the deepest nesting of block-level elements so far.
    pub(crate) fn blocks_deep(&self) -> usize {
        self.blocks_deep.get()
    }

    fn count_step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    /// Inserts a node, or appends a text to the text before it.
    fn place(
        &self,
        before: Option<NodeId>,
        child: NodeOrText<NodeId>,
        put: impl Fn(&mut Dom, NodeId),
    ) {
        let mut dom = self.dom.borrow_mut();
        let node = match child {
            NodeOrText::AppendNode(node) => {
                dom.detach(node);
                node
            }
            NodeOrText::AppendText(text) => {
                if let Some(before) = before
                    && dom.text(before).is_some()
                {
                    dom.push_text(before, &text);
                    return;
                }
                dom.create_text(text)
            }
        };
        put(&mut dom, node);
        self.blocks_deep.set(self.blocks_deep.get().max(dom.blocks_deep(node)));
        self.comparisons.set(self.comparisons.get() + dom.formatting_around(node));
    }
}

/// The name of an element, borrowed from the document.
#[derive(Debug)]
pub(crate) struct BorrowedName<'a>(Ref<'a, QualName>);

impl ElemName for BorrowedName<'_> {
    fn ns(&self) -> &Namespace {
        &self.0.ns
    }

    fn local_name(&self) -> &LocalName {
        &self.0.local
    }
}

impl TreeSink for Sink {
    type Handle = NodeId;
    type Output = Dom;
    type ElemName<'a> = BorrowedName<'a>;

    fn finish(self) -> Dom {
        self.dom.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        Dom::DOCUMENT
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> BorrowedName<'a> {
        self.count_step();
        BorrowedName(Ref::map(self.dom.borrow(), |dom| {
            dom.qual_name(*target).expect("the parser asks for the names of elements only")
        }))
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, _: ElementFlags) -> NodeId {
        // Unclosed formatting elements are reopened in each paragraph, with all their attributes.
        let size: usize =
            attrs.iter().map(|given| given.name.local.len() + given.value.len()).sum();
        self.steps.set(self.steps.get() + size / ATTRIBUTE_BYTES_PER_STEP);
        self.dom.borrow_mut().create_element(name, attrs)
    }

    fn create_comment(&self, _: StrTendril) -> NodeId {
        self.dom.borrow_mut().create_comment()
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeId {
        self.dom.borrow_mut().create_comment()
    }

    fn append(&self, parent: &NodeId, child: NodeOrText<NodeId>) {
        let last = self.dom.borrow().last_child(*parent);
        self.place(last, child, |dom, node| dom.append(*parent, node));
    }

    fn append_based_on_parent_node(
        &self,
        element: &NodeId,
        prev_element: &NodeId,
        child: NodeOrText<NodeId>,
    ) {
        if self.dom.borrow().parent(*element).is_some() {
            self.append_before_sibling(element, child);
        } else {
            self.append(prev_element, child);
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, _: &NodeId) -> NodeId {
        // Templates are not rendered, so their contents get a node outside of the document.
        self.dom.borrow_mut().create_comment()
    }

    fn same_node(&self, x: &NodeId, y: &NodeId) -> bool {
        self.count_step();
        x == y
    }

    fn set_current_line(&self, line: u64) {
        self.dom.borrow_mut().set_line(line);
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeId, new_node: NodeOrText<NodeId>) {
        let previous = self.dom.borrow().previous_sibling(*sibling);
        self.place(previous, new_node, |dom, node| dom.insert_before(*sibling, node));
    }

    fn add_attrs_if_missing(&self, _: &NodeId, _: Vec<Attribute>) {
        // Applies only to `html` and `body`, whose attributes are not converted.
    }

    fn remove_from_parent(&self, target: &NodeId) {
        self.dom.borrow_mut().detach(*target);
    }

    fn reparent_children(&self, node: &NodeId, new_parent: &NodeId) {
        let mut dom = self.dom.borrow_mut();
        while let Some(child) = dom.first_child(*node) {
            dom.detach(child);
            dom.append(*new_parent, child);
            self.count_step();
        }
    }
}
