//! Reads a Ghost export: one JSON document with the rows of Ghost's tables.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::authors::Author;
use crate::findings::ImportFinding;
use crate::raw::{PublishingState, RawPiece, SourceBody};
use crate::sources::SourceContent;

/// The placeholder that Ghost exports in place of its own address.
const SITE_PLACEHOLDER: &str = "__GHOST_URL__";

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[derive(Deserialize)]
struct GhostExport {
    db: Vec<GhostDatabase>,
}

#[derive(Deserialize)]
struct GhostDatabase {
    data: GhostTables,
}

/// The rows of the tables. They are parsed one by one, so that one malformed row doesn't exclude
/// the others.
#[derive(Default, Deserialize)]
#[serde(default)]
struct GhostTables {
    posts: Vec<Value>,
    posts_meta: Vec<Value>,
    tags: Vec<Value>,
    posts_tags: Vec<Value>,
    users: Vec<Value>,
    posts_authors: Vec<Value>,
}

#[derive(Deserialize)]
struct GhostPost {
    #[serde(deserialize_with = "id")]
    id: String,
    uuid: Option<String>,
    title: Option<String>,
    slug: Option<String>,
    html: Option<String>,
    mobiledoc: Option<String>,
    lexical: Option<String>,
    feature_image: Option<String>,
    status: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    visibility: Option<String>,
    custom_excerpt: Option<String>,
    canonical_url: Option<String>,
    published_at: Option<String>,
    created_at: Option<String>,
    #[serde(default, deserialize_with = "id")]
    author_id: String,
}

#[derive(Deserialize)]
struct GhostPostMeta {
    #[serde(deserialize_with = "id")]
    post_id: String,
    feature_image_alt: Option<String>,
}

#[derive(Deserialize)]
struct GhostTag {
    #[serde(deserialize_with = "id")]
    id: String,
    name: String,
    visibility: Option<String>,
}

#[derive(Deserialize)]
struct PostTag {
    #[serde(deserialize_with = "id")]
    post_id: String,
    #[serde(deserialize_with = "id")]
    tag_id: String,
    #[serde(default)]
    sort_order: i64,
}

#[derive(Deserialize)]
struct GhostUser {
    #[serde(deserialize_with = "id")]
    id: String,
    name: String,
    slug: Option<String>,
    email: Option<String>,
}

#[derive(Deserialize)]
struct PostAuthor {
    #[serde(deserialize_with = "id")]
    post_id: String,
    #[serde(deserialize_with = "id")]
    author_id: String,
    #[serde(default)]
    sort_order: i64,
}

impl GhostUser {
    fn author(&self) -> Author {
        let Self { slug, email, name, .. } = self;
        Author { email: email.clone(), login: slug.clone(), name: name.clone() }
    }
}

/// Parses an id. Older exports have numbers.
fn id<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// Reads the posts of an export, or returns the line of the syntax error.
pub(crate) fn read(
    content: &SourceContent,
) -> Result<Vec<Result<RawPiece, String>>, (usize, String)> {
    let mut file = content.open().map_err(|error| (1, error.to_string()))?;
    if file.fill_buf().is_ok_and(|start| start.starts_with(BYTE_ORDER_MARK)) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    let export: GhostExport = serde_json::from_reader(file)
        .map_err(|error| (error.line().max(1), format!("is not a Ghost export: {error}")))?;
    let mut raws = Vec::new();
    for GhostDatabase { data } in export.db {
        let metas: Vec<GhostPostMeta> = rows("posts_meta", data.posts_meta, &mut raws);
        let all_tags: Vec<GhostTag> = rows("tags", data.tags, &mut raws);
        let all_users: Vec<GhostUser> = rows("users", data.users, &mut raws);
        let mut posts_tags: Vec<PostTag> = rows("posts_tags", data.posts_tags, &mut raws);
        let mut posts_authors: Vec<PostAuthor> =
            rows("posts_authors", data.posts_authors, &mut raws);
        posts_tags.sort_by_key(|link| link.sort_order);
        posts_authors.sort_by_key(|link| link.sort_order);
        let tags: HashMap<_, _> = all_tags.iter().map(|tag| (tag.id.as_str(), tag)).collect();
        let users: HashMap<_, _> = all_users.iter().map(|user| (user.id.as_str(), user)).collect();
        let alts: HashMap<_, _> = metas.iter().map(|meta| (meta.post_id.as_str(), meta)).collect();
        let mut of_post: HashMap<&str, (Vec<&GhostTag>, Vec<&GhostUser>)> = HashMap::new();
        for link in &posts_tags {
            let tag = tags.get(link.tag_id.as_str()).copied();
            of_post.entry(&link.post_id).or_default().0.extend(tag);
        }
        for link in &posts_authors {
            let user = users.get(link.author_id.as_str()).copied();
            of_post.entry(&link.post_id).or_default().1.extend(user);
        }
        for post in rows::<GhostPost>("posts", data.posts, &mut raws) {
            let (tags, mut authors) = of_post.remove(post.id.as_str()).unwrap_or_default();
            if authors.is_empty() {
                authors.extend(users.get(post.author_id.as_str()));
            }
            let alt = alts.get(post.id.as_str()).and_then(|meta| meta.feature_image_alt.clone());
            raws.push(raw(&post, &tags, &authors, alt));
        }
    }
    Ok(raws)
}

