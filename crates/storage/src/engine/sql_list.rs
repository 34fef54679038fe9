//! Lists of values in statements and columns.

use std::fmt::Display;

use crate::engine::value::Value;

/// The stored form of a list of ids.
pub(crate) fn comma_separated<T: Display>(items: &[T]) -> String {
    let mut text = String::with_capacity(items.len() * 32);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&item.to_string());
    }
    text
}

/// How many items a list in a statement has at the most: below what either engine takes as
/// parameters.
const IN_LIST_MAX: usize = 30_000;

/// From this many items on, all rows of a workspace cost less than a list of those wanted.
const IN_LIST_WORTH_MAX: usize = 4_096;

/// The condition ` AND column IN (…)`, its items added to `params`.
///
/// The list is filled up with the last item to a power of two, so that few statements are prepared.
/// Whoever gives more than [`IN_LIST_MAX`] items finds nothing: a filter never lets through what it
/// was not asked for.
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
    let numbers: Vec<_> = (first..=params.len()).map(|number| format!("?{number}")).collect();
    format!(" AND {column} IN ({})", numbers.join(", "))
}

/// Like [`in_list`], but without a condition where there are so many items that the workspace's
/// other rows hardly cost more; the caller picks those that it wants.
pub(crate) fn in_list_or_all<'v, T: Into<Value<'v>> + Clone>(
    column: &str,
    items: impl ExactSizeIterator<Item = T> + Clone,
    params: &mut Vec<Value<'v>>,
) -> String {
    if items.len() > IN_LIST_WORTH_MAX { String::new() } else { in_list(column, items, params) }
}
