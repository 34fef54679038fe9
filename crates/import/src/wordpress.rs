//! Reads a WordPress export (WXR: RSS with WordPress's own elements), one post at a time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use galley_content::{ContentLimits, Tree};
use quick_xml::escape::{resolve_html5_entity, resolve_xml_entity};
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use serde_json::{Map, Value};

use crate::authors::Author;
use crate::autop;
use crate::findings::ImportFinding;
use crate::line_counting::LineCountingReader;
use crate::raw::{PublishingState, RawPiece, SourceBody};
use crate::sources::SourceContent;

/// The limit of text in one element, in bytes.
const TEXT_SIZE_LIMIT: usize = 32 * 1024 * 1024;

/// The data of a file outside its posts, and the data that posts refer to.
#[derive(Debug, Default)]
struct ExportContext {
    host: String,
    language: String,
    /// The authors by login.
    authors: HashMap<String, Author>,
    /// Attachments by their post's id.
    attachments: HashMap<String, Attachment>,
    posts: u64,
}

/// An attachment, such as a featured image.
#[derive(Debug)]
struct Attachment {
    address: String,
    alt: Option<String>,
}

/// An `<item>`.
#[derive(Debug, Default)]
struct ExportedItem {
    /// The texts of its elements, by prefixed name.
    texts: HashMap<String, String>,
    categories: Vec<WordPressTerm>,
    /// `wp:postmeta`, keys and values.
    metas: Vec<(String, String)>,
    comments: usize,
    line: usize,
    /// The reason why the item can't be read, and its line.
    problem: Option<(usize, String)>,
}

#[derive(Debug)]
struct WordPressTerm {
    domain: String,
    name: String,
}

/// An item of a file: a post, or the reason why it isn't one.
pub(crate) enum ItemOutcome {
    /// The number of items, sent before the first post.
    Count(u64),
    Post(Box<RawPiece>),
    /// An item that is left out, with the reason. Left-out items are counted, as leaving them out
    /// may be intended.
    LeftOut(ImportFinding),
    /// An unreadable part, with its line.
    Problem(usize, String),
}

/// Reads a file to its end, or until `tell` breaks.
pub(crate) fn read(
    content: &SourceContent,
    mut tell: impl FnMut(ItemOutcome) -> ControlFlow<()>,
) -> Result<(), (usize, String)> {
    let site = collect_context(content)?;
    if tell(ItemOutcome::Count(site.posts)).is_break() {
        return Ok(());
    }
    let result = parse_export(content, |piece| match piece {
        ExportPart::Item(item) => tell(convert_item(&site, item)),
        ExportPart::Author(..) | ExportPart::Channel(..) => ControlFlow::Continue(()),
    });
    match result {
        // The posts before the error are imported all the same.
        Err((line, message)) => {
            let message = format!("{message}; the rest was not read");
            let _ = tell(ItemOutcome::Problem(line, message));
            Ok(())
        }
        done => done,
    }
}

/// Collects the data that posts refer to: authors, attachments, and the number of items.
fn collect_context(content: &SourceContent) -> Result<ExportContext, (usize, String)> {
    let mut site = ExportContext::default();
    let mut is_export = false;
    let result = parse_export(content, |piece| {
        match piece {
            ExportPart::Channel(name, text) => match name {
                "wp:wxr_version" => is_export = true,
                "language" => site.language = text,
                "wp:base_blog_url" | "link" if site.host.is_empty() => {
                    let host = url::Url::parse(text.trim()).ok();
                    let host = host.and_then(|url| url.host_str().map(ToOwned::to_owned));
                    site.host = host.unwrap_or_default();
                }
                _ => {}
            },
            ExportPart::Author(login, author) => {
                site.authors.insert(login, author);
            }
            ExportPart::Item(item) => {
                site.posts += 1;
                if item.text("wp:post_type") == "attachment" {
                    let address = item.text("wp:attachment_url").to_owned();
                    let alt = item.meta("_wp_attachment_image_alt").map(ToOwned::to_owned);
                    let attachment = Attachment { address, alt };
                    site.attachments.insert(item.text("wp:post_id").to_owned(), attachment);
                }
            }
        }
        ControlFlow::Continue(())
    });
    match result {
        Err((line, message)) if !is_export => Err((line, message)),
        // The second pass over the file reports the broken part.
        _ if is_export => Ok(site),
        _ => Err((1, "is not a WordPress export: it has no wp:wxr_version".to_owned())),
    }
}

enum ExportPart<'a> {
    /// An element of the channel.
    Channel(&'a str, String),
    /// An author with the login.
    Author(String, Author),
    Item(ExportedItem),
}

