//! Filters of lists by identifiers.

use std::str::FromStr;

use galley_domain::Invalid;

use crate::extract::query::Query;

/// The limit on identifiers in most filters.
const FILTERED_IDS_LIMIT: usize = 100;

/// The filter by a parameter that names identifiers, separated by commas, and may be repeated.
#[derive(Debug, Clone)]
pub(super) struct IdFilter<I> {
    /// The well-formed identifiers, or `None` without the parameter.
    pub(super) ids: Option<Vec<I>>,
    /// True if some identifiers are malformed.
    pub(super) has_malformed: bool,
}

impl<I: FromStr> IdFilter<I> {
    pub(super) fn read(query: &mut Query, name: &str) -> Self {
        Self::read_up_to(query, name, FILTERED_IDS_LIMIT)
    }

    /// Like [`IdFilter::read`], with another limit on identifiers.
    pub(super) fn read_up_to(query: &mut Query, name: &str, limit: usize) -> Self {
        let texts: Vec<String> = query.all(name).iter().map(|&value| value.to_owned()).collect();
        let named: Vec<&str> = texts
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|id| !id.is_empty())
            .collect();
        if named.len() > limit {
            let message = format!("must name at most {limit} identifiers");
            query.add_issue(name, &Invalid::new("too_long", message));
        }
        let ids: Vec<I> = named.iter().filter_map(|id| id.parse().ok()).collect();
        Self { has_malformed: ids.len() < named.len(), ids: (!texts.is_empty()).then_some(ids) }
    }

    /// Returns true if the parameter is present but contains no well-formed identifier.
    pub(super) fn matches_none(&self) -> bool {
        self.ids.as_ref().is_some_and(Vec::is_empty)
    }
}
