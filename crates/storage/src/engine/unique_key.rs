//! The values that must be unique, as both engines report them.

use std::fmt;

macro_rules! unique_keys {
    ($($(#[$doc:meta])* $name:ident = $index:literal, $columns:literal, $text:literal;)*) => {
        /// A value that must be unique.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum UniqueKey {$($(#[$doc])* $name,)*}

        impl UniqueKey {
            /// Returns the key whose index has this name.
            pub(crate) fn of_postgres(index: &str) -> Option<Self> {
                match index {
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
    VariantKey = "variants_key", "variants.workspace_id, variants.key", "the variant's key";
    /// A token.
    TokenHash = "tokens_hash", "tokens.hash", "the token";
}
