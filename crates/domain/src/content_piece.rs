//! Content pieces: their fields, the rules of valid fields, and the effect of an update.

use crate::id::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use crate::order_key::OrderKey;
use crate::text::{Invalid, ShortText, WebReference, check_length, checked_text};
use crate::time::Timestamp;

/// The limit on tags, and on members, of one piece.
pub const REFERENCES_MAX: usize = 100;

/// The limit on bytes of a description.
pub const DESCRIPTION_MAX: usize = 64 * 1024;

/// The limit on bytes of custom data.
pub const CUSTOM_DATA_MAX: usize = 256 * 1024;

checked_text! {
    /// A title: 1 to 1,024 characters.
    Title, |text| check_length(text, 1, 1_024)
}

checked_text! {
    /// The piece's name in URLs: 1 to 512 characters, no white space or control characters. It is
    /// stored as given and need not be unique.
    Slug, |text| {
        check_length(text, 1, 512)?;
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Invalid::new(
                "invalid_string",
                "must not contain white space or control characters",
            ));
        }
        Ok(())
    }
}

checked_text! {
    /// A description in HTML, to 64 KiB. The caller sanitises the HTML before.
    Description, |text| {
        if text.len() > DESCRIPTION_MAX {
            return Err(Invalid::too_long(DESCRIPTION_MAX, "bytes"));
        }
        Ok(())
    }
}

checked_text! {
    /// A JSON text of the client, to 256 KiB, stored byte for byte.
    CustomData, |text| {
        if text.len() > CUSTOM_DATA_MAX {
            return Err(Invalid::too_long(CUSTOM_DATA_MAX, "bytes"));
        }
        serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|error| {
            Invalid::new("invalid_json", format!("must be a JSON text: {error}"))
        })
    }
}

/// The fields of a piece, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPieceFields {
    /// A date chosen by the author.
    pub date: Option<Timestamp>,
    /// The title.
    pub title: Title,
    /// The description, in HTML.
    pub description: Option<Description>,
    /// The name in URLs.
    pub slug: Slug,
    /// The URL of the cover image.
    pub cover_url: Option<WebReference>,
    /// The alternative text of the cover image.
    pub cover_alt: Option<ShortText>,
    /// The display width of the cover image.
    pub cover_width: Option<ShortText>,
    /// The canonical URL of the published piece.
    pub canonical_link: Option<WebReference>,
    /// The name of the file that the piece was imported from or is exported to.
    pub filename: Option<ShortText>,
    /// JSON data of the client.
    pub custom_data: Option<CustomData>,
    /// The tags, in the given order, without duplicates.
    pub tags: Vec<TagId>,
    /// The members who work on it, in the given order, without duplicates.
    pub members: Vec<WorkspaceMemberId>,
}

/// A content piece, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPiece {
    /// The identifier.
    pub id: ContentPieceId,
    /// The group that directly contains it.
    pub content_group_id: ContentGroupId,
    /// The position in the list.
    pub order: OrderKey,
    /// The time when it got this position.
    pub placed_at: Timestamp,
    /// The fields.
    pub fields: ContentPieceFields,
    /// The version, incremented by every change.
    pub version: i64,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
}

/// The change that an update makes to the fields. `None` leaves a field unchanged.
///
/// `Some(None)` clears an optional field. In a variant, it removes the override of any field.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "the fields are those of `ContentPieceFields`")]
pub struct ContentPieceChange {
    pub date: Option<Option<Timestamp>>,
    pub title: Option<Option<Title>>,
    pub description: Option<Option<Description>>,
    pub slug: Option<Option<Slug>>,
    pub cover_url: Option<Option<WebReference>>,
    pub cover_alt: Option<Option<ShortText>>,
    pub cover_width: Option<Option<ShortText>>,
    pub canonical_link: Option<Option<WebReference>>,
    pub filename: Option<Option<ShortText>>,
    pub custom_data: Option<Option<CustomData>>,
    pub tags: Option<Option<Vec<TagId>>>,
    pub members: Option<Option<Vec<WorkspaceMemberId>>>,
}

impl ContentPieceFields {
    /// Returns these fields with `change` applied. A required field that the change would clear
    /// stays unchanged.
    #[must_use]
    pub fn changed(&self, change: ContentPieceChange) -> Self {
        let old = self.clone();
        Self {
            date: change.date.unwrap_or(old.date),
            title: change.title.flatten().unwrap_or(old.title),
            description: change.description.unwrap_or(old.description),
            slug: change.slug.flatten().unwrap_or(old.slug),
            cover_url: change.cover_url.unwrap_or(old.cover_url),
            cover_alt: change.cover_alt.unwrap_or(old.cover_alt),
            cover_width: change.cover_width.unwrap_or(old.cover_width),
            canonical_link: change.canonical_link.unwrap_or(old.canonical_link),
            filename: change.filename.unwrap_or(old.filename),
            custom_data: change.custom_data.unwrap_or(old.custom_data),
            tags: change.tags.flatten().unwrap_or(old.tags),
            members: change.members.flatten().unwrap_or(old.members),
        }
    }
}

/// Removes duplicates, and keeps the first of each.
pub fn without_repeats<T: Copy + Eq + std::hash::Hash>(items: Vec<T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    items.into_iter().filter(|item| seen.insert(*item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_data_is_json_and_stored_unchanged() {
        let odd = " {\"b\": 1.0, \"a\" : [ ] }\n";
        assert_eq!(CustomData::parse(odd).unwrap().as_str(), odd);
        for bad in ["{", "{a:1}", "1 2", "NaN"] {
            assert_eq!(CustomData::parse(bad).unwrap_err().code, "invalid_json", "{bad}");
        }
    }

    #[test]
    fn slugs_hold_no_white_space() {
        assert!(Slug::parse("2014/10/30/Stability").is_ok());
        for bad in ["", "a b", "a\tb", "a\u{a0}b", "a\u{7f}b"] {
            assert!(Slug::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn repeats_are_dropped_in_place() {
        assert_eq!(without_repeats(vec![3, 1, 3, 2, 1]), [3, 1, 2]);
    }
}
