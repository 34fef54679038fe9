//! Content pieces: what they hold, what makes it valid, and what a change does to them.

use crate::id::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use crate::order_key::OrderKey;
use crate::text::{Invalid, ShortText, WebReference, check_length, checked_text};
use crate::time::Timestamp;

/// The most tags, and the most members, that one piece has.
pub const REFERENCES_MAX: usize = 100;

/// The most bytes of a description.
pub const DESCRIPTION_MAX: usize = 64 * 1024;

/// The most bytes of custom data.
pub const CUSTOM_DATA_MAX: usize = 256 * 1024;

checked_text! {
    /// A title: 1 to 1,024 characters.
    Title, |text| check_length(text, 1, 1_024)
}

checked_text! {
    /// The piece's name in URLs: 1 to 512 characters, no white space or control characters; kept
    /// as given, and not unique.
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
    /// A description in HTML, to 64 KiB. Whoever makes one has it sanitised first.
    Description, |text| {
        if text.len() > DESCRIPTION_MAX {
            return Err(Invalid::too_long(DESCRIPTION_MAX, "bytes"));
        }
        Ok(())
    }
}

checked_text! {
    /// A JSON text of the client's own, to 256 KiB, kept byte for byte.
    CustomData, |text| {
        if text.len() > CUSTOM_DATA_MAX {
            return Err(Invalid::too_long(CUSTOM_DATA_MAX, "bytes"));
        }
        serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|error| {
            Invalid::new("invalid_json", format!("must be a JSON text: {error}"))
        })
    }
}

/// What a piece says about itself, its content aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPieceFields {
    /// A date of the author's choosing.
    pub date: Option<Timestamp>,
    /// Its title.
    pub title: Title,
    /// Its description, in HTML.
    pub description: Option<Description>,
    /// Its name in URLs.
    pub slug: Slug,
    /// Where its cover image is.
    pub cover_url: Option<WebReference>,
    /// What the cover image shows.
    pub cover_alt: Option<ShortText>,
    /// How wide the cover image is to be.
    pub cover_width: Option<ShortText>,
    /// The address under which it counts as published.
    pub canonical_link: Option<WebReference>,
    /// The name of the file that it comes from or goes to.
    pub filename: Option<ShortText>,
    /// JSON data of the client's own.
    pub custom_data: Option<CustomData>,
    /// Its tags, in the order given, none twice.
    pub tags: Vec<TagId>,
    /// The members who work on it, in the order given, none twice.
    pub members: Vec<WorkspaceMemberId>,
}

/// A content piece, its content aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPiece {
    /// Which one.
    pub id: ContentPieceId,
    /// The group that it is directly in.
    pub content_group_id: ContentGroupId,
    /// Its place in the list.
    pub order: OrderKey,
    /// When it was put there.
    pub placed_at: Timestamp,
    /// What it says about itself.
    pub fields: ContentPieceFields,
    /// Raised by every change.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// What an update sets: `None` stays as it is. `Some(None)` clears what a piece may do without, and
/// takes any override of a variant away.
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
    /// These fields with `change` made to them. What a piece can't do without stays, where the change
    /// has nothing for it.
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

/// Drops repeats, keeping the first of each.
pub fn without_repeats<T: Copy + Eq + std::hash::Hash>(items: Vec<T>) -> Vec<T> {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    items.into_iter().filter(|item| seen.insert(*item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_data_is_json_and_kept_as_it_is() {
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
