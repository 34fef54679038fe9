//! The safety rules for URLs, sizes and names in any output.
//!
//! Both the HTML parser and the parser of stored trees apply them. `color` has the rules for
//! colours.

use crate::value::AttrValue;

const LINK_SCHEMES: [&str; 7] = ["http", "https", "ftp", "ftps", "mailto", "tel", "sms"];
const IMAGE_SCHEMES: [&str; 2] = ["http", "https"];

/// The limit on characters of a code block's language.
const LANGUAGE_CHARS_MAX: usize = 50;

/// Returns true if a link may have this URL: a relative reference, or one of the allowed schemes.
pub(crate) fn is_safe_href(href: &str) -> bool {
    !href.is_empty() && has_scheme_of(href, &LINK_SCHEMES)
}

/// Returns true if an image may have this URL: a relative reference, `http` or `https`.
pub(crate) fn is_safe_image_src(src: &str) -> bool {
    has_scheme_of(src, &IMAGE_SCHEMES)
}

/// Returns true if the reference is relative or has one of the schemes.
///
/// Browsers drop control characters and white space before the scheme, and tabs and newlines within
/// it (URL Standard, section 4.4). Some viewers drop more, so all invisible characters are removed
/// here before the scheme is read: `java\nscript:` and `\u{1}javascript:` are both `javascript:`.
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

/// Returns true if a code block's language is valid in a class attribute and in a code fence.
pub(crate) fn is_safe_language(language: &str) -> bool {
    let allowed = |c: char| {
        !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\'' | '`' | '<' | '>')
    };
    !language.is_empty()
        && language.chars().count() <= LANGUAGE_CHARS_MAX
        && language.chars().all(allowed)
}

/// Returns true if the value is a valid width or height: a number or a percentage.
pub(crate) fn is_safe_length(value: &AttrValue) -> bool {
    match value {
        AttrValue::Number(_) => true,
        AttrValue::Bool(_) => false,
        AttrValue::Text(text) => text.strip_suffix('%').is_some_and(|number| {
            matches!(AttrValue::from_attribute(number), AttrValue::Number(number) if number >= 0.0)
        }),
    }
}
