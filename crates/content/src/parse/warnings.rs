//! Collects conversion warnings for content that the tree lacks.
//!
//! The walker reports the result for each element, and this module checks which of its attributes
//! contributed to it. An element that the HTML standard reopens, such as a `<b>` that ends in
//! another paragraph, is counted again.

use std::collections::HashMap;

use super::attributes::Attribute;
use super::dom::{Dom, NodeId};
use super::number::leading_integer;
use super::tag::ElementKind;
use super::{rules, style, table, whitespace};
use crate::marks::{Flag, Marks};
use crate::node::Align;
use crate::warning::{ConversionEffect, ConversionWarning, SourcePosition};
use crate::{color, safety};

/// The limit on different warnings.
const WARNINGS_MAX: usize = 500;

/// The limit on characters of a name, after which it is truncated.
const NAME_MAX: usize = 100;

/// The limit on ancestors that are searched for formatting that a node can't have.
const MARK_LEVELS_MAX: usize = 64;

/// The limit on siblings that are counted. After more siblings, an element's path omits its number.
const SIBLINGS_MAX: usize = 5_000;

/// The limit on elements in a path.
const PATH_MAX: usize = 10;

/// The warnings so far.
#[derive(Debug, Default)]
pub(crate) struct WarningCollector {
    found: Vec<ConversionWarning>,
    indexes: HashMap<(String, Option<String>, Option<String>, ConversionEffect), usize>,
    /// The original parents of moved nodes, with their positions among the parent's elements.
    moved: HashMap<NodeId, (NodeId, usize)>,
    /// True for a table with column widths in its cells or columns.
    has_widths: HashMap<NodeId, bool>,
}

impl WarningCollector {
    /// Returns the warnings, in the order of their first occurrence.
    pub(crate) fn finish(self) -> Vec<ConversionWarning> {
        self.found
    }

    /// Notes an element that became neither a node nor a mark.
    pub(crate) fn element(&mut self, dom: &Dom, element: NodeId, effect: ConversionEffect) {
        let name = dom.name(element);
        let is_in_code = || {
            let parent = dom.parent(element).and_then(|parent| dom.tag(parent));
            parent == Some(ElementKind::Preformatted)
        };
        // Elements that HTML requires in each table, column widths, and the `code` in a code block.
        // The tree expresses the same without them.
        let implied = match name {
            "tbody" | "colgroup" | "col" => true,
            // The cells are header cells already.
            "thead" => {
                !dom.descendants(element).any(|cell| dom.tag(cell) == Some(ElementKind::TableCell))
            }
            "code" if is_in_code() => {
                self.attributes(dom, element, ElementKind::Mark(Flag::Code), Marks::default());
                true
            }
            _ => false,
        };
        if !implied {
            self.note(dom, element, None, None, effect);
        }
    }

    /// Notes an element of which only the children are converted. It covers the element's
    /// attributes, except the width of a column and the `href` of a link.
    pub(crate) fn transparent(&mut self, dom: &Dom, element: NodeId, tag: ElementKind) {
        // The visible content of these elements is not their children, which are for browsers
        // without support.
        let shows = matches!(
            dom.name(element),
            "img"
                | "iframe"
                | "embed"
                | "video"
                | "audio"
                | "input"
                | "template"
                | "svg"
                | "canvas"
        );
        self.element(
            dom,
            element,
            if shows { ConversionEffect::Dropped } else { ConversionEffect::Unwrapped },
        );
        if tag == ElementKind::Column && self.lacks_width(dom, element) {
            self.note(dom, element, Some("style"), Some("width"), ConversionEffect::Dropped);
        }
        if tag == ElementKind::Link && dom.attribute(element, Attribute::Href).is_some() {
            // The unsafe URL is the reason why it is no link.
            self.note(dom, element, Some("href"), None, ConversionEffect::Dropped);
        }
    }

    /// Notes the link around an image, as images can't have links.
    pub(crate) fn link_of_image(&mut self, dom: &Dom, image: NodeId) {
        if let Some(link) =
            around(dom, image).find(|&node| dom.tag(node) == Some(ElementKind::Link))
        {
            self.note(dom, link, None, None, ConversionEffect::Unwrapped);
        }
    }

