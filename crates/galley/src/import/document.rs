//! A file as a content piece: what its front matter says, and what has to be guessed.
//!
//! Understands the habits of Zola, Hugo, Jekyll, Astro and Hexo: dates in file names and paths,
//! `slug`, `path`, `taxonomies`, covers. Whatever it doesn't know goes into the custom data.

use galley_content::{Limits, Loss, Tree};
use galley_domain::content_piece::{CustomData, Description, Slug, Title};
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::{Invalid, Timestamp};
use galley_server::sanitize;
use serde_json::{Map, Value};

use super::front_matter;
use super::sources::SourceFile;

/// A file as a piece.
#[derive(Debug, Clone)]
pub(super) struct Document {
    pub(super) name: ShortText,
    pub(super) title: Title,
    pub(super) slug: Slug,
    pub(super) date: Option<Timestamp>,
    pub(super) description: Option<Description>,
    pub(super) cover_url: Option<WebReference>,
    pub(super) cover_alt: Option<ShortText>,
    pub(super) canonical_link: Option<WebReference>,
    pub(super) tags: Vec<TagLabel>,
    pub(super) custom_data: Option<CustomData>,
    /// The JSON text of the tree.
    pub(super) content: String,
    /// What of the content the tree lacks.
    pub(super) losses: Vec<Loss>,
}

/// The greatest file that is read.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// Reads files, on threads of their own; those that can't be read are named.
pub(super) async fn read_all(files: &[SourceFile]) -> (Vec<Document>, Vec<String>) {
    let mut tasks = Vec::with_capacity(files.len());
    for file in files {
        let file = file.clone();
        tasks.push(tokio::task::spawn_blocking(move || read(&file)));
    }
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for (task, file) in tasks.into_iter().zip(files) {
        match task.await {
            Ok(Ok(document)) => documents.push(document),
            Ok(Err(problem)) => problems.push(problem),
            Err(_) => problems.push(format!("{}: could not be read", file.path.display())),
        }
    }
    (documents, problems)
}

fn read(file: &SourceFile) -> Result<Document, String> {
    let path = file.path.display();
    let size = std::fs::metadata(&file.path).map_err(|error| format!("{path}: {error}"))?.len();
    if size > FILE_MAX {
        return Err(format!("{path}: has {size} bytes, and at most {FILE_MAX} are read"));
    }
    let bytes = std::fs::read(&file.path).map_err(|error| format!("{path}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|&byte| byte == b'\n').count();
        format!("{path}:{line}: is not UTF-8")
    })?;
    let parts = front_matter::split(&text)
        .map_err(|malformed| format!("{path}:{}: {}", malformed.line, malformed.message))?;
    document(&file.name, parts.fields, parts.body).map_err(|problem| format!("{path}: {problem}"))
}

fn document(name: &str, fields: Map<String, Value>, body: &str) -> Result<Document, String> {
    if text_has_nul(body) {
        return Err("the text must not contain NUL".to_owned());
    }
    let mut front = Front(fields);
    let stem = stem(name);
    let (stem_date, stem_slug) = date_in_name(stem);
    let path = front.text(&["path"]).map(|path| path.trim_matches('/').to_owned());
    let date = match front.text(&["date", "pubDate", "published", "publishDate"]) {
        Some(text) => Some(
            Timestamp::parse_iso8601(&iso(&text))
                .map_err(|_| format!("date {text:?} is not an ISO 8601 date or date-time"))?,
        ),
        None => path.as_deref().and_then(date_in_path).or(stem_date),
    };
    let slug = front.text(&["slug"]).or(path).unwrap_or_else(|| stem_slug.to_owned());
    let title = front.text(&["title"]).or_else(|| first_heading(body));
    let (cover_url, cover_alt) = front.cover();
    let read = Tree::from_markdown_with_losses(body, &Limits::default());
    let (tree, losses) = read.map_err(|error| error.to_string())?;
    Ok(Document {
        name: valid("the path", ShortText::parse(name))?,
        title: valid("title", Title::parse(title.unwrap_or_else(|| stem.to_owned())))?,
        slug: valid("slug", Slug::parse(slug.replace(char::is_whitespace, "-")))?,
        date,
        description: front
            .text(&["description", "summary", "excerpt"])
            .map(|text| valid("description", sanitize::description(text)))
            .transpose()?,
        cover_url: cover_url.map(|url| valid("cover", WebReference::parse(url))).transpose()?,
        cover_alt: cover_alt.map(|alt| valid("cover", ShortText::parse(alt))).transpose()?,
        canonical_link: front
            .text(&["canonical", "canonical_url", "canonicalUrl", "canonicalURL"])
            .map(|url| valid("canonical", WebReference::parse(url)))
            .transpose()?,
        tags: front
            .tags()
            .into_iter()
            .map(|tag| valid("tags", TagLabel::parse(tag)))
            .collect::<Result<_, _>>()?,
        custom_data: front
            .rest()
            .map(|rest| valid("the rest", CustomData::parse(rest)))
            .transpose()?,
        content: tree.to_json(),
        losses,
    })
}

fn valid<T>(what: &str, value: Result<T, Invalid>) -> Result<T, String> {
    value.map_err(|invalid| format!("{what} {invalid}"))
}

fn text_has_nul(text: &str) -> bool {
    text.contains('\0')
}

/// The front matter's fields that nobody has taken yet.
struct Front(Map<String, Value>);

