//! Variants: alternative forms of a workspace's pieces, such as languages, and the fields that a
//! piece overrides in one of them.

use std::str::FromStr;

use crate::content_piece::{
    ContentPiece, ContentPieceChange, ContentPieceFields, CustomData, Description, Slug, Title,
};
use crate::id::{TagId, VariantId, WorkspaceMemberId};
use crate::text::{Invalid, ShortText, WebReference, check_length, checked_text, line_of_text};
use crate::time::Timestamp;

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

/// The fields that a piece overrides in a variant, without its content. `None` falls back to the
/// piece.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of `ContentPieceFields`")]
pub struct ContentPieceOverrides {
    pub date: Option<Timestamp>,
    pub title: Option<Title>,
    pub description: Option<Description>,
    pub slug: Option<Slug>,
    pub cover_url: Option<WebReference>,
    pub cover_alt: Option<ShortText>,
    pub cover_width: Option<ShortText>,
    pub canonical_link: Option<WebReference>,
    pub filename: Option<ShortText>,
    pub custom_data: Option<CustomData>,
    pub tags: Option<Vec<TagId>>,
    pub members: Option<Vec<WorkspaceMemberId>>,
}

impl ContentPieceOverrides {
    /// Returns these overrides of `piece` with `change` applied.
    ///
    /// `Some(None)` removes an override. A value equal to the effective one changes nothing, so
    /// that a client can send back a complete piece that it read.
    #[must_use]
    pub fn changed(self, piece: &ContentPieceFields, change: ContentPieceChange) -> Self {
        Self {
            date: replaced(self.date, piece.date.as_ref(), change.date),
            title: replaced(self.title, Some(&piece.title), change.title),
            description: replaced(self.description, piece.description.as_ref(), change.description),
            slug: replaced(self.slug, Some(&piece.slug), change.slug),
            cover_url: replaced(self.cover_url, piece.cover_url.as_ref(), change.cover_url),
            cover_alt: replaced(self.cover_alt, piece.cover_alt.as_ref(), change.cover_alt),
            cover_width: replaced(self.cover_width, piece.cover_width.as_ref(), change.cover_width),
            canonical_link: replaced(
                self.canonical_link,
                piece.canonical_link.as_ref(),
                change.canonical_link,
            ),
            filename: replaced(self.filename, piece.filename.as_ref(), change.filename),
            custom_data: replaced(self.custom_data, piece.custom_data.as_ref(), change.custom_data),
            tags: replaced(self.tags, Some(&piece.tags), change.tags),
            members: replaced(self.members, Some(&piece.members), change.members),
        }
    }
}

fn replaced<T: PartialEq>(
    own: Option<T>,
    fallback: Option<&T>,
    change: Option<Option<T>>,
) -> Option<T> {
    match change {
        None => own,
        Some(Some(value)) if own.as_ref().or(fallback) == Some(&value) => own,
        Some(value) => value,
    }
}

impl ContentPieceFields {
    /// Returns these fields with the overrides of a variant applied.
    #[must_use]
    pub fn with_overrides(self, by: ContentPieceOverrides) -> Self {
        Self {
            date: by.date.or(self.date),
            title: by.title.unwrap_or(self.title),
            description: by.description.or(self.description),
            slug: by.slug.unwrap_or(self.slug),
            cover_url: by.cover_url.or(self.cover_url),
            cover_alt: by.cover_alt.or(self.cover_alt),
            cover_width: by.cover_width.or(self.cover_width),
            canonical_link: by.canonical_link.or(self.canonical_link),
            filename: by.filename.or(self.filename),
            custom_data: by.custom_data.or(self.custom_data),
            tags: by.tags.unwrap_or(self.tags),
            members: by.members.unwrap_or(self.members),
        }
    }
}

impl ContentPiece {
    /// Returns this piece with the overrides of a variant applied.
    #[must_use]
    pub fn with_overrides(self, by: ContentPieceOverrides) -> Self {
        Self { fields: self.fields.with_overrides(by), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece() -> ContentPieceFields {
        ContentPieceFields {
            date: None,
            title: Title::parse("Title").unwrap(),
            description: None,
            slug: Slug::parse("slug").unwrap(),
            cover_url: None,
            cover_alt: Some(ShortText::parse("alt").unwrap()),
            cover_width: None,
            canonical_link: None,
            filename: None,
            custom_data: None,
            tags: vec![TagId::new(1)],
            members: Vec::new(),
        }
    }

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

    #[test]
    fn values_equal_to_the_effective_ones_change_no_override() {
        let piece = piece();
        let whole = |fields: ContentPieceFields| ContentPieceChange {
            date: Some(fields.date),
            title: Some(Some(fields.title)),
            description: Some(fields.description),
            slug: Some(Some(fields.slug)),
            cover_url: Some(fields.cover_url),
            cover_alt: Some(fields.cover_alt),
            cover_width: Some(fields.cover_width),
            canonical_link: Some(fields.canonical_link),
            filename: Some(fields.filename),
            custom_data: Some(fields.custom_data),
            tags: Some(Some(fields.tags)),
            members: Some(Some(fields.members)),
        };
        let none = ContentPieceOverrides::default();
        assert_eq!(none.clone().changed(&piece, whole(piece.clone())), none);
        let some = ContentPieceOverrides {
            title: Some(Title::parse("Titel").unwrap()),
            // Equal by now, as the piece itself was changed after the override.
            slug: Some(piece.slug.clone()),
            tags: Some(Vec::new()),
            ..none
        };
        let shown = piece.clone().with_overrides(some.clone());
        assert_eq!((shown.title.as_str(), shown.tags.len()), ("Titel", 0));
        assert_eq!(some.clone().changed(&piece, whole(shown)), some);
    }

    #[test]
    fn null_removes_an_override_and_the_pieces_own_value_replaces_it() {
        let piece = piece();
        let some = ContentPieceOverrides {
            title: Some(Title::parse("Titel").unwrap()),
            cover_alt: Some(ShortText::parse("anders").unwrap()),
            ..ContentPieceOverrides::default()
        };
        let change = ContentPieceChange {
            title: Some(Some(piece.title.clone())),
            cover_alt: Some(None),
            ..ContentPieceChange::default()
        };
        let changed = some.changed(&piece, change);
        assert_eq!(changed.title, Some(piece.title), "an override that happens to be equal");
        assert_eq!(changed.cover_alt, None);
    }
}
