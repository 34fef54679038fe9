//! The texts of pieces that are searched.

use galley_content::{ContentLimits, Tree};
use galley_domain::content_piece::{ContentPiece, Description};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_search::DocumentTexts;
use galley_storage::Error as StorageError;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::marked_strings::marked_strings;

/// The texts of a piece, or of its form in a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PieceTexts {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) content: String,
    /// The labels of its tags, and the strings that the schema of its custom data marks.
    others: Vec<String>,
}

impl PieceTexts {
    /// Returns the texts of a piece with its content, as a tree. Other texts are left out.
    pub(crate) fn new(piece: &ContentPiece, tree: Option<&str>) -> Result<Self, StorageError> {
        let content = match tree {
            Some(json) => Tree::from_json(json)
                .map_err(|_| StorageError::corrupt("a content tree can't be read"))?
                .to_text(),
            None => String::new(),
        };
        let description = piece.fields.description.as_ref().map_or("", Description::as_str);
        let title = piece.fields.title.as_str().to_owned();
        let description = text_of_html(description);
        let content = content.trim_end().to_owned();
        Ok(Self { title, description, content, others: Vec::new() })
    }

    /// Adds the labels of tags.
    pub(crate) fn add_tags<'l>(&mut self, labels: impl Iterator<Item = &'l str>) {
        self.others.extend(labels.map(str::to_owned));
    }

    /// Adds the marked strings of custom data. Custom data that is no JSON has none.
    pub(crate) fn add_custom_data(&mut self, schema: &CustomDataSchema, data: &str) {
        let schema = serde_json::from_str::<Value>(schema.as_str());
        if let (Ok(schema), Ok(data)) = (schema, serde_json::from_str::<Value>(data)) {
            let found = marked_strings(&schema, &data);
            self.others.extend(found.into_iter().map(str::to_owned));
        }
    }

    /// Returns the texts for their analysis.
    pub(crate) fn as_texts(&self) -> DocumentTexts<'_> {
        DocumentTexts {
            title: &self.title,
            description: &self.description,
            content: &self.content,
            others: self.others.iter().map(String::as_str).collect(),
        }
    }

    /// Returns a hash of the texts and of `analysis`, the data on which their terms depend.
    pub(crate) fn hash(&self, analysis: &str) -> Vec<u8> {
        let mut hash = Sha256::new();
        let fields = [analysis, &self.title, &self.description, &self.content];
        let others = self.others.iter().map(String::as_str);
        for text in fields.into_iter().chain(others) {
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        // Half of it makes collisions improbable enough.
        hash.finalize()[..16].to_vec()
    }
}

/// Returns the text of a description. HTML that exceeds the parser's limits is taken as text.
fn text_of_html(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return html.to_owned();
    }
    let tree = Tree::from_html(html, &ContentLimits::default());
    tree.map_or_else(|_| html.to_owned(), |tree| tree.to_text().trim_end().to_owned())
}
