//! The source that a piece was imported from, as an import records it.

use crate::text::{Invalid, check_length, checked_text};

checked_text! {
    /// A hash: 1 to 128 letters, digits and characters of base 64. The importer chooses the
    /// algorithm.
    SourceHash, |text| {
        check_length(text, 1, 128)?;
        if text.chars().all(|c| c.is_ascii_alphanumeric() || "+/=_:-".contains(c)) {
            return Ok(());
        }
        Err(Invalid::new("invalid_string", "must contain only letters, digits and + / = _ : -"))
    }
}

/// The source of a piece, or of a piece in a variant, by hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSource {
    /// The hash of the source that was imported last.
    pub source_hash: SourceHash,
    /// The hash of the piece as that import left it.
    pub imported_hash: SourceHash,
}
