//! Tables of GitHub-flavoured Markdown: a header row, then rows of as many cells, each with a
//! single line.

use super::super::space::{self, SpaceMarkup};
use super::inline::{self, InlineContainer};
use crate::node::{Align, CellAttrs, NodeKind};
use crate::render::html;
use crate::tree::Tree;

/// Renders a table's lines, or returns `None` if Markdown can't represent it.
pub(crate) fn table(tree: &Tree, table: usize) -> Option<Vec<String>> {
    let mut rows = tree.children(table);
    let (header, aligns) = row(tree, rows.next()?, true)?;
    if aligns.is_empty() {
        return None;
    }
    let rule: Vec<String> = aligns
        .iter()
        .map(|align| match align {
            None => "---".to_owned(),
            Some(Align::Left) => ":--".to_owned(),
            Some(Align::Right) => "--:".to_owned(),
            Some(Align::Center) => ":-:".to_owned(),
        })
        .collect();
    let mut lines = vec![line(&header), line(&rule)];
    for body_row in rows {
        let (cells, body_aligns) = row(tree, body_row, false)?;
        // The header sets the alignment of whole columns.
        if body_aligns != aligns {
            return None;
        }
        lines.push(line(&cells));
    }
    Some(lines)
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn row(tree: &Tree, row: usize, is_header: bool) -> Option<(Vec<String>, Vec<Option<Align>>)> {
    let mut cells = Vec::new();
    let mut aligns = Vec::new();
    for cell in tree.children(row) {
        let attrs = match (tree.kind(cell), is_header) {
            (NodeKind::TableHeader(attrs), true) | (NodeKind::TableCell(attrs), false) => {
                tree.cell(attrs)
            }
            _ => return None,
        };
        if *attrs != (CellAttrs { align: attrs.align, ..CellAttrs::default() }) {
            return None;
        }
        cells.push(content(tree, cell)?);
        aligns.push(attrs.align);
    }
    Some((cells, aligns))
}

/// Renders the content of a cell if it is one paragraph or image.
fn content(tree: &Tree, cell: usize) -> Option<String> {
    let block = cell + 1;
    if tree.end(block) != tree.end(cell) {
        return None;
    }
    match tree.kind(block) {
        NodeKind::Paragraph if space::of(tree, block) == SpaceMarkup::Plain => {
            Some(inline::text(tree, block, InlineContainer::Cell))
        }
        NodeKind::Image(image) => {
            let mut written = String::new();
            html::image(&mut written, tree.image(image));
            let one_line = !written.contains(['\n', '\r', '|']);
            one_line.then_some(written)
        }
        _ => None,
    }
}
