//! Pagination of lists: the requested page, its cost, and the link to the next page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use galley_application::IdPage;
use galley_domain::Invalid;
use utoipa::IntoParams;

use crate::extract::query::Query;

/// The default number of items on a page.
pub(crate) const DEFAULT_PER_PAGE: i64 = 20;

/// The limit of items on a page.
pub(crate) const PER_PAGE_MAX: i64 = 1_000;

/// The limit of pieces on a page that includes their content.
pub(crate) const PER_PAGE_WITH_CONTENT_MAX: i64 = 100;

/// The greatest page number. The offset of its first item fits into an `i64`.
const PAGE_NUMBER_MAX: i64 = 1_000_000_000_000;

/// The cost up to which a list is an ordinary read. Longer reads get a thread of their own on
/// SQLite. An item that is skipped costs 1.
const INLINE_COST_MAX: i64 = 2_000;

/// The cost of an item that is read.
const ITEM_COST: i64 = 10;

/// The requested page of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest {
    number: i64,
    per_page: i64,
}

impl PageRequest {
    /// Parses `page` and `perPage`.
    pub(crate) fn from_query(query: &mut Query, per_page_max: i64) -> Self {
        Self {
            number: query.integer("page", 1, PAGE_NUMBER_MAX).unwrap_or(1),
            per_page: query.integer("perPage", 1, per_page_max).unwrap_or(DEFAULT_PER_PAGE),
        }
    }

    /// Returns the number of items to read: one more than are shown, to detect a next page.
    pub(crate) fn limit(self) -> i64 {
        self.per_page + 1
    }

    /// Returns the page of a list that is sorted by id, after an id.
    pub(crate) fn after(self, after: Option<String>) -> IdPage {
        IdPage { limit: self.limit(), offset: self.offset(after.is_some()), after }
    }

    /// Returns the limit of items on the page.
    pub(crate) fn per_page(self) -> i64 {
        self.per_page
    }

    /// Returns the number of items to skip, which is 0 after a cursor.
    pub(crate) fn offset(self, has_cursor: bool) -> i64 {
        if has_cursor { 0 } else { (self.number - 1) * self.per_page }
    }

    /// Returns true if reading the page takes long.
    pub(crate) fn is_heavy(self, has_cursor: bool) -> bool {
        self.offset(has_cursor) + ITEM_COST * self.per_page > INLINE_COST_MAX
    }

    /// Removes the extra item. Returns the last shown item if there is a next page.
    pub(crate) fn truncate<T>(self, items: &mut Vec<T>) -> Option<&T> {
        let shown = usize::try_from(self.per_page).unwrap_or(usize::MAX);
        let more = items.len() > shown;
        items.truncate(shown);
        if more { items.last() } else { None }
    }
}

/// The parameters of a list that continues after `lastId`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct IdPageParams {
    /// The page number, from 1. Ignored if a cursor is given.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// The limit of items on the page.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The identifier of an item. The list continues after it, even if the item was deleted.
    last_id: Option<String>,
    /// The position to continue from, as in the `Link` header of the previous page.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Parses `lastId` or the `cursor` of an earlier response: the id after which a list continues.
pub(crate) fn after_id<T: std::str::FromStr>(query: &mut Query) -> Option<String> {
    let last = query.text("lastId");
    let cursor = query.text("cursor");
    let malformed = Invalid::new("invalid_cursor", "is not a cursor of this list");
    if let Some(cursor) = cursor {
        let id = decode_cursor(&cursor).and_then(|parts| match &parts[..] {
            [kind, id] if kind == "id" && id.parse::<T>().is_ok() => Some(id.clone()),
            _ => None,
        });
        if id.is_none() {
            query.add_issue("cursor", &malformed);
        }
        return id;
    }
    let last = last?;
    if last.parse::<T>().is_err() {
        query.add_issue("lastId", &malformed);
        return None;
    }
    Some(last)
}

/// Returns the cursor of a list sorted by id.
pub(crate) fn id_cursor(id: impl ToString) -> String {
    encode_cursor(&["id".to_owned(), id.to_string()])
}

/// Encodes the parts of a cursor as opaque text.
pub(crate) fn encode_cursor(parts: &[String]) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(parts).expect("texts are JSON"))
}

/// Decodes the parts of a cursor that [`encode_cursor`] wrote.
pub(crate) fn decode_cursor(cursor: &str) -> Option<Vec<String>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
