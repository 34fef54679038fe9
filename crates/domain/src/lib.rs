//! What is true about workspaces and their content.
//!
//! Pure types and rules: identifiers, times, permissions, the order of pieces, what a valid title
//! is, what a change does to a piece and which event tells of it. No I/O, no SQL, no HTTP, no
//! clock and no randomness: whoever calls hands those in. `galley-storage` keeps these types,
//! `galley-server` speaks them over HTTP; nothing here knows of either.

pub mod access_token;
pub mod address_policy;
pub mod content_group;
pub mod content_piece;
pub mod delivery;
pub mod event;
pub mod id;
pub mod import_source;
pub mod order_key;
pub mod people;
pub mod permission;
pub mod role;
pub mod tag;
pub mod text;
pub mod time;
pub mod variant;
pub mod webhook;
pub mod workspace;

pub use id::{
    ContentGroupId, ContentPieceId, DeliveryId, EventId, MailId, RoleId, TagId, TokenId, UserId,
    VariantId, WebhookId, WorkspaceId, WorkspaceMemberId,
};
pub use order_key::OrderKey;
pub use permission::{Permission, PermissionSet};
pub use text::Invalid;
pub use time::Timestamp;
