//! Integers in attributes, parsed as JavaScript does.

use super::whitespace;

/// Returns the leading integer of a text, as JavaScript's `parseInt` does. Returns `None` also for
/// integers that JavaScript can't represent exactly.
pub(crate) fn leading_integer(text: &str) -> Option<i64> {
    const EXACT_MAX: i64 = (1 << 53) - 1;
    let text = text.trim_start_matches(whitespace::is_script_space);
    let digits_from = usize::from(text.starts_with(['+', '-']));
    let digits = text[digits_from..].bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..digits_from + digits].parse().ok()?;
    (-EXACT_MAX..=EXACT_MAX).contains(&number).then_some(number)
}
