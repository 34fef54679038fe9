//! A piece's data as the source has it, for all formats, and its conversion to a document.

use std::collections::BTreeSet;

use galley_application::default_limits;
use galley_application::sanitize;
use galley_content::{Address, ContentLimits, ConversionWarning, Tree};
use galley_domain::content_piece::{CustomData, Description, REFERENCES_MAX, Slug, Title};
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::{ContentPieceId, Invalid, Timestamp};
use serde_json::{Map, Value, json};

use crate::assets::{AddressKind, AssetImporter, Resolved, SourceLocation};
use crate::authors::Author;
use crate::findings::{self, ImportFinding};
use crate::hash::hash;

/// A piece as its source has it, before validation.
#[derive(Debug, Default)]
pub(crate) struct RawPiece {
    /// The name that identifies the piece in later imports.
    pub(crate) name: String,
    /// The piece that it was exported from, perhaps in another store.
    pub(crate) id: Option<ContentPieceId>,
    /// The language of this version, if the piece has several.
    pub(crate) language: Option<String>,
    /// The key of the variant that an export wrote into the file.
    pub(crate) variant: Option<String>,
    /// Its folders, from the top.
    pub(crate) folders: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) slug: String,
    pub(crate) date: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) cover_url: Option<String>,
    pub(crate) cover_alt: Option<String>,
    pub(crate) cover_width: Option<String>,
    pub(crate) canonical: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) authors: Vec<Author>,
    pub(crate) state: PublishingState,
    /// The time at which a scheduled piece is published, if that is not its date.
    pub(crate) publish_at: Option<String>,
    /// All other fields, which become custom data.
    pub(crate) rest: Map<String, Value>,
    /// Custom data as a text that is stored unchanged.
    pub(crate) custom_data: Option<String>,
    pub(crate) body: SourceBody,
    /// The findings for the report.
    pub(crate) findings: Vec<ImportFinding>,
}

/// The publishing state of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PublishingState {
    #[default]
    Published,
    Draft,
    Scheduled,
    Private,
    PasswordProtected,
    /// A post that only members of the site or of a tier can read.
    MembersOnly,
    /// A post that was only sent by mail.
    Newsletter,
}

impl PublishingState {
    /// Returns the state as a plural that follows a count.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Published => "published posts",
            Self::Draft => "drafts",
            Self::Scheduled => "scheduled posts",
            Self::Private => "private posts",
            Self::PasswordProtected => "password-protected posts",
            Self::MembersOnly => "posts for members of the site",
            Self::Newsletter => "posts that were only sent by mail",
        }
    }
}

/// A piece's text.
#[derive(Debug)]
pub(crate) enum SourceBody {
    Markdown(String),
    Html(String),
}

impl Default for SourceBody {
    fn default() -> Self {
        Self::Html(String::new())
    }
}

impl SourceBody {
    /// Returns the tree of the text, with warnings about lost parts.
    fn parse(&self) -> Result<(Tree, Vec<ConversionWarning>), String> {
        let (Self::Markdown(text) | Self::Html(text)) = self;
        if text.contains('\0') {
            return Err("the text must not contain NUL".to_owned());
        }
        let limits = ContentLimits::default();
        let read = match self {
            Self::Markdown(text) => Tree::from_markdown_with_warnings(text, &limits),
            Self::Html(text) => Tree::from_html_with_warnings(text, &limits),
        };
        read.map_err(|error| error.to_string())
    }
}

/// The form in which a destination accepts content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentForm {
    /// The tree as the database stores it.
    Json,
    /// HTML, which the server parses into the same tree.
    Html,
}

/// A valid piece that can be written.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) name: ShortText,
    /// The file and post that messages to the user name.
    pub(crate) place: String,
    pub(crate) id: Option<ContentPieceId>,
    pub(crate) language: Option<String>,
    pub(crate) folders: Vec<String>,
    pub(crate) title: Title,
    pub(crate) slug: Slug,
    pub(crate) date: Option<Timestamp>,
    pub(crate) description: Option<Description>,
    pub(crate) cover_url: Option<WebReference>,
    pub(crate) cover_alt: Option<ShortText>,
    pub(crate) cover_width: Option<ShortText>,
    pub(crate) canonical_link: Option<WebReference>,
    pub(crate) tags: Vec<TagLabel>,
    pub(crate) authors: Vec<Author>,
    pub(crate) state: PublishingState,
    /// The time at which a scheduled piece is published.
    pub(crate) publish_at: Option<Timestamp>,
    pub(crate) custom_data: Option<CustomData>,
    /// The content in the form that the destination accepts.
    pub(crate) content: String,
    /// The hash of the tree's JSON.
    pub(crate) content_hash: String,
    /// The hash of all the source's fields, without its files.
    pub(crate) source_hash: String,
    pub(crate) findings: Vec<ImportFinding>,
    pub(crate) files: SourceFiles,
}

/// The files that became assets.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceFiles {
    /// The number of different ones.
    pub(crate) count: u16,
    /// The hash of their own hashes.
    pub(crate) hash: String,
}

