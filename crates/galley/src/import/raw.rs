//! What a source says of a piece, whatever its format, and how it becomes one.

use galley_content::{Limits, Tree};
use galley_domain::content_piece::{CustomData, Description, REFERENCES_MAX, Slug, Title};
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::{ContentPieceId, Invalid, Timestamp};
use galley_server::{Limits as ServerLimits, sanitize};
use serde_json::{Map, Value, json};

use super::findings::{self, Finding};
use super::hash::hash;

/// A piece as its source says it, before anything of it was checked.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// By what the piece is known when it is imported again.
    pub(super) name: String,
    /// The piece that it was exported from, perhaps of another store.
    pub(super) id: Option<ContentPieceId>,
    /// The language that it is in, where it is one of several.
    pub(super) language: Option<String>,
    /// The folders that it is in, from the top.
    pub(super) folders: Vec<String>,
    pub(super) title: Option<String>,
    pub(super) slug: String,
    pub(super) date: Option<String>,
    pub(super) description: Option<String>,
    pub(super) cover_url: Option<String>,
    pub(super) cover_alt: Option<String>,
    pub(super) cover_width: Option<String>,
    pub(super) canonical: Option<String>,
    pub(super) tags: Vec<String>,
    /// The names of its authors in the source.
    pub(super) authors: Vec<String>,
    pub(super) state: State,
    /// Whatever else there is.
    pub(super) rest: Map<String, Value>,
    /// The same as a text that is to be kept as it is.
    pub(super) custom_data: Option<String>,
    pub(super) body: Body,
    /// What the report says of it.
    pub(super) findings: Vec<Finding>,
}

/// The publishing state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Published,
    Draft,
    Scheduled,
    Private,
    PasswordProtected,
}

impl State {
    /// The name of its group below that of drafts; drafts are directly in that.
    pub(super) fn group(self) -> Option<&'static str> {
        match self {
            Self::Published | Self::Draft => None,
            Self::Scheduled => Some("Scheduled"),
            Self::Private => Some("Private"),
            Self::PasswordProtected => Some("Password-protected"),
        }
    }

    /// A name that can be counted.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Published => "published posts",
            Self::Draft => "drafts",
            Self::Scheduled => "scheduled posts",
            Self::Private => "private posts",
            Self::PasswordProtected => "password-protected posts",
        }
    }
}

/// A piece's text.
#[derive(Debug)]
pub(super) enum Body {
    Markdown(String),
    Html(String),
}

impl Default for Body {
    fn default() -> Self {
        Self::Html(String::new())
    }
}

/// How a place takes content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The tree as the database keeps it.
    Json,
    /// HTML, from which the server makes the same tree again.
    Html,
}

/// A piece that can be kept.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) name: ShortText,
    /// Where it stands, for people.
    pub(super) place: String,
    pub(super) id: Option<ContentPieceId>,
    pub(super) language: Option<String>,
    pub(super) folders: Vec<String>,
    pub(super) title: Title,
    pub(super) slug: Slug,
    pub(super) date: Option<Timestamp>,
    pub(super) description: Option<Description>,
    pub(super) cover_url: Option<WebReference>,
    pub(super) cover_alt: Option<ShortText>,
    pub(super) cover_width: Option<ShortText>,
    pub(super) canonical_link: Option<WebReference>,
    pub(super) tags: Vec<TagLabel>,
    pub(super) authors: Vec<String>,
    pub(super) state: State,
    pub(super) custom_data: Option<CustomData>,
    /// The tree, in the form that the place wants.
    pub(super) content: String,
    /// The hash of the tree's JSON.
    pub(super) content_hash: String,
    /// The hash of all that the source says.
    pub(super) source_hash: String,
    pub(super) findings: Vec<Finding>,
}

