//! Fractional indexes: texts whose bytewise order is the order of a list.
//!
//! A key is a fraction in base 62⁵, written as groups of five digits (`0-9A-Za-z`), without a last
//! group of zeros. Between any two keys there are always others, so an insert moves no other item.
//!
//! A new key lies a small random step from the neighbour that was inserted last. Appending, or
//! inserting repeatedly after one piece, then uses up a group in millions of inserts rather than in
//! thirty halvings. Concurrent writers seldom choose the same key.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The number of digits in a group.
const GROUP: usize = 5;

/// The number of values of a group: 62⁵.
const BASE: u32 = 916_132_832;

/// The limit on the step from a neighbour.
const STEP_MAX: u32 = 256;

/// An item's position in a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct OrderKey(String);

/// The error for a text that is not an order key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an order key")]
pub struct MalformedOrderKey;

/// The neighbour that was inserted last, and that the next insert will find replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovingNeighbour {
    /// The neighbour before, as when each insert goes after the item just inserted.
    Before,
    /// The neighbour after, as when each insert goes after the same piece.
    After,
}

impl<'de> Deserialize<'de> for OrderKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl OrderKey {
    /// The most bytes of a key. An insert that needs a longer one is rejected.
    pub const LENGTH_MAX: usize = 255;

    /// Parses a key that a client sends.
    pub fn parse(text: &str) -> Result<Self, MalformedOrderKey> {
        let is_short = text.len() <= Self::LENGTH_MAX;
        let whole_groups = !text.is_empty() && text.len().is_multiple_of(GROUP);
        let known_digits = text.bytes().all(|digit| digit.is_ascii_alphanumeric());
        let ends_in_zeros = text.ends_with("00000");
        if is_short && whole_groups && known_digits && !ends_in_zeros {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedOrderKey)
        }
    }

    /// Creates a key from the database without a check, as it was checked when it was written.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a key after `before` and before `after`, where `None` is the list's start or end.
    ///
    /// `random` selects the step. `before` must be smaller than `after`.
    pub fn between(
        before: Option<&Self>,
        after: Option<&Self>,
        moving: MovingNeighbour,
        random: u32,
    ) -> Self {
        let (mut key, low, high) = free_range(before, after, 1);
        let step = (1 + random % STEP_MAX).min((high - low).div_ceil(2)).max(1);
        let group = match (before, after, moving) {
            (None, None, _) => BASE / 2,
            (None, ..) | (Some(_), Some(_), MovingNeighbour::After) => {
                high - step.min(high - low - 1)
            }
            (_, None, _) | (_, _, MovingNeighbour::Before) => low + step.min(high - low - 1),
        };
        push_group(&mut key, group);
        Self(key)
    }

    /// Returns the keys with these numbers of `count` keys that are evenly spaced between `before`
    /// and `after`, in ascending order. Numbers start at 1.
    pub fn spread_part(
        before: Option<&Self>,
        after: Option<&Self>,
        numbers: RangeInclusive<u32>,
        count: u32,
    ) -> Vec<Self> {
        let (prefix, low, high) = free_range(before, after, values_for(count));
        let width = u64::from(high - low);
        numbers
            .map(|number| {
                let offset = width * u64::from(number) / (u64::from(count) + 1);
                let mut key = prefix.clone();
                push_group(&mut key, low + u32::try_from(offset).expect("less than the width"));
                Self(key)
            })
            .collect()
    }

    /// Returns the length of the keys that [`OrderKey::spread_part`] returns.
    pub fn spread_length(before: Option<&Self>, after: Option<&Self>, count: u32) -> usize {
        free_range(before, after, values_for(count)).0.len() + GROUP
    }

    /// Returns the key at a fraction of the distance from `before` to `after`. `part` is at most
    /// `whole`.
    pub fn at_fraction(before: Option<&Self>, after: Option<&Self>, part: u32, whole: u32) -> Self {
        let (mut key, low, high) = free_range(before, after, values_for(0));
        let width = u64::from(high - low);
        let offset = (width * u64::from(part) / u64::from(whole.max(1))).clamp(1, width - 1);
        push_group(&mut key, low + u32::try_from(offset).expect("less than the width"));
        Self(key)
    }

    /// Returns the gap between two neighbours. The greater of two gaps takes more keys before keys
    /// grow longer.
    pub fn gap(before: Option<&Self>, after: Option<&Self>) -> Gap {
        let (prefix, low, high) = free_range(before, after, 1);
        Gap { depth: Reverse(prefix.len()), width: high - low }
    }
}

/// The free range between two keys. A range in an earlier group is greater than one in a later
/// group; in the same group, the wider range is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    depth: Reverse<usize>,
    width: u32,
}

/// Returns the number of free values that `count` evenly spaced keys need to keep gaps beside them.
fn values_for(count: u32) -> u32 {
    count.saturating_add(1).saturating_mul(STEP_MAX).min(BASE / 2)
}

/// Returns the shortest prefix under which at least `needed` group values lie strictly between the
/// two keys, and the bounds of these values, exclusive.
fn free_range(
    before: Option<&OrderKey>,
    after: Option<&OrderKey>,
    needed: u32,
) -> (String, u32, u32) {
    let mut prefix = String::new();
    let mut after = after;
    for index in 0.. {
        let low = before.map_or(0, |key| group_at(&key.0, index));
        let high = after.map_or(BASE, |key| group_at(&key.0, index));
        if high > low && high - low > needed {
            return (prefix, low, high);
        }
        push_group(&mut prefix, low);
        if high > low {
            // Any key under this prefix is smaller than `after`.
            after = None;
        }
    }
    unreachable!("beyond both keys every group is free")
}