impl RawPiece {
    /// Returns the document, or a message with the first invalid value.
    pub(crate) fn into_document(
        mut self,
        form: ContentForm,
        now: Timestamp,
        assets: Option<(&AssetImporter, &SourceLocation)>,
    ) -> Result<Document, String> {
        let source_hash = self.hash();
        let mut files = SourceFiles::default();
        let (mut tree, losses) = self.body.parse()?;
        if let Some((importer, location)) = assets {
            files = self.bring_files(&mut tree, importer, location);
        }
        if self.tags.len() > REFERENCES_MAX {
            let count = self.tags.len();
            return Err(format!("tags has {count} items, more than the limit of {REFERENCES_MAX}"));
        }
        let json = tree.to_json();
        let content_hash = hash([json.as_str()]);
        let content = match form {
            ContentForm::Json => json,
            ContentForm::Html => tree.to_html(),
        };
        check_size(&tree, content.len())?;
        let date = self.date.as_deref().map(|date| parse_date("date", date)).transpose()?;
        let publish_at =
            self.publish_at.as_deref().map(|at| parse_date("publishDate", at)).transpose()?;
        if self.state == PublishingState::Published && publish_at.is_some_and(|at| at > now) {
            self.state = PublishingState::Scheduled;
        }
        let publish_at = publish_at.or(date);
        let title = self.title.take().unwrap_or_else(|| {
            self.findings.push(ImportFinding::assumed("a title from the slug"));
            self.slug.clone()
        });
        self.add_findings(date, &tree, &losses);
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
            publish_at: publish_at.filter(|_| self.state == PublishingState::Scheduled),
            custom_data: optional("customData", self.custom_data.or(rest), CustomData::parse)?,
            content,
            content_hash,
            source_hash,
            findings: self.findings,
            files,
        })
    }

    /// Adds the findings about the date, the cover and the content.
    fn add_findings(&mut self, date: Option<Timestamp>, tree: &Tree, losses: &[ConversionWarning]) {
        if date.is_none() {
            self.findings.push(ImportFinding::missing("a date"));
        }
        if let Some(cover) = &self.cover_url {
            findings::in_cover(cover, &mut self.findings);
        }
        self.findings.extend(losses.iter().map(ImportFinding::lost));
        findings::in_content(
            tree,
            matches!(self.body, SourceBody::Markdown(_)),
            &mut self.findings,
        );
    }

    /// Stores the files at the addresses of the piece, and replaces the addresses.
    fn bring_files(
        &mut self,
        tree: &mut Tree,
        importer: &AssetImporter,
        location: &SourceLocation,
    ) -> SourceFiles {
        let (mut hashes, mut failed) = (BTreeSet::new(), BTreeSet::new());
        let mut missing = BTreeSet::new();
        let mut resolve = |address: &str, kind| match importer.resolve(address, kind, location) {
            Resolved::Asset(asset) => {
                hashes.insert(asset.hash.clone());
                Some(asset)
            }
            Resolved::Kept => None,
            Resolved::Missing => {
                missing.insert(address.to_owned());
                None
            }
            Resolved::Failed(problem) => {
                failed.insert(problem);
                None
            }
        };
        tree.replace_addresses(|address| {
            let found = match address {
                Address::Image(src) => resolve(src, AddressKind::Image),
                Address::Link(href) => resolve(href, AddressKind::Link),
            };
            found.map(|asset| asset.address)
        });
        let cover = self.cover_url.as_ref().and_then(|cover| resolve(cover, AddressKind::Image));
        if let Some(asset) = cover {
            self.cover_url = Some(asset.address);
            let width = asset.width.map(|width| width.to_string());
            self.cover_width = self.cover_width.take().or(width);
        }
        let files = SourceFiles {
            count: u16::try_from(hashes.len()).unwrap_or(u16::MAX),
            hash: hash(hashes.iter().map(String::as_str)),
        };
        for (what, details) in
            [("files that could not be stored", failed), (findings::UPLOADS, missing)]
        {
            if !details.is_empty() {
                let finding = ImportFinding::unresolved(what).times(details.len());
                let details = details.into_iter().collect();
                self.findings.push(ImportFinding { details, ..finding });
            }
        }
        files
    }

    /// Returns the hash of all the source's fields, before any conversion.
    fn hash(&self) -> String {
        let (kind, text) = match &self.body {
            SourceBody::Markdown(text) => ("markdown", text),
            SourceBody::Html(text) => ("html", text),
        };
        let mut values = json!([
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
        if let (Some(at), Value::Array(values)) = (&self.publish_at, &mut values) {
            values.push(Value::from(at.as_str()));
        }
        hash([values.to_string().as_str(), text.as_str()])
    }
}

fn optional<T>(
    what: &str,
    text: Option<String>,
    parse: impl Fn(String) -> Result<T, Invalid>,
) -> Result<Option<T>, String> {
    text.map(|text| valid(what, parse(text))).transpose()
}

/// Rejects a tree whose HTML exceeds the limit of a request. `size` is that of its JSON or HTML.
fn check_size(tree: &Tree, size: usize) -> Result<(), String> {
    let max = default_limits::CONTENT_SIZE;
    // JSON is usually longer than the HTML of the same text, but escaped characters are longer in
    // HTML.
    let size = if size > max / 6 { tree.to_html().len() } else { size };
    if size > max {
        return Err(format!("the text has {size} bytes of HTML, more than the limit of {max}"));
    }
    Ok(())
}

fn parse_date(name: &str, text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_iso8601(&to_iso8601(text))
        .map_err(|_| format!("{name} {text:?} is not an ISO 8601 date or date-time"))
}

fn valid<T>(what: &str, value: Result<T, Invalid>) -> Result<T, String> {
    value.map_err(|invalid| format!("{what} {invalid}"))
}

/// Replaces the space between date and time by `T`, and removes one before an offset.
fn to_iso8601(text: &str) -> String {
    match text.trim().split_once(' ') {
        Some((date, time)) => format!("{date}T{}", time.replace(' ', "")),
        None => text.trim().to_owned(),
    }
}
