//! Errors as clients see them: problem details after RFC 9457.
//!
//! A [`Problem`] travels inside the response until [`crate::http::edge`] writes it out, because only
//! there the request's id is known.

use std::fmt::Write;

use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use galley_domain::{Invalid, Permission};
use serde::Serialize;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $status:ident, $title:literal;)*) => {
        /// The precise, stable cause of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Reason {$($(#[$doc])* $name,)*}

        impl Reason {
            /// Every reason.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, in `reason` and at the end of `type`.
            pub(crate) const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }

            pub(crate) const fn status(self) -> StatusCode {
                match self {$(Self::$name => StatusCode::$status,)*}
            }

            pub(crate) const fn title(self) -> &'static str {
                match self {$(Self::$name => $title,)*}
            }
        }
    };
}

reasons! {
    /// Fields or parameters that break a rule.
    Validation = "validation", BAD_REQUEST, "The request is not valid";
    /// Something named in the request isn't there.
    UnknownReference = "unknown_reference", BAD_REQUEST, "The request names something that is not there";
    /// The body is not JSON as it is wanted.
    MalformedBody = "malformed_body", BAD_REQUEST, "The body is not a JSON object";
    /// The content nests too deep.
    ContentTooDeep = "content_too_deep", BAD_REQUEST, "The content nests too deep";
    /// The content multiplies beyond measure.
    ContentTooComplex = "content_too_complex", BAD_REQUEST, "The content is too complex";
    /// A group would stand under itself.
    Circle = "circle", BAD_REQUEST, "A group can't stand under itself";
    /// No token, or none that works.
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid access token is needed";
    /// The token may not do this.
    InsufficientPermissions = "insufficient_permissions", FORBIDDEN, "The token may not do this";
    /// It would give or take more than the token has.
    BeyondOwn = "beyond_own_permissions", FORBIDDEN, "Nobody gives or takes more than they have";
    /// The token's view is limited to some groups.
    OutsideGroupLimit = "outside_group_limit", FORBIDDEN, "The token is limited to other groups";
    /// It isn't there.
    NotFound = "not_found", NOT_FOUND, "There is no such thing";
    /// The path is there, the method is not.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here";
    /// It holds something.
    NotEmpty = "not_empty", CONFLICT, "The group is not empty";
    /// It holds too much.
    TooLarge = "too_large", CONFLICT, "The group holds too much to be deleted at once";
    /// Somebody with this address is a member.
    AlreadyMember = "already_member", CONFLICT, "Somebody with this address is a member";
    /// Somebody with this address is invited.
    AlreadyInvited = "already_invited", CONFLICT, "Somebody with this address is invited";
    /// Nobody would be left who may do everything.
    LastAdmin = "last_admin", CONFLICT, "The last Admin can't go";
    /// Somebody has the role.
    RoleInUse = "role_in_use", CONFLICT, "The role is in use";
    /// The role is part of every workspace.
    BuiltinRole = "builtin_role", CONFLICT, "The role stays as it is";
    /// The name must be unique and is there.
    NameTaken = "name_taken", CONFLICT, "The name is taken";
    /// The username must be unique and is there.
    UsernameTaken = "username_taken", CONFLICT, "The username is taken";
    /// The request with this key was answered, and the answer can't be given again.
    AlreadyAnswered = "already_answered", CONFLICT, "The request was answered already";
    /// Another one has this key.
    KeyTaken = "key_taken", CONFLICT, "The key is taken";
    /// It changed since it was read.
    PreconditionFailed = "precondition_failed", PRECONDITION_FAILED, "The resource has changed";
    /// The body is over its limit.
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The client took too long.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request came too slowly";
    /// The body isn't JSON by its own word.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON";
    /// The key came with another request before.
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request";
    /// Too many requests of one token.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "The token sends too many requests";
    /// Too many invites of one workspace.
    TooManyInvites = "too_many_invites", TOO_MANY_REQUESTS, "The workspace sends too many invites";
    /// A fault of the server.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong on the server";
    /// No room on the disk.
    StorageFull = "storage_full", INSUFFICIENT_STORAGE, "The server's disk is full";
    /// The database is away.
    DatabaseUnavailable = "database_unavailable", SERVICE_UNAVAILABLE, "The database can't be reached";
    /// Too much to do.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "The server has too much to do";
}

