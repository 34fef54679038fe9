//! Sessions of signed-in users, and the codes with which they sign in.

use std::fmt;
use std::time::Duration;

use crate::named_enum;

named_enum! {
    /// The method by which a user signed in.
    pub enum SignInMethod {
        /// A mailed link, or the code in the mail.
        Mail = "mail",
        /// A link that the operator's terminal showed.
        Terminal = "terminal",
        /// A mailed invite.
        Invite = "invite",
        /// A copied link of an invite, which does not prove the user's address.
        InviteLink = "inviteLink",
        /// An identity provider.
        OpenIdConnect = "openIdConnect",
    }
}

/// The time after its last use at which a session expires.
pub const SESSION_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The time after which a request to sign in expires.
pub const SIGN_IN_LIFETIME: Duration = Duration::from_mins(15);

/// The number of wrong codes that one request to sign in allows.
pub const WRONG_CODES_PER_SIGN_IN: i64 = 5;

/// Crockford's alphabet of base 32, which has no letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const CODE_DIGITS: usize = 8;

/// A code that a person copies from a mail: 40 random bits in eight digits of base 32. Its text has
/// a hyphen in the middle. `Debug` omits it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignInCode([u8; CODE_DIGITS]);

impl SignInCode {
    /// Creates the code that encodes the lower 40 of these random bits.
    pub fn from_random(bits: u64) -> Self {
        let mut rest = bits;
        Self([(); CODE_DIGITS].map(|()| {
            let digit = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
            digit
        }))
    }

    /// Parses a code as a person types it: in any case, with or without separators, and with
    /// letters in place of the digits that look like them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = text.bytes().filter(|byte| !matches!(byte, b' ' | b'-')).map(|byte| {
            let digit = match byte.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                other => other,
            };
            ALPHABET.contains(&digit).then_some(digit)
        });
        let mut code = [0; CODE_DIGITS];
        for place in &mut code {
            *place = digits.next()??;
        }
        digits.next().is_none().then_some(Self(code))
    }

    /// Returns the digits, without the hyphen.
    pub fn digits(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text that a mail shows.
    pub fn reveal(&self) -> String {
        let digits = str::from_utf8(&self.0).expect("the alphabet is ASCII");
        let (first, second) = digits.split_at(CODE_DIGITS / 2);
        format!("{first}-{second}")
    }
}

impl fmt::Debug for SignInCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SignInCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code = SignInCode::from_random(1 << 5);
        assert_eq!(code.reveal(), "0100-0000");
        for text in ["0100-0000", "01000000", " o1oo 0000 ", "0L00-oooo", "0i000000"] {
            assert_eq!(SignInCode::parse(text), Some(code), "{text}");
        }
        for text in ["", "0100-000", "0100-00000", "0100-000U", "0100-000é", "0100_0000"] {
            assert_eq!(SignInCode::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_bit_of_a_code_counts() {
        let codes: std::collections::HashSet<_> =
            (0..40).map(|bit| SignInCode::from_random(1 << bit).reveal()).collect();
        assert_eq!(codes.len(), 40);
        assert_eq!(SignInCode::from_random(1 << 40), SignInCode::from_random(0));
        let code = SignInCode::from_random(0x12_3456_789a);
        assert_eq!(SignInCode::parse(&code.reveal()), Some(code));
        assert!(!format!("{code:?}").contains(&code.reveal()));
    }
}
