//! The values of free attributes: what TipTap reads from `title="2019"` is a number.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A string, number or truth value. Numbers are finite and print without an exponent.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(Box<str>),
    Number(f64),
    Bool(bool),
}

impl Value {
    /// Reads an attribute as TipTap does: decimal numbers, `true` and `false` are taken as such.
    ///
    /// A number that would print differently from how a browser's script prints it (from 1e21, or
    /// tiny fractions, where an exponent comes in) stays text, since it wouldn't survive a round
    /// trip.
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

    /// The number as such, if scripts print it without an exponent.
    pub(crate) fn from_number(text: &str) -> Option<Self> {
        let number: f64 = text.parse().ok()?;
        Self::from_f64(number)
    }

    pub(crate) fn from_f64(number: f64) -> Option<Self> {
        let size = number.abs();
        let plain = size == 0.0 || (1e-6..1e21).contains(&size);
        // Adding zero turns -0 into 0, which is how JSON prints it.
        plain.then_some(Self::Number(number + 0.0))
    }
}

/// `[+-]? (digits? '.')? digits`
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, digits) = unsigned.rsplit_once('.').unwrap_or(("", unsigned));
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && whole.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(truth) => write!(f, "{truth}"),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a.to_bits() == b.to_bits(),
            (Self::Bool(a), Self::Bool(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => text.hash(state),
            Self::Number(number) => number.to_bits().hash(state),
            Self::Bool(truth) => truth.hash(state),
        }
    }
}