    /// Notes the formatting around a code block, as code can't have marks.
    pub(crate) fn marks_of_code(&mut self, dom: &Dom, code: NodeId) {
        for node in around(dom, code) {
            if let Some(
                ElementKind::Link
                | ElementKind::Mark(_)
                | ElementKind::PlainBold
                | ElementKind::PlainItalic
                | ElementKind::Highlight,
            ) = dom.tag(node)
            {
                self.note(dom, node, None, None, ConversionEffect::Unwrapped);
            }
        }
    }

    /// Notes the content of an item outside of the element with its converted content.
    pub(crate) fn beside_content(&mut self, dom: &Dom, item: NodeId, content: NodeId) {
        let mut way = content;
        while way != item {
            let Some(parent) = dom.parent(way) else { return };
            for child in dom.children(parent).filter(|&child| child != way) {
                if dom.text(child).is_some_and(|text| !whitespace::is_blank(text)) {
                    self.note_named("#text", dom, parent, None, None, ConversionEffect::Dropped);
                } else if dom.is_element(child) && has_text(dom, child) {
                    self.note(dom, child, None, None, ConversionEffect::Dropped);
                }
            }
            way = parent;
        }
    }

    /// Records the position of an element before it is moved.
    pub(crate) fn moves(&mut self, node: NodeId, parent: NodeId, place: usize) {
        self.moved.insert(node, (parent, place));
    }

    /// Notes the attributes of an element that didn't contribute to its conversion. `around` are
    /// the marks of the enclosing elements.
    pub(crate) fn attributes(
        &mut self,
        dom: &Dom,
        element: NodeId,
        tag: ElementKind,
        around: Marks,
    ) {
        for (attribute, value) in dom.attributes(element) {
            if attribute == Attribute::Style {
                self.styles(dom, element, tag, value, around);
            } else if !is_kept(dom, element, tag, attribute, value) {
                self.note(dom, element, Some(attribute.name()), None, ConversionEffect::Dropped);
            }
        }
        for name in dom.other_attributes(element) {
            self.note(dom, element, Some(name), None, ConversionEffect::Dropped);
        }
    }

    fn styles(&mut self, dom: &Dom, element: NodeId, tag: ElementKind, style: &str, around: Marks) {
        for (property, value) in style::properties(style) {
            let is_kept = match (tag, property.as_str()) {
                // The style of a rendered table, which is computed from its columns.
                (ElementKind::Table, "min-width") => true,
                (ElementKind::Table, "width") => {
                    value == "0px" || value.ends_with("px") && self.has_widths(dom, element)
                }
                _ => is_style_kept(tag, &property, &value, around),
            };
            if !is_kept {
                self.note(dom, element, Some("style"), Some(&property), ConversionEffect::Dropped);
            }
        }
    }

    /// Returns true if a column has a width only in its style, which the conversion doesn't read.
    fn lacks_width(&mut self, dom: &Dom, column: NodeId) -> bool {
        let style = dom.attribute(column, Attribute::Style).unwrap_or_default();
        let has_width = style::raw(style, "width").is_some();
        let table = around(dom, column).find(|&node| dom.tag(node) == Some(ElementKind::Table));
        has_width && table.is_some_and(|table| !self.has_widths(dom, table))
    }

    fn has_widths(&mut self, dom: &Dom, table: NodeId) -> bool {
        *self.has_widths.entry(table).or_insert_with(|| {
            dom.descendants(table).any(|node| match dom.tag(node) {
                Some(ElementKind::TableCell | ElementKind::TableHeader) => {
                    dom.attribute(node, Attribute::Colwidth).is_some()
                }
                Some(ElementKind::Column) => dom.attribute(node, Attribute::Width).is_some(),
                _ => false,
            })
        })
    }

    fn note(
        &mut self,
        dom: &Dom,
        element: NodeId,
        attribute: Option<&str>,
        property: Option<&str>,
        effect: ConversionEffect,
    ) {
        self.note_named(dom.name(element), dom, element, attribute, property, effect);
    }

