//! Rejections: why an operation was not carried out, in terms of the API.

use galley_api_types::problem::{Issue, Step};
use galley_domain::{Invalid, Permission};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The precise, stable cause of a rejection.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Reason {$($(#[$doc])* $name,)*}

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns its name, as in `reason` and at the end of `type`.
            pub const fn as_str(self) -> &'static str {
                match self {$(Self::$name => $text,)*}
            }
        }
    };
}

reasons! {
    /// Fields or parameters that break a rule.
    Validation = "validation";
    /// Something named in the request isn't there.
    UnknownReference = "unknown_reference";
    /// A field that stays as it is.
    ImmutableField = "immutable_field";
    /// The body is not JSON as it is wanted.
    MalformedBody = "malformed_body";
    /// The content nests too deep.
    ContentTooDeep = "content_too_deep";
    /// The content multiplies beyond measure.
    ContentTooComplex = "content_too_complex";
    /// A group would stand under itself.
    Circle = "circle";
    /// No token, or none that works.
    Unauthorized = "unauthorized";
    /// The token may not do this.
    InsufficientPermissions = "insufficient_permissions";
    /// It would give or take more than the token has.
    BeyondOwn = "beyond_own_permissions";
    /// The token's view is limited to some groups.
    OutsideGroupLimit = "outside_group_limit";
    /// It isn't there.
    NotFound = "not_found";
    /// The path is there, the method is not.
    MethodNotAllowed = "method_not_allowed";
    /// The events that are asked for are not kept any more.
    EventsForgotten = "events_forgotten";
    /// Events that never happened.
    AfterBeyondNewest = "after_beyond_newest";
    /// The invite can't be accepted any more.
    InviteEnded = "invite_ended";
    /// It holds something.
    NotEmpty = "not_empty";
    /// It holds too much.
    TooLarge = "too_large";
    /// Somebody with this address is a member.
    AlreadyMember = "already_member";
    /// Somebody with this address is invited.
    AlreadyInvited = "already_invited";
    /// Nobody would be left who may do everything.
    LastAdmin = "last_admin";
    /// Somebody has the role.
    RoleInUse = "role_in_use";
    /// The role is part of every workspace.
    BuiltinRole = "builtin_role";
    /// The name must be unique and is there.
    NameTaken = "name_taken";
    /// The username must be unique and is there.
    UsernameTaken = "username_taken";
    /// The request with this key was answered, and the answer can't be given again.
    AlreadyAnswered = "already_answered";
    /// Another one has this key.
    KeyTaken = "key_taken";
    /// It changed since it was read.
    PreconditionFailed = "precondition_failed";
    /// The body is over its limit.
    PayloadTooLarge = "payload_too_large";
    /// The client took too long.
    RequestTimeout = "request_timeout";
    /// The body isn't JSON by its own word.
    UnsupportedMediaType = "unsupported_media_type";
    /// The key came with another request before.
    IdempotencyKeyReused = "idempotency_key_reused";
    /// Too many requests of one token.
    RateLimited = "rate_limited";
    /// Too many invites of one workspace.
    TooManyInvites = "too_many_invites";
    /// A fault of the server.
    Internal = "internal";
    /// No room on the disk.
    StorageFull = "storage_full";
    /// The database is away.
    DatabaseUnavailable = "database_unavailable";
    /// Too much to do.
    Overloaded = "overloaded";
    /// Not to be asked now.
    NotReady = "not_ready";
}

/// The limit of issues in one rejection.
const ISSUES_MAX: usize = 1_000;

/// A rejection of a request.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// The reason.
    pub reason: Reason,
    /// The cause in this request.
    pub detail: String,
    /// Everything that is wrong with fields and parameters.
    pub issues: Vec<Issue>,
    /// The sequence number of the newest event, if the request names a later one.
    pub sequence: Option<i64>,
    /// The seconds after which a retry may succeed.
    pub retry_after: Option<i64>,
}

impl Rejection {
    /// Creates a rejection without issues.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { reason, detail, issues: Vec::new(), sequence: None, retry_after: None }
    }

    /// Creates a rejection for all issues of a request, or for the first 1,000. There must be one.
    pub fn of_issues(mut issues: Vec<Issue>) -> Self {
        let reason = common_reason(&issues).unwrap_or(Reason::Validation);
        let more = issues.len().saturating_sub(ISSUES_MAX);
        issues.truncate(ISSUES_MAX);
        let mut messages: Vec<_> = issues.iter().map(|issue| issue.message.as_str()).collect();
        let rest = format!("and {more} more");
        messages.extend((more > 0).then_some(rest.as_str()));
        let detail = messages.join("; ");
        Self { issues, ..Self::new(reason, detail) }
    }

    /// The request names an event after the newest one.
    pub fn after_beyond_newest(newest: i64) -> Self {
        let detail = format!("the newest event has the number {newest}");
        Self { sequence: Some(newest), ..Self::new(Reason::AfterBeyondNewest, detail) }
    }

    /// The response would have more than `bytes` bytes. A smaller value of the parameter avoids that.
    pub fn too_much(parameter: &str, bytes: usize) -> Self {
        let message =
            format!("asks for more than {bytes} bytes at once: ask for fewer, or for less of each");
        let place = vec![Step::Field(parameter.to_owned())];
        Self::of_issues(vec![Issue::new(place, &Invalid::new("too_long", message))])
    }

    /// The resource does not exist in this workspace.
    pub fn not_found() -> Self {
        Self::new(Reason::NotFound, "there is no such thing, or not in this workspace")
    }

    /// The request has no valid access token.
    pub fn unauthorized(detail: &str) -> Self {
        Self::new(Reason::Unauthorized, detail)
    }

    /// The token lacks a permission.
    pub fn insufficient_permissions(permission: Permission) -> Self {
        let detail = format!("the permission {permission} is missing");
        Self::new(Reason::InsufficientPermissions, detail)
    }

    /// Adds the seconds after which a retry may succeed.
    pub fn retry_after(self, seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }
}

/// Returns the reason that all issues share, if their code is one.
fn common_reason(issues: &[Issue]) -> Option<Reason> {
    let code = issues.first()?.code;
    let same = issues.iter().all(|issue| issue.code == code);
    same.then(|| Reason::ALL.iter().copied().find(|reason| reason.as_str() == code)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_cause_of_all_issues_is_the_reason() {
        let unknown = |index| Issue::unknown_reference(vec![Step::Item(index)], "tag");
        assert_eq!(
            Rejection::of_issues(vec![unknown(0), unknown(1)]).reason,
            Reason::UnknownReference
        );
        let other = Issue::new(Vec::new(), &Invalid::new("required", "is required"));
        assert_eq!(Rejection::of_issues(vec![unknown(0), other]).reason, Reason::Validation);
    }
}
