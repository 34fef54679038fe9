//! Pages of lists.

use crate::engine::{Value, row};

/// A page of a list that is sorted by id. The default is the complete list.
#[derive(Debug, Clone)]
pub struct IdPage {
    /// The id after which the page begins.
    pub after: Option<String>,
    /// The limit on items that are read.
    pub limit: i64,
    /// The number of items to skip.
    pub offset: i64,
}

impl Default for IdPage {
    fn default() -> Self {
        Self { after: None, limit: i64::MAX, offset: 0 }
    }
}

impl IdPage {
    /// Returns the first page of `limit` items.
    pub fn first(limit: i64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Returns the parameters of a list: its owner, the id after which it begins, the limit and the
    /// offset.
    pub(crate) fn params<'v>(&'v self, owner: impl Into<Value<'v>>) -> [Value<'v>; 4] {
        row![owner.into(), self.after.as_deref().unwrap_or_default(), self.limit, self.offset]
    }
}
