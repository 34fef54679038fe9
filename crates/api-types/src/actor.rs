//! The JSON representation of the author of a change.

use galley_domain::{Actor, TokenId, WorkspaceMemberId};
use galley_storage::members::MemberProfile;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schemas;

/// The author of a change.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
#[serde(rename_all = "camelCase")]
pub struct ActorBody<'a> {
    /// `member`: a member who is signed in. `token`: a request with an access token. `system`: the
    /// server, or the operator by a command.
    #[serde(rename = "type")]
    #[schema(value_type = ActorType)]
    kind: ActorType,
    /// The token, which may have been revoked, or the member. Null for `system`.
    #[schema(value_type = Option<schemas::ActorId>)]
    id: Option<ActorIdBody>,
    /// The member, or the one to whom the token belonged. Null for `system`.
    #[schema(value_type = Option<schemas::WorkspaceMemberId>)]
    member_id: Option<WorkspaceMemberId>,
    /// The full name of the member. Null for `system`, for a former member, and without the
    /// permission `workspaceMemberships:read`.
    #[schema(example = "Ann Example")]
    name: Option<&'a str>,
}

/// The identifier of an author.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ActorIdBody {
    Token(TokenId),
    Member(WorkspaceMemberId),
}

/// The kind of an author.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum ActorType {
    Member,
    Token,
    System,
}

impl<'a> ActorBody<'a> {
    /// Creates the representation of an actor. `member` is its member, if the name is shown.
    pub(crate) fn new(actor: Actor, member: Option<&'a MemberProfile>) -> Self {
        let user = member.and_then(|member| member.user.as_ref());
        let name = user.map(|user| user.full_name.as_str());
        match actor {
            Actor::Token { token, member } => {
                let id = Some(ActorIdBody::Token(token));
                Self { kind: ActorType::Token, id, member_id: Some(member), name }
            }
            Actor::Member(member) => {
                let id = Some(ActorIdBody::Member(member));
                Self { kind: ActorType::Member, id, member_id: Some(member), name }
            }
            Actor::System => {
                Self { kind: ActorType::System, id: None, member_id: None, name: None }
            }
        }
    }
}
