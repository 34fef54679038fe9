//! Variants: alternative forms of a workspace's pieces, such as languages.

use std::str::FromStr;

use crate::id::VariantId;
use crate::text::{Invalid, ShortText, check_length, checked_text, line_of_text};

checked_text! {
    /// A variant's name for programs: 1 to 20 of `a` to `z`, `0` to `9` and `_`.
    VariantKey, |text| {
        check_length(text, 1, 20)?;
        if text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
            return Ok(());
        }
        Err(Invalid::new("invalid_string", "must contain only a to z, 0 to 9 and _"))
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

/// A client's reference to a variant. It is unambiguous, as a key is shorter than any id.
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
        text.parse().map(Self::Id).or_else(|_| VariantKey::parse(text).map(Self::Key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_an_id_or_a_key() {
        let id = VariantId::new(7);
        assert_eq!(id.to_string().parse(), Ok(VariantRef::Id(id)));
        let key = VariantKey::parse("de_ch").unwrap();
        assert_eq!("de_ch".parse(), Ok(VariantRef::Key(key)));
        for bad in ["", "DE", "de-ch", "é", "tag_00000000000000000000000000", &"a".repeat(21)] {
            assert!(bad.parse::<VariantRef>().is_err(), "{bad}");
        }
    }
}
