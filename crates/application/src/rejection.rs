//! Rejections: the reasons why an operation was not carried out, in terms of the API.

use galley_api_types::problem::{DuplicateSlug, Issue, Step};
use galley_domain::{Invalid, Permission};

galley_domain::named_enum! {
    /// The precise, stable cause of a rejection, as in `reason` and at the end of `type`.
    pub enum Reason {
        /// Fields or parameters break a rule.
        Validation = "validation",
        /// The endpoint has no parameter of this name.
        UnknownParameter = "unknown_parameter",
        /// The request refers to a resource that does not exist.
        UnknownReference = "unknown_reference",
        /// The field can't be changed.
        ImmutableField = "immutable_field",
        /// The body is not valid JSON of the expected form.
        MalformedBody = "malformed_body",
        /// The content is nested too deeply.
        ContentTooDeep = "content_too_deep",
        /// The content is too complex: its conversion multiplies elements.
        ContentTooComplex = "content_too_complex",
        /// A group would be moved below itself.
        Circle = "circle",
        /// The request has no access token, or no valid one.
        Unauthorized = "unauthorized",
        /// A request with a cookie comes from another site.
        ForeignOrigin = "foreign_origin",
        /// Sessions have no encrypted connection.
        InsecureConnection = "insecure_connection",
        /// The operation needs a session.
        SessionRequired = "session_required",
        /// The invite's address belongs to a user, who must sign in first.
        SignInRequired = "sign_in_required",
        /// The link was requested in another browser.
        OtherBrowser = "other_browser",
        /// The code is wrong.
        WrongCode = "wrong_code",
        /// The link or the code can no longer be used.
        SignInEnded = "sign_in_ended",
        /// The identity provider does not respond as expected.
        IdentityProviderFailed = "identity_provider_failed",
        /// The identity provider declined, or its statement is not valid.
        IdentityRejected = "identity_rejected",
        /// The identity provider has not verified the user's address.
        UnverifiedIdentity = "unverified_identity",
        /// No member has the address of the identity.
        UnknownIdentity = "unknown_identity",
        /// The member with the address of the identity has never proved it.
        UnverifiedMember = "unverified_member",
        /// The token lacks a permission.
        InsufficientPermissions = "insufficient_permissions",
        /// The change would grant or revoke more than the token has.
        BeyondOwn = "beyond_own_permissions",
        /// The token is limited to some groups.
        OutsideGroupLimit = "outside_group_limit",
        /// The resource does not exist.
        NotFound = "not_found",
        /// The path exists, but not with this method.
        MethodNotAllowed = "method_not_allowed",
        /// The requested events are no longer stored.
        EventsForgotten = "events_forgotten",
        /// The request names an event after the newest one.
        AfterBeyondNewest = "after_beyond_newest",
        /// The invite can no longer be accepted.
        InviteEnded = "invite_ended",
        /// The group is not empty.
        NotEmpty = "not_empty",
        /// The group contains too much to delete at once.
        TooLarge = "too_large",
        /// The address belongs to a member already.
        AlreadyMember = "already_member",
        /// The address has a pending invite.
        AlreadyInvited = "already_invited",
        /// The workspace would be left without an Admin.
        LastAdmin = "last_admin",
        /// Members or invites have the role.
        RoleInUse = "role_in_use",
        /// The role is built in.
        BuiltinRole = "builtin_role",
        /// The name must be unique and is taken.
        NameTaken = "name_taken",
        /// The username must be unique and is taken.
        UsernameTaken = "username_taken",
        /// The request with this idempotency key was carried out, and its response can't be
        /// repeated.
        AlreadyAnswered = "already_answered",
        /// Another variant has this key.
        KeyTaken = "key_taken",
        /// Slugs must be unique in a group, and another piece has this one.
        SlugTaken = "slug_taken",
        /// A piece refers to the asset.
        AssetInUse = "asset_in_use",
        /// The upload continues at another position.
        UploadOffsetMismatch = "upload_offset_mismatch",
        /// The revision is the latest one, whose values are current.
        LatestRevision = "latest_revision",
        /// The revision is published, or is to be.
        PublishedRevision = "published_revision",
        /// The resource has changed since it was read.
        PreconditionFailed = "precondition_failed",
        /// The version of a protocol is not supported.
        UnsupportedProtocol = "unsupported_protocol",
        /// The body exceeds its size limit.
        PayloadTooLarge = "payload_too_large",
        /// The assets of the workspace would exceed their size limit.
        AssetStorageExceeded = "asset_storage_exceeded",
        /// The body differs from its digest.
        DigestMismatch = "digest_mismatch",
        /// The client sent the request too slowly.
        RequestTimeout = "request_timeout",
        /// The file has no byte of the requested range.
        RangeNotSatisfiable = "range_not_satisfiable",
        /// The content type is not JSON.
        UnsupportedMediaType = "unsupported_media_type",
        /// The idempotency key was used with another request.
        IdempotencyKeyReused = "idempotency_key_reused",
        /// The token exceeds its rate limit.
        RateLimited = "rate_limited",
        /// The address or the client exceeds its limit on sign-ins.
        TooManySignIns = "too_many_sign_ins",
        /// The workspace exceeds its limit on invites.
        TooManyInvites = "too_many_invites",
        /// The workspace has too many uploads that have not ended.
        TooManyUploads = "too_many_uploads",
        /// An internal error.
        Internal = "internal",
        /// The disk is full.
        StorageFull = "storage_full",
        /// The database is not available.
        DatabaseUnavailable = "database_unavailable",
        /// The store of assets is not available.
        AssetStoreUnavailable = "asset_store_unavailable",
        /// The service is overloaded.
        Overloaded = "overloaded",
        /// The service is not ready for requests.
        NotReady = "not_ready",
    }
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
    /// The issues of fields and parameters.
    pub issues: Vec<Issue>,
    /// The sequence number of the newest event, if the request names a later one.
    pub sequence: Option<i64>,
    /// The slugs that several pieces have, if they must be unique.
    pub duplicates: Vec<DuplicateSlug>,
    /// The seconds after which a retry may succeed.
    pub retry_after: Option<i64>,
}

