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

checked_text! {
    /// The path of a file below the folder of an import, with `/` between its parts: 1 to 1,024
    /// characters, without empty parts and those of dots.
    SourcePath, |text| {
        check_length(text, 1, 1_024)?;
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if text.split('/').all(is_plain) && !text.chars().any(char::is_control) {
            return Ok(());
        }
        let message = "must be a path like posts/hello.md, without empty parts, . and ..";
        Err(Invalid::new("invalid_string", message))
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