/// Returns the group's value, or zero beyond the key's end.
fn group_at(key: &str, index: usize) -> u32 {
    let Some(digits) = key.as_bytes().get(index * GROUP..(index + 1) * GROUP) else { return 0 };
    digits.iter().fold(0, |value, digit| {
        let value_of_digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            _ => digit.saturating_sub(b'a') + 36,
        };
        value * 62 + u32::from(value_of_digit)
    })
}

fn push_group(key: &mut String, value: u32) {
    let mut divisor = BASE / 62;
    for _ in 0..GROUP {
        key.push(char::from(DIGITS[(value / divisor % 62) as usize]));
        divisor = (divisor / 62).max(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates numbers deterministically, so that every run creates the same keys.
    fn next(random: &mut u32) -> u32 {
        *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *random >> 8
    }

    #[test]
    fn appends_stay_short() {
        let mut random = 1;
        let mut last = OrderKey::between(None, None, MovingNeighbour::Before, 0);
        for _ in 0..100_000 {
            let key =
                OrderKey::between(Some(&last), None, MovingNeighbour::Before, next(&mut random));
            assert!(key > last);
            last = key;
        }
        assert!(last.as_str().len() <= 10, "{last:?}");
    }

    #[test]
    fn inserts_after_one_reference_stay_short() {
        let mut random = 2;
        let reference = OrderKey::between(None, None, MovingNeighbour::Before, 0);
        let mut after = OrderKey::between(Some(&reference), None, MovingNeighbour::Before, 7);
        for _ in 0..100_000 {
            let key = OrderKey::between(
                Some(&reference),
                Some(&after),
                MovingNeighbour::After,
                next(&mut random),
            );
            assert!(reference < key && key < after);
            after = key;
        }
        assert!(after.as_str().len() < 64, "{after:?}");
    }

    #[test]
    fn a_chain_of_inserts_before_one_piece_stays_short() {
        let mut random = 3;
        let end = OrderKey::between(None, None, MovingNeighbour::Before, 0);
        let mut before = OrderKey::between(None, Some(&end), MovingNeighbour::After, 9);
        for _ in 0..100_000 {
            let key = OrderKey::between(
                Some(&before),
                Some(&end),
                MovingNeighbour::Before,
                next(&mut random),
            );
            assert!(before < key && key < end);
            before = key;
        }
        assert!(before.as_str().len() < 64, "{before:?}");
    }

    #[test]
    fn malformed_keys_are_rejected() {
        let long = "a".repeat(OrderKey::LENGTH_MAX + GROUP);
        for text in [&long, "", "abcd", "abcdef", "abc-e", "abcde00000", "äbcd"] {
            assert_eq!(OrderKey::parse(text), Err(MalformedOrderKey), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_two_neighbours_have_a_key_between_them(places in prop::collection::vec((any::<u16>(), any::<u32>(), any::<bool>()), 1..300)) {
            let mut keys: Vec<OrderKey> = Vec::new();
            for (place, random, before) in places {
                let place = usize::from(place) % (keys.len() + 1);
                let moving = if before { MovingNeighbour::Before } else { MovingNeighbour::After };
                let key = OrderKey::between(
                    place.checked_sub(1).map(|index| &keys[index]), keys.get(place), moving, random);
                let is_short = key.as_str().len() <= OrderKey::LENGTH_MAX;
                prop_assert_eq!(OrderKey::parse(key.as_str()).ok(), is_short.then(|| key.clone()));
                keys.insert(place, key);
            }
            prop_assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn spread_keys_lie_in_order_between_their_bounds(count in 1_u32..500, random in any::<u32>(), tight in any::<bool>()) {
            let before = OrderKey::between(None, None, MovingNeighbour::Before, 0);
            let mut after = OrderKey::between(Some(&before), None, MovingNeighbour::Before, random);
            if tight {
                for _ in 0..40 {
                    after = OrderKey::between(Some(&before), Some(&after), MovingNeighbour::After, 0);
                }
            }
            let keys = OrderKey::spread_part(Some(&before), Some(&after), 1..=count, count);
            prop_assert_eq!(keys.len(), count as usize);
            let all: Vec<_> = [before].into_iter().chain(keys).chain([after]).collect();
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", all);
            prop_assert!(all.iter().all(|key| OrderKey::parse(key.as_str()).is_ok()), "{:?}", all);
            let length = OrderKey::spread_length(Some(&all[0]), all.last(), count);
            prop_assert!(all[1..all.len() - 1].iter().all(|key| key.as_str().len() == length));
        }

        #[test]
        fn a_key_at_any_fraction_lies_between_its_neighbours(part in any::<u32>(), random in any::<u32>(), tight in 0..40) {
            let before = OrderKey::between(None, None, MovingNeighbour::Before, 0);
            let mut after = OrderKey::between(Some(&before), None, MovingNeighbour::Before, random);
            for _ in 0..tight {
                after = OrderKey::between(Some(&before), Some(&after), MovingNeighbour::After, 0);
            }
            let gap = OrderKey::gap(Some(&before), Some(&after));
            let key = OrderKey::at_fraction(Some(&before), Some(&after), part, u32::MAX);
            prop_assert!(before < key && key < after && OrderKey::parse(key.as_str()).is_ok());
            prop_assert!(OrderKey::gap(Some(&before), Some(&key)) <= gap);
            prop_assert!(OrderKey::gap(None, None) > gap);
        }
    }
}
