//! The format of access tokens.
//!
//! A token is `galley_`, 43 characters of base 62 that encode 256 random bits, and a CRC-32 in six
//! more. The prefix lets secret scanners recognise tokens. The checksum lets a mistyped one be
//! rejected without a look-up. The store keeps only a hash of the token.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::text::line_of_text;

line_of_text! {
    /// A token's name for people: 1 to 255 characters without control characters.
    TokenName(1..=255)
}

line_of_text! {
    /// The name of the extension that a token belongs to: 1 to 100 characters without control
    /// characters.
    ExtensionName(1..=100)
}

/// The limit on the groups to which a token's view of content is restricted.
pub const GROUPS_MAX: usize = 100;

const PREFIX: &str = "galley_";
const SECRET_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The SHA-256 of a token, which is stored in its place.
pub type TokenHash = [u8; 32];

/// Returns the hash of a text, which may be a token.
pub fn hash(text: &str) -> TokenHash {
    Sha256::digest(text.as_bytes()).into()
}

/// A well-formed access token. `Debug` omits it.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

/// The error for a text that is no access token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an access token")]
pub struct MalformedAccessToken;

impl AccessToken {
    /// Creates the token that encodes these random bits.
    pub fn from_random(bits: [u8; 32]) -> Self {
        let mut text = String::with_capacity(PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS);
        text.push_str(PREFIX);
        text.push_str(&base62(bits));
        let checksum = checksum(&text);
        text.push_str(&checksum);
        Self(text)
    }

    /// Parses a token, and checks its format and checksum.
    pub fn parse(text: &str) -> Result<Self, MalformedAccessToken> {
        let secret = text.strip_prefix(PREFIX).ok_or(MalformedAccessToken)?;
        let digits = secret.bytes().all(|digit| digit.is_ascii_alphanumeric());
        if !digits || secret.len() != SECRET_DIGITS + CHECKSUM_DIGITS {
            return Err(MalformedAccessToken);
        }
        let (signed, sum) = text.split_at(text.len() - CHECKSUM_DIGITS);
        if checksum(signed) == sum { Ok(Self(text.to_owned())) } else { Err(MalformedAccessToken) }
    }

    /// Returns the token itself, which is shown once, at its creation.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash that is stored in place of the token.
    pub fn hash(&self) -> TokenHash {
        hash(&self.0)
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AccessToken(…)")
    }
}

fn base62(mut number: [u8; 32]) -> String {
    let mut digits = [0_u8; SECRET_DIGITS];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u16;
        for byte in &mut number {
            let value = (remainder << 8) | u16::from(*byte);
            *byte = u8::try_from(value / 62).expect("the remainder is below 62");
            remainder = value % 62;
        }
        *digit = BASE62[usize::from(remainder)];
    }
    digits.iter().map(|&digit| char::from(digit)).collect()
}

fn checksum(text: &str) -> String {
    let mut sum = crc32fast::hash(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(sum % 62) as usize];
        sum /= 62;
    }
    digits.iter().map(|&digit| char::from(digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_published_shape() {
        for bits in [[0; 32], [255; 32], [7; 32]] {
            let token = AccessToken::from_random(bits);
            assert_eq!(token.reveal().len(), 7 + 43 + 6);
            assert_eq!(AccessToken::parse(token.reveal()), Ok(token.clone()));
            assert!(!format!("{token:?}").contains(token.reveal()));
        }
        assert_ne!(AccessToken::from_random([0; 32]), AccessToken::from_random([255; 32]));
    }

    #[test]
    fn a_mistyped_token_is_rejected() {
        let token = AccessToken::from_random([42; 32]);
        let text = token.reveal();
        for position in 7..text.len() {
            let mut other = text.as_bytes().to_vec();
            other[position] = if other[position] == b'x' { b'y' } else { b'x' };
            let other = String::from_utf8(other).unwrap();
            assert_eq!(AccessToken::parse(&other), Err(MalformedAccessToken), "{other}");
        }
        for other in ["", "galley_", &text[1..], &format!("{text}0"), "galley_é"] {
            assert_eq!(AccessToken::parse(other), Err(MalformedAccessToken), "{other}");
        }
    }
}
