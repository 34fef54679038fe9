//! The values that must be unique, as both engines report them.

use std::fmt;

macro_rules! unique_keys {
    ($($(#[$doc:meta])* $name:ident = $index:literal, $columns:literal, $text:literal;)*) => {
        /// A value that must be unique.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UniqueKey {$($(#[$doc])* $name,)*}

        impl UniqueKey {
            /// Returns the key whose index has this name. A distributed engine may append the
            /// number of a shard to it.
            pub(crate) fn of_postgres(index: &str) -> Option<Self> {
                let (name, shard) = index.rsplit_once('_').unwrap_or((index, ""));
                let is_shard = !shard.is_empty() && shard.bytes().all(|byte| byte.is_ascii_digit());
                match if is_shard { name } else { index } {
                    $($index => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// Returns the key of SQLite's message `UNIQUE constraint failed: <columns>`.
            pub(crate) fn of_sqlite(message: &str) -> Option<Self> {
                match message.strip_prefix("UNIQUE constraint failed: ")? {
                    $($columns => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for UniqueKey {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self {$(Self::$name => $text,)*})
            }
        }
    };
}

unique_keys! {
    /// A piece's position in its workspace's list.
    ContentPieceOrder = "content_pieces_order",
        "content_pieces.workspace_id, content_pieces.order_key", "the position in the list";
    /// A user's e-mail address.
    UserEmail = "users_email", "users.email_key", "the e-mail address";
    /// A user's short name.
    Username = "users_username", "users.username_key", "the username";
    /// A role's name in its workspace.
    RoleName = "roles_name", "roles.workspace_id, roles.name", "the role's name";
    /// A variant's key in its workspace.
    VariantKey = "variants_key", "index 'variants_key'", "the variant's key";
    /// A token.
    TokenHash = "tokens_hash", "tokens.hash", "the token";
}

impl UniqueKey {
    /// Returns the key that PostgreSQL reports, by the name of the index or by the message: some
    /// engines report only the message.
    pub(crate) fn of_report(constraint: Option<&str>, message: &str) -> Option<Self> {
        constraint.or_else(|| message.split('"').nth(1)).and_then(Self::of_postgres)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_name_or_message_with_or_without_a_shard() {
        let message = "duplicate key value violates unique constraint \"roles_name_102008\"";
        for (constraint, message) in [
            (Some("roles_name"), ""),
            (Some("roles_name_102008"), ""),
            (None, message),
            (None, "violates unique constraint \"roles_name\""),
        ] {
            assert_eq!(UniqueKey::of_report(constraint, message), Some(UniqueKey::RoleName));
        }
        assert_eq!(UniqueKey::of_report(Some("roles_other"), message), None);
        assert_eq!(UniqueKey::of_report(None, "no name"), None);
    }
}
