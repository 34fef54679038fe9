//! The attributes of table cells, within the limits of the HTML standard.

use std::collections::HashMap;

use super::attributes::Attribute;
use super::dom::{Dom, NodeId};
use super::number::leading_integer;
use super::style::{self, Property};
use super::tag::ElementKind;
use super::whitespace;
use crate::limits::{COLSPAN_MAX, ROWSPAN_MAX};
use crate::node::{Align, CellAttrs};
use crate::value::AttrValue;

/// The limit on cached tables, and on cached rows. Beyond it, the caches are cleared.
const CACHED_MAX: usize = 1_024;

/// The width in a `col` element: none, or a width that may be unreadable.
type ColumnWidth = Option<Option<i64>>;

/// The cached widths of column groups, and the cached positions of the last cells of rows.
/// Searching them anew for each cell would take quadratic time.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    of_table: HashMap<NodeId, Vec<ColumnWidth>>,
    /// By row, as a cell may contain a table with its own rows.
    last_cells: HashMap<NodeId, (NodeId, usize)>,
}

pub(crate) fn cell_attrs(dom: &Dom, cell: NodeId, columns: &mut Columns) -> CellAttrs {
    let colspan = colspan(dom, cell);
    let widths = match dom.attribute(cell, Attribute::Colwidth).filter(|given| !given.is_empty()) {
        // Widths beyond the spanned columns are dropped.
        Some(given) => Some(given.split(',').take(colspan.into()).map(leading_integer).collect()),
        None => columns.width_of(dom, cell).map(|width| [width].into()),
    };
    CellAttrs { colspan, rowspan: rowspan(dom, cell), colwidth: widths, align: align(dom, cell) }
}

/// Returns the number of columns that a cell spans.
pub(crate) fn colspan(dom: &Dom, cell: NodeId) -> u16 {
    span(dom, cell, Attribute::Colspan, 1, COLSPAN_MAX)
}

fn rowspan(dom: &Dom, cell: NodeId) -> u16 {
    span(dom, cell, Attribute::Rowspan, 0, ROWSPAN_MAX)
}

/// Returns true if a cell's span is as large as its attribute specifies.
pub(crate) fn reads_span(dom: &Dom, cell: NodeId, attribute: Attribute) -> bool {
    let read = if attribute == Attribute::Colspan { colspan } else { rowspan };
    let given = dom.attribute(cell, attribute).map(AttrValue::from_attribute);
    given == Some(AttrValue::Number(read(dom, cell).into()))
}

/// Returns a span within its limits, or 1 if it isn't an integer or is too small.
fn span(dom: &Dom, cell: NodeId, attribute: Attribute, min: u16, max: u16) -> u16 {
    let Some(AttrValue::Number(given)) =
        dom.attribute(cell, attribute).map(AttrValue::from_attribute)
    else {
        return 1;
    };
    if given.fract() != 0.0 || given < f64::from(min) {
        return 1;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
    let span = given.min(f64::from(max)) as u16;
    span
}

fn align(dom: &Dom, cell: NodeId) -> Option<Align> {
    let style = dom.attribute(cell, Attribute::Style);
    let styled = style.and_then(|style| style::get(style, Property::TextAlign));
    let align = styled.or_else(|| {
        let given = dom.attribute(cell, Attribute::Align)?;
        Some(given.to_owned())
    })?;
    align_of(&align)
}

/// Returns the alignment that an attribute's value specifies.
pub(crate) fn align_of(value: &str) -> Option<Align> {
    Align::from_name(&value.trim_matches(whitespace::is_script_space).to_ascii_lowercase())
}

/// Returns true if a cell contains no elements and only white space.
pub(crate) fn is_empty_cell(dom: &Dom, cell: NodeId) -> bool {
    dom.children(cell)
        .all(|child| !dom.is_element(child) && dom.text(child).is_none_or(whitespace::is_blank))
}

impl Columns {
    /// Returns the width in the table's column group for the cell's column.
    fn width_of(&mut self, dom: &Dom, cell: NodeId) -> ColumnWidth {
        let table = closest_table(dom, cell)?;
        if self.of_table.len() >= CACHED_MAX && !self.of_table.contains_key(&table) {
            self.of_table.clear();
        }
        if self.of_table.entry(table).or_insert_with(|| read_columns(dom, table)).is_empty() {
            return None;
        }
        let number = self.number_of(dom, cell);
        self.of_table[&table].get(number).copied().flatten()
    }

    /// Returns the number of elements before the cell in its row.
    fn number_of(&mut self, dom: &Dom, cell: NodeId) -> usize {
        let row = dom.parent(cell);
        let last_cell = row.and_then(|row| self.last_cells.get(&row).copied());
        let mut number = 0;
        let mut before = dom.previous_sibling(cell);
        while let Some(node) = before {
            if let Some((counted, place)) = last_cell
                && counted == node
            {
                number += place + 1;
                break;
            }
            number += usize::from(dom.is_element(node));
            before = dom.previous_sibling(node);
        }
        if let Some(row) = row {
            if self.last_cells.len() >= CACHED_MAX {
                self.last_cells.clear();
            }
            self.last_cells.insert(row, (cell, number));
        }
        number
    }
}

fn closest_table(dom: &Dom, cell: NodeId) -> Option<NodeId> {
    let mut ancestors = std::iter::successors(dom.parent(cell), |&node| dom.parent(node));
    ancestors.find(|&ancestor| dom.tag(ancestor) == Some(ElementKind::Table))
}

fn read_columns(dom: &Dom, table: NodeId) -> Vec<ColumnWidth> {
    let columns = dom.descendants(table).filter(|&column| {
        let group = dom.parent(column).and_then(|parent| dom.tag(parent));
        dom.tag(column) == Some(ElementKind::Column) && group == Some(ElementKind::ColumnGroup)
    });
    columns
        .map(|column| {
            let width = dom.attribute(column, Attribute::Width).filter(|width| !width.is_empty());
            width.map(leading_integer)
        })
        .collect()
}
