//! Numbers in attributes, as scripts of browsers read them.

use super::whitespace;

/// The number that a text starts with, as a script's `parseInt` finds it; `None` as well for
/// numbers that a script couldn't hold exactly.
pub(crate) fn leading_integer(text: &str) -> Option<i64> {
    const EXACT_MAX: i64 = (1 << 53) - 1;
    let text = text.trim_start_matches(whitespace::is_script_space);
    let digits_from = usize::from(text.starts_with(['+', '-']));
    let digits = text[digits_from..].bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits_from + digits].parse().ok()?;
    (-EXACT_MAX..=EXACT_MAX).contains(&number).then_some(number)
}
