//! The domain's types as parameters of statements and as columns of rows.

use std::borrow::Cow;

use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::content_group::{ContentGroupName, GroupPath};
use galley_domain::content_piece::{CustomData, Description, Slug, Title};
use galley_domain::delivery::DeliveryStatus;
use galley_domain::event::EventType;
use galley_domain::import_source::SourceHash;
use galley_domain::role::{BaseType, RoleName};
use galley_domain::tag::{Color, TagLabel};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::webhook::{DisabledReason, WebhookName, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    ContentGroupId, ContentPieceId, DeliveryId, EventId, MailId, OrderKey, PermissionSet, RoleId,
    TagId, Timestamp, TokenId, UserId, VariantId, WebhookId, WorkspaceId, WorkspaceMemberId,
};

use crate::engine::error::{Error, Result};
use crate::engine::row::{Column, Row};
use crate::engine::value::Value;

/// Parses a text column.
macro_rules! parsed_column {
    ($($type:ty),* $(,)?) => {$(
        impl Column for $type {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                row.opt_text(column)?.map(str::parse).transpose().map_err(Error::corrupt)
            }
        }
    )*};
}

/// Stores values in the form of their `Display`.
macro_rules! displayed {
    ($($type:ty),* $(,)?) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::Text(Cow::Owned(value.to_string()))
            }
        }

        parsed_column!($type);
    )*};
}

displayed!(
    WorkspaceId,
    UserId,
    WorkspaceMemberId,
    RoleId,
    TagId,
    VariantId,
    ContentGroupId,
    ContentPieceId,
    DeliveryId,
    EventId,
    TokenId,
    WebhookId,
    MailId,
    PermissionSet,
);

parsed_column!(Color, BaseType, EventType, DisabledReason, DeliveryStatus);

/// Reads texts that were checked when they were written.
macro_rules! texts {
    ($($type:ty),* $(,)?) => {$(
        impl Column for $type {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                Ok(row.opt_text(column)?.map(Self::from_stored))
            }
        }
    )*};
}

texts!(
    Title,
    Description,
    Slug,
    CustomData,
    WebReference,
    ShortText,
    OrderKey,
    SourceHash,
    TagLabel,
    RoleName,
    TokenName,
    ExtensionName,
    WebhookName,
    WebhookUrl,
    VariantKey,
    VariantLabel,
    WorkspaceName,
    ContentGroupName,
);

/// Reads lists that are stored as comma-separated items.
macro_rules! lists {
    ($($item:ty),* $(,)?) => {$(
        impl Column for Vec<$item> {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                let Some(text) = row.opt_text(column)? else { return Ok(None) };
                let items = text.split(',').filter(|item| !item.is_empty());
                items.map(|item| item.parse().map_err(Error::corrupt)).collect::<Result<_>>().map(Some)
            }
        }
    )*};
}

lists!(ContentGroupId, TagId, WorkspaceMemberId, WebhookId);

impl Column for GroupPath {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        Ok(Column::find(row, column)?.map(Self::new))
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(value: Timestamp) -> Self {
        Self::Int(value.ms())
    }
}

impl Column for Timestamp {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        Ok(i64::find(row, column)?.map(Self::from_ms))
    }
}
