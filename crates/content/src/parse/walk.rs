//! Traverses the document and passes its nodes to `context`, in order.
//!
//! The author controls the nesting of a document, so nothing here recurses. An element gets a
//! `Frame` only if its end must restore something. Of 100,000 nested `<b>`, only one does.

use super::attributes::Attribute;
use super::context::{Context, OpenNode};
use super::dom::{Dom, NodeId};
use super::rules::{self, Rule};
use super::table::{self, Columns};
use super::tag::ElementKind;
use super::warnings::WarningCollector;
use crate::error::ContentError;
use crate::limits::ContentLimits;
use crate::marks::Marks;
use crate::node::NodeKind;
use crate::tree::Tree;
use crate::warning::ConversionEffect;

/// Converts the document's body to a tree, and adds conversion warnings to `losses`.
pub(crate) fn tree_of(
    dom: &mut Dom,
    limits: &ContentLimits,
    warnings: Option<&mut WarningCollector>,
) -> Result<Tree, ContentError> {
    let mut walker = TreeWalker {
        context: Context::new(limits),
        columns: Columns::default(),
        marks: Marks::default(),
        frames: Vec::new(),
        blocks: 0,
        blocks_deep: limits.blocks_deep,
        warnings,
    };
    // The tree rarely has more nodes than the document.
    walker.context.builder.reserve(dom.content_nodes(), dom.text_len());
    if let Some(body) = dom.body() {
        walker.walk(dom, body)?;
    }
    walker.context.finish()
}

struct TreeWalker<'l> {
    warnings: Option<&'l mut WarningCollector>,
    context: Context,
    columns: Columns,
    marks: Marks,
    frames: Vec<WalkFrame>,
    blocks: usize,
    blocks_deep: usize,
}

/// The state to restore at the end of an element.
struct WalkFrame {
    /// The element whose children are converted, usually the element itself.
    container: NodeId,
    element: NodeId,
    marks: Marks,
    keeps_space: bool,
    is_block: bool,
    exit: Exit,
}

#[derive(Clone, Copy)]
enum Exit {
    Nothing,
    Resume(OpenNode),
    Close(OpenNode),
}

