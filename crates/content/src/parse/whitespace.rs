//! White space that HTML collapses: space, tab, line feed, form feed, carriage return.
//!
//! JavaScript counts more characters, and so does TipTap, the reference: see `is_script_space`.

use std::borrow::Cow;

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

pub(crate) fn starts_with_space(text: &str) -> bool {
    text.bytes().next().is_some_and(is_space)
}

pub(crate) fn ends_with_space(text: &str) -> bool {
    text.bytes().next_back().is_some_and(is_space)
}

/// Returns the length of the text without the white space at its end.
pub(crate) fn trimmed_len(text: &str) -> usize {
    text.bytes().rposition(|byte| !is_space(byte)).map_or(0, |last| last + 1)
}

/// Returns true for the white space of JavaScript's `\s` and `trim`: Unicode's, including the
/// no-break space, and U+FEFF, but not U+0085.
pub(crate) fn is_script_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Returns true for a text in which JavaScript's `\S` matches nothing. This includes more texts
/// than `is_blank`.
pub(crate) fn is_invisible(text: &str) -> bool {
    text.chars().all(is_script_space)
}

/// Replaces each run of white space with one space.
pub(crate) fn collapse(text: &str) -> Cow<'_, str> {
    if is_collapsed(text) {
        return Cow::Borrowed(text);
    }
    let mut collapsed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(space) = rest.bytes().position(is_space) {
        collapsed.push_str(&rest[..space]);
        collapsed.push(' ');
        rest = &rest[space..];
        rest = &rest[rest.bytes().position(|byte| !is_space(byte)).unwrap_or(rest.len())..];
    }
    collapsed.push_str(rest);
    Cow::Owned(collapsed)
}

fn is_collapsed(text: &str) -> bool {
    let mut after_space = false;
    text.bytes().all(|byte| {
        let space = is_space(byte);
        let fine = !space || (byte == b' ' && !after_space);
        after_space = space;
        fine
    })
}

/// Normalises line ends to line feeds.
pub(crate) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}
