//! Tags: a label and one of fourteen colors.

use std::str::FromStr;

use serde::Serialize;

use crate::id::TagId;
use crate::text::{Invalid, line_of_text};

macro_rules! colors {
    ($($name:ident = $text:literal,)*) => {
        /// The color of a tag.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
        #[serde(rename_all = "lowercase")]
        #[expect(missing_docs, reason = "the names of colors say what they are")]
        pub enum Color {#[default] $($name,)*}

        impl Color {
            /// The names of all colors.
            pub const NAMES: &'static [&'static str] = &[$($text,)*];

            /// Returns the color's name.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }
        }

        impl FromStr for Color {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                match text {
                    $($text => Ok(Self::$name),)*
                    _ => Err(Invalid::new(
                        "invalid_enum_value",
                        format!("must be one of {}", Self::NAMES.join(", ")),
                    )),
                }
            }
        }
    };
}

colors! {
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
