//! Classes of characters, by which texts are split into words.

/// Returns true for digits, and letters of alphabets that have no rules of their own.
pub(crate) const fn is_simple_letter(c: char) -> bool {
    matches!(c, '0'..='9' | 'A'..='Z' | 'a'..='z'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{24f}'
        | '\u{400}'..='\u{481}' | '\u{48a}'..='\u{52f}')
}

/// Returns true for signs at which words end, or are divided.
pub(crate) const fn is_simple_sign(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric()
        || matches!(c, '\u{ab}' | '\u{bb}' | '\u{2010}'..='\u{2026}')
}

/// Returns true for the signs that may be within a word by the rules of Unicode.
pub(crate) const fn is_separator(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric()
        || matches!(
            c,
            '\u{b7}'
                | '\u{387}'
                | '\u{55f}'
                | '\u{5f4}'
                | '\u{60c}'
                | '\u{66c}'
                | '\u{2018}'
                | '\u{2019}'
                | '\u{2024}'
                | '\u{2027}'
                | '\u{202f}'
                | '\u{203f}'
                | '\u{2040}'
                | '\u{fe10}'
                | '\u{fe13}'
                | '\u{fe33}'
                | '\u{fe34}'
                | '\u{fe4d}'
                ..='\u{fe50}'
                    | '\u{fe52}'
                    | '\u{fe54}'
                    | '\u{fe55}'
                    | '\u{ff07}'
                    | '\u{ff0c}'
                    | '\u{ff0e}'
                    | '\u{ff1a}'
                    | '\u{ff1b}'
                    | '\u{ff3f}'
        )
}
