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
use utoipa::ToSchema;

macro_rules! reasons {
    ($(
        $(#[$doc:meta])* $name:ident = $text:literal, $status:ident, $title:literal,
        $cause:literal, $cure:literal;
    )*) => {
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

            /// What led to it, for whoever wrote the request.
            pub(crate) const fn cause(self) -> &'static str {
                match self {$(Self::$name => $cause,)*}
            }

            /// What to do about it.
            pub(crate) const fn cure(self) -> &'static str {
                match self {$(Self::$name => $cure,)*}
            }
        }
    };
}

// Name, text, status and title; then the cause and the cure, which are also the page under
// `/problems`. What stands in backticks is shown as code.
reasons! {
    /// Fields or parameters that break a rule.
    Validation = "validation", BAD_REQUEST, "The request is not valid",
        "At least one field of the body, or one parameter of the query, is missing, of the \
         wrong type, or breaks a rule. Nothing was changed.",
        "Go through `issues`: it names everything that is wrong at once, each with its place \
         in `path`, a `code` and a message. Correct these and send the request again.";
    /// Something named in the request isn't there.
    UnknownReference = "unknown_reference", BAD_REQUEST, "The request names something that is not there",
        "The body names a tag, a member, a role, a group or a piece that this workspace doesn't \
         have, or that lies outside of the groups to which the token is limited.",
        "See `issues` for its place, such as `tags[1]`. Create what is missing first, take an \
         identifier that exists, or leave it out.";
    /// A field that stays as it is.
    ImmutableField = "immutable_field", BAD_REQUEST, "The field can't be changed",
        "The body names a field that is set when the resource is made, and never after, such as \
         the `secret` of a webhook.",
        "Leave the field out. Where another value is needed, make a new resource with it and \
         delete this one.";
    /// The body is not JSON as it is wanted.
    MalformedBody = "malformed_body", BAD_REQUEST, "The body can't be read",
        "The body is not a JSON object (or on the page of an invite, a form) in UTF-8, ended early, has a key \
         twice, nests over 128 levels, or holds a NUL character.",
        "The detail says line and column. Let a JSON library write the body, and check that \
         it is sent whole.";
    /// The content nests too deep.
    ContentTooDeep = "content_too_deep", BAD_REQUEST, "The content nests too deep",
        "The HTML in `content` has more than 256 block elements inside one another, or would \
         become a tree of more than 100 levels.",
        "Flatten the content: lists, quotes and tables within one another are what makes it \
         deep.";
    /// The content multiplies beyond measure.
    ContentTooComplex = "content_too_complex", BAD_REQUEST, "The content is too complex",
        "By the rules for parsing HTML, the content would become far more than its length \
         justifies, or a tree of over 16 MiB.",
        "Close formatting elements such as `<b>` and `<a>` where they end, simplify the \
         content, or spread it over several pieces.";
    /// A group would stand under itself.
    Circle = "circle", BAD_REQUEST, "A group can't stand under itself",
        "The new `ancestor` is the group itself, or a group under it.",
        "Choose another `ancestor`, or move that one out of the group first.";
    /// No token, or none that works.
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid access token is needed",
        "The request has no access token, or one that is mistyped, unknown, revoked or \
         expired.",
        "Send the header `Authorization: Bearer <ACCESS_TOKEN>`. The operator makes a new \
         token with `galley token create`.";
    /// The token may not do this.
    InsufficientPermissions = "insufficient_permissions", FORBIDDEN, "The token may not do this",
        "The token, or the role of its user, lacks the permission that the detail names. A \
         token may do what both allow.",
        "Use a token that has the permission, or ask an Admin of the workspace for one, or \
         for another role.";
    /// It would give or take more than the token has.
    BeyondOwn = "beyond_own_permissions", FORBIDDEN, "Nobody gives or takes more than they have",
        "The request would give permissions, groups, a later end or another extension than \
          the token itself has, or would change or remove a member, a role or a token that \
          holds more than the token.",
        "Let somebody do it who holds all of that, such as an Admin with an unlimited \
          token, or ask for less.";
    /// The token's view is limited to some groups.
    OutsideGroupLimit = "outside_group_limit", FORBIDDEN, "The token is limited to other groups",
        "The token is limited to some content groups, and the request would reach beyond them: put \
         a group at the top level, give a token or a webhook a view of other groups, or change \
         roles or members.",
        "Stay within the token's groups: name one of them, or a group under it. Or use a token \
         without such a limit.";
    /// It isn't there.
    NotFound = "not_found", NOT_FOUND, "There is no such thing",
        "Nothing in this workspace has this identifier, or the path is none of this service. \
         What belongs to another workspace, or lies outside of the groups to which the token \
         is limited, is answered in the same way.",
        "Check the identifier, the path, and of which workspace the token is. It may also \
         have been deleted meanwhile.";
    /// The path is there, the method is not.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists, but not with this method.",
        "Use one of the methods that the header `Allow` of the answer names.";
    /// The events that are asked for are not kept any more.
    EventsForgotten = "events_forgotten", GONE, "The events are not kept any more",
        "Events are kept for 30 days, and some of those behind the number in `after` or \
         `Last-Event-ID` are older.",
        "Read what is there now by the other endpoints, and follow the events from there on: leave \
         `after` out to begin with the oldest one that is kept.";
    /// Events that never happened.
    AfterBeyondNewest = "after_beyond_newest", GONE, "The workspace has fewer events than that",
        "`after` or `Last-Event-ID` is greater than the number of the newest event. The database was \
         set back to an earlier state, as by restoring a backup, or the number is of another workspace.",
        "Read everything anew, and go on from the newest event, which the problem's `sequence` names.";
    /// The invite can't be accepted any more.
    InviteEnded = "invite_ended", GONE, "The invite can't be accepted any more",
        "The invite was accepted before, its seven days are over, or it was taken back. The detail says \
         which.",
        "Ask who invited you for another one. Who accepted it before has a token; where that was lost, \
         the operator makes another one with `galley token create`.";
    /// It holds something.
    NotEmpty = "not_empty", CONFLICT, "The group is not empty",
        "The group holds groups or pieces, and is only deleted with them if that is asked \
         for.",
        "Move or delete what it holds first, or send `recursive=true` to delete it with all \
         that it holds.";
    /// It holds too much.
    TooLarge = "too_large", CONFLICT, "The group holds too much to be deleted at once",
        "The group holds more than 10,000 pieces, together with the groups under it. One \
         request deletes no more than that; nothing was deleted.",
        "Delete the groups under it one after the other, or some of the pieces first.";
    /// Somebody with this address is a member.
    AlreadyMember = "already_member", CONFLICT, "Somebody with this address is a member",
        "A member of the workspace has this e-mail address.",
        "Nothing is left to do; `GET /workspace-memberships/list-members` shows the member, \
          and `PUT /workspace-memberships` gives it another role.";
    /// Somebody with this address is invited.
    AlreadyInvited = "already_invited", CONFLICT, "Somebody with this address is invited",
        "An invite to this e-mail address is open.",
        "Wait until it is accepted, or remove it with `DELETE /workspace-memberships` and \
          invite anew.";
    /// Nobody would be left who may do everything.
    LastAdmin = "last_admin", CONFLICT, "The last Admin can't go",
        "The member is the only one with the role Admin. Without an Admin nobody could \
          manage the workspace any more. Pending invites don't count.",
        "Give somebody else the role Admin first.";
    /// Somebody has the role.
    RoleInUse = "role_in_use", CONFLICT, "The role is in use",
        "Members, or people who are invited, have this role.",
        "Give them another role first, with `PUT /workspace-memberships`.";
    /// The role is part of every workspace.
    BuiltinRole = "builtin_role", CONFLICT, "The role stays as it is",
        "The role Admin is part of every workspace; it can be neither changed nor deleted.",
        "Make a role of your own, and give it the permissions that you want.";
    /// The name must be unique and is there.
    NameTaken = "name_taken", CONFLICT, "The name is taken",
        "Another role of the workspace has this name.",
        "Choose another name, or change the role that has this one.";
    /// The username must be unique and is there.
    UsernameTaken = "username_taken", CONFLICT, "The username is taken",
        "Another user of the installation has this username, perhaps in another case.",
        "Choose another username, or leave yours as it is.";
    /// The request with this key was answered, and the answer can't be given again.
    AlreadyAnswered = "already_answered", CONFLICT, "The request was answered already",
        "A request with this `Idempotency-Key` was answered before, with something that is \
          shown only once, such as a token.",
        "If the first answer was lost, delete what it made, and send the request with a new \
          key.";
    /// Another one has this key.
    KeyTaken = "key_taken", CONFLICT, "The key is taken",
        "Another variant of the workspace has this `key`.",
        "Choose another key, or change the variant that has it.";
    /// It changed since it was read.
    PreconditionFailed = "precondition_failed", PRECONDITION_FAILED, "The resource has changed",
        "The request has an `If-Match`, and somebody has changed the resource since it had \
         that entity tag. The request changed nothing.",
        "Get the resource again, make the change anew on what it is now, and send it with the \
         new `ETag`.";
    /// The body is over its limit.
    PayloadTooLarge = "payload_too_large", PAYLOAD_TOO_LARGE, "The body is too large",
        "The body has more bytes than the service accepts; the detail says how many these \
         are.",
        "Send less in one request. The operator can raise the limit with the setting \
         `body-max`.";
    /// The client took too long.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT, "The request came too slowly",
        "The body did not arrive within the time that a request may take, by default 30 \
         seconds.",
        "Send it again over a better connection, or send less at once.";
    /// The body isn't JSON by its own word.
    UnsupportedMediaType = "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "By its headers the body is something else than JSON, in another charset than UTF-8, \
         or compressed.",
        "Send the header `Content-Type: application/json`, and no `Content-Encoding`.";
    /// The key came with another request before.
    IdempotencyKeyReused = "idempotency_key_reused", UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request",
        "The `Idempotency-Key` came with another path or body within the last 24 hours.",
        "Use a new key for each new request; repeat a key only with the same body.";
    /// Too many requests of one token.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS, "The token sends too many requests",
        "The token sent more requests in a minute than the operator allows.",
        "Wait as long as `Retry-After` says. `RateLimit` says in every answer how many \
          requests are left.";
    /// Too many invites of one workspace.
    TooManyInvites = "too_many_invites", TOO_MANY_REQUESTS, "The workspace sends too many invites",
        "The workspace sent as many invites within the last hour as the operator allows.",
        "Wait as long as `Retry-After` says.";
    /// A fault of the server.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Something went wrong on the server",
        "A fault of the service, not of the request. A change that it was about to make was \
         undone.",
        "Tell the operator the `requestId`: the log has the cause under it. Trying again may \
         help, if the fault was a passing one.";
    /// No room on the disk.
    StorageFull = "storage_full", INSUFFICIENT_STORAGE, "The server's disk is full",
        "The disk that holds the database is full. Nothing was changed.",
        "The operator has to make room on the disk. Try again after that; `Retry-After` says \
         when at the earliest.";
    /// The database is away.
    DatabaseUnavailable = "database_unavailable", SERVICE_UNAVAILABLE, "The database can't be reached",
        "The service runs, but can't reach its database. If a change was just being \
         committed, it may have been made or not.",
        "Try again after the time in `Retry-After`. After a failed change look first whether \
         it was made; with `If-Match`, a change that was made is not made twice.";
    /// Too much to do.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "The server has too much to do",
        "The service has more to do than it can at the moment, or the request took longer \
         than it may. Nothing was changed.",
        "Try again after the time in `Retry-After`, and wait longer each time.";
    /// Not to be asked now.
    NotReady = "not_ready", SERVICE_UNAVAILABLE, "The server is not to be asked now",
        "The service is about to stop, or its database was changed for newer programs. Only `/readyz` says so, for \
         who balances over several servers; the others are still answered.",
        "Send requests to another server.";
}

