//! In which form a piece's content and description are shown.

use galley_content::{ContentError, Limits, Tree};
use galley_domain::content_piece::{ContentPiece, Description};
use galley_storage::Error as StorageError;
use serde_json::value::RawValue;

use crate::http::app::App;
use crate::http::error::Error;
use crate::http::query::Query;

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// The content, in this form.
    pub(crate) content: Option<ContentFormat>,
    /// The description as plain text.
    description_as_text: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ContentFormat {
    Json,
    Html,
    Markdown,
}

impl Format {
    /// Reads `content`, `contentFormat` and `description`.
    pub(crate) fn read(query: &mut Query) -> Self {
        let content = query.boolean("content");
        let formats = [
            ("json", ContentFormat::Json),
            ("html", ContentFormat::Html),
            ("markdown", ContentFormat::Markdown),
        ];
        let format = query.choice("contentFormat", &formats).unwrap_or(ContentFormat::Json);
        let texts = [("html", false), ("text", true)];
        Self {
            content: content.then_some(format),
            description_as_text: query.choice("description", &texts).unwrap_or(false),
        }
    }

    /// The piece's description as it is to be shown.
    pub(crate) fn description(self, piece: &ContentPiece) -> Option<String> {
        let html = piece.fields.description.as_ref().map(Description::as_str)?;
        if !self.description_as_text {
            return Some(html.to_owned());
        }
        // What is too deep to be read as a document is shown as it is.
        let text = Tree::from_html(html, &Limits::default())
            .map(|tree| tree.to_text().trim_end().to_owned());
        Some(text.unwrap_or_else(|_| html.to_owned()))
    }

    /// The content, kept as `json`, as it is to be shown.
    pub(crate) async fn content(
        self,
        app: &App,
        json: Option<String>,
    ) -> Result<Option<Box<RawValue>>, Error> {
        let (Some(format), Some(json)) = (self.content, json) else { return Ok(None) };
        let written = match format {
            ContentFormat::Json => json,
            ContentFormat::Html => app.process(json.len(), move || html(&json)).await?,
            ContentFormat::Markdown => app.process(json.len(), move || markdown(&json)).await?,
        };
        Ok(Some(RawValue::from_string(written).map_err(|_| corrupt())?))
    }
}

fn html(json: &str) -> Result<String, Error> {
    Ok(as_json_text(&tree(json)?.to_html()))
}

fn markdown(json: &str) -> Result<String, Error> {
    Ok(as_json_text(&tree(json)?.to_markdown()))
}

fn tree(json: &str) -> Result<Tree, Error> {
    Tree::from_json(json).map_err(|_: ContentError| corrupt())
}

fn as_json_text(text: &str) -> String {
    serde_json::to_string(text).expect("texts are JSON")
}

fn corrupt() -> Error {
    StorageError::corrupt("a content tree can't be read").into()
}
