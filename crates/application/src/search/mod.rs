//! Full-text search: the texts of pieces, and the worker that indexes them.

mod batch;
pub mod indexer;
mod marked_strings;
mod piece_documents;
mod texts;

use std::sync::LazyLock;

use galley_search::{Analyzer, Language};

pub(crate) use self::texts::PieceTexts;

/// The version of the analysis. With another one, each document is indexed again.
const ANALYSIS: i64 = 1;

/// Returns the analyser, whose data are shared.
pub(crate) fn analyzer() -> &'static Analyzer {
    static ANALYZER: LazyLock<Analyzer> = LazyLock::new(Analyzer::default);
    &ANALYZER
}

/// Returns the language of a tag or of a variant's key, if its words have stems.
pub(crate) fn language(tag: Option<&str>) -> Option<Language> {
    tag.and_then(Language::of_tag)
}
