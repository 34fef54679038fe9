//! `POST /workspace-memberships`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::workspace_member::WorkspaceMemberBody;
use galley_application::Respond;
use galley_application::operations::members::{self, Invitation};
use galley_domain::RoleId;
use galley_domain::people::{EmailAddress, FullName};
use galley_storage::members::Member;

use super::schema;
use crate::app::App;
use crate::extract::actor::{Actor, WriteWorkspaceMemberships};
use crate::extract::body::JsonBody;
use crate::extract::fields::{known_reference, text};
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::extract::references;
use crate::problem::Problem;
use crate::respond::created;

/// Invite a member
///
/// The mail is stored in the same transaction, and sent as soon as mails can be sent. An expired
/// invite to the same address is replaced.
#[utoipa::path(
    post,
    path = "/workspace-memberships",
    operation_id = "inviteWorkspaceMember",
    request_body = schema::NewInvite,
    responses(
        (status = 201, body = WorkspaceMemberBody<'_>),
        (status = 400, description = "unknown_reference"),
        (status = 403, description = "beyond_own_permissions, outside_group_limit"),
        (status = 409, description = "already_member, already_invited"),
        (status = 429, description = "too_many_invites"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteWorkspaceMemberships>,
    prefer: Prefer,
    key: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let email = fields.required("email", text(EmailAddress::parse));
    let name = fields.required("name", text(FullName::parse));
    let role = fields.required("roleId", known_reference::<RoleId>("role"));
    let (named, required) = (references::role("roleId", role), (email, name, role));
    let (email, name, role) = references::finish(actor.caller(), fields, named, required).await?;
    let invitation = Invitation { email, name, role };
    let per_hour = app.limits().invites_per_hour;
    let respond = Respond::new(move |member: &Member| {
        created::created(prefer, member.id, member.version, &WorkspaceMemberBody::from(member))
    });
    let key = key.for_body(&bytes);
    let response = members::invite(actor.caller(), invitation, per_hour, key, respond).await?;
    Ok(created::respond(response))
}
