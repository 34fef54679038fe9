//! The JSON representation of sessions.

use galley_domain::people::EmailAddress;
use galley_domain::{SessionId, Timestamp};
use galley_storage::sessions::Session;
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::body;
use crate::schemas;

/// A session of a signed-in user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
#[serde(rename_all = "camelCase")]
pub struct SessionBody<'a> {
    #[schema(value_type = schemas::SessionId)]
    id: SessionId,
    /// The method by which the user signed in.
    #[schema(value_type = schemas::SignInMethod)]
    method: &'static str,
    /// The name that the browser gave itself.
    #[schema(example = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")]
    user_agent: Option<&'a str>,
    /// The client's address at the sign-in.
    #[schema(example = "192.0.2.7")]
    remote_address: Option<&'a str>,
    /// True for the session of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required)]
    is_current: Option<bool>,
    /// The time of the sign-in.
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    /// The time of the last use, to the minute.
    #[schema(value_type = schemas::Time)]
    last_used_at: Timestamp,
    /// The expiry time: 30 days after the last use.
    #[schema(value_type = schemas::Time)]
    expires_at: Timestamp,
}

impl<'a> SessionBody<'a> {
    /// Creates the representation of a session. `own` is the session of the request.
    pub fn new(session: &'a Session, own: Option<SessionId>) -> Self {
        Self {
            id: session.id,
            method: session.method.as_str(),
            user_agent: session.user_agent.as_deref(),
            remote_address: session.remote_address.as_deref(),
            is_current: own.map(|own| own == session.id),
            created_at: session.created_at,
            last_used_at: session.last_used_at,
            expires_at: session.expires_at,
        }
    }
}

body! {
    /// A request for a mail to sign in.
    new SignInRequest {
        /// The address of a member.
        email: required EmailAddress = "ann@example.org",
    }
}

/// A mail that was requested, if the address belongs to a member.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SignInRequested)]
#[serde(rename_all = "camelCase")]
pub struct SignInRequestedBody {
    /// The expiry time of the link and the code.
    #[schema(value_type = schemas::Time)]
    pub expires_at: Timestamp,
}
