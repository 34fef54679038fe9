//! Takes what html5ever parses into a `Dom`, and counts what that costs.
//!
//! The HTML standard makes more of some inputs than there is: formatting elements that aren't
//! closed are opened again in every paragraph, and every end tag may look through all open
//! elements. html5ever can't be stopped from here, so this counts and `parse::dom_from_html`, which
//! feeds the parser piece by piece, looks at the count between the pieces.

use std::borrow::Cow;
use std::cell::{Cell, Ref, RefCell};

use html5ever::interface::{ElemName, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, LocalName, Namespace, QualName};

use super::dom::{Dom, NodeId};

/// How many bytes of attributes cost as much as a look at an element.
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

    /// How often the parser has looked at an element or moved one.
    pub(crate) fn steps(&self) -> usize {
        self.steps.get()
    }

    pub(crate) fn nodes(&self) -> usize {
        self.dom.borrow().len()
    }

    /// How many elements are open, as far as that is below `max`.
    pub(crate) fn open_elements(&self, max: usize) -> usize {
        self.dom.borrow().depth_of_last(max)
    }

    /// How often the parser has compared formatting elements with attributes, at the most.
    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons.get()
    }

    /// The deepest nesting of block-level elements so far.
    pub(crate) fn blocks_deep(&self) -> usize {
        self.blocks_deep.get()
    }

    fn count_step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    /// Appends a node, or joins a text to the text before it.
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
pub(crate) struct Name<'a>(Ref<'a, QualName>);

impl ElemName for Name<'_> {
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
    type ElemName<'a> = Name<'a>;

    fn finish(self) -> Dom {
        self.dom.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeId {
        Dom::DOCUMENT
    }

    fn elem_name<'a>(&'a self, target: &'a NodeId) -> Name<'a> {
        self.count_step();
        Name(Ref::map(self.dom.borrow(), |dom| {
            dom.qual_name(*target).expect("the parser asks for the names of elements only")
        }))
    }

    fn create_element(&self, name: QualName, attrs: Vec<Attribute>, _: ElementFlags) -> NodeId {
        // Formatting that isn't closed is opened again in each paragraph, with all its attributes.
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
        // Templates are not shown, so their contents go to a node that is nowhere.
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
        // This concerns `html` and `body` only, whose attributes mean nothing here.
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
