//! Tags: a label and one of fourteen colors.

use serde::Serialize;

use crate::id::TagId;
use crate::named_enum;
use crate::text::line_of_text;

named_enum! {
    /// The color of a tag.
    #[derive(Default, Serialize)]
    #[serde(rename_all = "lowercase")]
    #[expect(missing_docs, reason = "the names of colors say what they are")]
    pub enum Color {
        #[default]
        Gray = "gray",
        Red = "red",
        Pink = "pink",
        Orange = "orange",
        Amber = "amber",
        Purple = "purple",
        Indigo = "indigo",
        Blue = "blue",
        Cyan = "cyan",
        Green = "green",
        Teal = "teal",
        Lime = "lime",
        Fuchsia = "fuchsia",
        Emerald = "emerald",
    }
}

line_of_text! {
    /// A tag's label: 1 to 255 characters without control characters.
    TagLabel(1..=255)
}

/// A tag of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The identifier.
    pub id: TagId,
    /// The label. Labels need not be unique.
    pub label: TagLabel,
    /// The color.
    pub color: Color,
    /// The version, incremented by every change.
    pub version: i64,
}