    fn note_named(
        &mut self,
        name: &str,
        dom: &Dom,
        element: NodeId,
        attribute: Option<&str>,
        property: Option<&str>,
        effect: ConversionEffect,
    ) {
        let cut = |name: &str| name.chars().take(NAME_MAX).collect::<String>();
        let name = cut(name);
        let key = (name.clone(), attribute.map(cut), property.map(cut), effect);
        if let Some(&place) = self.indexes.get(&key) {
            self.found[place].count += 1;
            return;
        }
        if self.found.len() >= WARNINGS_MAX {
            return;
        }
        self.found.push(ConversionWarning {
            element: name,
            attribute: key.1.clone(),
            property: key.2.clone(),
            effect,
            count: 1,
            first: SourcePosition { line: dom.line(element), path: self.path(dom, element) },
        });
        self.indexes.insert(key, self.found.len() - 1);
    }

    /// Returns the path of an element.
    fn path(&self, dom: &Dom, element: NodeId) -> String {
        let body = dom.body();
        let below = |node: &NodeId| Some(*node) != body && dom.is_element(*node);
        let parent = |&node: &NodeId| {
            self.moved.get(&node).map(|(parent, _)| *parent).or_else(|| dom.parent(node))
        };
        let up = std::iter::successors(Some(element), parent).take_while(below);
        let mut steps: Vec<String> = up
            .take(PATH_MAX)
            .map(|node| {
                let name = identifier(dom.name(node));
                match self.child_number(dom, node) {
                    Some(place) => format!("{name}:nth-child({place})"),
                    None => name,
                }
            })
            .collect();
        steps.reverse();
        steps.join(" > ")
    }

    /// Returns the number of an element among its siblings, unless there are too many of them.
    fn child_number(&self, dom: &Dom, element: NodeId) -> Option<usize> {
        if let Some((_, place)) = self.moved.get(&element) {
            return Some(*place);
        }
        let before = std::iter::successors(dom.previous_sibling(element), |&node| {
            dom.previous_sibling(node)
        });
        let mut near = before
            .take(SIBLINGS_MAX + 1)
            .enumerate()
            .map(|(at, node)| (at < SIBLINGS_MAX).then_some(usize::from(dom.is_element(node))));
        near.try_fold(1, |place, one| Some(place + one?))
    }
}

/// Returns the ancestors of a node, innermost first.
fn around(dom: &Dom, node: NodeId) -> impl Iterator<Item = NodeId> {
    std::iter::successors(dom.parent(node), |&node| dom.parent(node)).take(MARK_LEVELS_MAX)
}

fn has_text(dom: &Dom, element: NodeId) -> bool {
    let with_texts = std::iter::once(element).chain(dom.descendants(element));
    let mut texts =
        with_texts.flat_map(|node| dom.children(node)).filter_map(|node| dom.text(node));
    texts.any(|text| !whitespace::is_blank(text))
}

