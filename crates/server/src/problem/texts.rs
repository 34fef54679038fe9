//! The status, the title and the help text of each reason.
//!
//! Cause and cure are also the page under `/problems`. Text in backticks is shown as code.

use axum::http::StatusCode;
use galley_application::Reason;

/// The texts of a reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReasonTexts {
    /// The status of the response.
    pub(crate) status: StatusCode,
    /// The reason in a few words.
    pub(crate) title: &'static str,
    /// The usual cause.
    pub(crate) cause: &'static str,
    /// The remedy.
    pub(crate) cure: &'static str,
}

macro_rules! texts {
    ($($name:ident, $status:ident, $title:literal, $cause:literal, $cure:literal;)*) => {
        /// Returns the texts of a reason.
        pub(crate) const fn texts(reason: Reason) -> ReasonTexts {
            match reason {$(
                Reason::$name => ReasonTexts {
                    status: StatusCode::$status,
                    title: $title,
                    cause: $cause,
                    cure: $cure,
                },
            )*}
        }
    };
}

texts! {
    Validation, BAD_REQUEST, "The request is not valid",
        "At least one field of the body or parameter of the query is missing, has the wrong type \
         or violates a rule. Nothing was changed.",
        "See `issues`: it lists all errors at once, each with its location in `path`, a `code` and \
         a message. Correct them and send the request again.";
    UnknownParameter, BAD_REQUEST, "The request has an unknown parameter",
        "The query has a parameter that this endpoint doesn't have, such as a misspelt filter. \
         Nothing was changed.",
        "See `issues` for the nearest known name. Names are case-sensitive. To have unknown \
         parameters ignored, send `Prefer: handling=lenient`.";
    UnknownReference, BAD_REQUEST, "The request refers to an unknown resource",
        "The body refers to a tag, member, role, group or piece that doesn't exist in this \
         workspace. Or the resource is outside the groups to which the token is limited.",
        "See `issues` for the location, such as `tags[1]`. Create the missing resource first, use \
         an existing identifier, or omit the reference.";
    ImmutableField, BAD_REQUEST, "The field can't be changed",
        "The body contains a field that can only be set when the resource is created, such as the \
         `secret` of a webhook.",
        "Omit the field. If you need another value, create a new resource with it and delete this \
         one.";
    MalformedBody, BAD_REQUEST, "The body can't be parsed",
        "The body is not a JSON object (or, on the page of an invite, a form) in UTF-8. Or it \
         ended early, has a duplicate key, nests over 256 levels, or contains a NUL character.",
        "The detail states line and column. Generate the body with a JSON library, and check that \
         it is sent completely.";
    ContentTooDeep, BAD_REQUEST, "The content is nested too deeply",
        "The HTML or Markdown in `content` nests more than 256 block elements, or its tree has \
         more than 100 levels.",
        "Flatten the content, for example nested lists, quotes and tables.";
    ContentTooComplex, BAD_REQUEST, "The content is too complex",
        "By the rules for parsing HTML, the parsed content would be far larger than its text, or \
         its tree would exceed 16 MiB.",
        "Close formatting elements such as `<b>` and `<a>` where they end, simplify the content, \
         or split it into several pieces.";
    Circle, BAD_REQUEST, "A group can't be its own ancestor",
        "The new `ancestor` is the group itself, or one of its descendants.",
        "Choose another `ancestor`, or move that group elsewhere first.";
    Unauthorized, UNAUTHORIZED, "A valid access token is required",
        "The request has no access token, or one that is malformed, unknown, revoked or expired.",
        "Send the header `Authorization: Bearer <ACCESS_TOKEN>`. The operator can create a token \
         with `galley token create`.";
    ForeignOrigin, FORBIDDEN, "Another site sent the request",
        "A browser sent the request with its session, or a form to sign in, from a page that does \
         not belong to this service.",
        "Use the pages of the service itself, at its public URL. Programs send an access token \
         instead of a cookie.";
    InsecureConnection, FORBIDDEN, "Signing in needs an encrypted connection",
        "The public URL of the service is neither https nor a loopback address, so that others \
         could read the cookie of a session.",
        "Put the service behind a proxy with TLS, and set `public-url` to its https address. In a \
         trusted network, set `sign-in-over-http` to `always`.";
    SessionRequired, FORBIDDEN, "The operation needs a session",
        "The request has an access token. Sessions are seen and ended only by the person who \
         signed in.",
        "Sign in, and send the request with the cookie of the session.";
    SignInRequired, FORBIDDEN, "Sign in first",
        "The invite was opened by a copied link, which does not prove the address, and the address \
         belongs to a user.",
        "Sign in by mail with this address, and open the link again in the same browser. Or use the \
         link in the mail of the invite.";
    OtherBrowser, FORBIDDEN, "This is another browser",
        "A mailed link works only in the browser in which it was requested, so that a stolen or \
         scanned mail is worth nothing.",
        "Enter the code of the mail in the browser in which you asked for it. Or ask for a new mail \
         in this one.";
    WrongCode, FORBIDDEN, "The code is wrong",
        "The code is not the one in the mail that was requested last.",
        "Copy the eight characters from the newest mail. After five wrong codes, ask for a new \
         mail.";
    SignInEnded, GONE, "The link or code has ended",
        "A link or code works once, for 15 minutes, and only the newest one of a browser.",
        "Ask for a new mail, and use it in the same browser.";
    IdentityProviderFailed, BAD_GATEWAY, "The identity provider failed",
        "The identity provider does not respond, or its response can't be read.",
        "Try again later, or sign in by mail. The operator finds the cause in the log, and checks \
         `openid-connect-issuer`.";
    IdentityRejected, FORBIDDEN, "The identity is not accepted",
        "The sign-in was declined at the identity provider, or the provider's statement about it is \
         not valid.",
        "Try again, or sign in by mail. The operator finds the cause in the log.";
    UnverifiedIdentity, FORBIDDEN, "The address is not verified",
        "The identity provider states no e-mail address for the account, or one that it has not \
         verified.",
        "Verify the address there, or sign in by mail.";
    UnknownIdentity, FORBIDDEN, "No member has this address",
        "No workspace has a member with the e-mail address of the account. A sign-in creates no \
         member.",
        "Use another account, or ask an Admin of the workspace for an invite to this address.";
    UnverifiedMember, FORBIDDEN, "Sign in by mail first",
        "The member with the address of the account joined by a copied link, and has never proved \
         that address.",
        "Sign in by mail once. Afterwards the identity provider works, too.";
    InsufficientPermissions, FORBIDDEN, "The token lacks a permission",
        "The token, or the role of its user, lacks the permission that the detail names. A request \
         needs the permission in both.",
        "Use a token that has the permission. An Admin of the workspace can create such a token, \
         or change the user's role.";
    BeyondOwn, FORBIDDEN, "The request exceeds the token's own permissions",
        "The request would grant permissions, groups, a later expiry or another extension than the \
         token itself has. Or it would change or remove a member, role or token with more \
         permissions than the token.",
        "Use a token with all of these permissions, such as an Admin's unlimited token, or reduce \
         the request.";
    OutsideGroupLimit, FORBIDDEN, "The token is limited to other groups",
        "The token is limited to some content groups, and the request would exceed that limit. For \
         example, it would put a group at the top level, give a token or webhook access to other \
         groups, or change roles or members.",
        "Use one of the token's groups or a descendant of one, or use a token without such a \
         limit.";
    NotFound, NOT_FOUND, "Not found",
        "No resource in this workspace has this identifier, or the path doesn't exist. Resources \
         of another workspace, or outside the groups to which the token is limited, get the same \
         response.",
        "Check the identifier, the path and the token's workspace. The resource may also have been \
         deleted.";
    MethodNotAllowed, METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists, but not with this method.",
        "Use one of the methods in the response header `Allow`.";
    EventsForgotten, GONE, "The events have been deleted",
        "Events are stored for 30 days, and some events after the number in `after` or \
         `Last-Event-ID` are older.",
        "Read the current state from the other endpoints, and follow the events from then on. Omit \
         `after` to begin with the oldest stored event.";
    AfterBeyondNewest, GONE, "The workspace has fewer events than that",
        "`after` or `Last-Event-ID` is greater than the number of the newest event. Either the \
         database was reset to an earlier state, for example from a backup, or the number belongs \
         to another workspace.",
        "Read the complete state again, and continue from the newest event, whose number is in the \
         problem's `sequence`.";
    InviteEnded, GONE, "The invite is no longer valid",
        "The invite was accepted before, has expired after seven days, or was revoked. The detail \
         states which.",
        "Ask the inviter for a new invite. If you have accepted it before, you have a token. If \
         that was lost, the operator can create another one with `galley token create`.";
    NotEmpty, CONFLICT, "The group is not empty",
        "The group contains groups or pieces. It is deleted together with them only on request.",
        "Move or delete its contents first, or send `recursive=true` to delete the group with its \
         contents.";
    TooLarge, CONFLICT, "The group is too large for one request",
        "The group and its descendants contain more pieces than one request may delete (10,000), \
         or compare for unique slugs (100,000). Nothing was changed.",
        "Delete or change its subgroups one after the other, or some of the pieces first.";
    AlreadyMember, CONFLICT, "A member with this address exists",
        "A member of the workspace has this e-mail address.",
        "No action is needed. `GET /workspace-memberships/list-members` shows the member, and `PUT \
         /workspace-memberships` changes the role.";
    AlreadyInvited, CONFLICT, "An invite to this address exists",
        "An invite to this e-mail address is pending.",
        "Wait until it is accepted, or delete it with `DELETE /workspace-memberships` and send a \
         new one.";
    LastAdmin, CONFLICT, "The last Admin can't be removed",
        "The member is the only one with the role Admin. Without an Admin, the workspace could not \
         be managed. Pending invites don't count.",
        "Give another member the role Admin first.";
    AssetInUse, CONFLICT, "The asset is in use",
        "A piece refers to the address of the asset: in its content, cover, description or custom \
         data, in a variant, in its published revision, or in the trash.",
        "`GET /assets/used-by` lists the pieces. Remove the address from them, or delete the asset \
         with `force=true`; its address is 404 then.";
    UploadOffsetMismatch, CONFLICT, "The upload continues at another position",
        "`Upload-Offset` is not the number of bytes that are stored: a part was lost or sent twice, or \
         another request has continued or ended the upload.",
        "`HEAD /assets/uploads` returns the position. Send the bytes from there on.";
    UnsupportedProtocol, PRECONDITION_FAILED, "The version of the protocol is not supported",
        "The header `Tus-Resumable` is missing, or names another version of the protocol than \
         `Tus-Version` of the response.",
        "Use a client for tus 1.0.0, or send the header `Tus-Resumable: 1.0.0` with each request.";
    TooManyUploads, TOO_MANY_REQUESTS, "The workspace has too many uploads",
        "1,000 resumable uploads of the workspace have not ended.",
        "Complete them, or delete them with `DELETE /assets/uploads`. They expire after seven days.";
    AssetStorageExceeded, PAYLOAD_TOO_LARGE, "The workspace has too many assets",
        "The files of the workspace would exceed their size limit (`asset-workspace-size-limit`).",
        "Delete assets that are no longer in use, or ask the operator for a higher limit.";
    DigestMismatch, BAD_REQUEST, "The file differs from its digest",
        "The SHA-256 of the received bytes is not that of the header `Content-Digest` or \
         `Repr-Digest`. The file was changed on its way, or the header belongs to another file. \
         Nothing was stored.",
        "Compute the digest of the bytes that you send, and send them again.";
    RangeNotSatisfiable, RANGE_NOT_SATISFIABLE, "The range is not in the file",
        "The header `Range` names bytes after the end of the file, whose size is in `Content-Range`.",
        "Request a range within the size, or the whole file.";
    AssetStoreUnavailable, SERVICE_UNAVAILABLE, "The store of assets is not available",
        "The folder or the bucket with the files of assets does not respond as expected.",
        "Wait for the seconds of `Retry-After` and send the request again. For operators: the log has \
         the error. Check the setting `asset-store-url`, and the space on the disk.";
    RoleInUse, CONFLICT, "The role is in use",
        "Members or pending invites have this role.",
        "Give them another role first, with `PUT /workspace-memberships`.";
    BuiltinRole, CONFLICT, "The role is built in",
        "Every workspace has the role Admin. It can't be changed or deleted.",
        "Create another role with the permissions that you need.";
    NameTaken, CONFLICT, "The name is taken",
        "Another role of the workspace has this name.",
        "Choose another name, or rename the other role.";
    UsernameTaken, CONFLICT, "The username is taken",
        "Another user of the installation has this username. Usernames that differ only in case \
         count as equal.",
        "Choose another username, or keep the current one.";
    AlreadyAnswered, CONFLICT, "The response can't be sent again",
        "A request with this `Idempotency-Key` was completed before. Its response contained a \
         secret that is shown only once, such as a token, or the token had access to other groups \
         at that time.",
        "If the first response was lost, delete the resource that the request created, and send it \
         with a new key.";
    KeyTaken, CONFLICT, "The key is taken",
        "Another variant of the workspace has this `key`.",
        "Choose another key, or change the key of the other variant.";
    LatestRevision, CONFLICT, "The revision is the latest one",
        "The values of the latest revision of a piece, and of each of its variants, are current.",
        "Change the piece first, or delete it.";
    PublishedRevision, CONFLICT, "The revision is published",
        "The published view shows the values of the revision, or is going to at a scheduled time.",
        "Unpublish the piece first, or publish another revision.";
    SlugTaken, CONFLICT, "Another piece has this slug",
        "A group with `uniqueSlugs` contains the piece, directly or below it, and another piece \
         there has the same slug. Or the group can't get unique slugs, as its pieces have \
         duplicates. In a variant, the slugs that its pieces show are compared.",
        "Choose another slug. The problem's `duplicates` names the pieces that have the slug.";
    PreconditionFailed, PRECONDITION_FAILED, "The resource has changed",
        "The resource has changed since it had the entity tag in `If-Match`. Nothing was changed \
         by this request.",
        "Get the resource again, apply the change to its current state, and send it with the new \
         `ETag` in `If-Match`.";
    PayloadTooLarge, PAYLOAD_TOO_LARGE, "The body is too large",
        "The body exceeds the size limit of the service, which the detail states.",
        "Send less in one request. The operator can raise the limit with the setting \
         `body-size-limit`.";
    RequestTimeout, REQUEST_TIMEOUT, "The request timed out",
        "The body was not received within the timeout, by default 30 seconds. Or the client closed \
         its side of the connection, and the response was not ready soon after.",
        "Send the request again over a faster connection, or send smaller requests.";
    UnsupportedMediaType, UNSUPPORTED_MEDIA_TYPE, "The media type is not supported",
        "According to its headers, the body is not JSON (or, on the page of an invite, a form), is \
         not in UTF-8, or is compressed.",
        "Send the header `Content-Type: application/json`, and no `Content-Encoding`.";
    IdempotencyKeyReused, UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request",
        "The `Idempotency-Key` was used with another path or body within the last 24 hours.",
        "Use a new key for each new request. Repeat a key only with the same path and body.";
    RateLimited, TOO_MANY_REQUESTS, "The token sends too many requests",
        "The token exceeded the limit of requests per minute that the operator has set.",
        "Retry after the time in `Retry-After`. The header `RateLimit` of every response states \
         how many requests are left.";
    TooManySignIns, TOO_MANY_REQUESTS, "Too many attempts to sign in",
        "The address, or the network of the client, had too many attempts to sign in within an \
         hour.",
        "Retry after the time in `Retry-After`.";
    TooManyInvites, TOO_MANY_REQUESTS, "The workspace sends too many invites",
        "The workspace reached the limit of invites per hour that the operator has set.",
        "Retry after the time in `Retry-After`.";
    Internal, INTERNAL_SERVER_ERROR, "Internal error",
        "The service failed; the request is not at fault. An uncommitted change was rolled back.",
        "Report the `requestId` to the operator: the log has the cause under it. A retry may \
         succeed if the failure was temporary.";
    StorageFull, INSUFFICIENT_STORAGE, "The server's disk is full",
        "The disk that holds the database is full. Nothing was changed.",
        "The operator has to free disk space. Retry after that, and no earlier than `Retry-After` \
         states.";
    DatabaseUnavailable, SERVICE_UNAVAILABLE, "The database is unavailable",
        "The service is running but can't reach its database. If a change was being committed, it \
         may or may not have been made.",
        "Retry after the time in `Retry-After`. After a failed change, first check if it was made. \
         With `If-Match`, a retry doesn't apply it twice.";
    Overloaded, SERVICE_UNAVAILABLE, "The server is overloaded",
        "The service has reached its capacity, or the request exceeded its time limit. Nothing was \
         changed.",
        "Retry after the time in `Retry-After`, with a longer delay each time.";
    NotReady, SERVICE_UNAVAILABLE, "The server is not ready",
        "The service is shutting down, or its database was migrated for a newer version. Only \
         `/readyz` reports this, for load balancers. Other requests are still served.",
        "Send requests to another server.";
}
