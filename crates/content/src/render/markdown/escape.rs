//! Escaping of characters that Markdown would otherwise interpret.

/// The surroundings of a text that affect escaping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// True if the text begins a line of a paragraph.
    pub(crate) starts_line: bool,
    /// The character after it on its line, if any.
    pub(crate) next: Option<char>,
    pub(crate) previous: Option<char>,
    pub(crate) in_table: bool,
}

/// Escapes a text.
pub(crate) fn text(text: &str, around: Surroundings) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    let done = match line_start(text, around.next) {
        Some(done) if around.starts_line => {
            let (digits, special) = text[..done].split_at(done - 1);
            escaped.push_str(digits);
            escaped.push('\\');
            escaped.push_str(special);
            done
        }
        _ => 0,
    };
    let mut previous = if done == 0 { around.previous } else { text[..done].chars().next_back() };
    let mut rest = text[done..].chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next().or(around.next);
        match c {
            '\\' | '`' | '*' | '[' | ']' | '~' => escaped.push('\\'),
            '_' if !(is_word(previous) && is_word(next)) => escaped.push('\\'),
            '<' if next.is_none_or(|next| next.is_ascii_alphabetic() || "/!?".contains(next)) => {
                escaped.push('\\');
            }
            '&' if next.is_none_or(|next| next.is_ascii_alphanumeric() || next == '#') => {
                escaped.push('\\');
            }
            '!' if next.is_none_or(|next| next == '[') => escaped.push('\\'),
            '|' if around.in_table => escaped.push('\\'),
            // Bare addresses become links.
            '@' if is_word(next) && is_local_part(previous) => escaped.push('\\'),
            ':' if next == Some('/') || ends_with_scheme(&escaped) => escaped.push('\\'),
            '.' if ends_with_www(&escaped) => escaped.push('\\'),
            '\u{b}' if around.in_table => {
                // Table parsers trim it at the edge of a cell, like a space.
                escaped.push_str("&#11;");
                previous = Some(c);
                continue;
            }
            '\u{feff}' => {
                // At the beginning of a file it would be a byte order mark.
                escaped.push_str("&#65279;");
                previous = Some(c);
                continue;
            }
            _ => {}
        }
        escaped.push(c);
        previous = Some(c);
    }
    escaped
}

/// Returns the length of a prefix that would start a block other than a paragraph. Its last byte
/// must be escaped.
fn line_start(text: &str, next: Option<char>) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut behind = text[digits..].chars();
    let first = behind.next()?;
    let second = behind.next().or(next);
    let ends_word = second.is_none_or(char::is_whitespace);
    let special = match first {
        '.' | ')' => (1..=9).contains(&digits) && ends_word,
        '#' | '>' | '=' | '|' => digits == 0,
        '+' => digits == 0 && ends_word,
        '-' | ':' => digits == 0 && (ends_word || matches!(second, Some('-' | '|' | ':'))),
        _ => false,
    };
    special.then_some(digits + 1)
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}

/// Returns true for the characters before the `@` of a bare address.
fn is_local_part(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || "._+-".contains(c))
}

fn ends_with_scheme(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    ["http", "https", "ftp", "mailto", "xmpp"]
        .iter()
        .any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn ends_with_www(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    word.eq_ignore_ascii_case("www")
}

/// Renders a code span, or returns `None` if the text can't be one.
pub(crate) fn code_span(code: &str, in_table: bool) -> Option<String> {
    // A backslash before a pipe would be parsed as the escape of the pipe.
    if code.contains(['\n', '\r']) || (in_table && code.contains("\\|")) {
        return None;
    }
    let fence = "`".repeat((1..=longest_run(code, '`') + 1).find(|&run| !has_run(code, run))?);
    let spaced = code.starts_with(' ') && code.ends_with(' ') && !code.trim_matches(' ').is_empty();
    let pad = if spaced || code.starts_with('`') || code.ends_with('`') { " " } else { "" };
    let code = if in_table { code.replace('|', "\\|") } else { code.to_owned() };
    Some(format!("{fence}{pad}{code}{pad}{fence}"))
}

fn has_run(text: &str, len: usize) -> bool {
    text.split(|c| c != '`').any(|run| run.len() == len)
}

/// Returns the length of the longest run of a character.
pub(crate) fn longest_run(text: &str, c: char) -> usize {
    text.split(|other| other != c).map(str::len).max().unwrap_or(0)
}

/// Escapes the language of a code fence.
pub(crate) fn info(language: &str) -> String {
    language.replace('\\', "\\\\").replace('&', "&amp;")
}

/// Renders the URL of a link, or returns `None` if it would be parsed differently: the Markdown
/// parser percent-encodes all other characters.
pub(crate) fn destination(href: &str) -> Option<String> {
    let mut written = String::with_capacity(href.len());
    let mut rest = href.chars();
    while let Some(c) = rest.next() {
        match c {
            '&' => written.push_str("&amp;"),
            '(' | ')' | '*' => {
                written.push('\\');
                written.push(c);
            }
            '%' if !is_percent_encoded(rest.as_str()) => return None,
            _ if c.is_ascii_alphanumeric() || "-_.+!,#@?=;:/$~%".contains(c) => written.push(c),
            _ => return None,
        }
    }
    (!written.is_empty()).then_some(written)
}

fn is_percent_encoded(behind_sign: &str) -> bool {
    let digits = behind_sign.bytes().take(2).filter(u8::is_ascii_hexdigit);
    digits.count() == 2
}

/// Renders a title with its quotes, or returns `None` if it can't be one.
pub(crate) fn title(title: &str, in_table: bool) -> Option<String> {
    if title.contains(['\n', '\r']) || (in_table && title.contains('|')) {
        return None;
    }
    let escaped = title.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;");
    Some(format!("\"{escaped}\""))
}
