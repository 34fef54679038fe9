//! Formats a piece as the text of a Markdown file.

use anyhow::Context;
use galley_content::Tree;
use galley_domain::content_piece::ContentPiece;
use galley_domain::text::{ShortText, WebReference};
use serde_json::{Map, Value};

use super::assets::ExportedAssets;
use super::source::ExportSource;
use galley_import::RESERVED_FIELDS;

/// Returns the front matter and the Markdown. `name` is the path of the file in the export, and
/// `variant` the key of the variant that it has.
pub(super) fn text(
    piece: &ContentPiece,
    variant: Option<&str>,
    content: Option<&str>,
    source: &ExportSource,
    assets: &ExportedAssets,
    name: &str,
) -> anyhow::Result<String> {
    let fields = &piece.fields;
    let mut front = FrontMatterWriter(String::from("---\n"));
    front.add("id", &Value::from(piece.id.to_string()));
    if let Some(key) = variant {
        front.add("variant", &Value::from(key));
    }
    front.add("title", &Value::from(fields.title.as_str()));
    front.add("slug", &Value::from(fields.slug.as_str()));
    // A null date is written, too. Without it, an import would read a date from a name such as
    // `2024-05-06-hello`.
    front.add("date", &Value::from(fields.date.map(|date| date.to_string())));
    if source.is_draft(piece) {
        front.add("draft", &Value::Bool(true));
    }
    if let Some(description) = &fields.description {
        front.add("description", &Value::from(description.as_str()));
    }
    let mut cover = Map::new();
    let cover_url = fields.cover_url.as_ref().map(WebReference::as_str);
    let cover_file = cover_url.and_then(|url| assets.relative(url, name));
    let parts = [
        ("image", cover_file.as_deref().or(cover_url)),
        ("alt", fields.cover_alt.as_ref().map(ShortText::as_str)),
        ("width", fields.cover_width.as_ref().map(ShortText::as_str)),
    ];
    for (name, part) in parts {
        cover.extend(part.map(|part| (name.to_owned(), Value::from(part))));
    }
    if !cover.is_empty() {
        front.add("cover", &Value::Object(cover));
    }
    if let Some(link) = &fields.canonical_link {
        front.add("canonical", &Value::from(link.as_str()));
    }
    for (name, texts) in [("tags", source.labels(piece)), ("members", source.usernames(piece))] {
        if !texts.is_empty() {
            front.add(name, &Value::from(texts));
        }
    }
    if let Some(data) = &fields.custom_data {
        front.add_custom_data(data.as_str());
    }
    let mut tree = match content {
        Some(json) => {
            Tree::from_json(json).with_context(|| format!("the content of {}", piece.id))?
        }
        None => Tree::empty(),
    };
    assets.replace(&mut tree, name);
    Ok(format!("{}---\n\n{}", front.0, tree.to_markdown()))
}

/// Lines of YAML front matter. Each value is JSON, which is valid YAML as well.
struct FrontMatterWriter(String);

impl FrontMatterWriter {
    fn add(&mut self, name: &str, value: &Value) {
        // A key may contain characters or words that YAML would interpret.
        let is_plain = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        let is_word = !matches!(
            name.to_ascii_lowercase().as_str(),
            "" | "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
        );
        if is_plain && is_word {
            self.0.push_str(name);
        } else {
            self.0.push_str(&json(&Value::from(name)));
        }
        self.0.push_str(": ");
        self.0.push_str(&json(value));
        self.0.push('\n');
    }

    /// Adds custom data as separate fields if these represent it exactly, otherwise as one text.
    fn add_custom_data(&mut self, text: &str) {
        let read: Option<Value> = serde_json::from_str(text).ok();
        match read.filter(|value| value.to_string().as_str() == text) {
            Some(Value::Object(fields))
                if !fields.is_empty()
                    && !fields.keys().any(|name| RESERVED_FIELDS.contains(&name.as_str())) =>
            {
                for (name, value) in &fields {
                    self.add(name, value);
                }
            }
            _ => self.add("customData", &Value::from(text)),
        }
    }
}

/// Returns JSON in one line, with escapes for characters that YAML doesn't allow.
fn json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}
