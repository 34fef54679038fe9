//! Content groups: a forest of named folders for pieces.

use serde::Serialize;

use crate::access_token::AccessToken;
use crate::custom_data_schema::CustomDataSchema;
use crate::id::{ContentGroupId, ContentPieceId};
use crate::text::{Invalid, check_http_url, check_length, checked_text, line_of_text};

line_of_text! {
    /// A group's name: 1 to 255 characters without control characters. Names need not be unique.
    ContentGroupName(1..=255)
}

checked_text! {
    /// The URL of a page that shows the draft of a piece: an absolute http or https URL, to 2,048
    /// characters, in which `{token}` stands for a preview token and `{id}` for the piece.
    PreviewUrl, |text| {
        let filled = fill(text, "token", "id");
        if filled.contains(['{', '}']) {
            let message = "must contain no other placeholders than {token} and {id}";
            return Err(Invalid::new("invalid_url", message));
        }
        check_http_url(&filled, "must not contain a user or password")?;
        check_length(text, 1, 2_048)?;
        let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
        let host = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('{') {
            let message = "must have no placeholder in its host, whose name others look up";
            return Err(Invalid::new("invalid_url", message));
        }
        if !text.contains("{token}") {
            return Err(Invalid::new("invalid_url", "must contain {token}"));
        }
        Ok(())
    }
}

impl PreviewUrl {
    /// Returns the URL for a preview token and its piece.
    pub fn of(&self, token: &AccessToken, piece: ContentPieceId) -> String {
        fill(self.as_str(), token.reveal(), &piece.to_string())
    }
}

fn fill(template: &str, token: &str, id: &str) -> String {
    template.replace("{token}", token).replace("{id}", id)
}

/// The limit on levels of groups.
pub const DEPTH_MAX: usize = 32;

/// The limit on pieces that one recursive deletion deletes.
pub const RECURSIVE_DELETE_MAX: i64 = 10_000;

/// A content group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentGroup {
    /// The identifier.
    pub id: ContentGroupId,
    /// The name for people.
    pub name: ContentGroupName,
    /// True if the slugs of the pieces in the group and its descendants are unique.
    pub unique_slugs: bool,
    /// The schema of the custom data of these pieces, unless a descendant has its own.
    pub custom_data_schema: Option<CustomDataSchema>,
    /// The page that shows drafts of these pieces, unless a descendant has its own.
    pub preview_url: Option<PreviewUrl>,
    /// The version, incremented by every change.
    pub version: i64,
}

/// The position of a group or piece in the forest: the ids of its groups, from the root down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct GroupPath(Vec<ContentGroupId>);

impl GroupPath {
    /// Creates the path along `groups`, from the root down.
    pub fn new(groups: Vec<ContentGroupId>) -> Self {
        Self(groups)
    }

    /// Returns the groups, from the root down.
    pub fn groups(&self) -> &[ContentGroupId] {
        &self.0
    }

    /// Returns this path extended by `group`.
    #[must_use]
    pub fn child(&self, group: ContentGroupId) -> Self {
        let mut groups = self.0.clone();
        groups.push(group);
        Self(groups)
    }

    /// Returns true if the path contains `group`.
    pub fn contains(&self, group: ContentGroupId) -> bool {
        self.0.contains(&group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_url_has_a_token_and_no_unknown_placeholder() {
        for good in ["https://example.org/preview?t={token}", "http://a.test/{id}/{token}#{id}"] {
            assert!(PreviewUrl::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/preview?token={token}",
            "https://example.org/preview",
            "https://example.org/{slug}?token={token}",
            "https://example.org/?token={token",
            "https://{token}.example.org/",
            "https://{token}?x",
            "https://user:password@example.org/{token}",
            "javascript:alert('{token}')",
            "https://example.org/ {token}",
        ] {
            assert!(PreviewUrl::parse(bad).is_err(), "{bad:?}");
        }
        let url = PreviewUrl::parse("https://a.test/{id}?t={token}").unwrap();
        let (token, piece) = (AccessToken::from_random([7; 32]), ContentPieceId::new(1));
        assert_eq!(url.of(&token, piece), format!("https://a.test/{piece}?t={}", token.reveal()));
    }
}