/// Reads the file event by event. An error names the line of the invalid XML.
fn parse_export(
    content: &SourceContent,
    mut tell: impl FnMut(ExportPart<'_>) -> ControlFlow<()>,
) -> Result<(), (usize, String)> {
    let file = content.open().map_err(|error| (1, error.to_string()))?;
    let lines = LineCountingReader::new(file);
    let mut reader = Reader::from_reader(lines);
    reader.config_mut().check_end_names = true;
    let mut buffer = Vec::new();
    let mut walker = ExportParser::default();
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        let line = reader.get_ref().line;
        match event {
            Err(error) => return Err((line, format!("is not XML: {error}"))),
            Ok(Event::Eof) => {
                return match walker.open.last() {
                    None => Ok(()),
                    Some(last) => {
                        Err((line, format!("ends within <{last}>: the file is truncated")))
                    }
                };
            }
            Ok(Event::Start(start)) => walker.start(&start, line),
            Ok(Event::End(_)) if walker.end(&mut tell).is_break() => return Ok(()),
            Ok(Event::Text(part)) => walker.add(&part.xml_content(XmlVersion::Implicit1_0)),
            Ok(Event::CData(part)) => walker.add(&part.xml_content(XmlVersion::Implicit1_0)),
            Ok(Event::GeneralRef(name)) => match resolve_entity(&name) {
                Some(text) => walker.add(&text),
                // No entity is expanded: the file could define one that grows without bound.
                None => {
                    let name = name.as_ref();
                    let problem = format!("contains the entity &{name};, which is not supported");
                    match &mut walker.item {
                        // Only this post is invalid.
                        Some(item) => item.problem = Some((line, problem)),
                        None => return Err((line, problem)),
                    }
                }
            },
            Ok(_) => {}
        }
        if walker.text.len() > TEXT_SIZE_LIMIT {
            return Err((line, format!("has a text over {TEXT_SIZE_LIMIT} bytes")));
        }
    }
}

/// The state of the parser.
#[derive(Default)]
struct ExportParser {
    /// The names of the open elements, from the root.
    open: Vec<String>,
    /// The text of the innermost element so far.
    text: String,
    item: Option<ExportedItem>,
    /// The elements of the current author.
    author: HashMap<String, String>,
    meta_key: String,
}

impl ExportParser {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn start(&mut self, start: &BytesStart<'_>, line: usize) {
        let name = start.name().as_ref().to_owned();
        match (name.as_str(), &mut self.item) {
            ("item", _) => self.item = Some(ExportedItem { line, ..ExportedItem::default() }),
            ("wp:author", _) => self.author.clear(),
            ("category", Some(item)) => {
                let domain = start.try_get_attribute("domain").ok().flatten();
                let domain = domain.map(|found| found.value.into_owned()).unwrap_or_default();
                item.categories.push(WordPressTerm { domain, name: String::new() });
            }
            ("wp:comment", Some(item)) => item.comments += 1,
            _ => {}
        }
        self.open.push(name);
        self.text.clear();
    }

