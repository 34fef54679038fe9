//! Detects elements with excessive attributes, before the HTML parser processes them.
//!
//! html5ever compares each new attribute of a tag with all earlier ones, and reports nothing of a
//! tag until its end. So a single tag with 100,000 attributes would occupy it for minutes, and it
//! couldn't be stopped.
//!
//! Only an HTML parser can determine the starts of tags, as there are comments, scripts and quotes.
//! So this scan follows every `<` before a letter, all of them in parallel. The count may be too
//! high where a script contains markup, but never too low.

/// The possible tokenizer states within a tag. Each has the largest number of attributes with which
/// the tokenizer may be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TagStates {
    /// Between attributes, or in the tag's name.
    between: i32,
    name: i32,
    /// After a name and white space, where `=` may still follow.
    after_name: i32,
    before_value: i32,
    bare_value: i32,
    double_quoted: i32,
    single_quoted: i32,
}

/// The number of an impossible state. It stays negative after any additions.
const IMPOSSIBLE: i32 = i32::MIN / 2;

const OUTSIDE_TAGS: TagStates = TagStates {
    between: IMPOSSIBLE,
    name: IMPOSSIBLE,
    after_name: IMPOSSIBLE,
    before_value: IMPOSSIBLE,
    bare_value: IMPOSSIBLE,
    double_quoted: IMPOSSIBLE,
    single_quoted: IMPOSSIBLE,
};

/// Returns true if an element may have more than `max` attributes.
pub(crate) fn has_attribute_flood(html: &str, max: usize) -> bool {
    let bytes = html.as_bytes();
    let Ok(max) = i32::try_from(max) else { return false };
    let mut states = OUTSIDE_TAGS;
    let mut at = 0;
    while at < bytes.len() {
        if states.is_outside_tags() {
            match html[at..].find('<') {
                Some(open) => at += open,
                None => return false,
            }
        }
        states = states.after(bytes[at]);
        if bytes[at] == b'<' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
            // The tag's name counts as an attribute, which is harmless.
            states.between = states.between.max(0);
        }
        if states.name > max {
            return true;
        }
        at += 1;
        if is_plain(bytes[at - 1]) {
            // Further plain bytes don't change the states.
            at += bytes[at..].iter().take_while(|byte| is_plain(**byte)).count();
        }
        while !html.is_char_boundary(at) {
            at += 1;
        }
    }
    false
}

/// Returns true if the byte is only ever part of a name or value.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'_' | b';' | b'#' | b'&')
}

impl TagStates {
    fn is_outside_tags(&self) -> bool {
        let outside_values = self.between.max(self.name).max(self.after_name);
        let in_values = self.bare_value.max(self.double_quoted).max(self.single_quoted);
        outside_values.max(in_values).max(self.before_value) < 0
    }

    /// Returns the states after the next byte.
    fn after(self, byte: u8) -> Self {
        let quoted = Self {
            double_quoted: if byte == b'"' { IMPOSSIBLE } else { self.double_quoted },
            single_quoted: if byte == b'\'' { IMPOSSIBLE } else { self.single_quoted },
            ..OUTSIDE_TAGS
        };
        match byte {
            b'>' => quoted,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => Self {
                between: self.between.max(self.bare_value),
                after_name: self.name.max(self.after_name),
                before_value: self.before_value,
                ..quoted
            },
            b'/' => Self {
                between: self.between.max(self.name).max(self.after_name),
                bare_value: self.bare_value.max(self.before_value),
                ..quoted
            },
            b'=' => Self {
                before_value: self.name.max(self.after_name),
                name: self.between + 1,
                bare_value: self.bare_value.max(self.before_value),
                ..quoted
            },
            b'"' => Self {
                between: self.double_quoted,
                double_quoted: self.before_value,
                ..self.after_quote_elsewhere(quoted)
            },
            b'\'' => Self {
                between: self.single_quoted,
                single_quoted: self.before_value,
                ..self.after_quote_elsewhere(quoted)
            },
            _ => self.after_plain(quoted),
        }
    }

    /// Returns the states after a quote that neither begins nor ends a value. It is part of a name
    /// or unquoted value.
    fn after_quote_elsewhere(self, quoted: Self) -> Self {
        Self { before_value: IMPOSSIBLE, ..self }.after_plain(quoted)
    }

    fn after_plain(self, quoted: Self) -> Self {
        Self {
            name: self.name.max(self.between.max(self.after_name) + 1),
            bare_value: self.bare_value.max(self.before_value),
            ..quoted
        }
    }
}
