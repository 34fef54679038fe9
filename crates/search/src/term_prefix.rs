//! The prefix of the terms in an index.

use std::fmt;

/// The beginning of each term in an index: the number of the workspace, and a letter for the view.
/// So a list of postings, and the frequency of a term, never cross them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermPrefix(String);

impl TermPrefix {
    /// Creates the prefix of a workspace and a view. No prefix begins with another one, as the
    /// letter ends the number.
    pub fn new(workspace: i64, is_published: bool) -> Self {
        let view = if is_published { 'p' } else { 'c' };
        Self(format!("{}{view}", workspace.unsigned_abs()))
    }
}

impl fmt::Display for TermPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