impl Rejection {
    /// Creates a rejection without issues.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            reason,
            detail,
            issues: Vec::new(),
            sequence: None,
            duplicates: Vec::new(),
            retry_after: None,
        }
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

    /// Creates a rejection for an issue of one field or parameter.
    pub fn of_field(name: &str, invalid: &Invalid) -> Self {
        Self::of_issues(vec![Issue::new(vec![Step::Field(name.to_owned())], invalid)])
    }

    /// Rejects a request that names an event after the newest one.
    pub fn after_beyond_newest(newest: i64) -> Self {
        let detail = format!("the newest event has the sequence {newest}");
        Self { sequence: Some(newest), ..Self::new(Reason::AfterBeyondNewest, detail) }
    }

    /// Rejects a request whose response would exceed `bytes` bytes. A smaller value of the
    /// parameter avoids that.
    pub fn response_too_large(parameter: &str, bytes: usize) -> Self {
        let message = format!(
            "makes the response exceed {bytes} bytes: request fewer items, or less of each"
        );
        Self::of_field(parameter, &Invalid::new("too_long", message))
    }

    /// Rejects a request for a resource that does not exist in this workspace.
    pub fn not_found() -> Self {
        Self::new(Reason::NotFound, "the resource does not exist in this workspace")
    }

    /// Rejects a request without a valid access token.
    pub fn unauthorized(detail: &str) -> Self {
        Self::new(Reason::Unauthorized, detail)
    }

    /// Rejects a request whose token has none of these permissions.
    pub fn insufficient_permissions(needed: &[Permission]) -> Self {
        let names: Vec<String> = needed.iter().map(ToString::to_string).collect();
        let detail = match &*names {
            [name] => format!("the permission {name} is missing"),
            names => format!("one of these permissions is required: {}", names.join(", ")),
        };
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
    same.then(|| code.parse().ok()).flatten()
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
