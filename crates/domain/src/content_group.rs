//! Content groups: a forest of named folders for pieces.

use serde::Serialize;

use crate::id::ContentGroupId;
use crate::text::line_of_text;

line_of_text! {
    /// A group's name: 1 to 255 characters without control characters. Names need not be unique.
    ContentGroupName(1..=255)
}

/// How many levels of groups there may be.
pub const DEPTH_MAX: usize = 32;

/// The most pieces that one recursive deletion takes with it.
pub const RECURSIVE_DELETE_MAX: i64 = 10_000;

/// A content group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentGroup {
    /// Which one.
    pub id: ContentGroupId,
    /// What people call it.
    pub name: ContentGroupName,
    /// Raised by every change.
    pub version: i64,
}

/// Where something stands: the ids of its groups, from the root down.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct GroupPath(Vec<ContentGroupId>);

impl GroupPath {
    /// The path along `groups`, from the root down.
    pub fn new(groups: Vec<ContentGroupId>) -> Self {
        Self(groups)
    }

    /// The groups, from the root down.
    pub fn groups(&self) -> &[ContentGroupId] {
        &self.0
    }

    /// The path of what stands in `group` at the end of this path.
    #[must_use]
    pub fn child(&self, group: ContentGroupId) -> Self {
        let mut groups = self.0.clone();
        groups.push(group);
        Self(groups)
    }

    /// Whether it runs through `group`.
    pub fn contains(&self, group: ContentGroupId) -> bool {
        self.0.contains(&group)
    }
}
