//! Lists of values in statements and columns.

use std::fmt::{Display, Write};

use crate::engine::value::Value;

/// Returns the stored form of a list of ids.
pub(crate) fn comma_separated<T: Display>(items: &[T]) -> String {
    let mut text = String::with_capacity(items.len() * 32);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write!(text, "{item}").expect("a String takes everything");
    }
    text
}

/// The limit of items in a statement's list, below the parameter limits of both engines.
const IN_LIST_MAX: usize = 30_000;

/// The list length from which it is cheaper to read all rows of a workspace.
const IN_LIST_WORTH_MAX: usize = 4_096;

/// Returns the condition ` AND column IN (…)` and adds its items to `params`. A single item has the
/// condition ` AND column = …`.
///
/// The list is padded with its last item to a power of two, so that few statements are prepared.
/// More than [`IN_LIST_MAX`] items match nothing: a filter must not let other rows through.
pub(crate) fn in_list<'v, T: Into<Value<'v>> + Clone>(
    column: &str,
    items: impl ExactSizeIterator<Item = T> + Clone,
    params: &mut Vec<Value<'v>>,
) -> String {
    let count = items.len();
    let last = items.clone().last().filter(|_| count <= IN_LIST_MAX);
    let Some(last) = last else { return " AND 1 = 0".to_owned() };
    let full = count.next_power_of_two().min(IN_LIST_MAX);
    let padding = std::iter::repeat_n(last, full - count);
    let first = params.len() + 1;
    params.extend(items.chain(padding).map(Into::into));
    if full == 1 {
        return format!(" AND {column} = ?{first}");
    }
    let mut condition = String::with_capacity(column.len() + 8 * full + 16);
    write!(condition, " AND {column} IN (?{first}").expect("a String takes everything");
    for number in first + 1..=params.len() {
        write!(condition, ", ?{number}").expect("a String takes everything");
    }
    condition.push(')');
    condition
}

/// Like [`in_list`], but returns no condition if there are so many items that the workspace's other
/// rows hardly cost more. The caller then filters the rows.
pub(crate) fn in_list_or_all<'v, T: Into<Value<'v>> + Clone>(
    column: &str,
    items: impl ExactSizeIterator<Item = T> + Clone,
    params: &mut Vec<Value<'v>>,
) -> String {
    if items.len() > IN_LIST_WORTH_MAX { String::new() } else { in_list(column, items, params) }
}

/// Returns the INSERT of `count` rows, each with `width` parameters. `sql` is the INSERT of one
/// row, and ends with its values.
pub(crate) fn insert_of_rows(sql: &str, width: usize, count: usize) -> String {
    let (into, row) = sql.rsplit_once("VALUES").expect("an INSERT of values");
    let rows: Vec<_> = (0..count).map(|number| renumbered(row, number * width)).collect();
    format!("{into}VALUES{}", rows.join(","))
}

/// Adds `offset` to the numbers of a statement's parameters.
fn renumbered(sql: &str, offset: usize) -> String {
    let mut parts = sql.split('?');
    let mut renumbered = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = part.split_at(digits);
        let number = number.parse::<usize>().expect("parameters are numbered") + offset;
        write!(renumbered, "?{number}{rest}").expect("a String takes everything");
    }
    renumbered
}