/// Returns a name as an identifier in a CSS selector.
fn identifier(name: &str) -> String {
    let mut written = String::with_capacity(name.len());
    for c in name.chars().take(NAME_MAX) {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_') {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

/// Returns true if an attribute contributes to the node or mark of its element.
fn is_kept(
    dom: &Dom,
    element: NodeId,
    tag: ElementKind,
    attribute: Attribute,
    value: &str,
) -> bool {
    match (tag, attribute) {
        (ElementKind::Link, Attribute::Href) => safety::is_safe_href(value),
        (
            ElementKind::Link,
            Attribute::Target | Attribute::Rel | Attribute::Class | Attribute::Title,
        ) => dom.attribute(element, Attribute::Href).is_some_and(safety::is_safe_href),
        (ElementKind::Image, Attribute::Src) => safety::is_safe_image_src(value),
        (ElementKind::Image, Attribute::Width | Attribute::Height) => {
            safety::is_safe_length(&crate::value::AttrValue::from_attribute(value))
        }
        (ElementKind::OrderedList, Attribute::Start) | (ElementKind::Column, Attribute::Width) => {
            leading_integer(value).is_some()
        }
        (ElementKind::OrderedList, Attribute::Type) => !value.is_empty(),
        (
            ElementKind::TableCell | ElementKind::TableHeader,
            Attribute::Colspan | Attribute::Rowspan,
        ) => table::reads_span(dom, element, attribute),
        (ElementKind::TableCell | ElementKind::TableHeader, Attribute::Colwidth) => {
            let mut widths = value.split(',');
            let fitting = widths.by_ref().take(table::colspan(dom, element).into());
            // A cell with an unreadable width is rendered with these values.
            let is_none = |width: &str| width.is_empty() || width == "null";
            let mut unread =
                fitting.filter(|width| !is_none(width) && leading_integer(width).is_none());
            unread.next().is_none() && widths.next().is_none()
        }
        (ElementKind::TableCell | ElementKind::TableHeader, Attribute::Align) => {
            table::align_of(value).is_some()
        }
        (ElementKind::BulletList, Attribute::DataType) => value == "taskList",
        (ElementKind::ListItem, Attribute::DataType) => value == "taskItem",
        (ElementKind::ListItem, Attribute::DataChecked) => {
            dom.attribute(element, Attribute::DataType) == Some("taskItem")
                && matches!(value, "" | "true" | "false")
        }
        (ElementKind::Heading(_), Attribute::Level) => {
            value.parse().is_ok_and(|level: u8| (1..=6).contains(&level))
        }
        (ElementKind::Image, Attribute::Alt | Attribute::Title) => true,
        (ElementKind::Highlight, Attribute::DataColor) => color::is_color(value),
        // A code block's language is in the class of its first element.
        (ElementKind::Mark(Flag::Code), Attribute::Class) => {
            let block = dom.parent(element).filter(|_| dom.name(element) == "code");
            block.is_some_and(|block| {
                dom.tag(block) == Some(ElementKind::Preformatted)
                    && dom.children(block).find(|&child| dom.is_element(child)) == Some(element)
                    && rules::language(dom, block).is_some()
            })
        }
        _ => false,
    }
}

/// Returns true if a declaration of an inline style contributes to the tree, or has no effect.
fn is_style_kept(tag: ElementKind, property: &str, value: &str, around: Marks) -> bool {
    const PLAIN: [&str; 7] =
        ["normal", "none", "baseline", "inherit", "initial", "unset", "revert"];
    let value = value.trim().to_ascii_lowercase();
    let value = value.strip_suffix("!important").unwrap_or(&value).trim_end();
    let is_plain = PLAIN.contains(&value);
    let flags: &[Flag] = match property {
        "white-space" => return value.contains("pre") || is_plain,
        "list-style-type" => {
            return match tag {
                ElementKind::OrderedList | ElementKind::ListItem => {
                    value == "decimal" || rules::list_type_of(value).is_some()
                }
                ElementKind::BulletList => value == "disc",
                _ => false,
            };
        }
        "text-align" => {
            let is_cell = matches!(tag, ElementKind::TableCell | ElementKind::TableHeader);
            return is_cell && Align::from_name(value).is_some();
        }
        "background" | "background-color" => {
            return tag == ElementKind::Highlight && color::is_color(value);
        }
        // The style of a rendered highlight.
        "color" => return tag == ElementKind::Highlight && value == "inherit",
        "font-weight" => &[Flag::Bold],
        "font-style" => &[Flag::Italic],
        "text-decoration" => &[Flag::Underline, Flag::Strike],
        "vertical-align" => &[Flag::Subscript, Flag::Superscript],
        _ => return false,
    };
    if is_plain {
        let takes_away = matches!(tag, ElementKind::PlainBold | ElementKind::PlainItalic)
            || rules::styled_marks(&format!("{property}:{value}"), around) != around;
        return takes_away || !flags.iter().any(|&flag| around.has(flag));
    }
    let known = match property {
        "font-weight" if value == "400" => true,
        "text-decoration" => {
            value.split_ascii_whitespace().all(|word| matches!(word, "underline" | "line-through"))
        }
        _ => true,
    };
    let marks = rules::styled_marks(&format!("{property}:{value}"), Marks::default());
    let takes_marks = tag != ElementKind::Preformatted;
    known && takes_marks && (value == "400" || !marks.is_empty())
}
