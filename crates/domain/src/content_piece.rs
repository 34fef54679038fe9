//! Content pieces: their fields, the rules of valid fields, the effect of an update, and the fields
//! that a variant overrides.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::actor::Actor;
use crate::id::{ContentGroupId, ContentPieceId, TagId, VariantId, WorkspaceMemberId};
use crate::named_enum;
use crate::order_key::OrderKey;
use crate::publication::Publication;
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

/// Declares the fields of a piece once, for [`PieceField`], [`ContentPieceFields`],
/// [`ContentPieceChange`] and [`ContentPieceOverrides`]. A required field always has a value.
macro_rules! piece_fields {
    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@changed required $change:expr, $old:expr) => { $change.flatten().unwrap_or($old) };
    (@changed optional $change:expr, $old:expr) => { $change.unwrap_or($old) };
    (@shown required $override:expr, $own:expr) => { $override.unwrap_or($own) };
    (@shown optional $override:expr, $own:expr) => { $override.or($own) };
    (@option required $value:expr) => { Some(&$value) };
    (@option optional $value:expr) => { $value.as_ref() };
    (@override required $value:expr) => { Some($value) };
    (@override optional $value:expr) => { $value };
    (@own required $value:expr) => { $value? };
    (@own optional $value:expr) => { $value };
    ($($(#[$doc:meta])* $field:ident ($case:ident $name:literal): $mode:ident $type:ty,)*) => {
        named_enum! {
            /// A field of a piece, or its content.
            #[derive(PartialOrd, Ord)]
            pub enum PieceField {
                $($(#[$doc])* $case = $name,)*
                /// The content.
                Content = "content",
            }
        }

        /// The fields of a piece, without its content.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct ContentPieceFields {
            $($(#[$doc])* pub $field: piece_fields!(@type $mode $type),)*
        }

        /// The change that an update makes to the fields. `None` leaves a field unchanged.
        ///
        /// `Some(None)` clears an optional field. In a variant, it removes the override of any
        /// field.
        #[derive(Debug, Clone, Default)]
        pub struct ContentPieceChange {
            $($(#[$doc])* pub $field: Option<Option<$type>>,)*
        }

        /// The fields that a piece overrides in a variant, without its content. `None` falls back
        /// to the piece.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct ContentPieceOverrides {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl ContentPieceFields {
            /// Returns these fields with `change` applied. A required field that the change would
            /// clear stays unchanged.
            #[must_use]
            pub fn changed(&self, change: ContentPieceChange) -> Self {
                let old = self.clone();
                Self {$($field: piece_fields!(@changed $mode change.$field, old.$field),)*}
            }

            /// Returns these fields with the overrides of a variant applied.
            #[must_use]
            pub fn with_overrides(self, by: ContentPieceOverrides) -> Self {
                Self {$($field: piece_fields!(@shown $mode by.$field, self.$field),)*}
            }
        }

        impl ContentPieceChange {
            /// Returns the change of `fields` to their values in `overrides`.
            pub fn to(overrides: ContentPieceOverrides, fields: &[PieceField]) -> Self {
                Self {$(
                    $field: fields.contains(&PieceField::$case).then_some(overrides.$field),
                )*}
            }
        }

        impl ContentPieceOverrides {
            /// Returns these overrides of `piece` with `change` applied.
            ///
            /// `Some(None)` removes an override. A value equal to the effective one changes
            /// nothing, so that a client can send back a complete piece that it read.
            #[must_use]
            pub fn changed(self, piece: &ContentPieceFields, change: ContentPieceChange) -> Self {
                Self {$(
                    $field: replaced(
                        self.$field,
                        piece_fields!(@option $mode piece.$field),
                        change.$field,
                    ),
                )*}
            }

            /// Returns these overrides with exactly the values of `change`.
            #[must_use]
            pub fn set(self, change: ContentPieceChange) -> Self {
                Self {$($field: change.$field.unwrap_or(self.$field),)*}
            }

            /// Adds the fields that differ from those of `other`.
            pub fn push_differences(&self, other: &Self, fields: &mut Vec<PieceField>) {
                $(if self.$field != other.$field { fields.push(PieceField::$case); })*
            }

            /// Returns the override of a field as a text, or `None` if there is none.
            pub fn text(&self, field: PieceField) -> Option<Cow<'_, str>> {
                match field {
                    $(PieceField::$case => self.$field.as_ref().map(FieldText::to_text),)*
                    PieceField::Content => None,
                }
            }

            /// Sets the override of a field to the value of a text. The content is not set.
            pub fn set_text(
                &mut self,
                field: PieceField,
                text: Option<&str>,
            ) -> Result<(), MalformedField> {
                match field {
                    $(PieceField::$case => {
                        self.$field = text.map(FieldText::from_text).transpose()?;
                    })*
                    PieceField::Content => {}
                }
                Ok(())
            }

            /// Returns the fields with these values, or `None` if a required one is missing.
            pub fn into_fields(self) -> Option<ContentPieceFields> {
                Some(ContentPieceFields {
                    $($field: piece_fields!(@own $mode self.$field),)*
                })
            }
        }

        impl From<ContentPieceFields> for ContentPieceOverrides {
            fn from(fields: ContentPieceFields) -> Self {
                Self {$($field: piece_fields!(@override $mode fields.$field),)*}
            }
        }
    };
}

piece_fields! {
    /// A date chosen by the author.
    date (Date "date"): optional Timestamp,
    /// The title.
    title (Title "title"): required Title,
    /// The description, in HTML.
    description (Description "description"): optional Description,
    /// The name in URLs.
    slug (Slug "slug"): required Slug,
    /// The URL of the cover image.
    cover_url (CoverUrl "coverUrl"): optional WebReference,
    /// The alternative text of the cover image.
    cover_alt (CoverAlt "coverAlt"): optional ShortText,
    /// The display width of the cover image.
    cover_width (CoverWidth "coverWidth"): optional ShortText,
    /// The canonical URL of the published piece.
    canonical_link (CanonicalLink "canonicalLink"): optional WebReference,
    /// The name of the file that the piece was imported from or is exported to.
    filename (Filename "filename"): optional ShortText,
    /// JSON data of the client.
    custom_data (CustomData "customData"): optional CustomData,
    /// The tags, in the given order, without duplicates.
    tags (Tags "tags"): required Vec<TagId>,
    /// The members who work on it, in the given order, without duplicates.
    members (Members "members"): required Vec<WorkspaceMemberId>,
}

/// The error for a text that is no value of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a value of this field")]
pub struct MalformedField;

/// A value of a field as a text, in the form that revisions store.
trait FieldText: Sized {
    fn to_text(&self) -> Cow<'_, str>;
    fn from_text(text: &str) -> Result<Self, MalformedField>;
}

macro_rules! field_texts {
    ($($type:ty),* $(,)?) => {$(
        impl FieldText for $type {
            fn to_text(&self) -> Cow<'_, str> {
                Cow::Borrowed(self.as_str())
            }

            fn from_text(text: &str) -> Result<Self, MalformedField> {
                Ok(Self::from_stored(text))
            }
        }
    )*};
}

field_texts!(Title, Description, Slug, CustomData, ShortText, WebReference);

/// Milliseconds.
impl FieldText for Timestamp {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Owned(self.ms().to_string())
    }

    fn from_text(text: &str) -> Result<Self, MalformedField> {
        text.parse().map(Self::from_ms).map_err(|_| MalformedField)
    }
}

/// Identifiers, separated by commas.
impl<T: fmt::Display + FromStr> FieldText for Vec<T> {
    fn to_text(&self) -> Cow<'_, str> {
        Cow::Owned(self.iter().map(T::to_string).collect::<Vec<_>>().join(","))
    }

    fn from_text(text: &str) -> Result<Self, MalformedField> {
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(|item| item.parse().map_err(|_| MalformedField)).collect()
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
    /// The variants in which fields or the content are overridden, in the order of their ids.
    pub variants: Vec<VariantId>,
    /// The version, incremented by every change.
    pub version: i64,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
    /// The author of its creation, if it is known.
    pub created_by: Option<Actor>,
    /// The author of its last change, if it is known.
    pub updated_by: Option<Actor>,
    /// The number of its latest revision that is recorded: 0 after a creation whose revision is
    /// not, and `None` for a piece from before revisions.
    pub revision: Option<i64>,
    /// Its publication.
    pub publication: Publication,
}

impl ContentPiece {
    /// Returns the number of its latest revision, recorded or not.
    pub fn latest_revision(&self) -> i64 {
        self.revision.unwrap_or_default().max(1)
    }

    /// Returns true if revisions are recorded, from the first one on.
    pub fn has_revisions(&self) -> bool {
        self.revision.is_some_and(|number| number > 0)
    }

    /// Returns this piece with the overrides of a variant applied.
    #[must_use]
    pub fn with_overrides(self, by: ContentPieceOverrides) -> Self {
        Self { fields: self.fields.with_overrides(by), ..self }
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
    fn fields_are_read_back_from_their_texts() {
        let piece = ContentPieceFields {
            date: Some(Timestamp::from_ms(-7)),
            custom_data: Some(CustomData::from_stored("{}")),
            tags: vec![TagId::new(1), TagId::new(2)],
            ..piece()
        };
        let mut read = ContentPieceOverrides::default();
        assert_eq!(read.clone().into_fields(), None, "the title is required");
        let written = ContentPieceOverrides::from(piece.clone());
        for &field in PieceField::ALL {
            read.set_text(field, written.text(field).as_deref()).unwrap();
        }
        assert_eq!(read, written);
        assert_eq!(read.set_text(PieceField::Tags, Some("tag_1")), Err(MalformedField));
        let mut fields = Vec::new();
        let other = ContentPieceOverrides { title: None, tags: None, ..read.clone() };
        read.push_differences(&other, &mut fields);
        assert_eq!(fields, [PieceField::Title, PieceField::Tags]);
        assert_eq!(other.set(ContentPieceChange::to(read, &fields)).into_fields(), Some(piece));
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