    fn end(&mut self, tell: &mut impl FnMut(ExportPart<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let name = self.open.pop().unwrap_or_default();
        let parent = self.open.last().map_or("", String::as_str);
        let value = std::mem::take(&mut self.text);
        match (name.as_str(), parent, &mut self.item) {
            ("item", ..) => {
                if let Some(item) = self.item.take() {
                    return tell(ExportPart::Item(item));
                }
            }
            ("category", "item", Some(item)) => {
                if let Some(term) = item.categories.last_mut() {
                    term.name = value;
                }
            }
            ("wp:meta_key", "wp:postmeta", Some(_)) => self.meta_key = value,
            ("wp:meta_value", "wp:postmeta", Some(item)) => {
                item.metas.push((std::mem::take(&mut self.meta_key), value));
            }
            (_, "item", Some(item)) => {
                item.texts.entry(name).or_insert(value);
            }
            ("wp:author", ..) => {
                let mut part = |name| self.author.remove(name).unwrap_or_default();
                let (login, name) = (part("wp:author_login"), part("wp:author_display_name"));
                let email = Some(part("wp:author_email")).filter(|email| !email.is_empty());
                let name = if name.is_empty() { login.clone() } else { name };
                let author = Author { email, login: Some(login.clone()), name };
                return tell(ExportPart::Author(login, author));
            }
            (_, "wp:author", _) => {
                self.author.insert(name, value);
            }
            (_, "channel", None) => return tell(ExportPart::Channel(&name, value)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Resolves a character reference by number, or a named entity of HTML. XML doesn't define those
/// names, but exports use them.
fn resolve_entity(name: &BytesRef<'_>) -> Option<String> {
    if let Ok(Some(c)) = name.resolve_char_ref() {
        return Some(c.into());
    }
    let html = || resolve_html5_entity(name.as_ref());
    resolve_xml_entity(name.as_ref()).or_else(html).map(ToOwned::to_owned)
}

impl ExportedItem {
    fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", |text| text.trim())
    }

    fn meta(&self, key: &str) -> Option<&str> {
        let found = self.metas.iter().find(|(known, _)| known == key)?;
        Some(found.1.trim()).filter(|value| !value.is_empty())
    }
}

fn convert_item(site: &ExportContext, item: ExportedItem) -> ItemOutcome {
    if let Some((line, problem)) = item.problem {
        return ItemOutcome::Problem(line, problem);
    }
    let kind = item.text("wp:post_type");
    if let Some(finding) = left_out_finding(kind, item.text("wp:status")) {
        return ItemOutcome::LeftOut(finding);
    }
    let id = item.text("wp:post_id");
    if id.is_empty() {
        return ItemOutcome::Problem(item.line, "an item has no wp:post_id".to_owned());
    }
    let mut findings = Vec::new();
    let mut rest = Map::new();
    let tags = collect_terms(&item.categories, &mut rest);
    let status = item.text("wp:status");
    let is_protected = !item.text("wp:post_password").is_empty();
    add_metadata(&item, &mut rest);
    let login = item.text("dc:creator");
    let author = site.authors.get(login).cloned();
    let author = author.unwrap_or_else(|| Author::named(login.to_owned()));
    let authors = Vec::from_iter(Some(author).filter(|author| !author.name.is_empty()));
    if let Some(author) = authors.first() {
        rest.insert("authors".to_owned(), Value::from(vec![author.name.as_str()]));
    }
    if item.comments > 0 {
        findings.push(ImportFinding::left_out("comments").times(item.comments));
    }
    let date = [item.text("wp:post_date_gmt"), item.text("wp:post_date")];
    // A post that was never published has a date of zeros.
    let date = date.into_iter().find(|date| !date.is_empty() && !date.starts_with("0000"));
    let slug = match item.text("wp:post_name") {
        "" => id.to_owned(),
        name => percent_decoded(name),
    };
    let thumbnail = item.meta("_thumbnail_id");
    let cover = thumbnail.and_then(|id| site.attachments.get(id));
    if thumbnail.is_some() && cover.is_none() {
        findings.push(ImportFinding::missing("the featured image's attachment"));
    }
    add_fields(&item, &mut rest, &mut findings);
    find_blocks(item.texts.get("content:encoded").map_or("", String::as_str), &mut findings);
    let title = Some(plain_text(item.text("title"))).filter(|title| !title.is_empty());
    let content = item.texts.get("content:encoded").map_or("", String::as_str);
    let (html, shortcodes) = html(content);
    if shortcodes {
        findings.push(ImportFinding::unresolved("texts with shortcodes ([like this])"));
    }
    let excerpt = item.text("excerpt:encoded").to_owned();
    ItemOutcome::Post(Box::new(RawPiece {
        name: format!("{}/?p={id}", site.host),
        title,
        slug,
        date: date.map(ToOwned::to_owned),
        description: Some(excerpt).filter(|excerpt| !excerpt.is_empty()),
        cover_url: cover.map(|cover| cover.address.clone()),
        cover_alt: cover.and_then(|cover| cover.alt.clone()),
        canonical: item.meta("_yoast_wpseo_canonical").map(ToOwned::to_owned),
        tags,
        authors,
        state: publishing_state(status, is_protected),
        rest,
        body: SourceBody::Html(html),
        findings,
        ..RawPiece::default()
    }))
}

/// Returns the finding for an item that is no post or page, or that was deleted.
fn left_out_finding(kind: &str, status: &str) -> Option<ImportFinding> {
    let what = match (kind, status) {
        ("attachment", _) => "attachments as pages of their own".to_owned(),
        ("post" | "page", "trash" | "auto-draft" | "inherit") => {
            format!("{kind}s of the status {status}")
        }
        ("post" | "page", _) => return None,
        (other, _) => format!("items of the type {other}"),
    };
    Some(ImportFinding::left_out(what))
}

/// Returns the labels of categories and tags. Terms of other taxonomies are added to `rest`.
fn collect_terms(terms: &[WordPressTerm], rest: &mut Map<String, Value>) -> Vec<String> {
    let mut tags = Vec::new();
    for term in terms {
        let name = plain_text(&term.name);
        match term.domain.as_str() {
            // WordPress assigns this category to every post that has none.
            "category" if name == "Uncategorized" => {}
            "category" | "post_tag" if !name.is_empty() && !tags.contains(&name) => tags.push(name),
            "category" | "post_tag" => {}
            other => {
                let list = rest.entry(other.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.push(Value::from(name));
                }
            }
        }
    }
    tags
}

/// Adds the metadata that no field of a piece holds.
fn add_metadata(item: &ExportedItem, rest: &mut Map<String, Value>) {
    let (kind, status) = (item.text("wp:post_type"), item.text("wp:status"));
    let mut keep = |name: &str, value: &str| {
        if !value.is_empty() {
            rest.insert(name.to_owned(), Value::from(value));
        }
    };
    keep("type", if kind == "page" { "page" } else { "" });
    keep("status", if status == "publish" { "" } else { status });
    keep("link", item.text("link"));
    keep("parent", item.text("wp:post_parent").trim_start_matches('0'));
    keep("password", if item.text("wp:post_password").is_empty() { "" } else { "yes" });
    keep("sticky", item.text("wp:is_sticky").trim_start_matches('0'));
}

fn publishing_state(status: &str, is_protected: bool) -> PublishingState {
    match status {
        "publish" | "future" if is_protected => PublishingState::PasswordProtected,
        "publish" => PublishingState::Published,
        "future" => PublishingState::Scheduled,
        "private" => PublishingState::Private,
        _ => PublishingState::Draft,
    }
}

/// Returns the plain text of a value that WordPress stores as HTML.
fn plain_text(html: &str) -> String {
    if !html.contains(['&', '<']) {
        return html.trim().to_owned();
    }
    let read = Tree::from_html(html, &ContentLimits::default());
    read.map_or_else(|_| html.to_owned(), |tree| tree.to_text()).trim().to_owned()
}

/// Adds the custom fields of an item. Names with a leading `_` belong to a plugin or to WordPress
/// itself: these fields are left out and reported.
fn add_fields(
    item: &ExportedItem,
    rest: &mut Map<String, Value>,
    findings: &mut Vec<ImportFinding>,
) {
    const KNOWN: [&str; 5] =
        ["_thumbnail_id", "_yoast_wpseo_canonical", "_edit_last", "_edit_lock", "_wp_old_slug"];
    let mut fields = Map::new();
    let mut hidden = Vec::new();
    for (key, value) in item.metas.iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())) {
        if key.starts_with('_') {
            hidden.push(key.clone());
        } else {
            fields.insert(key.clone(), Value::from(value.as_str()));
        }
    }
    if !fields.is_empty() {
        rest.insert("customFields".to_owned(), Value::Object(fields));
    }
    if !hidden.is_empty() {
        let finding = ImportFinding::left_out("hidden custom fields").times(hidden.len());
        findings.push(ImportFinding { details: hidden, ..finding });
    }
    let order = item.text("wp:menu_order").trim_start_matches('0');
    if !order.is_empty() {
        rest.insert("menuOrder".to_owned(), Value::from(order));
    }
}

/// Finds blocks whose content WordPress renders dynamically, and page breaks.
fn find_blocks(content: &str, findings: &mut Vec<ImportFinding>) {
    let mut blocks = Vec::new();
    for (start, _) in content.match_indices("<!-- wp:") {
        let comment = content[start..].split("-->").next().unwrap_or_default();
        if comment.trim_end().ends_with('/') {
            let name = comment["<!-- wp:".len()..].split([' ', '/']).next().unwrap_or_default();
            blocks.push(name.to_owned());
        }
    }
    if !blocks.is_empty() {
        let finding = ImportFinding::left_out("blocks that WordPress renders dynamically")
            .times(blocks.len());
        findings.push(ImportFinding { details: blocks, ..finding });
    }
    for (tag, what) in
        [("<!--more", "ends of teasers (<!--more-->)"), ("<!--nextpage-->", "page breaks")]
    {
        let count = content.matches(tag).count();
        if count > 0 {
            findings.push(ImportFinding::left_out(what).times(count));
        }
    }
}

/// Returns the HTML that WordPress would show, and true if it still contains shortcodes.
fn html(content: &str) -> (String, bool) {
    let content = content.replace("<!--more-->", "").replace("<!--nextpage-->", "");
    // The block editor writes paragraphs itself. The older editor leaves them to the theme.
    let html = if content.contains("<!-- wp:") { content } else { autop::paragraphs(&content) };
    let html = autop::without_captions(&html);
    let shortcodes = autop::has_shortcodes(&html);
    (html, shortcodes)
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8()
        .map_or_else(|_| text.to_owned(), Cow::into_owned)
}
