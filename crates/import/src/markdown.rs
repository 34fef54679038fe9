//! Reads Markdown files with front matter, by the conventions of Zola, Hugo, Jekyll, Astro and
//! Hexo. They have dates in file names and paths, `slug`, `path`, `permalink`, `taxonomies`, and
//! covers. Unknown fields go into the custom data.

use galley_domain::{ContentPieceId, Timestamp};
use serde_json::{Map, Value};

use crate::authors::Author;
use crate::findings::{self, ImportFinding};
use crate::raw::{PublishingState, RawPiece, SourceBody};

/// Parses a file into its piece's fields.
pub(crate) fn raw(name: &str, fields: Map<String, Value>, body: &str) -> RawPiece {
    let mut front = FrontMatterFields(fields);
    let mut findings = Vec::new();
    let (folders, stem) = parts(name);
    let (stem_date, stem_slug) = date_in_name(stem);
    let is_jekyll = stem_date.is_some();
    let path = front.text(&["path", "permalink", "url"]);
    // A path with placeholders is a pattern, not the piece's own path.
    let path =
        path.filter(|path| !path.contains(':')).map(|path| path.trim_matches('/').to_owned());
    let path = path.filter(|path| !path.is_empty());
    // An export writes a null date for a piece without one. Then the file name's date doesn't count
    // either.
    let has_no_date = front.take_null("date");
    let is_draft = front.take_draft();
    let publish_at = front.0.get("publishDate").and_then(Value::as_str).map(ToOwned::to_owned);
    let date = front.text(&["date", "pubDate", "published", "publishDate", "published_at"]);
    let date = date.or_else(|| {
        let of_path = || path.as_deref().and_then(date_in_path);
        let of_folders = || date_in_path(&folders.join("/"));
        let found = of_path().or_else(|| stem_date.clone()).or_else(of_folders);
        let found = found.filter(|_| !has_no_date)?;
        findings.push(ImportFinding::assumed("a date from the path"));
        Some(found)
    });
    let slug = front.text(&["slug"]).or(path).unwrap_or_else(|| stem_slug.to_owned());
    let title = front.text(&["title"]).or_else(|| {
        let heading = first_heading(body)?;
        findings.push(ImportFinding::assumed("a title from the first heading"));
        Some(heading)
    });
    let title = title.unwrap_or_else(|| {
        findings.push(ImportFinding::assumed("a title from the path"));
        stem.to_owned()
    });
    if name.rsplit('/').next().is_some_and(|file| file.starts_with("_index.")) {
        findings.push(ImportFinding::assumed("_index files as pieces"));
    }
    let cover = front.cover();
    let authors = match take_texts(&mut front.0, "members") {
        members if members.is_empty() => front.authors(),
        members => members,
    };
    let id = front.id();
    // An export names the variant of a file. Other sources may have a field of this name.
    let variant = id.and_then(|_| front.text(&["variant"]));
    RawPiece {
        name: name.to_owned(),
        id,
        variant,
        folders,
        title: Some(title),
        slug,
        date,
        description: front.text_or_empty(&["description", "summary", "excerpt", "subtitle"]),
        cover_url: cover.url,
        cover_alt: cover.alt,
        cover_width: cover.width,
        canonical: front.text_or_empty(&[
            "canonical",
            "canonical_url",
            "canonicalUrl",
            "canonicalURL",
        ]),
        tags: front.tags(is_jekyll),
        authors: authors.into_iter().map(Author::named).collect(),
        state: if is_draft { PublishingState::Draft } else { PublishingState::Published },
        publish_at,
        custom_data: front.text(&["customData"]),
        rest: front.0,
        body: SourceBody::Markdown(findings::in_markdown(body, &mut findings)),
        findings,
        ..RawPiece::default()
    }
}

/// The fields with a meaning of their own. Custom data can't have a top-level field with one of
/// these names.
pub const RESERVED_FIELDS: [&str; 38] = [
    "id",
    "variant",
    "draft",
    "title",
    "slug",
    "path",
    "permalink",
    "url",
    "date",
    "pubDate",
    "published",
    "publishDate",
    "published_at",
    "description",
    "summary",
    "excerpt",
    "subtitle",
    "cover",
    "image",
    "cover_image",
    "featured_image",
    "heroImage",
    "thumbnail",
    "banner",
    "image_alt",
    "imageAlt",
    "heroImageAlt",
    "canonical",
    "canonical_url",
    "canonicalUrl",
    "canonicalURL",
    "tags",
    "categories",
    "category",
    "tag",
    "taxonomies",
    "members",
    "customData",
];

/// The parts of a cover that the front matter has.
#[derive(Default)]
struct Cover {
    url: Option<String>,
    alt: Option<String>,
    width: Option<String>,
}

/// The front matter's remaining fields.
struct FrontMatterFields(Map<String, Value>);

impl FrontMatterFields {
    /// Takes the first of `names` whose value is a text or a number.
    fn text(&mut self, names: &[&str]) -> Option<String> {
        take_text(&mut self.0, names)
    }

