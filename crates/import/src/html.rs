//! Reads HTML files: the page's metadata from the head, and the part of the body that is the text.

use std::cell::{Cell, RefCell};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use serde_json::{Map, Value};

use crate::authors::Author;
use crate::findings::ImportFinding;
use crate::markdown::parts;
use crate::raw::{RawPiece, SourceBody};

/// The metadata and candidate texts of a page.
#[derive(Debug, Default)]
struct PageContent {
    title: String,
    /// The `<meta>`s with `name`, `property` or `itemprop`; the first of each.
    metas: Map<String, Value>,
    canonical: Option<String>,
    language: Option<String>,
    /// The candidates for the text, from the narrowest element to the whole page.
    article: PagePart,
    main: PagePart,
    body: PagePart,
    whole: String,
}

/// The first element of a kind with its content, serialized again.
#[derive(Debug, Default)]
struct PagePart {
    html: String,
    depth: usize,
    /// True if the first such element has ended. Later ones belong to another text.
    is_done: bool,
}

/// Parses a file into its piece's fields.
pub(crate) fn raw(name: &str, html: &str) -> RawPiece {
    let mut page = read(html);
    let (folders, stem) = parts(name);
    let mut findings = Vec::new();
    let mut take = |names: &[&str]| {
        let name = names.iter().find(|name| page.metas.contains_key(**name))?;
        match page.metas.shift_remove(*name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        }
    };
    let og_title = take(&["og:title", "twitter:title"]);
    let description = take(&["description", "og:description", "twitter:description"]);
    let date = take(&["article:published_time", "datePublished", "date", "dcterms.date"]);
    let (cover_url, cover_alt) = (take(&["og:image", "twitter:image"]), take(&["og:image:alt"]));
    let authors: Vec<String> = take(&["author", "article:author"]).into_iter().collect();
    let tags = take(&["keywords", "article:tag"]).unwrap_or_default();
    let tags = tags.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let tags = tags.map(ToOwned::to_owned).collect();
    let title = Some(page.title.trim().to_owned()).filter(|title| !title.is_empty());
    let title = og_title.or(title).unwrap_or_else(|| {
        findings.push(ImportFinding::assumed("a title from the path"));
        stem.to_owned()
    });
    let parts = [page.article.html, page.main.html, page.body.html];
    let place = parts.iter().position(|part| !part.is_empty());
    let body = match place {
        Some(place) => {
            let whats =
                ["the <article> as the text", "the <main> as the text", "the <body> as the text"];
            findings.push(ImportFinding::assumed(whats[place]));
            parts.into_iter().nth(place).unwrap_or_default()
        }
        // A fragment of HTML without a page around it.
        None => page.whole,
    };
    let mut rest = Map::new();
    if !authors.is_empty() {
        rest.insert("authors".to_owned(), Value::from(authors.clone()));
    }
    if let Some(language) = page.language {
        rest.insert("lang".to_owned(), Value::from(language));
    }
    RawPiece {
        name: name.to_owned(),
        folders,
        title: Some(title),
        slug: stem.to_owned(),
        date,
        description,
        cover_url,
        cover_alt,
        canonical: page.canonical,
        tags,
        authors: authors.into_iter().map(Author::named).collect(),
        rest,
        body: SourceBody::Html(body),
        findings,
        ..RawPiece::default()
    }
}

