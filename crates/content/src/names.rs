//! Enums whose values have names in JSON or HTML.

/// Declares such an enum, with the name of each value.
macro_rules! named_enum {
    ($(#[$meta:meta])* $type:ident {$($value:ident = $name:literal,)*}) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum $type {$($value,)*}

        impl $type {
            #[allow(dead_code, reason = "not every enum is listed")]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$value,)*];

            pub(crate) const fn name(self) -> &'static str {
                match self {$(Self::$value => $name,)*}
            }

            pub(crate) fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use named_enum;
