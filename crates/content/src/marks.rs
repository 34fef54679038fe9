//! Inline formatting: the marks of a text, and their order.
//!
//! A set contains each kind of mark at most once. Adding a link or highlight replaces the earlier
//! one.

use crate::names::named_enum;
use crate::value::AttrValue;

named_enum! {
    /// The marks that have no attributes, with their names in the JSON.
    Flag {
        Bold = "bold",
        Italic = "italic",
        Strike = "strike",
        Underline = "underline",
        Code = "code",
        Subscript = "subscript",
        Superscript = "superscript",
    }
}

/// A set of marks on a text or line break. Links and colours are indexes into the tree's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Marks {
    pub(crate) flags: u8,
    pub(crate) link: Option<LinkId>,
    pub(crate) highlight: Option<ColorId>,
}

/// The index of a link in the tree's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LinkId(pub(crate) u32);

/// The index of a highlight colour in the tree's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColorId(pub(crate) u32);

/// One mark of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Link(LinkId),
    Flag(Flag),
    Highlight(ColorId),
}

impl Mark {
    /// Returns its name in the JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Link(_) => "link",
            Self::Flag(flag) => flag.name(),
            Self::Highlight(_) => "highlight",
        }
    }
}

impl Marks {
    pub(crate) fn has(self, flag: Flag) -> bool {
        self.flags & flag.bit() != 0
    }

    pub(crate) fn with(mut self, flag: Flag) -> Self {
        self.flags |= flag.bit();
        self
    }

    pub(crate) fn without(mut self, flag: Flag) -> Self {
        self.flags &= !flag.bit();
        self
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Returns the marks in the schema's order, outermost first.
    pub(crate) fn iter(self) -> impl Iterator<Item = Mark> {
        let flag = move |flag| self.has(flag).then_some(Mark::Flag(flag));
        [
            self.link.map(Mark::Link),
            flag(Flag::Bold),
            flag(Flag::Italic),
            flag(Flag::Strike),
            flag(Flag::Underline),
            flag(Flag::Code),
            self.highlight.map(Mark::Highlight),
            flag(Flag::Subscript),
            flag(Flag::Superscript),
        ]
        .into_iter()
        .flatten()
    }
}

impl Flag {
    /// Returns its bit in [`Marks`].
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the element in HTML.
    pub(crate) fn element(self) -> &'static str {
        match self {
            Self::Bold => "strong",
            Self::Italic => "em",
            Self::Strike => "s",
            Self::Underline => "u",
            Self::Code => "code",
            Self::Subscript => "sub",
            Self::Superscript => "sup",
        }
    }
}

/// The URL of a link, and its optional attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) href: Box<str>,
    /// Boxed, as nearly all links have no optional attributes.
    pub(crate) rest: Option<Box<LinkRest>>,
}

/// The optional attributes of a link.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct LinkRest {
    pub(crate) target: Option<AttrValue>,
    pub(crate) rel: Option<AttrValue>,
    pub(crate) class: Option<AttrValue>,
    pub(crate) title: Option<AttrValue>,
}

impl Link {
    pub(crate) fn new(href: Box<str>, rest: LinkRest) -> Self {
        let rest = (rest != LinkRest::default()).then(|| Box::new(rest));
        Self { href, rest }
    }

    /// Returns the optional attributes in the schema's order.
    pub(crate) fn rest(&self) -> [(&'static str, Option<&AttrValue>); 4] {
        let rest = self.rest.as_deref();
        [
            ("target", rest.and_then(|rest| rest.target.as_ref())),
            ("rel", rest.and_then(|rest| rest.rel.as_ref())),
            ("class", rest.and_then(|rest| rest.class.as_ref())),
            ("title", rest.and_then(|rest| rest.title.as_ref())),
        ]
    }
}
