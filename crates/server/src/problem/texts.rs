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
        "At least one field of the body, or one parameter of the query, is missing, of the \
         wrong type, or breaks a rule. Nothing was changed.",
        "Go through `issues`: it names everything that is wrong at once, each with its place \
         in `path`, a `code` and a message. Correct these and send the request again.";
    UnknownReference, BAD_REQUEST, "The request names something that is not there",
        "The body names a tag, a member, a role, a group or a piece that this workspace doesn't \
         have, or that lies outside of the groups to which the token is limited.",
        "See `issues` for its place, such as `tags[1]`. Create what is missing first, take an \
         identifier that exists, or leave it out.";
    ImmutableField, BAD_REQUEST, "The field can't be changed",
        "The body names a field that is set when the resource is made, and never after, such as \
         the `secret` of a webhook.",
        "Leave the field out. Where another value is needed, make a new resource with it and \
         delete this one.";
    MalformedBody, BAD_REQUEST, "The body can't be read",
        "The body is not a JSON object (or on the page of an invite, a form) in UTF-8, ended early, has a key \
         twice, nests over 128 levels, or holds a NUL character.",
        "The detail says line and column. Let a JSON library write the body, and check that \
         it is sent whole.";
    ContentTooDeep, BAD_REQUEST, "The content nests too deep",
        "The HTML in `content` has more than 256 block elements inside one another, or would \
         become a tree of more than 100 levels.",
        "Flatten the content: lists, quotes and tables within one another are what makes it \
         deep.";
    ContentTooComplex, BAD_REQUEST, "The content is too complex",
        "By the rules for parsing HTML, the content would become far more than its length \
         justifies, or a tree of over 16 MiB.",
        "Close formatting elements such as `<b>` and `<a>` where they end, simplify the \
         content, or spread it over several pieces.";
    Circle, BAD_REQUEST, "A group can't stand under itself",
        "The new `ancestor` is the group itself, or a group under it.",
        "Choose another `ancestor`, or move that one out of the group first.";
    Unauthorized, UNAUTHORIZED, "A valid access token is needed",
        "The request has no access token, or one that is mistyped, unknown, revoked or \
         expired.",
        "Send the header `Authorization: Bearer <ACCESS_TOKEN>`. The operator makes a new \
         token with `galley token create`.";
    InsufficientPermissions, FORBIDDEN, "The token may not do this",
        "The token, or the role of its user, lacks the permission that the detail names. A \
         token may do what both allow.",
        "Use a token that has the permission, or ask an Admin of the workspace for one, or \
         for another role.";
    BeyondOwn, FORBIDDEN, "Nobody gives or takes more than they have",
        "The request would give permissions, groups, a later end or another extension than \
          the token itself has, or would change or remove a member, a role or a token that \
          holds more than the token.",
        "Let somebody do it who holds all of that, such as an Admin with an unlimited \
          token, or ask for less.";
    OutsideGroupLimit, FORBIDDEN, "The token is limited to other groups",
        "The token is limited to some content groups, and the request would reach beyond them: put \
         a group at the top level, give a token or a webhook a view of other groups, or change \
         roles or members.",
        "Stay within the token's groups: name one of them, or a group under it. Or use a token \
         without such a limit.";
    NotFound, NOT_FOUND, "There is no such thing",
        "Nothing in this workspace has this identifier, or the path is none of this service. \
         What belongs to another workspace, or lies outside of the groups to which the token \
         is limited, is answered in the same way.",
        "Check the identifier, the path, and of which workspace the token is. It may also \
         have been deleted meanwhile.";
    MethodNotAllowed, METHOD_NOT_ALLOWED, "The method is not allowed here",
        "The path exists, but not with this method.",
        "Use one of the methods that the header `Allow` of the answer names.";
    EventsForgotten, GONE, "The events are not kept any more",
        "Events are kept for 30 days, and some of those behind the number in `after` or \
         `Last-Event-ID` are older.",
        "Read what is there now by the other endpoints, and follow the events from there on: leave \
         `after` out to begin with the oldest one that is kept.";
    AfterBeyondNewest, GONE, "The workspace has fewer events than that",
        "`after` or `Last-Event-ID` is greater than the number of the newest event. The database was \
         set back to an earlier state, as by restoring a backup, or the number is of another workspace.",
        "Read everything anew, and go on from the newest event, which the problem's `sequence` names.";
    InviteEnded, GONE, "The invite can't be accepted any more",
        "The invite was accepted before, its seven days are over, or it was taken back. The detail says \
         which.",
        "Ask who invited you for another one. Who accepted it before has a token; where that was lost, \
         the operator makes another one with `galley token create`.";
    NotEmpty, CONFLICT, "The group is not empty",
        "The group holds groups or pieces, and is only deleted with them if that is asked \
         for.",
        "Move or delete what it holds first, or send `recursive=true` to delete it with all \
         that it holds.";
    TooLarge, CONFLICT, "The group holds too much to be deleted at once",
        "The group holds more than 10,000 pieces, together with the groups under it. One \
         request deletes no more than that; nothing was deleted.",
        "Delete the groups under it one after the other, or some of the pieces first.";
    AlreadyMember, CONFLICT, "Somebody with this address is a member",
        "A member of the workspace has this e-mail address.",
        "Nothing is left to do; `GET /workspace-memberships/list-members` shows the member, \
          and `PUT /workspace-memberships` gives it another role.";
    AlreadyInvited, CONFLICT, "Somebody with this address is invited",
        "An invite to this e-mail address is open.",
        "Wait until it is accepted, or remove it with `DELETE /workspace-memberships` and \
          invite anew.";
    LastAdmin, CONFLICT, "The last Admin can't go",
        "The member is the only one with the role Admin. Without an Admin nobody could \
          manage the workspace any more. Pending invites don't count.",
        "Give somebody else the role Admin first.";
    RoleInUse, CONFLICT, "The role is in use",
        "Members, or people who are invited, have this role.",
        "Give them another role first, with `PUT /workspace-memberships`.";
    BuiltinRole, CONFLICT, "The role stays as it is",
        "The role Admin is part of every workspace; it can be neither changed nor deleted.",
        "Make a role of your own, and give it the permissions that you want.";
    NameTaken, CONFLICT, "The name is taken",
        "Another role of the workspace has this name.",
        "Choose another name, or change the role that has this one.";
    UsernameTaken, CONFLICT, "The username is taken",
        "Another user of the installation has this username, perhaps in another case.",
        "Choose another username, or leave yours as it is.";
    AlreadyAnswered, CONFLICT, "The request was answered already",
        "A request with this `Idempotency-Key` was answered before, with something that is \
          shown only once, such as a token.",
        "If the first answer was lost, delete what it made, and send the request with a new \
          key.";
    KeyTaken, CONFLICT, "The key is taken",
        "Another variant of the workspace has this `key`.",
        "Choose another key, or change the variant that has it.";
    PreconditionFailed, PRECONDITION_FAILED, "The resource has changed",
        "The request has an `If-Match`, and somebody has changed the resource since it had \
         that entity tag. The request changed nothing.",
        "Get the resource again, make the change anew on what it is now, and send it with the \
         new `ETag`.";
    PayloadTooLarge, PAYLOAD_TOO_LARGE, "The body is too large",
        "The body has more bytes than the service accepts; the detail says how many these \
         are.",
        "Send less in one request. The operator can raise the limit with the setting \
         `body-max`.";
    RequestTimeout, REQUEST_TIMEOUT, "The request came too slowly",
        "The body did not arrive within the time that a request may take, by default 30 \
         seconds.",
        "Send it again over a better connection, or send less at once.";
    UnsupportedMediaType, UNSUPPORTED_MEDIA_TYPE, "The body must be JSON",
        "By its headers the body is something else than JSON, in another charset than UTF-8, \
         or compressed.",
        "Send the header `Content-Type: application/json`, and no `Content-Encoding`.";
    IdempotencyKeyReused, UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request",
        "The `Idempotency-Key` came with another path or body within the last 24 hours.",
        "Use a new key for each new request; repeat a key only with the same body.";
    RateLimited, TOO_MANY_REQUESTS, "The token sends too many requests",
        "The token sent more requests in a minute than the operator allows.",
        "Wait as long as `Retry-After` says. `RateLimit` says in every answer how many \
          requests are left.";
    TooManyInvites, TOO_MANY_REQUESTS, "The workspace sends too many invites",
        "The workspace sent as many invites within the last hour as the operator allows.",
        "Wait as long as `Retry-After` says.";
    Internal, INTERNAL_SERVER_ERROR, "Something went wrong on the server",
        "A fault of the service, not of the request. A change that it was about to make was \
         undone.",
        "Tell the operator the `requestId`: the log has the cause under it. Trying again may \
         help, if the fault was a passing one.";
    StorageFull, INSUFFICIENT_STORAGE, "The server's disk is full",
        "The disk that holds the database is full. Nothing was changed.",
        "The operator has to make room on the disk. Try again after that; `Retry-After` says \
         when at the earliest.";
    DatabaseUnavailable, SERVICE_UNAVAILABLE, "The database can't be reached",
        "The service runs, but can't reach its database. If a change was just being \
         committed, it may have been made or not.",
        "Try again after the time in `Retry-After`. After a failed change look first whether \
         it was made; with `If-Match`, a change that was made is not made twice.";
    Overloaded, SERVICE_UNAVAILABLE, "The server has too much to do",
        "The service has more to do than it can at the moment, or the request took longer \
         than it may. Nothing was changed.",
        "Try again after the time in `Retry-After`, and wait longer each time.";
    NotReady, SERVICE_UNAVAILABLE, "The server is not to be asked now",
        "The service is about to stop, or its database was changed for newer programs. Only `/readyz` says so, for \
         who balances over several servers; the others are still answered.",
        "Send requests to another server.";
}
