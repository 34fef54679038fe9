//! Problem details after RFC 9457.

use std::fmt::Write;

use galley_domain::Invalid;
use serde::Serialize;
use utoipa::ToSchema;

/// A step on the way to a value in a body: a field's name, or a place in an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Step {
    Field(String),
    Item(usize),
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Issue {
    /// The way to the value: names of fields, and places in arrays from 0.
    #[schema(inline, example = json!(["slug"]))]
    pub path: Vec<Step>,
    /// What is wrong, for programs.
    #[schema(example = "required")]
    pub code: &'static str,
    /// What is wrong, for people.
    #[schema(example = "slug is required")]
    pub message: String,
}

impl Issue {
    /// What is wrong with the value at `path`; the message starts with the path.
    pub fn new(path: Vec<Step>, invalid: &Invalid) -> Self {
        let message = format!("{} {}", written(&path), invalid.message);
        Self { path, code: invalid.code, message }
    }

    /// The same, of something within a greater whole that stands there.
    pub fn within(self, place: &[Step]) -> Self {
        let rest = self.message.strip_prefix(&written(&self.path)).unwrap_or(&self.message);
        let path: Vec<_> = place.iter().cloned().chain(self.path).collect();
        Self { message: format!("{}{rest}", written(&path)), path, code: self.code }
    }

    /// Something that the request names, and that is not there.
    pub fn unknown_reference(path: Vec<Step>, what: &str) -> Self {
        let invalid =
            Invalid::new("unknown_reference", format!("names no {what} of this workspace"));
        Self::new(path, &invalid)
    }
}

/// `tags[1]`, `metadata.contentGroupId`.
pub fn written(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Item(index) => write!(text, "[{index}]").expect("a String takes everything"),
            Step::Field(name) if text.is_empty() => text.push_str(name),
            Step::Field(name) => write!(text, ".{name}").expect("a String takes everything"),
        }
    }
    if text.is_empty() { "the body".to_owned() } else { text }
}

/// A problem in JSON.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct ProblemBody<'a> {
    /// The address of a page on the cause and the cure, below the service's own.
    #[schema(example = "/problems/validation")]
    pub r#type: String,
    /// The reason in a few words, the same for every problem of this type.
    #[schema(example = "The request is not valid")]
    pub title: &'a str,
    /// The answer's status.
    #[schema(minimum = 400, maximum = 599, example = 400)]
    pub status: u16,
    /// What is wrong with this request.
    #[schema(example = "slug is required")]
    pub detail: &'a str,
    /// The status in words.
    #[schema(example = "BAD_REQUEST")]
    pub code: &'a str,
    /// The same as `detail`.
    #[schema(example = "slug is required")]
    pub message: &'a str,
    /// The precise, stable cause: decide by it.
    #[schema(example = "validation")]
    pub reason: &'a str,
    /// Everything that is wrong with fields and parameters; absent where these are not at fault.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub issues: &'a [Issue],
    /// The number of the newest event, with the reason `after_beyond_newest`.
    #[schema(value_type = i64, required = false, example = 1042)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// The `X-Request-Id` of the answer, under which the log has more.
    #[schema(example = "01a1fc13012e52d457d806ffae31da64")]
    pub request_id: &'a str,
}
