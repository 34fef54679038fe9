//! Identifiers: a type prefix, `_`, and a time-ordered 128-bit value in lower-case Crockford
//! base 32.
//!
//! The value has the layout of a ULID: 48 bits of Unix milliseconds, then 80 bits. These are random
//! at first and incremented within a millisecond. So one generator's identifiers sort in the order
//! of their creation. Clients treat them as opaque.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// Crockford's alphabet, lower case: no `i`, `l`, `o` or `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The number of base-32 digits that encode 128 bits.
const DIGITS: usize = 26;

const RANDOM_BITS: u32 = 80;

/// The error for a text that is not an identifier of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of this kind")]
pub struct MalformedId;

/// A generator of the 128-bit values of identifiers. Each value is greater than the last one.
#[derive(Debug, Default)]
pub struct IdSequence {
    last: u128,
}

impl IdSequence {
    /// Returns the next value for the time `now_ms`. In a new millisecond, `random` sets the bits
    /// below the time.
    ///
    /// If the clock hasn't advanced or was set back, the last value is incremented instead.
    pub fn next(&mut self, now_ms: i64, random: u128) -> u128 {
        let time = u128::from(now_ms.max(0).unsigned_abs()) & ((1 << 48) - 1);
        // The top random bit is clear, so that increments within a millisecond don't overflow into
        // the time.
        let fresh = (time << RANDOM_BITS) | (random & ((1 << (RANDOM_BITS - 1)) - 1));
        self.last =
            if fresh >> RANDOM_BITS > self.last >> RANDOM_BITS { fresh } else { self.last + 1 };
        self.last
    }
}

/// The limit on bytes of an identifier's text.
const TEXT_MAX: usize = 40;

/// Writes an identifier's text.
fn encode<'t>(value: u128, prefix: &str, text: &'t mut [u8; TEXT_MAX]) -> &'t str {
    let end = prefix.len() + DIGITS;
    text[..prefix.len()].copy_from_slice(prefix.as_bytes());
    let mut rest = value;
    for digit in text[prefix.len()..end].iter_mut().rev() {
        *digit = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    std::str::from_utf8(&text[..end]).expect("prefixes and the alphabet are ASCII")
}

fn decode(text: &str, prefix: &str) -> Result<u128, MalformedId> {
    let digits = text.strip_prefix(prefix).ok_or(MalformedId)?.as_bytes();
    // 26 digits encode 130 bits, so the first digit may use only three of its five bits.
    if digits.len() != DIGITS || digits[0] > b'7' {
        return Err(MalformedId);
    }
    digits.iter().try_fold(0_u128, |value, &digit| match VALUES[digit as usize] {
        NO_DIGIT => Err(MalformedId),
        position => Ok((value << 5) | u128::from(position)),
    })
}

/// The value of a byte that isn't in the alphabet.
const NO_DIGIT: u8 = u8::MAX;

/// The value of each byte as a digit.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut position = 0;
    while position < ALPHABET.len() {
        #[expect(clippy::cast_possible_truncation, reason = "there are 32")]
        let value = position as u8;
        values[ALPHABET[position] as usize] = value;
        position += 1;
    }
    values
};

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The prefix of every identifier of this kind.
            pub const PREFIX: &'static str = concat!($prefix, "_");

            /// Creates an identifier with this value, which an [`IdSequence`] generates.
            pub const fn new(value: u128) -> Self {
                Self(value)
            }

            /// Returns the first identifier of a time.
            pub fn first_at(at: Timestamp) -> Self {
                let ms = u128::from(at.ms().max(0).unsigned_abs()) & ((1 << 48) - 1);
                Self(ms << RANDOM_BITS)
            }

            /// Returns an identifier that sorts as if it were created earlier by `time`.
            #[must_use]
            pub const fn earlier(self, time: std::time::Duration) -> Self {
                Self(self.0.saturating_sub(time.as_millis() << RANDOM_BITS))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(encode(self.0, Self::PREFIX, &mut [0; TEXT_MAX]))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl FromStr for $name {
            type Err = MalformedId;

            fn from_str(text: &str) -> Result<Self, MalformedId> {
                decode(text, Self::PREFIX).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(encode(self.0, Self::PREFIX, &mut [0; TEXT_MAX]))
            }
        }
    )*};
}

