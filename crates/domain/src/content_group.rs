//! Content groups: a forest of named folders for pieces.

use serde::Serialize;

use crate::custom_data_schema::CustomDataSchema;
use crate::id::ContentGroupId;
use crate::text::line_of_text;

line_of_text! {
    /// A group's name: 1 to 255 characters without control characters. Names need not be unique.
    ContentGroupName(1..=255)
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
