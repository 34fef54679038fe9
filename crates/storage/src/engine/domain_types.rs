//! The domain's types as parameters of statements and as columns of rows.

use std::borrow::Cow;

use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::asset::AssetFilename;
use galley_domain::audit::AuditAction;
use galley_domain::content_group::{ContentGroupName, GroupPath, PreviewUrl};
use galley_domain::content_piece::{CustomData, Description, PieceField, Slug, Title};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::delivery::{DeliveryStatus, Lane};
use galley_domain::event::{EventType, EventTypes};
use galley_domain::import_source::SourceHash;
use galley_domain::language::LanguageTag;
use galley_domain::publication::ContentView;
use galley_domain::revision::{Origin, RevisionNote};
use galley_domain::role::{BaseType, RoleName};
use galley_domain::session::SignInMethod;
use galley_domain::tag::{Color, TagLabel};
use galley_domain::text::{ShortText, WebReference};
use galley_domain::trash::TrashedId;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::webhook::{DisabledReason, WebhookName, WebhookUrl};
use galley_domain::workspace::WorkspaceName;
use galley_domain::{
    Actor, AssetFileId, AssetId, AssetKey, AuditEntryId, ContentGroupId, ContentPieceId,
    Credential, DeliveryId, EventId, MailId, OrderKey, PermissionSet, RoleId, SessionId, TagId,
    Timestamp, TokenId, UserId, VariantId, WebhookId, WorkspaceId, WorkspaceMemberId,
};

use crate::engine::error::{Error, Result};
use crate::engine::row::{Column, Row};
use crate::engine::sql_list::comma_separated;
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

        impl From<&$type> for Value<'_> {
            fn from(value: &$type) -> Self {
                Self::from(*value)
            }
        }

        parsed_column!($type);
    )*};
}

displayed! {
    WorkspaceId, UserId, WorkspaceMemberId, RoleId, TagId, VariantId, ContentGroupId,
    ContentPieceId, DeliveryId, EventId, TokenId, WebhookId, MailId, PermissionSet, Actor,
    TrashedId, AuditEntryId, SessionId, Credential, AssetId, AssetFileId, AssetKey
}

/// Stores values by their names.
macro_rules! named {
    ($($type:ty),* $(,)?) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::from(value.as_str())
            }
        }

        parsed_column!($type);
    )*};
}

named!(
    AuditAction,
    Color,
    BaseType,
    ContentView,
    EventType,
    DisabledReason,
    DeliveryStatus,
    Origin,
    SignInMethod
);

/// Stores texts. They were checked when they were written, so reading them takes no check.
macro_rules! texts {
    ($($type:ty),* $(,)?) => {$(
        impl<'a> From<&'a $type> for Value<'a> {
            fn from(value: &'a $type) -> Self {
                Self::from(value.as_str())
            }
        }

        impl<'a> From<&'a Option<$type>> for Value<'a> {
            fn from(value: &'a Option<$type>) -> Self {
                Self::from(value.as_ref())
            }
        }

        impl Column for $type {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                Ok(row.opt_text(column)?.map(Self::from_stored))
            }
        }
    )*};
}

texts! {
    AssetFilename, Title, Description, Slug, CustomData, CustomDataSchema, WebReference, ShortText, OrderKey, SourceHash, TagLabel,
    RoleName, TokenName, ExtensionName, WebhookName, WebhookUrl, VariantKey, VariantLabel,
    WorkspaceName, ContentGroupName, LanguageTag, PreviewUrl, RevisionNote
}

/// Stores lists as comma-separated items.
macro_rules! lists {
    ($($item:ty),* $(,)?) => {$(
        impl From<&Vec<$item>> for Value<'_> {
            fn from(items: &Vec<$item>) -> Self {
                comma_separated(items).into()
            }
        }

        impl From<&Option<Vec<$item>>> for Value<'_> {
            fn from(items: &Option<Vec<$item>>) -> Self {
                items.as_deref().map(comma_separated).into()
            }
        }

        impl Column for Vec<$item> {
            fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
                let Some(text) = row.opt_text(column)? else { return Ok(None) };
                let items = text.split(',').filter(|item| !item.is_empty());
                items.map(|item| item.parse().map_err(Error::corrupt)).collect::<Result<_>>().map(Some)
            }
        }
    )*};
}

lists!(ContentGroupId, TagId, VariantId, WorkspaceMemberId, WebhookId);

impl From<&EventTypes> for Value<'_> {
    fn from(events: &EventTypes) -> Self {
        let names: Vec<&str> = events.as_slice().iter().map(|event| event.as_str()).collect();
        names.join(",").into()
    }
}

impl Column for EventTypes {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        let Some(text) = row.opt_text(column)? else { return Ok(None) };
        let events = text.split(',').map(|name| name.parse().map_err(Error::corrupt));
        Ok(Some(Self::new(events.collect::<Result<Vec<_>>>()?)))
    }
}

impl From<&Vec<PieceField>> for Value<'_> {
    fn from(fields: &Vec<PieceField>) -> Self {
        let names: Vec<&str> = fields.iter().map(|field| field.as_str()).collect();
        names.join(",").into()
    }
}

impl Column for Vec<PieceField> {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        let Some(text) = row.opt_text(column)? else { return Ok(None) };
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(|name| name.parse().map_err(Error::corrupt)).collect::<Result<_>>().map(Some)
    }
}

impl From<&GroupPath> for Value<'_> {
    fn from(path: &GroupPath) -> Self {
        comma_separated(path.groups()).into()
    }
}

impl Column for GroupPath {
    fn find(row: &Row<'_>, column: usize) -> Result<Option<Self>> {
        Ok(Column::find(row, column)?.map(Self::new))
    }
}

impl From<Lane> for Value<'_> {
    fn from(value: Lane) -> Self {
        Self::Int(value.number())
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
