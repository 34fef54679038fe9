//! Full-text search: the analysis of texts into terms, queries, and highlights.
//!
//! One analyser serves both engines, which get terms that need no further analysis: letters,
//! digits and symbols, separated by spaces. The tables keep to the engines' limits on positions and
//! sizes.

mod analyzer;
mod characters;
mod document;
mod first_letters;
mod fold;
#[doc(hidden)]
pub mod fuzzing;
mod highlight;
mod language;
mod query;
mod term_prefix;

pub use analyzer::{Analyzer, Term};
pub use document::{AnalyzedDocument, DocumentTexts, Tsvectors};
pub use highlight::{Highlight, Highlighter};
pub use language::Language;
pub use query::{Clause, Field, Match, SearchQuery};
pub use term_prefix::TermPrefix;
