//! The schema's parse rules, which map an element to a node or mark, with the attributes that they
//! read.
//!
//! The position of a node in the tree is up to `context`.

use super::attributes::Attribute;
use super::dom::{Dom, NodeId};
use super::number::leading_integer;
use super::style::{self, Property};
use super::table::{self, Columns};
use super::tag::ElementKind;
use super::whitespace;
use crate::marks::{Flag, Link, LinkRest, Marks};
use crate::node::{ImageAttrs, ListAttrs, MarksId, NodeKind};
use crate::tree::TreeBuilder;
use crate::value::AttrValue;
use crate::{color, safety};

/// The conversion of an element.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Open a node or, if it is a leaf, insert it.
    Node(NodeKind),
    /// Convert the children with these marks.
    Marks(Marks),
    /// Drop the element with its descendants.
    Ignore,
    /// Convert the children as if the element weren't there.
    Transparent,
}

/// Finds the rule for an element. `marks` are the active marks, including the ones of its inline
/// style.
pub(crate) fn rule(
    dom: &Dom,
    element: NodeId,
    tag: ElementKind,
    marks: Marks,
    builder: &mut TreeBuilder,
    columns: &mut Columns,
) -> Rule {
    let kind = match tag {
        ElementKind::Ignored => return Rule::Ignore,
        ElementKind::Link
        | ElementKind::Mark(_)
        | ElementKind::PlainBold
        | ElementKind::PlainItalic
        | ElementKind::Highlight => {
            return mark_rule(dom, element, tag, marks, builder);
        }
        ElementKind::Paragraph => NodeKind::Paragraph,
        ElementKind::Heading(level) => {
            NodeKind::Heading { level: heading_level(dom, element, level) }
        }
        ElementKind::Blockquote => NodeKind::Blockquote,
        ElementKind::BulletList if has_data_type(dom, element, "taskList") => NodeKind::TaskList,
        ElementKind::BulletList => NodeKind::BulletList,
        ElementKind::OrderedList => NodeKind::OrderedList(builder.list(list_attrs(dom, element))),
        ElementKind::ListItem if has_data_type(dom, element, "taskItem") => {
            let checked = dom.attribute(element, Attribute::DataChecked);
            NodeKind::TaskItem { checked: matches!(checked, Some("" | "true")) }
        }
        ElementKind::ListItem => NodeKind::ListItem,
        ElementKind::Preformatted => {
            NodeKind::CodeBlock(language(dom, element).map(|language| builder.language(language)))
        }
        ElementKind::HorizontalRule => NodeKind::HorizontalRule,
        // The insertion sets the marks.
        ElementKind::LineBreak => NodeKind::HardBreak { marks: MarksId(0) },
        ElementKind::Image => match image_attrs(dom, element) {
            Some(attrs) => NodeKind::Image(builder.image(attrs)),
            None => return Rule::Transparent,
        },
        ElementKind::Table => NodeKind::Table,
        ElementKind::TableRow => NodeKind::TableRow,
        ElementKind::TableCell => {
            NodeKind::TableCell(builder.cell(table::cell_attrs(dom, element, columns)))
        }
        ElementKind::TableHeader => {
            NodeKind::TableHeader(builder.cell(table::cell_attrs(dom, element, columns)))
        }
        ElementKind::Column
        | ElementKind::ColumnGroup
        | ElementKind::Division
        | ElementKind::OtherBlock
        | ElementKind::Transparent => {
            return Rule::Transparent;
        }
    };
    Rule::Node(kind)
}

fn mark_rule(
    dom: &Dom,
    element: NodeId,
    tag: ElementKind,
    marks: Marks,
    builder: &mut TreeBuilder,
) -> Rule {
    let styled_normal = |property| {
        let style = dom.attribute(element, Attribute::Style);
        style.and_then(|style| style::get(style, property)).as_deref() == Some("normal")
    };
    let marks = match tag {
        ElementKind::Mark(flag) => marks.with(flag),
        ElementKind::PlainBold if !styled_normal(Property::FontWeight) => marks.with(Flag::Bold),
        ElementKind::PlainItalic if !styled_normal(Property::FontStyle) => marks.with(Flag::Italic),
        ElementKind::Link => match link(dom, element) {
            Some(link) => Marks { link: Some(builder.link(link)), ..marks },
            None => return Rule::Transparent,
        },
        ElementKind::Highlight => {
            let color = builder.color(&highlight_color(dom, element));
            Marks { highlight: Some(color), ..marks }
        }
        _ => return Rule::Transparent,
    };
    Rule::Marks(marks)
}

/// Returns `marks` with the changes of an inline style.
pub(crate) fn styled_marks(style: &str, mut marks: Marks) -> Marks {
    match style::get(style, Property::FontWeight).as_deref() {
        Some("400") => marks = marks.without(Flag::Bold),
        Some("bold" | "bolder" | "500" | "600" | "700" | "800" | "900") => {
            marks = marks.with(Flag::Bold);
        }
        Some(weight) if is_odd_bold(weight) => marks = marks.with(Flag::Bold),
        _ => {}
    }
    match style::get(style, Property::FontStyle).as_deref() {
        Some("normal") => marks = marks.without(Flag::Italic),
        Some("italic") => marks = marks.with(Flag::Italic),
        _ => {}
    }
    if let Some(decoration) = style::get(style, Property::TextDecoration) {
        if decoration.contains("line-through") {
            marks = marks.with(Flag::Strike);
        }
        if decoration.contains("underline") {
            marks = marks.with(Flag::Underline);
        }
    }
    match style::get(style, Property::VerticalAlign).as_deref() {
        Some("sub") => marks.with(Flag::Subscript),
        Some("super") => marks.with(Flag::Superscript),
        _ => marks,
    }
}