/// Parses the rows of a table. The errors of malformed rows go to `raws`.
fn rows<T: DeserializeOwned>(
    table: &str,
    values: Vec<Value>,
    raws: &mut Vec<Result<RawPiece, String>>,
) -> Vec<T> {
    let mut read = Vec::with_capacity(values.len());
    for row in values {
        let is_name = |value: &&Value| !value.is_null() && *value != "";
        let keys = ["slug", "name", "id", "post_id", "uuid", "title"].iter();
        let named = keys.filter_map(|key| row.get(key)).find(is_name);
        let named = named.map_or_else(|| "without a name".to_owned(), Value::to_string);
        match serde_json::from_value(row) {
            Ok(row) => read.push(row),
            Err(error) => raws.push(Err(format!("a row of {table}, {named}: {error}"))),
        }
    }
    read
}

fn html_of(post: &GhostPost) -> Result<String, &'static str> {
    match &post.html {
        Some(html) => Ok(html.replace(SITE_PLACEHOLDER, "")),
        None if post.lexical.is_some() || post.mobiledoc.is_some() => {
            Err("its text is only in Ghost's own format (lexical or mobiledoc), not in HTML")
        }
        None => Ok(String::new()),
    }
}

fn raw(
    post: &GhostPost,
    tags: &[&GhostTag],
    authors: &[&GhostUser],
    alt: Option<String>,
) -> Result<RawPiece, String> {
    let mut findings = Vec::new();
    let slug = post.slug.clone().filter(|slug| !slug.is_empty());
    let slug = slug.unwrap_or_else(|| post.id.clone());
    let html = html_of(post).map_err(|problem| format!("{slug}: {problem}"))?;
    if post.html.as_deref().is_some_and(|html| html.contains(SITE_PLACEHOLDER)) {
        findings
            .push(ImportFinding::assumed("addresses of the site itself, as relative to its root"));
    }
    let status = post.status.as_deref().unwrap_or_default();
    let state = match status {
        "published" => PublishingState::Published,
        "scheduled" => PublishingState::Scheduled,
        "sent" => PublishingState::Newsletter,
        _ => PublishingState::Draft,
    };
    let kind = post.kind.as_deref().filter(|kind| *kind != "post");
    let visibility = post.visibility.as_deref().filter(|visibility| *visibility != "public");
    // Galley has no readers who sign in: a published piece is public.
    let is_public = matches!(state, PublishingState::Published | PublishingState::Scheduled);
    let state =
        if is_public && visibility.is_some() { PublishingState::MembersOnly } else { state };
    let mut rest = Map::new();
    let mut keep = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            rest.insert(name.to_owned(), Value::from(value));
        }
    };
    keep("type", kind);
    keep("status", Some(status).filter(|status| !["", "published"].contains(status)));
    keep("visibility", visibility);
    if !authors.is_empty() {
        rest.insert("authors".to_owned(), authors.iter().map(|user| user.name.as_str()).collect());
    }
    let is_internal = |tag: &&&GhostTag| {
        tag.visibility.as_deref() == Some("internal") || tag.name.starts_with('#')
    };
    let internal: Vec<_> = tags.iter().filter(is_internal).map(|tag| tag.name.clone()).collect();
    if !internal.is_empty() {
        rest.insert("internalTags".to_owned(), Value::from(internal));
    }
    let date = post.published_at.clone();
    let date = date.or_else(|| {
        findings.push(ImportFinding::assumed("a date from a draft's creation"));
        post.created_at.clone()
    });
    Ok(RawPiece {
        name: format!("ghost/{}", post.uuid.as_deref().unwrap_or(&post.id)),
        title: post.title.clone().filter(|title| !title.is_empty()),
        slug,
        date,
        description: post.custom_excerpt.clone().filter(|excerpt| !excerpt.is_empty()),
        cover_url: post.feature_image.as_ref().map(|url| url.replace(SITE_PLACEHOLDER, "")),
        cover_alt: alt,
        canonical: post.canonical_url.as_ref().map(|url| url.replace(SITE_PLACEHOLDER, "")),
        tags: tags.iter().filter(|tag| !is_internal(tag)).map(|tag| tag.name.clone()).collect(),
        authors: authors.iter().map(|user| user.author()).collect(),
        state,
        rest,
        body: SourceBody::Html(html),
        findings,
        ..RawPiece::default()
    })
}