fn read(html: &str) -> PageContent {
    let reader = PageReader::default();
    let tokenizer = Tokenizer::new(reader, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // The tokenizer pauses at scripts to run, and this sink runs none.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.page.into_inner()
}

#[derive(Default)]
struct PageReader {
    page: RefCell<PageContent>,
    in_title: Cell<bool>,
}

impl TokenSink for PageReader {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut page = self.page.borrow_mut();
        match token {
            Token::CharacterTokens(text) if self.in_title.get() => page.title.push_str(&text),
            Token::CharacterTokens(text) => page.add(&escaped(&text)),
            Token::TagToken(tag) => {
                let result = match (&*tag.name, tag.kind) {
                    // The content of these elements is not markup.
                    ("title" | "textarea", TagKind::StartTag) => {
                        TokenSinkResult::RawData(RawKind::Rcdata)
                    }
                    ("script", TagKind::StartTag) => TokenSinkResult::RawData(RawKind::ScriptData),
                    ("style" | "xmp" | "iframe" | "noembed" | "noframes", TagKind::StartTag) => {
                        TokenSinkResult::RawData(RawKind::Rawtext)
                    }
                    _ => TokenSinkResult::Continue,
                };
                if &*tag.name == "title" {
                    self.in_title.set(tag.kind == TagKind::StartTag && page.title.is_empty());
                } else {
                    page.tag(&tag);
                }
                return result;
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl PageContent {
    fn tag(&mut self, tag: &Tag) {
        let attribute = |name: &str| {
            let found = tag.attrs.iter().find(|attribute| &*attribute.name.local == name)?;
            Some(found.value.to_string())
        };
        if tag.kind == TagKind::StartTag {
            match &*tag.name {
                "html" => self.language = attribute("lang").filter(|text| !text.is_empty()),
                "meta" => {
                    let name = ["property", "name", "itemprop"].into_iter().find_map(attribute);
                    if let (Some(name), Some(content)) = (name, attribute("content")) {
                        self.metas.entry(name).or_insert(Value::from(content));
                    }
                }
                "link" if attribute("rel").as_deref() == Some("canonical") => {
                    self.canonical = attribute("href");
                }
                _ => {}
            }
        }
        if matches!(&*tag.name, "html" | "head" | "meta" | "link" | "base") {
            return;
        }
        let mut text = String::from(if tag.kind == TagKind::StartTag { "<" } else { "</" });
        text.push_str(&tag.name);
        for attribute in &tag.attrs {
            text.push(' ');
            text.push_str(&attribute.name.local);
            text.push_str("=\"");
            text.push_str(&escaped(&attribute.value));
            text.push('"');
        }
        text.push('>');
        let is = |name: &str| (&*tag.name == name).then_some(tag.kind);
        self.article.tag(is("article"), &text);
        self.main.tag(is("main"), &text);
        self.body.tag(is("body"), &text);
        if &*tag.name != "body" {
            self.whole.push_str(&text);
        }
    }

    fn add(&mut self, text: &str) {
        for part in [&mut self.article, &mut self.main, &mut self.body] {
            part.add(text);
        }
        self.whole.push_str(text);
    }
}

impl PagePart {
    fn tag(&mut self, own: Option<TagKind>, text: &str) {
        match own {
            Some(TagKind::StartTag) if !self.is_done => {
                if self.depth > 0 {
                    self.html.push_str(text);
                }
                self.depth += 1;
            }
            Some(TagKind::EndTag) if self.depth > 0 => {
                self.depth -= 1;
                self.is_done = self.depth == 0;
                if self.depth > 0 {
                    self.html.push_str(text);
                }
            }
            _ => self.add(text),
        }
    }

    fn add(&mut self, text: &str) {
        if self.depth > 0 {
            self.html.push_str(text);
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::FindingGroup;
    use crate::raw::Document;

    #[test]
    fn html_metadata_becomes_piece_fields() {
        let html = "<!doctype html><html lang=de><head><title>A &amp; B | Site</title>\
            <meta name=description content='Short &lt;b&gt;'><meta property=og:title content='A &amp; B'>\
            <meta property=og:image content=/a.png><meta property=article:published_time content=2024-05-06T10:00:00Z>\
            <meta name=keywords content='x, y z'><link rel=canonical href=https://example.org/a>\
            <script>if (a < b) { '<article>' }</script></head><body><nav>Menu</nav><main><article>\
            <h1>A</h1><p title='\"q\"'>Text &lt;i&gt; <b>bold</b></p></article><article>Other</article></main></body></html>";
        let page = raw("docs/a.html", html);
        assert_eq!(page.title.as_deref(), Some("A & B"));
        assert_eq!((page.slug.as_str(), page.folders.as_slice()), ("a", &["docs".to_owned()][..]));
        assert_eq!(page.description.as_deref(), Some("Short <b>"));
        assert_eq!(page.tags, ["x", "y z"]);
        assert_eq!(page.canonical.as_deref(), Some("https://example.org/a"));
        let document = page
            .into_document(
                crate::raw::ContentForm::Json,
                galley_domain::Timestamp::from_ms(0),
                None,
            )
            .unwrap();
        assert_eq!(document.date.unwrap().to_string(), "2024-05-06T10:00:00.000Z");
        assert!(document.content.contains("\"Text <i> \""), "{}", document.content);
        assert!(!document.content.contains("Menu") && !document.content.contains("Other"));
        let assumed = |document: &Document| {
            let assumed = document.findings.iter().filter(|one| one.group == FindingGroup::Assumed);
            assumed.map(|one| one.what.clone()).collect::<Vec<_>>()
        };
        assert_eq!(assumed(&document), ["the <article> as the text"]);
        let fragment = raw("b.htm", "<p>Just <i>this</i>")
            .into_document(
                crate::raw::ContentForm::Json,
                galley_domain::Timestamp::from_ms(0),
                None,
            )
            .unwrap();
        assert!(
            fragment.content.contains("Just ") && assumed(&fragment) == ["a title from the path"]
        );
        let whole = raw("c.html", "<body><div>One<script>x</script></div></body>")
            .into_document(
                crate::raw::ContentForm::Json,
                galley_domain::Timestamp::from_ms(0),
                None,
            )
            .unwrap();
        assert!(
            whole.content.contains("One") && !whole.content.contains("\"x\""),
            "{}",
            whole.content
        );
    }
}