/// Returns true for an integer from 500 to 999 (1000 doesn't count as bold).
fn is_odd_bold(weight: &str) -> bool {
    weight.len() == 3 && weight.parse::<u16>().is_ok_and(|weight| weight >= 500)
}

/// Returns true if the element preserves white space.
pub(crate) fn keeps_white_space(dom: &Dom, element: NodeId, tag: ElementKind) -> bool {
    let style = dom.attribute(element, Attribute::Style);
    tag == ElementKind::Preformatted
        || style
            .and_then(|style| style::get(style, Property::WhiteSpace))
            .is_some_and(|white_space| white_space.contains("pre"))
}

/// Returns the element whose children are the content of the node.
pub(crate) fn content_element(dom: &Dom, element: NodeId, kind: NodeKind) -> NodeId {
    if !matches!(kind, NodeKind::TaskItem { .. }) {
        return element;
    }
    // The checkbox is outside of this element.
    dom.descendants(element)
        .find(|&inner| dom.tag(inner) == Some(ElementKind::Division))
        .unwrap_or(element)
}

fn has_data_type(dom: &Dom, element: NodeId, expected: &str) -> bool {
    dom.attribute(element, Attribute::DataType) == Some(expected)
}

fn value(dom: &Dom, element: NodeId, attribute: Attribute) -> Option<AttrValue> {
    dom.attribute(element, attribute).map(AttrValue::from_attribute)
}

/// Returns the level in a valid `level` attribute, or else the level of the element's name.
fn heading_level(dom: &Dom, element: NodeId, level: u8) -> u8 {
    let given = dom.attribute(element, Attribute::Level).and_then(|level| level.parse().ok());
    given.filter(|level| (1..=6).contains(level)).unwrap_or(level)
}

fn list_attrs(dom: &Dom, element: NodeId) -> ListAttrs {
    let start = dom.attribute(element, Attribute::Start);
    ListAttrs {
        start: start.and_then(leading_integer).unwrap_or(1),
        list_type: list_type(dom, element).map(Box::from),
    }
}

/// Returns the numbering from the `type` attribute, or else from a style of the list or its first
/// item.
fn list_type(dom: &Dom, element: NodeId) -> Option<&str> {
    let given = dom.attribute(element, Attribute::Type).filter(|given| !given.is_empty());
    let styled = |element| dom.attribute(element, Attribute::Style).and_then(styled_list_type);
    given.or_else(|| styled(element)).or_else(|| {
        let first =
            dom.descendants(element).find(|&item| dom.tag(item) == Some(ElementKind::ListItem))?;
        styled(first)
    })
}

fn styled_list_type(style: &str) -> Option<&'static str> {
    let style = style.to_ascii_lowercase();
    let mut declarations = style.match_indices("list-style-type");
    let value = declarations.find_map(|(at, name)| {
        let behind = style[at + name.len()..].trim_start_matches(whitespace::is_script_space);
        let value = behind.strip_prefix(':')?;
        value.split(';').next().filter(|value| !value.is_empty())
    })?;
    list_type_of(value.trim_matches(whitespace::is_script_space))
}

/// Returns the `type` that is equivalent to a value of `list-style-type`.
pub(crate) fn list_type_of(value: &str) -> Option<&'static str> {
    match value {
        "upper-roman" => Some("I"),
        "lower-roman" => Some("i"),
        "upper-alpha" | "upper-latin" => Some("A"),
        "lower-alpha" | "lower-latin" => Some("a"),
        _ => None,
    }
}

/// Returns the language in the class of a code block's first element.
pub(crate) fn language(dom: &Dom, element: NodeId) -> Option<&str> {
    let code = dom.children(element).find(|&child| dom.is_element(child))?;
    let class = dom.attribute(code, Attribute::Class)?;
    let mut classes = class.split(|c: char| u8::try_from(c).is_ok_and(whitespace::is_space));
    let language = classes.find_map(|class| class.strip_prefix("language-"))?;
    Some(language).filter(|language| safety::is_safe_language(language))
}

fn image_attrs(dom: &Dom, element: NodeId) -> Option<ImageAttrs> {
    dom.attribute(element, Attribute::Src).filter(|src| safety::is_safe_image_src(src))?;
    let length = |attribute| value(dom, element, attribute).filter(safety::is_safe_length);
    Some(ImageAttrs {
        src: value(dom, element, Attribute::Src),
        alt: value(dom, element, Attribute::Alt),
        title: value(dom, element, Attribute::Title),
        width: length(Attribute::Width),
        height: length(Attribute::Height),
    })
}

fn link(dom: &Dom, element: NodeId) -> Option<Link> {
    let href = dom.attribute(element, Attribute::Href).filter(|href| safety::is_safe_href(href))?;
    let rest = LinkRest {
        target: value(dom, element, Attribute::Target),
        rel: value(dom, element, Attribute::Rel),
        class: value(dom, element, Attribute::Class),
        title: value(dom, element, Attribute::Title),
    };
    Some(Link::new(href.into(), rest))
}

/// Returns the colour, or an empty string for none.
fn highlight_color(dom: &Dom, element: NodeId) -> String {
    let given = dom.attribute(element, Attribute::DataColor).filter(|color| !color.is_empty());
    let style = dom.attribute(element, Attribute::Style);
    let styled = || style.and_then(|style| style::raw(style, "background-color"));
    let color = match given.or_else(styled).filter(|color| !color.is_empty()) {
        Some(color) => color.to_owned(),
        None => {
            style.and_then(|style| style::get(style, Property::BackgroundColor)).unwrap_or_default()
        }
    };
    if color::is_color(&color) { color } else { String::new() }
}
