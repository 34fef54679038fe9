//! The JSON representation of an access token. Only the response to its creation has the token's
//! text.

use galley_domain::access_token::{ExtensionName, TokenName};
use galley_domain::publication::ContentView;
use galley_domain::text::ShortText;
use galley_domain::{ContentGroupId, PermissionSet, Timestamp, TokenId};
use galley_storage::tokens::Token;
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::{GroupLimit, bodies};
use crate::role::permissions;
use crate::schemas;

/// An access token.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
pub struct TokenBody<'a> {
    #[schema(value_type = schemas::TokenId)]
    id: TokenId,
    #[schema(example = "The site's build")]
    name: &'a str,
    #[schema(example = "Reads what is published.")]
    description: Option<&'a str>,
    /// The maximum permissions. At each request, the role of the token's user limits them further.
    #[schema(value_type = Vec<schemas::Permission>)]
    permissions: Vec<String>,
    /// The groups to which the token's view of content is limited, with all groups below them. Null
    /// means no limit.
    #[schema(value_type = Option<Vec<schemas::ContentGroupId>>)]
    content_group_ids: Option<&'a [ContentGroupId]>,
    /// The view of the content.
    #[schema(value_type = schemas::View)]
    view: &'static str,
    /// The extension that the token belongs to.
    #[schema(example = "search")]
    extension: Option<&'a str>,
    /// The expiry time. Null means no expiry.
    #[schema(value_type = Option<schemas::Time>)]
    expires_at: Option<Timestamp>,
    /// The time of the last use, to the minute. Null if the token was never used.
    #[schema(value_type = Option<schemas::Time>)]
    last_used_at: Option<Timestamp>,
    #[schema(value_type = schemas::Time)]
    created_at: Timestamp,
    /// The token's text. Present only in the response to its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, example = "galley_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG2hR4q1")]
    token: Option<&'a str>,
}

impl<'a> TokenBody<'a> {
    /// Creates the representation with the token's text.
    pub fn with_text(token: &'a Token, text: &'a str) -> Self {
        Self { token: Some(text), ..Self::from(token) }
    }
}

impl<'a> From<&'a Token> for TokenBody<'a> {
    fn from(token: &'a Token) -> Self {
        Self {
            id: token.id,
            name: token.name.as_str(),
            description: token.description.as_ref().map(galley_domain::text::ShortText::as_str),
            permissions: permissions(token.permissions),
            content_group_ids: token.content_groups.as_deref(),
            view: token.view.as_str(),
            extension: token
                .extension
                .as_ref()
                .map(galley_domain::access_token::ExtensionName::as_str),
            expires_at: token.expires_at,
            last_used_at: token.last_used_at,
            created_at: token.created_at,
            token: None,
        }
    }
}

bodies! {
    /// A new token.
    NewToken,
    /// A change of a token.
    TokenChange of TokenId {
        /// The name, without control characters.
        name: required TokenName = "The site's build",
        /// A short description.
        description: optional ShortText = "Reads what is published.",
        /// The maximum permissions. At each request, the role of the token's user limits them
        /// further.
        permissions: required PermissionSet,
        /// The groups to which the token's view of content is limited, with all groups below them.
        /// Null means no limit.
        content_group_ids: optional GroupLimit,
        /// The view of the content. With `published`, the token reads published pieces alone, at
        /// their published revision, and its permissions on content can only be to read. The
        /// default is the view of the requesting token.
        view: defaulted ContentView = "published",
        /// The extension that the token belongs to.
        extension: optional ExtensionName = "search",
    } also {
        /// The expiry time: an ISO 8601 date or date-time, for a new token in the future. Null
        /// means no expiry.
        expires_at: optional Timestamp = "2027-01-01T09:00:00+01:00",
    }
}
