//! Pages of lists.

/// A page of a list that is sorted by id.
#[derive(Debug, Clone)]
pub struct IdPage {
    /// The id after which the page begins.
    pub after: Option<String>,
    /// The limit on items that are read.
    pub limit: i64,
    /// The number of items to skip.
    pub offset: i64,
}
