//! Users of the installation. One user may be a member of several workspaces.

use galley_domain::people::{EmailAddress, Username};
use galley_domain::{Timestamp, UserId};

use crate::engine::{Affects, Result, Row, Tx, WriteTx, params, read_row};

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The id.
    pub id: UserId,
    /// The e-mail address as entered.
    pub email: String,
    /// The short name, unique in the installation regardless of case.
    pub username: String,
    /// The display name.
    pub full_name: String,
    /// The URL of the picture.
    pub avatar: Option<String>,
    /// The version, incremented by each change.
    pub version: i64,
    /// The time at which the user has shown that mail to the address arrives.
    pub email_verified_at: Option<Timestamp>,
}

impl User {
    /// Returns true if the user has shown that mail to the address arrives.
    pub fn has_verified_email(&self) -> bool {
        self.email_verified_at.is_some()
    }
}

/// The columns of the table `u` that [`read`] reads.
pub(crate) const COLUMNS: &str = "u.id, u.email, u.username, u.full_name, u.avatar, u.version, \
    u.email_verified_at_ms";

/// Reads a user whose columns start at `first`, if there is one.
pub(crate) fn read(row: &Row<'_>, first: usize) -> Result<Option<User>> {
    let Some(id) = row.get(first)? else { return Ok(None) };
    let fields = first + 1;
    Ok(Some(read_row!(row, fields => User {
        email, username, full_name, avatar, version, email_verified_at; id
    })))
}

/// Finds a user.
pub async fn find(tx: &Tx<'_>, id: UserId) -> Result<Option<User>> {
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE u.id = ?1");
    Ok(tx.find(&sql, params![id], |row| read(row, 0)).await?.flatten())
}

/// Finds a user for update. The lock blocks other updates, and memberships of this user in further
/// workspaces, until the transaction ends. Otherwise, a new workspace would miss the change of its
/// member.
pub async fn find_for_update(tx: &WriteTx<'_>, id: UserId) -> Result<Option<User>> {
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE u.id = ?1{}", tx.for_update());
    Ok(tx.find(&sql, params![id], |row| read(row, 0)).await?.flatten())
}

/// Finds the user with this address.
pub async fn find_by_email(tx: &Tx<'_>, email: &EmailAddress) -> Result<Option<User>> {
    let sql = format!("SELECT {COLUMNS} FROM users u WHERE u.email_key = ?1");
    Ok(tx.find(&sql, params![email.key()], |row| read(row, 0)).await?.flatten())
}

/// Returns true if a user has this username.
pub async fn has_username(tx: &Tx<'_>, username: &Username) -> Result<bool> {
    let key = username.key();
    tx.exists("SELECT 1 FROM users WHERE username_key = ?1", params![key]).await
}

/// Inserts a new user.
pub async fn insert(tx: &WriteTx<'_>, user: &User, now: Timestamp) -> Result<()> {
    let sql = "INSERT INTO users (id, email, email_key, username, username_key, full_name, avatar,
            version, created_at_ms, email_verified_at_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    tx.change(
        sql,
        params! {
            user.id, &user.email, EmailAddress::from_stored(user.email.as_str()).key(),
            &user.username, Username::from_stored(user.username.as_str()).key(), &user.full_name,
            &user.avatar, user.version, now, user.email_verified_at
        },
        Affects::Nothing,
    )
    .await
}

/// Updates a profile.
pub async fn update(tx: &WriteTx<'_>, user: &User) -> Result<()> {
    let sql = "UPDATE users SET username = ?2, username_key = ?3, full_name = ?4, avatar = ?5,
            version = ?6
        WHERE id = ?1";
    tx.change(
        sql,
        params! {
            user.id, &user.username, Username::from_stored(user.username.as_str()).key(),
            &user.full_name, &user.avatar, user.version
        },
        Affects::Everything,
    )
    .await
}

/// Records that the user has shown that mail to the address arrives, unless it is recorded.
pub async fn verify_email(tx: &WriteTx<'_>, id: UserId, now: Timestamp) -> Result<()> {
    let sql = "UPDATE users SET email_verified_at_ms = ?2
        WHERE id = ?1 AND email_verified_at_ms IS NULL";
    tx.change(sql, params![id, now], Affects::Nothing).await
}
