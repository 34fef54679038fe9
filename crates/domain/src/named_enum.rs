//! Enums whose values have names in the API and in the database.

use crate::text::Invalid;

/// Declares such an enum, with the name of each value.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$value_meta:meta])* $value:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {$($(#[$value_meta])* $value,)*}

        impl $type {
            /// Every value, in the order of the declaration.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Returns the value's name.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$value => $name,)*}
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Invalid;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                match name {
                    $($name => Ok(Self::$value),)*
                    _ => Err($crate::named_enum::unknown_name(&[$($name,)*])),
                }
            }
        }
    };
}

/// Returns the error for a text that is none of `names`.
#[doc(hidden)]
pub fn unknown_name(names: &[&str]) -> Invalid {
    Invalid::new("invalid_enum_value", format!("must be one of {}", names.join(", ")))
}
