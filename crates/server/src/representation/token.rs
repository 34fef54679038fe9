//! An access token in JSON, its text aside.

use galley_domain::{ContentGroupId, Timestamp, TokenId};
use galley_storage::tokens::Token;
use serde::Serialize;

use crate::representation::role::permissions;

/// A token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenBody<'a> {
    id: TokenId,
    name: &'a str,
    description: Option<&'a str>,
    permissions: Vec<String>,
    content_group_ids: Option<&'a [ContentGroupId]>,
    extension: Option<&'a str>,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl<'a> From<&'a Token> for TokenBody<'a> {
    fn from(token: &'a Token) -> Self {
        Self {
            id: token.id,
            name: token.name.as_str(),
            description: token.description.as_ref().map(|text| text.as_str()),
            permissions: permissions(token.permissions),
            content_group_ids: token.content_groups.as_deref(),
            extension: token.extension.as_ref().map(|name| name.as_str()),
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            created_at: token.created_at,
        }
    }
}