impl TreeWalker<'_> {
    fn walk(&mut self, dom: &mut Dom, body: NodeId) -> Result<(), ContentError> {
        let mut next = dom.first_child(body);
        let mut parent = body;
        loop {
            if let Some(node) = next {
                if let Some(container) = self.visit(dom, node)? {
                    parent = container;
                    next = dom.first_child(container);
                } else {
                    next = dom.next_sibling(node);
                }
                continue;
            }
            if parent == body {
                return Ok(());
            }
            let left = self.leave(parent);
            next = dom.next_sibling(left);
            parent = dom.parent(left).unwrap_or(body);
        }
    }

    /// Converts a node. Returns the element whose children are next, if any.
    fn visit(&mut self, dom: &mut Dom, node: NodeId) -> Result<Option<NodeId>, ContentError> {
        if let Some(text) = dom.text(node) {
            let previous = dom.previous_sibling(node);
            let after_break =
                previous.is_some_and(|previous| dom.tag(previous) == Some(ElementKind::LineBreak));
            self.context.add_text(text, self.marks, after_break)?;
            return Ok(None);
        }
        match dom.tag(node) {
            Some(tag) => self.visit_element(dom, node, tag),
            None => Ok(None),
        }
    }

    fn visit_element(
        &mut self,
        dom: &mut Dom,
        element: NodeId,
        tag: ElementKind,
    ) -> Result<Option<NodeId>, ContentError> {
        if tag.is_list() {
            move_lists_into_items(dom, element, self.warnings.as_deref_mut());
        }
        let marks = match dom.attribute(element, Attribute::Style) {
            Some(style) => rules::styled_marks(style, self.marks),
            None => self.marks,
        };
        let builder = &mut self.context.builder;
        let rule = rules::rule(dom, element, tag, marks, builder, &mut self.columns);
        self.note_warnings(dom, element, tag, rule, marks);
        let kept_space = self.context.keeps_space;
        self.context.keeps_space |= rules::keeps_white_space(dom, element, tag);
        let frame = WalkFrame {
            container: element,
            element,
            marks: self.marks,
            keeps_space: kept_space,
            is_block: tag.counts_as_block(),
            exit: Exit::Nothing,
        };
        match rule {
            Rule::Ignore => {}
            Rule::Transparent => return self.enter_transparent(dom, frame, tag, marks),
            Rule::Marks(marks) => return self.enter_children(dom, frame, marks),
            Rule::Node(kind) if kind.node_type().is_leaf() => {
                if self.insert_leaf(kind, marks)? {
                    self.note_move(dom, element);
                    if let (Some(losses), NodeKind::Image(_), Some(_)) =
                        (&mut self.warnings, kind, marks.link)
                    {
                        losses.link_of_image(dom, element);
                    }
                } else {
                    self.note_warning(dom, element, ConversionEffect::Dropped);
                }
            }
            Rule::Node(kind) => return self.enter_node(dom, frame, kind, marks),
        }
        self.context.keeps_space = kept_space;
        Ok(None)
    }

    fn enter_transparent(
        &mut self,
        dom: &Dom,
        mut frame: WalkFrame,
        tag: ElementKind,
        marks: Marks,
    ) -> Result<Option<NodeId>, ContentError> {
        if tag.ends_paragraph() {
            self.context.close_textblock();
            frame.exit = Exit::Resume(self.context.top());
        }
        self.enter_children(dom, frame, marks)
    }

    fn enter_node(
        &mut self,
        dom: &Dom,
        mut frame: WalkFrame,
        kind: NodeKind,
        marks: Marks,
    ) -> Result<Option<NodeId>, ContentError> {
        match self.context.enter(kind)? {
            Some(entered) => {
                frame.exit = Exit::Close(entered);
                self.note_move(dom, frame.element);
            }
            None => self.note_warning(dom, frame.element, ConversionEffect::Unwrapped),
        }
        if let (Some(losses), NodeKind::CodeBlock(_)) = (&mut self.warnings, kind)
            && !self.marks.is_empty()
        {
            losses.marks_of_code(dom, frame.element);
        }
        let is_cell = matches!(kind, NodeKind::TableCell(_) | NodeKind::TableHeader(_));
        if is_cell && table::is_empty_cell(dom, frame.element) {
            // The schema adds a paragraph, which must not contain the cell's white space.
            self.frames.push(WalkFrame { is_block: false, ..frame });
            self.pop_frame();
            return Ok(None);
        }
        frame.container = rules::content_element(dom, frame.element, kind);
        if let Some(losses) = &mut self.warnings {
            losses.beside_content(dom, frame.element, frame.container);
        }
        self.enter_children(dom, frame, marks)
    }

    /// Begins the children of the frame's container.
    fn enter_children(
        &mut self,
        dom: &Dom,
        frame: WalkFrame,
        marks: Marks,
    ) -> Result<Option<NodeId>, ContentError> {
        let container = frame.container;
        let nothing_to_undo = matches!(frame.exit, Exit::Nothing)
            && marks == self.marks
            && frame.keeps_space == self.context.keeps_space
            && !frame.is_block;
        if !nothing_to_undo {
            self.blocks += usize::from(frame.is_block);
            if self.blocks > self.blocks_deep {
                return Err(ContentError::TooDeep);
            }
            self.frames.push(frame);
            self.marks = marks;
            if dom.first_child(container).is_none() {
                self.pop_frame();
                return Ok(None);
            }
        }
        Ok(Some(container))
    }

    /// Inserts a leaf, or a line end instead of a line break. Returns false if the schema allows it
    /// nowhere.
    fn insert_leaf(&mut self, kind: NodeKind, marks: Marks) -> Result<bool, ContentError> {
        let is_break = matches!(kind, NodeKind::HardBreak { .. });
        let placed = self.context.insert_leaf(kind, marks, is_break)?;
        if !placed && is_break && self.context.is_in_textblock() {
            self.context.add_text("\n", marks, false)?;
            return Ok(true);
        }
        Ok(placed)
    }

    /// Notes the warnings for an element. `marks` are the marks inside, as changed by the element's
    /// style.
    fn note_warnings(
        &mut self,
        dom: &Dom,
        element: NodeId,
        tag: ElementKind,
        rule: Rule,
        marks: Marks,
    ) {
        let Some(losses) = &mut self.warnings else { return };
        match rule {
            Rule::Ignore => losses.element(dom, element, ConversionEffect::Dropped),
            // An element whose only effect is its style is represented by the style's marks.
            Rule::Transparent
                if marks != self.marks
                    || matches!(tag, ElementKind::PlainBold | ElementKind::PlainItalic)
                    || rules::keeps_white_space(dom, element, tag) =>
            {
                losses.attributes(dom, element, tag, self.marks);
            }
            Rule::Transparent => losses.transparent(dom, element, tag),
            Rule::Marks(_) if !self.context.takes_marks() => {
                losses.element(dom, element, ConversionEffect::Unwrapped);
            }
            Rule::Marks(_) | Rule::Node(_) => losses.attributes(dom, element, tag, self.marks),
        }
    }

    fn note_warning(&mut self, dom: &Dom, element: NodeId, effect: ConversionEffect) {
        if let Some(losses) = &mut self.warnings {
            losses.element(dom, element, effect);
        }
    }

    /// Notes an element whose node was placed outside of its list item.
    fn note_move(&mut self, dom: &Dom, element: NodeId) {
        if self.context.has_left_item {
            self.note_warning(dom, element, ConversionEffect::Moved);
        }
    }

    /// Ends an element's children and returns the element.
    fn leave(&mut self, container: NodeId) -> NodeId {
        match self.frames.last() {
            Some(frame) if frame.container == container => self.pop_frame().unwrap_or(container),
            _ => container,
        }
    }

    fn pop_frame(&mut self) -> Option<NodeId> {
        let frame = self.frames.pop()?;
        match frame.exit {
            Exit::Nothing => {}
            Exit::Resume(to) => {
                self.context.resume(to);
            }
            Exit::Close(node) => self.context.close(node),
        }
        self.blocks -= usize::from(frame.is_block);
        self.marks = frame.marks;
        self.context.keeps_space = frame.keeps_space;
        Some(frame.element)
    }
}

/// Moves lists that are direct children of a list into the item before them, as browsers display
/// them.
fn move_lists_into_items(dom: &mut Dom, list: NodeId, mut losses: Option<&mut WarningCollector>) {
    let mut item = None;
    let mut next = dom.first_child(list);
    let mut place = 0;
    let mut moved = false;
    while let Some(child) = next {
        next = dom.next_sibling(child);
        place += usize::from(dom.is_element(child));
        let belongs = item.is_some() && dom.tag(child).is_some_and(ElementKind::is_list);
        moved |= belongs;
        if let Some(losses) = losses.as_deref_mut().filter(|_| moved) {
            losses.moves(child, list, place);
        }
        match (dom.tag(child), item) {
            (Some(_), Some(item)) if belongs => {
                dom.detach(child);
                dom.append(item, child);
            }
            (Some(ElementKind::ListItem), _) => item = Some(child),
            (Some(_), _) => item = None,
            (None, _) => {}
        }
    }
}
