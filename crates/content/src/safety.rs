//! What must never come out, whatever went in: the rules for addresses, sizes and names.
//!
//! Both the HTML parser and the reader of stored trees go through here. Colours are `color`'s.

use crate::value::Value;

const LINK_SCHEMES: [&str; 7] = ["http", "https", "ftp", "ftps", "mailto", "tel", "sms"];
const IMAGE_SCHEMES: [&str; 2] = ["http", "https"];

/// The longest name of a code block's language, in characters.
const LANGUAGE_CHARS_MAX: usize = 50;

/// Whether a link may lead there: a relative reference or one of the known schemes.
pub(crate) fn is_safe_href(href: &str) -> bool {
    !href.is_empty() && has_scheme_of(href, &LINK_SCHEMES)
}

/// Whether an image may be loaded from there: a relative reference, `http` or `https`.
pub(crate) fn is_safe_image_src(src: &str) -> bool {
    has_scheme_of(src, &IMAGE_SCHEMES)
}

/// Whether the reference is relative or has one of the schemes.
///
/// Browsers drop control characters and white space before the scheme, and tabs and newlines within
/// it (URL Standard, section 4.4). Some viewers drop more, so all invisible space goes here before
/// the scheme is looked for: `java\nscript:` and `\u{1}javascript:` are both `javascript:`.
fn has_scheme_of(reference: &str, schemes: &[&str]) -> bool {
    let mut scheme = String::new();
    for c in reference.chars().filter(|c| !is_ignorable(*c)) {
        match c {
            ':' => return scheme.is_empty() || schemes.contains(&scheme.as_str()),
            'a'..='z' | 'A'..='Z' => scheme.push(c.to_ascii_lowercase()),
            '0'..='9' | '+' | '-' | '.' if !scheme.is_empty() => scheme.push(c),
            _ => return true,
        }
    }
    true
}

fn is_ignorable(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fffd}')
}

/// Whether a code block's language can stand in a class attribute and in a fence.
pub(crate) fn is_safe_language(language: &str) -> bool {
    let allowed = |c: char| {
        !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\'' | '`' | '<' | '>')
    };
    !language.is_empty()
        && language.chars().count() <= LANGUAGE_CHARS_MAX
        && language.chars().all(allowed)
}

/// Whether the value can be a width or height: a number or a percentage.
pub(crate) fn is_safe_length(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Bool(_) => false,
        Value::Text(text) => text.strip_suffix('%').is_some_and(|number| {
            matches!(Value::from_attribute(number), Value::Number(number) if number >= 0.0)
        }),
    }
}
