//! The attributes that the conversion reads.

use html5ever::tendril::StrTendril;
use html5ever::{QualName, ns};

use crate::names::named_enum;

named_enum! {
    /// The attributes that the conversion reads.
    Attribute {
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
}

impl Attribute {
    pub(super) fn of(name: &QualName) -> Option<Self> {
        if name.ns == ns!() { Self::from_name(&name.local) } else { None }
    }
}

pub(super) fn other_names(attributes: &[html5ever::Attribute]) -> Box<[String]> {
    let others = attributes.iter().filter(|given| Attribute::of(&given.name).is_none());
    others.map(|given| given.name.local.to_string()).collect()
}

pub(super) type Attributes = Box<[(Attribute, StrTendril)]>;
