//! The prefix of the terms in an index.

use std::fmt;

/// The letters that end a prefix, and those that are within one.
const LAST_LETTERS: &[u8; 13] = b"nopqrstuvwxyz";
const LETTERS: &[u8; 13] = b"abcdefghijklm";

/// The beginning of each term in an index: the number of the workspace, and that of the partition
/// in letters. A partition is a view, or a variant in a view. So a list of postings, and the
/// frequency of a term, never cross them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermPrefix(String);

impl TermPrefix {
    /// Creates the prefix of a partition. No prefix begins with another one, as a letter from `n`
    /// on ends it.
    pub fn new(workspace: i64, partition: i64) -> Self {
        let mut letters = Vec::new();
        let mut rest = partition.unsigned_abs();
        let mut alphabet = LAST_LETTERS;
        loop {
            let digit = usize::try_from(rest % 13).unwrap_or_default();
            letters.push(char::from(alphabet[digit]));
            alphabet = LETTERS;
            rest /= 13;
            if rest == 0 {
                break;
            }
        }
        let letters: String = letters.into_iter().rev().collect();
        Self(format!("{}{letters}", workspace.unsigned_abs()))
    }
}

impl fmt::Display for TermPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_begins_with_another_one() {
        let numbers = || (0..40).chain([168, 169, 170, 2_196, 2_197, i64::MAX]);
        let prefixes: Vec<String> = numbers()
            .flat_map(|one| numbers().map(move |other| TermPrefix::new(one, other).to_string()))
            .collect();
        assert_eq!(TermPrefix::new(7, 0).to_string(), "7n");
        assert_eq!(TermPrefix::new(12, 13).to_string(), "12bn");
        for (place, one) in prefixes.iter().enumerate() {
            for other in &prefixes[place + 1..] {
                assert!(!one.starts_with(other) && !other.starts_with(one), "{one} {other}");
            }
        }
    }
}