    /// Takes the same, or an empty text if no other is found.
    fn text_or_empty(&mut self, names: &[&str]) -> Option<String> {
        take_text_or_empty(&mut self.0, names)
    }

    /// Removes a field that is null. Returns true if it was.
    fn take_null(&mut self, name: &str) -> bool {
        let is_null = self.0.get(name).is_some_and(Value::is_null);
        is_null && self.0.shift_remove(name).is_some()
    }

    /// Takes `tags` and `categories`, at the top or under `taxonomies`.
    fn tags(&mut self, by_spaces: bool) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for name in ["tags", "categories", "category", "tag"] {
            let mut found = self.0.shift_remove(name).map(|value| texts(value, by_spaces));
            if let Some(Value::Object(taxonomies)) = self.0.get_mut("taxonomies") {
                let below = taxonomies.shift_remove(name).map(|value| texts(value, by_spaces));
                found = Some([found.unwrap_or_default(), below.unwrap_or_default()].concat());
            }
            for tag in found.unwrap_or_default() {
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
            }
        }
        if self.0.get("taxonomies").and_then(Value::as_object).is_some_and(Map::is_empty) {
            self.0.shift_remove("taxonomies");
        }
        tags
    }

    /// Returns the authors. Their fields stay in the custom data.
    fn authors(&self) -> Vec<String> {
        let values = ["authors", "author"].iter().filter_map(|name| self.0.get(*name));
        let name = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Object(person) => person.get("name")?.as_str().map(ToOwned::to_owned),
            _ => None,
        };
        values
            .flat_map(|value| match value {
                Value::Array(people) => people.iter().filter_map(name).collect(),
                one => name(one).into_iter().collect::<Vec<_>>(),
            })
            .collect()
    }

    /// Takes the id of an exported piece.
    fn id(&mut self) -> Option<ContentPieceId> {
        let id = self.0.get("id")?.as_str()?.parse().ok()?;
        self.0.shift_remove("id");
        Some(id)
    }

    /// Takes the fields that tell drafts. Returns true if one of them does.
    fn take_draft(&mut self) -> bool {
        let mut take = |name: &str| {
            let value = match self.0.get(name)? {
                Value::Bool(value) => *value,
                Value::String(text) => text.to_ascii_lowercase().parse().ok()?,
                _ => return None,
            };
            self.0.shift_remove(name);
            Some(value)
        };
        let (is_draft, is_published) = (take("draft"), take("published"));
        is_draft == Some(true) || is_published == Some(false)
    }

    /// Takes the cover: an address, or an object with address, description and width.
    fn cover(&mut self) -> Cover {
        const NAMES: [&str; 7] =
            ["cover", "image", "cover_image", "featured_image", "heroImage", "thumbnail", "banner"];
        if let Some(url) = self.text(&NAMES) {
            let alt = self.text(&["image_alt", "imageAlt", "heroImageAlt"]);
            return Cover { url: Some(url), alt, width: None };
        }
        for name in NAMES {
            let Some(Value::Object(cover)) = self.0.get_mut(name) else { continue };
            let url = take_text_or_empty(cover, &["image", "src", "url", "path"]);
            let alt = take_text_or_empty(cover, &["alt", "caption", "title"]);
            let width = take_text_or_empty(cover, &["width"]);
            if cover.is_empty() {
                self.0.shift_remove(name);
            }
            if url.is_some() || alt.is_some() || width.is_some() {
                return Cover { url, alt, width };
            }
        }
        Cover::default()
    }
}