impl Front {
    /// Takes the first of `names` that is a text.
    fn text(&mut self, names: &[&str]) -> Option<String> {
        let name = names.iter().find(|name| self.0.get(**name).is_some_and(Value::is_string))?;
        match self.0.shift_remove(*name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Takes `tags` and `categories`, at the top or under `taxonomies`.
    fn tags(&mut self) -> Vec<String> {
        let mut tags = Vec::new();
        for name in ["tags", "categories"] {
            tags.extend(self.0.shift_remove(name).map(texts).unwrap_or_default());
            if let Some(Value::Object(taxonomies)) = self.0.get_mut("taxonomies") {
                tags.extend(taxonomies.shift_remove(name).map(texts).unwrap_or_default());
            }
        }
        if self.0.get("taxonomies").and_then(Value::as_object).is_some_and(Map::is_empty) {
            self.0.shift_remove("taxonomies");
        }
        tags
    }

    /// Takes `cover` or `image`: an address, or one with what it shows.
    fn cover(&mut self) -> (Option<String>, Option<String>) {
        if let Some(address) = self.text(&["cover", "image"]) {
            return (Some(address), None);
        }
        let Some(Value::Object(cover)) = self.0.get_mut("cover") else { return (None, None) };
        let mut take = |names: [&str; 3]| {
            let name =
                names.into_iter().find(|name| cover.get(*name).is_some_and(Value::is_string));
            match name.and_then(|name| cover.shift_remove(name)) {
                Some(Value::String(text)) => Some(text),
                _ => None,
            }
        };
        (take(["image", "src", "url"]), take(["alt", "caption", "title"]))
    }

    /// What is left, as JSON.
    fn rest(self) -> Option<String> {
        if self.0.is_empty() { None } else { Some(Value::Object(self.0).to_string()) }
    }
}

/// A text, or a list of texts.
fn texts(value: Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => {
            items.into_iter().filter_map(|item| item.as_str().map(ToOwned::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

/// The file's name without its extension, the folder's for `index.md`.
fn stem(name: &str) -> &str {
    let path = name.rsplit_once('.').map_or(name, |(path, _)| path);
    let mut parts = path.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some("index" | "_index"), Some(folder)) => folder,
        (Some(stem), _) => stem,
        (None, _) => path,
    }
}

/// `2024-05-06-hello` is a date and a name.
fn date_in_name(stem: &str) -> (Option<Timestamp>, &str) {
    let date = stem.get(..10).and_then(|date| Timestamp::parse_iso8601(date).ok());
    match (date, stem.get(10..)) {
        (Some(date), Some(rest)) => match rest.trim_start_matches(['-', '_']) {
            "" => (Some(date), stem),
            slug => (Some(date), slug),
        },
        _ => (None, stem),
    }
}

/// `2024/05/06/hello` is of that day.
fn date_in_path(path: &str) -> Option<Timestamp> {
    let mut parts = path.split('/');
    let date = [parts.next()?, parts.next()?, parts.next()?].join("-");
    Timestamp::parse_iso8601(&date).ok()
}

/// Front matter writes a date and a time with a space between, too, and one before an offset.
fn iso(text: &str) -> String {
    match text.trim().split_once(' ') {
        Some((date, time)) => format!("{date}T{}", time.replace(' ', "")),
        None => text.trim().to_owned(),
    }
}

fn first_heading(body: &str) -> Option<String> {
    let line = body.lines().find_map(|line| line.strip_prefix("# "))?;
    Some(line.trim().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Document {
        let parts = front_matter::split(text).unwrap();
        document(name, parts.fields, parts.body).unwrap()
    }

    #[test]
    fn a_zola_post_keeps_its_address_and_date() {
        let post = read(
            "Rust-1.0.md",
            "+++\npath = \"2015/05/15/Rust-1.0\"\ntitle = \"Announcing\"\nauthors = [\"A\"]\n\
             [taxonomies]\ntags = [\"release\"]\n[extra]\nteam = \"core\"\n+++\nText\n",
        );
        assert_eq!(post.slug.as_str(), "2015/05/15/Rust-1.0");
        assert_eq!(post.date.unwrap().to_string(), "2015-05-15T00:00:00.000Z");
        assert_eq!(post.tags[0].as_str(), "release");
        assert_eq!(
            post.custom_data.unwrap().as_str(),
            "{\"authors\":[\"A\"],\"extra\":{\"team\":\"core\"}}"
        );
    }

    #[test]
    fn a_jekyll_post_has_its_date_in_its_name() {
        let post = read("_posts/2024-05-06-hello-world.md", "# Hello, *world*\n");
        assert_eq!(post.slug.as_str(), "hello-world");
        assert_eq!(post.title.as_str(), "Hello, *world*");
        assert_eq!(post.date.unwrap().to_string(), "2024-05-06T00:00:00.000Z");
    }

    #[test]
    fn a_bundle_is_named_by_its_folder() {
        let post =
            read("trip/index.md", "---\ntitle: Trip\ndate: 2024-05-06 10:00:00 +0200\n---\n");
        assert_eq!(post.slug.as_str(), "trip");
        assert_eq!(post.date.unwrap().to_string(), "2024-05-06T08:00:00.000Z");
    }

    #[test]
    fn a_bad_date_is_named() {
        let parts = front_matter::split("---\ntitle: A\ndate: soon\n---\n").unwrap();
        let problem = document("a.md", parts.fields, parts.body).unwrap_err();
        assert!(problem.contains("date \"soon\""), "{problem}");
    }
}
