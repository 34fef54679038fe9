//! Problem details as in RFC 9457.

use std::fmt::Write;

use galley_domain::{ContentPieceId, Invalid};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schemas;

/// A step of the path to a value in a body: a field's name, or an index in an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Step {
    Field(String),
    Item(usize),
}

/// An error in one value of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Issue {
    /// The path to the value: names of fields, and indexes in arrays from 0.
    #[schema(inline, example = json!(["slug"]))]
    pub path: Vec<Step>,
    /// The cause, for programs.
    #[schema(example = "required")]
    pub code: &'static str,
    /// The cause, for people.
    #[schema(example = "slug is required")]
    pub message: String,
}

impl Issue {
    /// Creates an issue of the value at `path`. The message starts with the path.
    pub fn new(path: Vec<Step>, invalid: &Invalid) -> Self {
        let message = format!("{} {}", path_text(&path), invalid.message);
        Self { path, code: invalid.code, message }
    }

    /// Prepends `place` to the path, in the message as well.
    pub fn prefixed(self, place: &[Step]) -> Self {
        let rest = self.message.strip_prefix(&path_text(&self.path)).unwrap_or(&self.message);
        let path: Vec<_> = place.iter().cloned().chain(self.path).collect();
        Self { message: format!("{}{rest}", path_text(&path)), path, code: self.code }
    }

    /// Creates the issue of a reference to a resource that does not exist.
    pub fn unknown_reference(path: Vec<Step>, what: &str) -> Self {
        let invalid =
            Invalid::new("unknown_reference", format!("names no {what} of this workspace"));
        Self::new(path, &invalid)
    }
}

/// The field whose parts are named by JSON Pointers (RFC 6901).
const POINTED_FIELD: &str = "customData";

/// Formats a path, as in `tags[1]`, `metadata.contentGroupId` or `customData/seo/title`.
pub fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    let mut is_pointer = false;
    for step in path {
        match step {
            Step::Item(index) if is_pointer => {
                write!(text, "/{index}").expect("a String takes everything");
            }
            Step::Field(name) if is_pointer => {
                let name = name.replace('~', "~0").replace('/', "~1");
                write!(text, "/{name}").expect("a String takes everything");
            }
            Step::Item(index) => write!(text, "[{index}]").expect("a String takes everything"),
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => write!(text, ".{name}").expect("a String takes everything"),
        }
        is_pointer |= matches!(step, Step::Field(name) if name == POINTED_FIELD);
    }
    if text.is_empty() { "the body".to_owned() } else { text }
}

/// A slug that several pieces show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DuplicateSlug {
    #[schema(example = "hello")]
    pub slug: String,
    /// The key of the variant in which they show it, or null if it is their own slug.
    #[schema(example = "de")]
    pub variant: Option<String>,
    /// The pieces that have the slug already, or several of them if a group has very many. Pieces
    /// that the token can't see are left out.
    #[schema(value_type = Vec<schemas::ContentPieceId>)]
    pub content_piece_ids: Vec<ContentPieceId>,
}

/// A problem in JSON.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct ProblemBody<'a> {
    /// The URL of a page on the cause and the cure, relative to the service's own.
    #[schema(example = "/problems/validation")]
    pub r#type: String,
    /// The reason in a few words, the same for every problem of this type.
    #[schema(example = "The request is not valid")]
    pub title: &'a str,
    /// The response's status.
    #[schema(minimum = 400, maximum = 599, example = 400)]
    pub status: u16,
    /// The cause in this request.
    #[schema(example = "slug is required")]
    pub detail: &'a str,
    /// The status in words.
    #[schema(example = "BAD_REQUEST")]
    pub code: &'a str,
    /// The same as `detail`.
    #[schema(example = "slug is required")]
    pub message: &'a str,
    /// The precise, stable cause. Programs should use it to distinguish problems.
    #[schema(example = "validation")]
    pub reason: &'a str,
    /// All issues of fields and parameters. Absent if the problem has another cause.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub issues: &'a [Issue],
    /// The number of the newest event, with the reason `after_beyond_newest`.
    #[schema(value_type = i64, required = false, example = 1042)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// The slugs that several pieces have, at most 200, with the reason `slug_taken`.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub duplicates: &'a [DuplicateSlug],
    /// The `X-Request-Id` of the response, with which log lines can be found.
    #[schema(example = "01a1fc13012e52d457d806ffae31da64")]
    pub request_id: &'a str,
}