/// A step on the way to a value in a body: a field's name, or a place in an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Step {
    Field(String),
    Item(usize),
}

/// One thing that is wrong with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Issue {
    /// The way to the value: names of fields, and places in arrays from 0.
    #[schema(inline, example = json!(["slug"]))]
    pub(crate) path: Vec<Step>,
    /// What is wrong, for programs.
    #[schema(example = "required")]
    pub(crate) code: &'static str,
    /// What is wrong, for people.
    #[schema(example = "slug is required")]
    pub(crate) message: String,
}

impl Issue {
    /// What is wrong with the value at `path`; the message starts with the path.
    pub(crate) fn new(path: Vec<Step>, invalid: &Invalid) -> Self {
        let message = format!("{} {}", written(&path), invalid.message);
        Self { path, code: invalid.code, message }
    }

    /// The same, of something within a greater whole that stands there.
    pub(crate) fn within(self, place: &[Step]) -> Self {
        let rest = self.message.strip_prefix(&written(&self.path)).unwrap_or(&self.message);
        let path: Vec<_> = place.iter().cloned().chain(self.path).collect();
        Self { message: format!("{}{rest}", written(&path)), path, code: self.code }
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

/// How many issues an answer names.
const ISSUES_MAX: usize = 1_000;

/// An answer that says what went wrong.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    pub(crate) issues: Vec<Issue>,
    pub(crate) headers: HeaderMap,
    /// The number of the newest event, for a client that names a later one.
    sequence: Option<i64>,
}

impl Problem {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        let (issues, headers) = (Vec::new(), HeaderMap::new());
        Self { reason, detail: detail.into(), issues, headers, sequence: None }
    }

