//! The domain of workspaces and their content.
//!
//! Pure types and rules: identifiers, times, permissions, the order of pieces, validation of
//! fields, the effect of changes on a piece, and the events of changes.
//!
//! This crate has no I/O, no SQL, no HTTP, no clock and no randomness: the caller passes times and
//! random values. `galley-storage` stores these types, and `galley-server` exposes them over HTTP.
//! This crate depends on neither.

pub mod access_token;
pub mod actor;
pub mod address_policy;
pub mod asset;
pub mod audit;
pub mod content_group;
pub mod content_piece;
pub mod credential;
pub mod custom_data_schema;
pub mod delivery;
pub mod event;
pub mod id;
pub mod import_source;
pub mod language;
pub mod named_enum;
pub mod order_key;
pub mod people;
pub mod permission;
pub mod publication;
pub mod revision;
pub mod revision_retention;
pub mod role;
pub mod session;
pub mod tag;
pub mod text;
pub mod time;
pub mod trash;
pub mod variant;
pub mod webhook;
pub mod workspace;

pub use actor::Actor;
pub use credential::Credential;
pub use id::{
    AssetFileId, AssetId, AssetKey, AuditEntryId, ContentGroupId, ContentPieceId, DeliveryId,
    EventId, MailId, RevisionId, RoleId, SessionId, TagId, TokenId, UserId, VariantId, WebhookId,
    WorkspaceId, WorkspaceMemberId,
};
pub use order_key::OrderKey;
pub use permission::{Permission, PermissionSet};
pub use text::Invalid;
pub use time::Timestamp;