identifiers! {
    /// Identifies a workspace.
    WorkspaceId = "ws";
    /// Identifies a user of the installation.
    UserId = "usr";
    /// Identifies a membership: a user, or a pending invite, in one workspace.
    WorkspaceMemberId = "wm";
    /// Identifies a role of a workspace.
    RoleId = "role";
    /// Identifies a tag.
    TagId = "tag";
    /// Identifies a variant.
    VariantId = "var";
    /// Identifies a content group.
    ContentGroupId = "cg";
    /// Identifies a content piece.
    ContentPieceId = "cp";
    /// Identifies a revision of a piece.
    RevisionId = "rev";
    /// Identifies an event.
    EventId = "evt";
    /// Identifies an access token. It is not the token itself.
    TokenId = "tok";
    /// Identifies a session of a signed-in user.
    SessionId = "ses";
    /// Identifies a webhook.
    WebhookId = "wh";
    /// Identifies the delivery of an event to a webhook.
    DeliveryId = "dlv";
    /// Identifies a mail in the queue.
    MailId = "mail";
    /// Identifies an asset.
    AssetId = "ast";
    /// Identifies the stored file of assets.
    AssetFileId = "af";
    /// Identifies an entry of the audit log.
    AuditEntryId = "aud";
}

/// The unguessable part of an asset's address: 128 random bits. It is not the asset's identifier,
/// which tells the time of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetKey(u128);

impl AssetKey {
    /// The number of characters of a key.
    pub const LENGTH: usize = DIGITS;

    /// Creates a key with these random bits.
    pub const fn new(random: u128) -> Self {
        Self(random)
    }
}

impl fmt::Display for AssetKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(encode(self.0, "", &mut [0; TEXT_MAX]))
    }
}

impl FromStr for AssetKey {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        decode(text, "").map(Self)
    }
}

impl AuditEntryId {
    /// Returns the time of its creation.
    pub fn created_at(self) -> Timestamp {
        Timestamp::from_ms(i64::try_from(self.0 >> RANDOM_BITS).unwrap_or(i64::MAX))
    }
}

impl RevisionId {
    /// Returns the identifier of a revision: its number above the random bits of the piece's own
    /// identifier. So it needs no column, and revisions of one piece sort by number.
    pub const fn of(piece: ContentPieceId, number: i64) -> Self {
        Self(((number.unsigned_abs() as u128) << RANDOM_BITS) | Self::random_bits(piece))
    }

    /// Returns the number of this revision, or `None` if it is not one of `piece`.
    pub fn number_in(self, piece: ContentPieceId) -> Option<i64> {
        let is_of_piece = self.0 & ((1 << RANDOM_BITS) - 1) == Self::random_bits(piece);
        i64::try_from(self.0 >> RANDOM_BITS).ok().filter(|_| is_of_piece)
    }

    const fn random_bits(piece: ContentPieceId) -> u128 {
        piece.0 & ((1 << RANDOM_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_its_number_in_its_piece_alone() {
        let piece = ContentPieceId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for number in [1, 2, 0xffff_ffff_ffff] {
            let id = RevisionId::of(piece, number);
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(id.number_in(piece), Some(number));
            assert_eq!(id.number_in(ContentPieceId::new(piece.0 + 1)), None);
        }
        assert!(RevisionId::of(piece, 9) < RevisionId::of(piece, 10));
    }

    #[test]
    fn identifiers_survive_a_round_trip_through_text() {
        for value in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef] {
            let id = TagId::new(value);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(TagId::new(0).to_string(), "tag_00000000000000000000000000");
    }

    #[test]
    fn an_audit_entry_has_the_time_of_its_creation() {
        let at = Timestamp::from_ms(1_764_200_000_123);
        let first = AuditEntryId::first_at(at);
        assert_eq!(first.created_at(), at);
        let created = AuditEntryId::new(IdSequence::default().next(at.ms(), u128::MAX));
        assert_eq!(created.created_at(), at);
        assert!(
            first < created && created < AuditEntryId::first_at(Timestamp::from_ms(at.ms() + 1))
        );
    }

    #[test]
    fn malformed_identifiers_are_rejected() {
        let good = TagId::new(77).to_string();
        let upper = good.to_uppercase();
        let too_large = "tag_8zzzzzzzzzzzzzzzzzzzzzzzzz";
        for text in ["", "tag_", &good[..29], &format!("{good}0"), &upper, too_large, "tag_é"] {
            assert_eq!(text.parse::<TagId>(), Err(MalformedId), "{text:?}");
        }
        assert_eq!(good.parse::<RoleId>(), Err(MalformedId));
    }

    #[test]
    fn a_sequence_increases_even_if_the_clock_is_set_back() {
        let mut ids = IdSequence::default();
        let made: Vec<_> = [5, 5, 4, 6, 6, 1].map(|now| ids.next(now, u128::MAX)).to_vec();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]), "{made:?}");
    }
}
