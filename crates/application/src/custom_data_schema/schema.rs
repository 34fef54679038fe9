//! A compiled schema: its subschemas, each once, which refer to one another by number.

use std::collections::{HashMap, HashSet};

use serde_json::Number;

use super::decimal::Decimal;
use super::format::Format;
use super::pattern::Pattern;

/// The number of a subschema.
pub(super) type SchemaId = u32;

/// The names of members.
pub(super) type Names = Box<[Box<str>]>;

/// A subschema.
#[derive(Debug)]
pub(super) enum Subschema {
    /// True accepts all values, false none.
    Boolean(bool),
    /// The keywords. Those that need the results of others are the last.
    Keywords(Box<[Keyword]>),
}

/// A keyword with its value.
#[derive(Debug)]
pub(super) enum Keyword {
    Ref(SchemaId),
    AllOf(Box<[SchemaId]>),
    AnyOf(Box<[SchemaId]>),
    OneOf(Box<[SchemaId]>),
    Not(SchemaId),
    If(SchemaId, Option<SchemaId>, Option<SchemaId>),
    DependentSchemas(Box<[(Box<str>, SchemaId)]>),
    DependentRequired(Box<[(Box<str>, Names)]>),
    Type(Types),
    Enum(Box<Listed>),
    Const(Box<Listed>),
    MultipleOf(Box<(Decimal, Number)>),
    Bound(Bound, Box<Number>),
    MinLength(u64),
    MaxLength(u64),
    Pattern(u32),
    Format(&'static Format),
    PrefixItems(Box<[SchemaId]>),
    /// The schema of the items after this number of them.
    Items(SchemaId, usize),
    Contains(Box<Contains>),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Members(Box<Members>),
    PropertyNames(SchemaId),
    MinProperties(u64),
    MaxProperties(u64),
    Required(Names),
    UnevaluatedItems(SchemaId),
    UnevaluatedProperties(SchemaId),
}

impl Keyword {
    /// Returns true if it needs to know the members or items that other keywords have evaluated.
    pub(super) fn is_of_unevaluated(&self) -> bool {
        matches!(self, Self::UnevaluatedItems(_) | Self::UnevaluatedProperties(_))
    }

    /// Returns the subschemas that apply to the same value.
    pub(super) fn in_place(&self) -> Vec<SchemaId> {
        match self {
            Self::Ref(id) | Self::Not(id) => vec![*id],
            Self::AllOf(ids) | Self::AnyOf(ids) | Self::OneOf(ids) => ids.to_vec(),
            Self::If(condition, then, otherwise) => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Self::DependentSchemas(all) => all.iter().map(|(_, id)| *id).collect(),
            _ => Vec::new(),
        }
    }
}

/// The bound on a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Minimum,
    ExclusiveMinimum,
    Maximum,
    ExclusiveMaximum,
}

/// The types of JSON, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Types(pub(super) u8);

impl Types {
    /// The names of the types. An integer is a number as well.
    pub(super) const NAMES: [(&'static str, &'static str); 7] = [
        ("null", "null"),
        ("boolean", "a boolean"),
        ("object", "an object"),
        ("array", "an array"),
        ("number", "a number"),
        ("string", "a string"),
        ("integer", "an integer"),
    ];

    pub(super) fn contains(self, name: &str) -> bool {
        let place = Self::NAMES.iter().position(|(known, _)| *known == name);
        place.is_some_and(|place| self.0 & (1 << place) != 0)
    }

    /// Returns its words for people: `a string or null`.
    pub(super) fn words(self) -> String {
        let words = Self::NAMES.iter().filter(|(name, _)| self.contains(name));
        words.map(|(_, words)| *words).collect::<Vec<_>>().join(" or ")
    }
}

/// The values of `const` or `enum`, in their canonical form.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) values: HashSet<Box<[u8]>>,
    /// The bytes of the longest one. No longer value is equal to one of them.
    pub(super) longest: usize,
    /// The text of the values for people.
    pub(super) shown: String,
}

/// The keywords `contains`, `minContains` and `maxContains`.
#[derive(Debug)]
pub(super) struct Contains {
    pub(super) schema: SchemaId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The keywords `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) named: HashMap<Box<str>, SchemaId>,
    pub(super) matching: Vec<(u32, SchemaId)>,
    pub(super) additional: Option<SchemaId>,
}

/// A compiled schema. The first subschema is the schema itself.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) subschemas: Vec<Subschema>,
    pub(super) patterns: Vec<Pattern>,
    /// The bytes of its memory, by estimate.
    pub(super) size: u64,
    /// The work of its compilation.
    pub(super) work: u64,
}
