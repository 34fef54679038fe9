//! The hash of texts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The number of characters in a hash.
const LENGTH: usize = 32;

/// Returns the first half of the SHA-256 of some texts, each prefixed with its length.
pub(crate) fn hash<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut sha256 = Sha256::new();
    for text in texts {
        sha256.update((text.len() as u64).to_be_bytes());
        sha256.update(text);
    }
    let mut hex = String::with_capacity(LENGTH);
    for byte in &sha256.finalize()[..LENGTH / 2] {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
