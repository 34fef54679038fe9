//! The filter of a list of pieces by groups.

use galley_domain::{ContentGroupId, Invalid};

use crate::extract::query::Query;

/// The limit on groups in one request.
const FILTERED_GROUPS_LIMIT: usize = 100;

/// The filter by the parameter `contentGroupId`.
#[derive(Debug, Clone)]
pub(super) struct GroupFilter {
    /// The groups, or `None` for all groups.
    pub(super) ids: Option<Vec<ContentGroupId>>,
    /// True if the parameter is present but contains no well-formed identifier.
    pub(super) matches_none: bool,
}

impl GroupFilter {
    pub(super) fn read(query: &mut Query) -> Self {
        let texts: Vec<String> =
            query.all("contentGroupId").iter().map(|&value| value.to_owned()).collect();
        let named: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .collect();
        if named.len() > FILTERED_GROUPS_LIMIT {
            let message = format!("must name at most {FILTERED_GROUPS_LIMIT} groups");
            query.add_issue("contentGroupId", &Invalid::new("too_long", message));
        }
        let groups: Vec<_> = named.iter().filter_map(|id| id.parse().ok()).collect();
        Self {
            matches_none: groups.is_empty() && !texts.is_empty(),
            ids: (!texts.is_empty()).then_some(groups),
        }
    }
}
