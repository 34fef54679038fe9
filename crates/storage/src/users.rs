//! Users of the installation. One user may be a member of several workspaces.

use galley_domain::{Timestamp, UserId};

use crate::error::Result;
use crate::tx::WriteTx;
use crate::value::params;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Which one.
    pub id: UserId,
    /// The e-mail address, as given.
    pub email: String,
    /// The short name, unique in the installation whatever its case.
    pub username: String,
    /// The name that people read.
    pub full_name: String,
    /// Where the picture is.
    pub avatar: Option<String>,
}

/// Keeps a new user.
pub async fn insert(tx: &WriteTx<'_>, user: &User, now: Timestamp) -> Result<()> {
    tx.execute(
        "INSERT INTO users (id, email, email_key, username, username_key, full_name, avatar,
            version, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8)",
        params![
            user.id,
            &user.email,
            user.email.to_lowercase(),
            &user.username,
            user.username.to_lowercase(),
            &user.full_name,
            user.avatar.as_deref(),
            now
        ],
    )
    .await?;
    Ok(())
}
