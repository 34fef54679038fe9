//! Inline styles: the few properties that map to a mark, an alignment or a colour.
//!
//! As in browsers, a declaration with an invalid value is dropped. Of several declarations of a
//! property the last one applies, or the last important one. Property names are case-sensitive
//! here, in lower case, as in the reference implementation. Each query parses the attribute anew,
//! as styles are rare in content, and short.

use crate::color;
use crate::value::AttrValue;

/// The properties that the conversion reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Property {
    FontWeight,
    FontStyle,
    TextDecoration,
    VerticalAlign,
    WhiteSpace,
    TextAlign,
    BackgroundColor,
}

/// Returns the value of a property in an inline style, in lower case.
pub(crate) fn get(style: &str, property: Property) -> Option<String> {
    let style = without_comments(style);
    let mut found: Option<(String, bool)> = None;
    for declaration in declarations(&style) {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let (value, important) = split_important(value);
        let outranked = found.as_ref().is_some_and(|(_, important)| *important) && !important;
        if outranked {
            continue;
        }
        if let Some(value) = declared(property, name.trim(), &value) {
            found = Some((value, important));
        }
    }
    found.map(|(value, _)| value)
}

/// Returns the names of the properties that a style sets, in lower case, with their values.
pub(crate) fn properties(style: &str) -> Vec<(String, String)> {
    let style = without_comments(style);
    let named = declarations(&style).filter_map(|declaration| declaration.split_once(':'));
    named
        .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

/// Returns the value of the last declaration with that name as written, valid or not.
pub(crate) fn raw<'a>(style: &'a str, name: &str) -> Option<&'a str> {
    let mut declarations = style.rsplit(';').filter_map(|declaration| declaration.split_once(':'));
    declarations
        .find(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

fn without_comments(style: &str) -> String {
    let mut rest = style;
    let mut plain = String::with_capacity(style.len());
    while let Some((before, comment)) = rest.split_once("/*") {
        plain.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

/// Splits a style at semicolons outside of quotes and parentheses.
fn declarations(style: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let mut parentheses = 0_u32;
    style.split(move |c| {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(') => parentheses += 1,
            (None, ')') => parentheses = parentheses.saturating_sub(1),
            _ => {}
        }
        c == ';' && quote.is_none() && parentheses == 0
    })
}

/// Returns the value in lower case with single spaces, and true if it is important.
fn split_important(value: &str) -> (String, bool) {
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    let value = words.join(" ").to_ascii_lowercase();
    match value.rsplit_once('!') {
        Some((before, "important" | " important")) => (before.trim_end().to_owned(), true),
        _ => (value, false),
    }
}

/// Returns the value that a declaration gives to a property, directly or by a shorthand.
fn declared(property: Property, name: &str, value: &str) -> Option<String> {
    match (property, name) {
        (Property::FontWeight, "font-weight") => font_weight(value),
        (Property::FontWeight, "font") => font(value).map(|(weight, _)| weight),
        (Property::FontStyle, "font-style") => one_of(value, &["normal", "italic"])
            .or_else(|| value.starts_with("oblique").then(|| value.to_owned())),
        (Property::FontStyle, "font") => font(value).map(|(_, style)| style),
        (Property::TextDecoration, "text-decoration") => text_decoration(value),
        (Property::VerticalAlign, "vertical-align") => {
            one_of(value, &VERTICAL_ALIGNS).or_else(|| is_length(value).then(|| value.to_owned()))
        }
        (Property::WhiteSpace, "white-space") => one_of(value, &WHITE_SPACES),
        (Property::TextAlign, "text-align") => one_of(value, &TEXT_ALIGNS),
        (Property::BackgroundColor, "background-color" | "background") => color::canonical(value),
        _ => None,
    }
}

const VERTICAL_ALIGNS: [&str; 8] =
    ["baseline", "sub", "super", "text-top", "text-bottom", "middle", "top", "bottom"];
const WHITE_SPACES: [&str; 6] = ["normal", "pre", "nowrap", "pre-wrap", "pre-line", "break-spaces"];
const TEXT_ALIGNS: [&str; 7] =
    ["left", "right", "center", "justify", "start", "end", "match-parent"];
const CSS_WIDE: [&str; 5] = ["inherit", "initial", "unset", "revert", "revert-layer"];

fn one_of(value: &str, known: &[&str]) -> Option<String> {
    let valid = known.contains(&value) || CSS_WIDE.contains(&value) || value.starts_with("var(");
    valid.then(|| value.to_owned())
}

fn font_weight(value: &str) -> Option<String> {
    if let Ok(number) = value.parse::<f64>() {
        let number = (1.0..=1000.0).contains(&number).then_some(number)?;
        return AttrValue::from_f64(number).map(|number| number.to_string());
    }
    one_of(value, &["normal", "bold", "bolder", "lighter"])
}

/// Returns the weight and style of the `font` shorthand. A valid one has a size and a family.
fn font(value: &str) -> Option<(String, String)> {
    let mut weight = "normal".to_owned();
    let mut style = "normal".to_owned();
    let mut words = value.split(' ');
    while let Some(word) = words.next() {
        let is_size =
            is_length(word.split('/').next().unwrap_or(word)) || FONT_SIZES.contains(&word);
        if is_size && word != "0" {
            return words.next().map(|_| (weight, style));
        }
        match word {
            "normal" | "small-caps" => {}
            "italic" | "oblique" => word.clone_into(&mut style),
            _ => weight = font_weight(word)?,
        }
    }
    None
}

const FONT_SIZES: [&str; 9] =
    ["xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large", "larger", "smaller"];

fn text_decoration(value: &str) -> Option<String> {
    let known =
        |word: &str| DECORATIONS.contains(&word) || is_length(word) || color::is_color(word);
    let valid = CSS_WIDE.contains(&value)
        || value.starts_with("var(")
        || !value.is_empty() && words_outside_parentheses(value).iter().all(|word| known(word));
    valid.then(|| value.to_owned())
}

const DECORATIONS: [&str; 12] = [
    "none",
    "underline",
    "overline",
    "line-through",
    "blink",
    "solid",
    "double",
    "dotted",
    "dashed",
    "wavy",
    "auto",
    "from-font",
];

fn words_outside_parentheses(value: &str) -> Vec<&str> {
    let mut parentheses = 0_u32;
    value
        .split(|c| {
            match c {
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                _ => {}
            }
            c == ' ' && parentheses == 0
        })
        .collect()
}

/// Returns true for a number with a unit or percent sign, or for zero.
fn is_length(value: &str) -> bool {
    let number_len = value
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-'))
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(number_len);
    let known_unit =
        unit == "%" || (!unit.is_empty() && unit.bytes().all(|b| b.is_ascii_lowercase()));
    number.parse::<f64>().is_ok_and(|number| known_unit || number == 0.0)
}
