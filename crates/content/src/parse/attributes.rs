//! The attributes that the conversion reads.

use html5ever::tendril::StrTendril;
use html5ever::{QualName, ns};

macro_rules! attributes {
    ($($name:ident = $text:literal,)*) => {
        /// The attributes that the conversion reads.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Attribute {$($name,)*}

        impl Attribute {
            pub(super) fn from_name(name: &QualName) -> Option<Self> {
                if name.ns != ns!() {
                    return None;
                }
                match &*name.local {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the attribute's name in HTML.
            pub(crate) const fn name(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }
        }
    };
}

attributes! {
    Align = "align",
    Alt = "alt",
    Class = "class",
    Colspan = "colspan",
    Colwidth = "colwidth",
    DataChecked = "data-checked",
    DataColor = "data-color",
    DataType = "data-type",
    Height = "height",
    Href = "href",
    Level = "level",
    Rel = "rel",
    Rowspan = "rowspan",
    Src = "src",
    Start = "start",
    Style = "style",
    Target = "target",
    Title = "title",
    Type = "type",
    Width = "width",
}

pub(super) fn other_names(attributes: &[html5ever::Attribute]) -> Box<[String]> {
    let others = attributes.iter().filter(|given| Attribute::from_name(&given.name).is_none());
    others.map(|given| given.name.local.to_string()).collect()
}

pub(super) type Attributes = Box<[(Attribute, StrTendril)]>;
