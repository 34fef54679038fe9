//! The conversion of GitHub-flavoured Markdown to HTML.
//!
//! The output differs in two ways from usual HTML of Markdown, to match the tree. Code ends without
//! the line end that a fence requires, and an image alone has no paragraph.
//!
//! HTML in the Markdown is passed through. The output is not safe to display. It is input for this
//! crate's HTML parser, which makes it safe.

use comrak::nodes::{ListType, Node, NodeList, NodeValue};
use comrak::{Arena, Options, create_formatter, parse_document};

/// Converts GitHub-flavoured Markdown to HTML: CommonMark with tables, strikethrough, task lists,
/// footnotes and bare addresses as links.
///
/// Raw HTML is passed through. Footnotes become superscript numbers and a list at the end, as the
/// tree has no anchors for links between them.
pub fn markdown_to_html(markdown: &str) -> String {
    let options = options();
    let arena = Arena::new();
    let document = parse_document(&arena, markdown, &options);
    for node in document.descendants() {
        if let NodeValue::CodeBlock(code) = &mut node.data_mut().value
            && code.literal.ends_with('\n')
        {
            code.literal.pop();
        }
    }
    let mut html = String::with_capacity(markdown.len() + markdown.len() / 4);
    Formatter::format_document(document, &options, &mut html)
        .expect("writing to a string can't fail");
    html
}

fn options() -> Options<'static> {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.extension.footnotes = true;
    options.render.r#unsafe = true;
    options
}

// Task lists get the attributes that TipTap requires, instead of checkboxes in the text.
create_formatter!(Formatter, {
    NodeValue::List(ref list) => |context, node, entering| {
        use std::fmt::Write as _;
        if !is_task_list(node, list) {
            return comrak::html::format_node_default(context, node, entering);
        }
        context.write_str(if entering { "<ul data-type=\"taskList\">\n" } else { "</ul>\n" })?;
    },
    NodeValue::Paragraph => |context, node, entering| {
        use std::fmt::Write as _;
        if is_of_footnote(node) {
            // The default would add a link back to the reference.
            context.write_str(if entering { "<p>" } else { "</p>\n" })?;
        } else if !is_image_alone(node) {
            return comrak::html::format_node_default(context, node, entering);
        }
    },
    NodeValue::FootnoteReference(ref reference) => |context, node, entering| {
        use std::fmt::Write as _;
        let _ = node;
        if entering {
            write!(context, "<sup>{}</sup>", reference.ix)?;
        }
    },
    NodeValue::FootnoteDefinition(_) => |context, node, entering| {
        use std::fmt::Write as _;
        // comrak places footnotes at the end of the document, in the order of their numbers.
        if entering {
            let is_first = node.previous_sibling().is_none_or(|before| !is_footnote(before));
            context.write_str(if is_first { "<ol>\n<li>\n" } else { "<li>\n" })?;
        } else {
            let is_last = node.next_sibling().is_none_or(|next| !is_footnote(next));
            context.write_str(if is_last { "</li>\n</ol>\n" } else { "</li>\n" })?;
        }
    },
    NodeValue::Item(_) => |context, node, entering| {
        use std::fmt::Write as _;
        let rendered = comrak::html::format_node_default(context, node, entering)?;
        if entering && !begins_with_text(node) {
            context.write_str("<p></p>")?;
        }
        return Ok(rendered);
    },
    NodeValue::TaskItem(ref item) => |context, node, entering| {
        use std::fmt::Write as _;
        let checked = item.symbol.is_some();
        let in_task_list = node.parent().is_some_and(|list| match list.data().value {
            NodeValue::List(ref attributes) => is_task_list(list, attributes),
            _ => false,
        });
        match (entering, in_task_list) {
            (true, true) => {
                writeln!(context, "<li data-type=\"taskItem\" data-checked=\"{checked}\"><div>")?;
            }
            // In an ordinary list, the box becomes text.
            (true, false) => context.write_str(if checked { "<li>[x] " } else { "<li>[ ] " })?,
            (false, true) => context.write_str("</div></li>\n")?,
            (false, false) => context.write_str("</li>\n")?,
        }
        if entering && !begins_with_text(node) {
            context.write_str("<p></p>")?;
        }
    },
});

/// Returns true if a list item is empty, or begins with a paragraph as the schema requires. HTML
/// may have one. The others get an empty paragraph, as the parser would split the list.
fn begins_with_text(item: Node<'_>) -> bool {
    item.first_child().is_none_or(|first| match first.data().value {
        NodeValue::Paragraph => !is_image_alone(first),
        NodeValue::HtmlBlock(_) => true,
        _ => false,
    })
}

fn is_footnote(node: Node<'_>) -> bool {
    matches!(node.data().value, NodeValue::FootnoteDefinition(_))
}

fn is_of_footnote(node: Node<'_>) -> bool {
    node.parent().is_some_and(is_footnote)
}

/// Returns true if a paragraph contains only images, possibly in links.
fn is_image_alone(paragraph: Node<'_>) -> bool {
    let mut found = false;
    paragraph.children().all(|child| match child.data().value {
        NodeValue::Image(_) => {
            found = true;
            true
        }
        NodeValue::Link(_) => {
            let mut inside =
                child.children().map(|inner| matches!(inner.data().value, NodeValue::Image(_)));
            let only_images = inside.all(|is_image| is_image);
            found |= only_images && child.first_child().is_some();
            only_images
        }
        NodeValue::SoftBreak => true,
        _ => false,
    }) && found
}

/// Returns true if the list is a bullet list of tasks only, as the schema has no other list of
/// tasks.
fn is_task_list(node: Node<'_>, list: &NodeList) -> bool {
    let is_task = |item: Node<'_>| matches!(item.data().value, NodeValue::TaskItem(_));
    list.is_task_list && list.list_type == ListType::Bullet && node.children().all(is_task)
}
