//! The values of untyped attributes. TipTap parses `title="2019"` as a number.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A string, number or boolean. Numbers are finite and print without an exponent.
#[derive(Debug, Clone)]
pub(crate) enum AttrValue {
    Text(Box<str>),
    Number(f64),
    Bool(bool),
}

impl AttrValue {
    /// Parses an attribute as TipTap does, with decimal numbers, `true` and `false` as such.
    ///
    /// A number that JavaScript would print with an exponent (from 1e21, or tiny fractions) stays
    /// text, as it wouldn't survive a round trip.
    pub(crate) fn from_attribute(text: &str) -> Self {
        match text {
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            _ if is_decimal(text) => {
                Self::from_number(text).unwrap_or_else(|| Self::Text(text.into()))
            }
            _ => Self::Text(text.into()),
        }
    }

    /// Parses a number, if JavaScript prints it without an exponent.
    pub(crate) fn from_number(text: &str) -> Option<Self> {
        let number: f64 = text.parse().ok()?;
        Self::from_f64(number)
    }

    pub(crate) fn from_f64(number: f64) -> Option<Self> {
        let size = number.abs();
        let plain = size == 0.0 || (1e-6..1e21).contains(&size);
        // Adding zero turns -0 into 0, as JSON prints it.
        plain.then_some(Self::Number(number + 0.0))
    }
}

/// Returns true for `[+-]? (digits? '.')? digits`.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, digits) = unsigned.rsplit_once('.').unwrap_or(("", unsigned));
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && whole.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(truth) => write!(f, "{truth}"),
        }
    }
}

impl PartialEq for AttrValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a.to_bits() == b.to_bits(),
            (Self::Bool(a), Self::Bool(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for AttrValue {}

impl Hash for AttrValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => text.hash(state),
            Self::Number(number) => number.to_bits().hash(state),
            Self::Bool(truth) => truth.hash(state),
        }
    }
}
