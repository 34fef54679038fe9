//! A user's own profile. Its changes emit no events.

use galley_api_types::workspace_member::{ProfileBody, ProfileChange};
use galley_domain::audit::AuditAction;
use galley_storage::users::{self, User};
use galley_storage::{Error as StorageError, Tx, UniqueKey, WriteTx};

use crate::audit::AuditChanges;
use crate::caller::Caller;
use crate::error::Error;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};

/// Returns the profile of the token's user.
pub async fn get(caller: &Caller) -> Result<User, Error> {
    let user = caller.token().user;
    let read = async move |tx: &Tx<'_>| users::find(tx, user).await?.ok_or_else(Error::not_found);
    caller.read("profile.get", read).await
}

/// Updates the profile of the token's user, in every workspace.
pub async fn update(
    caller: &Caller,
    change: ProfileChange,
    expected: VersionPrecondition,
) -> Result<User, Error> {
    if caller.token().is_of_one_workspace {
        let detail =
            "the session reaches one workspace, and a profile is seen in all: sign in by mail";
        return Err(Rejection::new(Reason::BeyondOwn, detail).into());
    }
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let before =
            users::find_for_update(tx, own.token().user).await?.ok_or_else(Error::not_found)?;
        expected.check_version(before.version)?;
        let mut user = before.clone();
        if let Some(name) = &change.full_name {
            user.full_name = name.as_str().to_owned();
        }
        if let Some(name) = &change.username {
            user.username = name.as_str().to_owned();
        }
        if let Some(avatar) = &change.avatar {
            user.avatar = avatar.clone().map(String::from);
        }
        if user != before {
            user.version += 1;
            users::update(tx, &user).await.map_err(map_username_taken)?;
            let changes =
                AuditChanges::updated(ProfileBody::from(&before), ProfileBody::from(&user));
            own.record(tx, AuditAction::ProfileUpdate, user.id, changes);
        }
        Ok(user)
    };
    caller.write("profile.update", write).await
}

/// Maps a uniqueness error of the username to a rejection.
pub fn map_username_taken(error: StorageError) -> Error {
    match error {
        StorageError::Taken(UniqueKey::Username) => {
            Rejection::new(Reason::UsernameTaken, "another user has this username").into()
        }
        other => other.into(),
    }
}
