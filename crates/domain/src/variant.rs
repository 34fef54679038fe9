//! Variants: alternative forms of a workspace's pieces, such as languages.

use std::str::FromStr;

use crate::id::VariantId;
use crate::language::is_language_tag;
use crate::text::{Invalid, ShortText, checked_text, line_of_text};

checked_text! {
    /// A variant's name for programs: a language tag in the form of BCP 47, such as `pt-BR`, to 35
    /// characters, or 1 to 20 of `a` to `z`, `0` to `9` and `_`. Case is kept, but two keys that
    /// differ only in case are the same key.
    VariantKey, |text| {
        if is_word(text) || is_language_tag(text) {
            return Ok(());
        }
        let message = "must be a language tag, such as pt-BR, or up to 20 of a to z, 0 to 9 and _";
        Err(Invalid::new("invalid_string", message))
    }
}

fn is_word(text: &str) -> bool {
    (1..=20).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

impl VariantKey {
    /// Returns the key in lower case, in which keys are compared.
    pub fn in_lower_case(&self) -> String {
        self.as_str().to_ascii_lowercase()
    }

    /// Returns true if both are the same key, without regard to case.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.as_str().eq_ignore_ascii_case(other.as_str())
    }
}

line_of_text! {
    /// A variant's name for people: 1 to 255 characters without control characters.
    VariantLabel(1..=255)
}

/// A variant of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The identifier.
    pub id: VariantId,
    /// The name for programs, unique in the workspace.
    pub key: VariantKey,
    /// The name for people.
    pub label: VariantLabel,
    /// The purpose, for people.
    pub description: Option<ShortText>,
    /// The version, incremented by every change.
    pub version: i64,
}

/// A client's reference to a variant. It is unambiguous, as no key has the form of an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariantRef {
    /// The variant's id.
    Id(VariantId),
    /// The variant's key.
    Key(VariantKey),
}

impl FromStr for VariantRef {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // Words are in lower case.
        let key = |_| VariantKey::parse(text.to_ascii_lowercase()).map(Self::Key);
        text.parse().map(Self::Id).or_else(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_an_id_or_a_key() {
        let id = VariantId::new(7);
        assert_eq!(id.to_string().parse(), Ok(VariantRef::Id(id)));
        for text in ["de_ch", "DE_ch", "De_CH"] {
            let key = VariantKey::parse("de_ch").unwrap();
            assert_eq!(text.parse(), Ok(VariantRef::Key(key)));
        }
        let bad = ["", "é", "-", "de-", "-de", "de--ch", "de ch", "abcdefghi-x"];
        let too_long = ["a".repeat(21), ["abcdefgh"; 4].join("-") + "-a"];
        let id_of_a_tag = "tag_00000000000000000000000000";
        for bad in bad.into_iter().chain(too_long.iter().map(String::as_str)).chain([id_of_a_tag]) {
            assert!(bad.parse::<VariantRef>().is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_words_or_language_tags() {
        let longest = ["abcdefgh"; 3].join("-") + "-abcdefgh";
        for key in ["de", "DE", "pt-BR", "zh-Hant-HK", "sl-IT-nedis", "de_ch", "a_1", &longest] {
            assert_eq!(VariantKey::parse(key).unwrap().as_str(), key);
        }
        assert_eq!(VariantKey::parse("pt-BR").unwrap().in_lower_case(), "pt-br");
    }
}