fn take_texts(fields: &mut Map<String, Value>, name: &str) -> Vec<String> {
    match fields.get(name) {
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            fields.shift_remove(name).map(|value| texts(value, false)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn take_text(fields: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    // A number counts as a text. If it isn't valid for the field, the validation reports it.
    let is_text = |name: &&&str| match fields.get(**name) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(value) => value.is_number(),
        None => false,
    };
    let name = names.iter().find(is_text)?;
    match fields.shift_remove(*name) {
        Some(Value::String(text)) => Some(text),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}

fn take_text_or_empty(fields: &mut Map<String, Value>, names: &[&str]) -> Option<String> {
    take_text(fields, names).or_else(|| {
        let name = names.iter().find(|name| fields.get(**name) == Some(&Value::from("")))?;
        fields.shift_remove(*name).map(|_| String::new())
    })
}

/// Returns the texts of a value: a text, or a list of texts, also nested. A single text may hold
/// several values. Blank texts are left out, as templates have them.
fn texts(value: Value, by_spaces: bool) -> Vec<String> {
    match value {
        Value::String(text) => {
            let separator = if text.contains(',') || !by_spaces { ',' } else { ' ' };
            let parts = text.split(separator).map(str::trim).filter(|part| !part.is_empty());
            parts.map(ToOwned::to_owned).collect()
        }
        Value::Array(items) => items
            .into_iter()
            .flat_map(|item| match item {
                // A comma in an item of a list belongs to the item.
                Value::String(text) if text.trim().is_empty() => Vec::new(),
                Value::String(text) => vec![text],
                other => texts(other, by_spaces),
            })
            .collect(),
        Value::Number(_) | Value::Bool(_) => vec![value.to_string()],
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

/// Returns the folders of a file, and its name without an extension. `trip/index.md` is the piece
/// `trip`.
pub(crate) fn parts(name: &str) -> (Vec<String>, &str) {
    let path = name.rsplit_once('.').map_or(name, |(path, _)| path);
    let mut parts: Vec<&str> = path.split('/').collect();
    let mut stem = parts.pop().unwrap_or_default();
    if matches!(stem, "index" | "_index")
        && let Some(folder) = parts.pop()
    {
        stem = folder;
    }
    (parts.into_iter().map(ToOwned::to_owned).collect(), stem)
}

/// Splits a name such as `2024-05-06-hello` into date and slug.
fn date_in_name(stem: &str) -> (Option<String>, &str) {
    let date = stem.get(..10).filter(|date| Timestamp::parse_iso8601(date).is_ok());
    match (date, stem.get(10..)) {
        (Some(date), Some(rest)) => match rest.trim_start_matches(['-', '_']) {
            "" => (Some(date.to_owned()), stem),
            slug => (Some(date.to_owned()), slug),
        },
        _ => (None, stem),
    }
}

/// Finds the date in a path such as `2024/05/06/hello` or `blog/2024/05/06/hello`.
fn date_in_path(path: &str) -> Option<String> {
    let parts: Vec<_> = path.split('/').collect();
    let mut dates = parts.windows(3).map(|parts| parts.join("-"));
    dates.find(|date| Timestamp::parse_iso8601(date).is_ok())
}

fn first_heading(body: &str) -> Option<String> {
    let line = body.lines().find_map(|line| line.strip_prefix("# "))?;
    Some(line.trim().to_owned()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front_matter;
    use crate::raw::Document;

    fn try_read(name: &str, text: &str) -> Result<Document, String> {
        let parts = front_matter::split(text).unwrap();
        raw(name, parts.fields, parts.body).into_document(
            crate::raw::ContentForm::Json,
            galley_domain::Timestamp::from_ms(0),
            None,
        )
    }

    fn read(name: &str, text: &str) -> Document {
        try_read(name, text).unwrap()
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
    fn an_index_file_is_named_by_its_folder() {
        let post =
            read("trip/index.md", "---\ntitle: Trip\ndate: 2024-05-06 10:00:00 +0200\n---\n");
        assert_eq!(post.slug.as_str(), "trip");
        assert_eq!(post.date.unwrap().to_string(), "2024-05-06T08:00:00.000Z");
    }

    #[test]
    fn an_invalid_date_is_reported() {
        let problem = try_read("a.md", "---\ntitle: A\ndate: soon\n---\n").unwrap_err();
        assert!(problem.contains("date \"soon\""), "{problem}");
    }

    #[test]
    fn conventions_of_other_generators_are_supported() {
        let labels = |post: &Document| {
            post.tags.iter().map(|tag| tag.as_str().to_owned()).collect::<Vec<_>>()
        };
        let jekyll = read(
            "_posts/2024-05-06-a.md",
            "---\ntags: one two\ncategories: [x, \"y, z\"]\nauthor: Ann\n---\n",
        );
        assert_eq!(labels(&jekyll), ["one", "two", "x", "y, z"]);
        assert_eq!(jekyll.authors, [Author::named("Ann".to_owned())]);
        let hexo = read(
            "a.md",
            "---\ntitle: A\ntags: a, b c\ncategories:\n- [Diary, Travel]\n- Life\n---\n",
        );
        assert_eq!(labels(&hexo), ["a", "b c", "Diary", "Travel", "Life"]);
        let hugo = read(
            "posts/trip/index.md",
            "{\"title\": \"T\", \"draft\": true, \"url\": \"/x/y/\", \"aliases\": [\"/old\"], \"tags\": [2024, true, \"\", \" \", null]}\n\nText\n",
        );
        assert_eq!((hugo.slug.as_str(), hugo.state), ("x/y", PublishingState::Draft));
        assert_eq!(hugo.folders, ["posts"]);
        assert_eq!(labels(&hugo), ["2024", "true"]);
        assert_eq!(hugo.custom_data.unwrap().as_str(), "{\"aliases\":[\"/old\"]}");
        let astro = read(
            "a.mdx",
            "---\ntitle: A\npubDate: 2024-05-06\nheroImage: ./a.png\nauthors: [{name: Bo}]\n---\n",
        );
        assert_eq!(astro.cover_url.unwrap().as_str(), "./a.png");
        assert_eq!(astro.authors, [Author::named("Bo".to_owned())]);
        let pattern = read("a.md", "---\ntitle: A\npermalink: /:year/:title/\n---\n");
        assert_eq!(pattern.slug.as_str(), "a");
    }
}