impl Raw {
    /// The piece, or what is wrong with it.
    pub(super) fn into_document(mut self, form: Form) -> Result<Document, String> {
        let (Body::Markdown(body) | Body::Html(body)) = &self.body;
        if body.contains('\0') {
            return Err("the text must not contain NUL".to_owned());
        }
        let source_hash = self.hash();
        let limits = Limits::default();
        let read = match &self.body {
            Body::Markdown(text) => Tree::from_markdown_with_losses(text, &limits),
            Body::Html(text) => Tree::from_html_with_losses(text, &limits),
        };
        let (tree, losses) = read.map_err(|error| error.to_string())?;
        if self.tags.len() > REFERENCES_MAX {
            let count = self.tags.len();
            return Err(format!("tags has {count} items, and at most {REFERENCES_MAX} are kept"));
        }
        let json = tree.to_json();
        let content_hash = hash([json.as_str()]);
        let content = match form {
            Form::Json => json,
            Form::Html => tree.to_html(),
        };
        let max = ServerLimits::default().content_max;
        // JSON says more words of the same; but what is escaped in HTML is longer there.
        if content.len() > max / 6 {
            let size = tree.to_html().len();
            if size > max {
                return Err(format!(
                    "the text has {size} bytes of HTML, and at most {max} are kept"
                ));
            }
        }
        let date = match &self.date {
            Some(text) => Some(
                Timestamp::parse_iso8601(&iso(text))
                    .map_err(|_| format!("date {text:?} is not an ISO 8601 date or date-time"))?,
            ),
            None => None,
        };
        let title = self.title.take().unwrap_or_else(|| {
            self.findings.push(Finding::assumed("a title from the name"));
            self.slug.clone()
        });
        if date.is_none() {
            self.findings.push(Finding::missing("a date"));
        }
        if let Some(cover) = &self.cover_url {
            findings::in_cover(cover, &mut self.findings);
        }
        self.findings.extend(losses.iter().map(Finding::lost));
        findings::in_content(&tree, matches!(self.body, Body::Markdown(_)), &mut self.findings);
        let rest = Some(self.rest).filter(|rest| !rest.is_empty());
        let rest = rest.map(|rest| Value::Object(rest).to_string());
        Ok(Document {
            place: self.name.clone(),
            name: valid("the path", ShortText::parse(self.name))?,
            id: self.id,
            language: self.language,
            folders: self.folders,
            title: valid("title", Title::parse(title))?,
            slug: valid("slug", Slug::parse(self.slug.replace(char::is_whitespace, "-")))?,
            date,
            description: optional("description", self.description, sanitize::description)?,
            cover_url: optional("cover", self.cover_url, WebReference::parse)?,
            cover_alt: optional("cover", self.cover_alt, ShortText::parse)?,
            cover_width: optional("cover", self.cover_width, ShortText::parse)?,
            canonical_link: optional("canonical", self.canonical, WebReference::parse)?,
            tags: self
                .tags
                .into_iter()
                .map(|tag| valid("tags", TagLabel::parse(tag)))
                .collect::<Result<_, _>>()?,
            authors: self.authors,
            state: self.state,
            custom_data: optional("the rest", self.custom_data.or(rest), CustomData::parse)?,
            content,
            content_hash,
            source_hash,
            findings: self.findings,
        })
    }

    /// The hash of all that the source says, before anything is made of it.
    fn hash(&self) -> String {
        let (kind, text) = match &self.body {
            Body::Markdown(text) => ("markdown", text),
            Body::Html(text) => ("html", text),
        };
        let said = json!([
            self.title,
            self.slug,
            self.date,
            self.description,
            self.cover_url,
            self.cover_alt,
            self.cover_width,
            self.canonical,
            self.tags,
            self.rest,
            self.custom_data,
            kind,
        ]);
        hash([said.to_string().as_str(), text.as_str()])
    }
}

fn optional<T>(
    what: &str,
    text: Option<String>,
    parse: impl Fn(String) -> Result<T, Invalid>,
) -> Result<Option<T>, String> {
    text.map(|text| valid(what, parse(text))).transpose()
}

fn valid<T>(what: &str, value: Result<T, Invalid>) -> Result<T, String> {
    value.map_err(|invalid| format!("{what} {invalid}"))
}

/// A date and a time may have a space between, too, and one before an offset.
fn iso(text: &str) -> String {
    match text.trim().split_once(' ') {
        Some((date, time)) => format!("{date}T{}", time.replace(' ', "")),
        None => text.trim().to_owned(),
    }
}
