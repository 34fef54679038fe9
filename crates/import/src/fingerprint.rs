//! Hashes of sources and pieces, by which an import detects changes since the previous import.

use galley_content::Tree;
use galley_domain::content_piece::{CustomData, Description};
use galley_domain::import_source::SourceHash;
use galley_domain::text::{ShortText, WebReference};
use serde_json::json;

use crate::hash::hash;
use crate::publication::RecordedState;
use crate::raw::{Document, SourceFiles};

/// The characters that the text decides in the hash of a source with files.
const TEXT_PART: usize = 16;

/// The characters after them, which have the number of files.
const COUNT_PART: usize = 4;

/// Returns the hash of a source with its files: the second half is that of the files.
pub(crate) fn with_files(text_hash: &str, files: &SourceFiles) -> String {
    if files.count == 0 {
        return text_hash.to_owned();
    }
    let (text, count) = (&text_hash[..TEXT_PART], files.count);
    format!("{text}{count:0COUNT_PART$x}{}", &files.hash[..TEXT_PART - COUNT_PART])
}

/// Returns true if a recorded hash is that of this text with more files than now.
pub(crate) fn loses_files(recorded: &str, text_hash: &str, files: &SourceFiles) -> bool {
    let count = recorded.get(TEXT_PART..TEXT_PART + COUNT_PART);
    let count = count.and_then(|count| u16::from_str_radix(count, 16).ok());
    recorded != text_hash
        && recorded.get(..TEXT_PART) == text_hash.get(..TEXT_PART)
        && count.is_some_and(|count| files.count < count)
}

/// The fields of a piece that an import writes, except the width of its cover. That is written only
/// if the source has one.
#[derive(Debug)]
pub(crate) struct WrittenFields<'a> {
    pub(crate) title: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) date: Option<String>,
    pub(crate) description: Option<&'a str>,
    pub(crate) cover_url: Option<&'a str>,
    pub(crate) cover_alt: Option<&'a str>,
    pub(crate) canonical_link: Option<&'a str>,
    pub(crate) custom_data: Option<&'a str>,
    pub(crate) labels: Vec<&'a str>,
    /// The hash of the tree's JSON.
    pub(crate) content_hash: &'a str,
}

impl<'a> WrittenFields<'a> {
    /// Returns the fields of the piece that a document is imported as.
    pub(crate) fn of(document: &'a Document, labels: Vec<&'a str>) -> Self {
        Self {
            title: document.title.as_str(),
            slug: document.slug.as_str(),
            date: document.date.map(|date| date.to_string()),
            description: document.description.as_ref().map(Description::as_str),
            cover_url: document.cover_url.as_ref().map(WebReference::as_str),
            cover_alt: document.cover_alt.as_ref().map(ShortText::as_str),
            canonical_link: document.canonical_link.as_ref().map(WebReference::as_str),
            custom_data: document.custom_data.as_ref().map(CustomData::as_str),
            labels,
            content_hash: &document.content_hash,
        }
    }

    pub(crate) fn hash(&self) -> SourceHash {
        let written = json!([
            self.title,
            self.slug,
            self.date,
            self.description,
            self.cover_url,
            self.cover_alt,
            self.canonical_link,
            self.custom_data,
            self.labels,
            self.content_hash,
        ]);
        SourceHash::from_stored(hash([written.to_string().as_str()]))
    }
}

/// Returns the hash of a source: of all its fields, and of the tags that every piece gets.
pub(crate) fn of_source<'d>(
    document: &'d Document,
    labels: impl Iterator<Item = &'d str>,
) -> String {
    hash(std::iter::once(document.source_hash.as_str()).chain(labels))
}

/// Returns the hash that is recorded for a source and the state of its piece.
pub(crate) fn with_state(source: &str, state: RecordedState) -> SourceHash {
    SourceHash::from_stored(format!("{source}:{}", state.to_text()))
}

/// Splits a recorded hash into the hash of the source and the state, which earlier versions did not
/// record.
pub(crate) fn split_state(recorded: &SourceHash) -> (&str, Option<RecordedState>) {
    let (source, state) = recorded.as_str().split_once(':').unwrap_or((recorded.as_str(), ""));
    (source, RecordedState::parse(state))
}

/// Returns the hash of a tree by its JSON, as this program serializes it. Invalid JSON is hashed as
/// text.
pub(crate) fn of_content(json: &str) -> String {
    match Tree::from_json(json) {
        Ok(tree) => hash([tree.to_json().as_str()]),
        Err(_) => hash([json]),
    }
}
