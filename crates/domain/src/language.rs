//! Languages of content.

use crate::text::{Invalid, checked_text};

checked_text! {
    /// A language tag in the form of BCP 47, such as `pt-BR`, to 35 characters.
    LanguageTag, |text| {
        if is_language_tag(text) {
            return Ok(());
        }
        Err(Invalid::new("invalid_string", "must be a language tag, such as en or pt-BR"))
    }
}

/// The limit on characters of a language tag, as RFC 5646 (BCP 47) recommends.
const LANGUAGE_TAG_MAX: usize = 35;

/// Returns true if `text` consists of subtags of 1 to 8 letters and digits, separated by hyphens.
pub(crate) fn is_language_tag(text: &str) -> bool {
    let is_subtag = |subtag: &str| {
        (1..=8).contains(&subtag.len()) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.len() <= LANGUAGE_TAG_MAX && text.split('-').all(is_subtag)
}