    /// All that is wrong with a request, or the first of it where that is very much. There must be something.
    pub(crate) fn of_issues(mut issues: Vec<Issue>) -> Self {
        let reason = common_reason(&issues).unwrap_or(Reason::Validation);
        let more = issues.len().saturating_sub(ISSUES_MAX);
        issues.truncate(ISSUES_MAX);
        let mut messages: Vec<_> = issues.iter().map(|issue| issue.message.as_str()).collect();
        let rest = format!("and {more} more");
        messages.extend((more > 0).then_some(rest.as_str()));
        let detail = messages.join("; ");
        Self { reason, detail, issues, headers: HeaderMap::new(), sequence: None }
    }

    /// The client names an event after the newest one.
    pub(crate) fn after_beyond_newest(newest: i64) -> Self {
        let detail = format!("the newest event has the number {newest}");
        Self { sequence: Some(newest), ..Self::new(Reason::AfterBeyondNewest, detail) }
    }

    /// The answer would hold up others: the parameter can ask for less than what has more than so many bytes.
    pub(crate) fn too_much(parameter: &str, bytes: usize) -> Self {
        let message =
            format!("asks for more than {bytes} bytes at once: ask for fewer, or for less of each");
        let place = vec![Step::Field(parameter.to_owned())];
        Self::of_issues(vec![Issue::new(place, &Invalid::new("too_long", message))])
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
        let body = ProblemBody {
            r#type: format!("/problems/{}", self.reason.as_str()),
            title: self.reason.title(),
            status: self.reason.status().as_u16(),
            detail: &self.detail,
            code: code(self.reason.status()),
            message: &self.detail,
            reason: self.reason.as_str(),
            issues: &self.issues,
            sequence: self.sequence,
            request_id,
        };
        serde_json::to_string(&body).expect("texts and numbers are JSON")
    }
}

/// A problem in JSON.
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemBody<'a> {
    /// The address of a page on the cause and the cure, below the service's own.
    #[schema(example = "/problems/validation")]
    r#type: String,
    /// The reason in a few words, the same for every problem of this type.
    #[schema(example = "The request is not valid")]
    title: &'a str,
    /// The answer's status.
    #[schema(minimum = 400, maximum = 599, example = 400)]
    status: u16,
    /// What is wrong with this request.
    #[schema(example = "slug is required")]
    detail: &'a str,
    /// The status in words.
    #[schema(example = "BAD_REQUEST")]
    code: &'a str,
    /// The same as `detail`.
    #[schema(example = "slug is required")]
    message: &'a str,
    /// The precise, stable cause: decide by it.
    #[schema(example = "validation")]
    reason: &'a str,
    /// Everything that is wrong with fields and parameters; absent where these are not at fault.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    issues: &'a [Issue],
    /// The number of the newest event, with the reason `after_beyond_newest`.
    #[schema(value_type = i64, required = false, example = 1042)]
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<i64>,
    /// The `X-Request-Id` of the answer, under which the log has more.
    #[schema(example = "01a1fc13012e52d457d806ffae31da64")]
    request_id: &'a str,
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