/// A step on the way to a value in a body: a field's name, or a place in an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Step {
    Field(String),
    Item(usize),
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Issue {
    pub(crate) path: Vec<Step>,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Issue {
    /// What is wrong with the value at `path`; the message starts with the path.
    pub(crate) fn new(path: Vec<Step>, invalid: &Invalid) -> Self {
        let message = format!("{} {}", written(&path), invalid.message);
        Self { path, code: invalid.code, message }
    }

    /// Something that the request names, and that is not there.
    pub(crate) fn unknown_reference(path: Vec<Step>, what: &str) -> Self {
        let invalid =
            Invalid::new("unknown_reference", format!("names no {what} of this workspace"));
        Self::new(path, &invalid)
    }
}

/// `tags[1]`, `metadata.contentGroupId`.
fn written(path: &[Step]) -> String {
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

/// An answer that says what went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    pub(crate) issues: Vec<Issue>,
    pub(crate) headers: HeaderMap,
}

impl Problem {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), issues: Vec::new(), headers: HeaderMap::new() }
    }

    /// All that is wrong with a request. There must be something.
    pub(crate) fn of_issues(issues: Vec<Issue>) -> Self {
        let detail =
            issues.iter().map(|issue| issue.message.as_str()).collect::<Vec<_>>().join("; ");
        let reason = common_reason(&issues).unwrap_or(Reason::Validation);
        Self { reason, detail, issues, headers: HeaderMap::new() }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Reason::NotFound, "there is no such thing, or not in this workspace")
    }

    /// There is no token, or none that works.
    pub(crate) fn unauthorized(detail: &str) -> Self {
        let problem = Self::new(Reason::Unauthorized, detail);
        problem.with_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// The token lacks this permission.
    pub(crate) fn insufficient_permissions(permission: Permission) -> Self {
        let detail = format!("the permission {permission} is missing");
        Self::new(Reason::InsufficientPermissions, detail)
    }

    /// Says after how many seconds it may go better.
    pub(crate) fn retry_after(self, seconds: i64) -> Self {
        self.with_header(RETRY_AFTER, HeaderValue::from(seconds))
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The body as it is sent.
    pub(crate) fn to_json(&self, request_id: &str) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            r#type: String,
            title: &'a str,
            status: u16,
            detail: &'a str,
            code: &'a str,
            message: &'a str,
            reason: &'a str,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            issues: &'a [Issue],
            request_id: &'a str,
        }
        let body = Body {
            r#type: format!("/problems/{}", self.reason.as_str()),
            title: self.reason.title(),
            status: self.reason.status().as_u16(),
            detail: &self.detail,
            code: code(self.reason.status()),
            message: &self.detail,
            reason: self.reason.as_str(),
            issues: &self.issues,
            request_id,
        };
        serde_json::to_string(&body).expect("texts and numbers are JSON")
    }
}

/// The reason that all issues share, where their code is one.
fn common_reason(issues: &[Issue]) -> Option<Reason> {
    let code = issues.first()?.code;
    let same = issues.iter().all(|issue| issue.code == code);
    same.then(|| Reason::ALL.iter().copied().find(|reason| reason.as_str() == code)).flatten()
}

/// The status in words, as existing clients of this API read it.
fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "BAD_REQUEST",
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::REQUEST_TIMEOUT => "REQUEST_TIMEOUT",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::GONE => "GONE",
        StatusCode::PRECONDITION_FAILED => "PRECONDITION_FAILED",
        StatusCode::PAYLOAD_TOO_LARGE => "PAYLOAD_TOO_LARGE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        StatusCode::UNPROCESSABLE_ENTITY => "UNPROCESSABLE_CONTENT",
        StatusCode::TOO_MANY_REQUESTS => "TOO_MANY_REQUESTS",
        StatusCode::SERVICE_UNAVAILABLE => "SERVICE_UNAVAILABLE",
        StatusCode::INSUFFICIENT_STORAGE => "INSUFFICIENT_STORAGE",
        _ => "INTERNAL_SERVER_ERROR",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.reason.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_cause_of_all_issues_is_the_reason() {
        let unknown = |index| Issue::unknown_reference(vec![Step::Item(index)], "tag");
        assert_eq!(
            Problem::of_issues(vec![unknown(0), unknown(1)]).reason,
            Reason::UnknownReference
        );
        let other = Issue::new(Vec::new(), &Invalid::new("required", "is required"));
        assert_eq!(Problem::of_issues(vec![unknown(0), other]).reason, Reason::Validation);
    }
}
