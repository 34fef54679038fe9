//! The proof that a user receives the mail to an address.

use galley_domain::audit::RequestOrigin;
use galley_storage::users::{self, User};
use galley_storage::{IdPage, WriteTx, members, sessions as stored_sessions, tokens};

use crate::environment::Environment;
use crate::error::Error;
use crate::operations::sessions;

/// Records that mail to a user's address has arrived. Sessions and tokens from before the first
/// proof may belong to another person, so they end. Returns the user.
pub(super) async fn record(
    tx: &WriteTx<'_>,
    environment: &Environment,
    user: User,
    request: Option<&RequestOrigin>,
) -> Result<User, Error> {
    if user.has_verified_email() {
        return Ok(user);
    }
    let (now, all) = (environment.now(), IdPage::default());
    for session in stored_sessions::list(tx, user.id, now, &all).await? {
        sessions::end(tx, environment, &session, request).await?;
    }
    for membership in members::of_user(tx, user.id, &all).await? {
        tokens::delete_of_user(tx, membership.workspace.id, user.id).await?;
    }
    users::verify_email(tx, user.id, now).await?;
    Ok(User { email_verified_at: Some(now), ..user })
}
