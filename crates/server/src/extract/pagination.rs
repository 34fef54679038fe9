//! Which part of a list a request asks for, and where it goes on.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use galley_domain::Invalid;
use utoipa::IntoParams;

use crate::extract::query::Query;

/// How many items a page has when the request doesn't say.
const PER_PAGE_DEFAULT: i64 = 20;

/// How many items a page has at the most.
pub(crate) const PER_PAGE_MAX: i64 = 1_000;

/// How many pieces a page has at the most when their content comes with them.
pub(crate) const PER_PAGE_WITH_CONTENT_MAX: i64 = 100;

/// The furthest page: its first item's number is still a number.
const PAGE_MAX: i64 = 1_000_000_000_000;

/// Beyond this cost a list is read where it holds up nobody: an item that is skipped costs 1.
const INLINE_COST_MAX: i64 = 2_000;

/// What an item costs that is read.
const ITEM_COST: i64 = 10;

/// A part of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Page {
    number: i64,
    per_page: i64,
}

impl Page {
    /// Reads `page` and `perPage`.
    pub(crate) fn read(query: &mut Query, per_page_max: i64) -> Self {
        Self {
            number: query.integer("page", 1, PAGE_MAX).unwrap_or(1),
            per_page: query.integer("perPage", 1, per_page_max).unwrap_or(PER_PAGE_DEFAULT),
        }
    }

    /// How many items to read: one more than are shown, to know whether more follow.
    pub(crate) fn limit(self) -> i64 {
        self.per_page + 1
    }

    /// Returns the limit of items on the page.
    pub(crate) fn per_page(self) -> i64 {
        self.per_page
    }

    /// How many items to skip; none where the list goes on from a cursor.
    pub(crate) fn offset(self, has_cursor: bool) -> i64 {
        if has_cursor { 0 } else { (self.number - 1) * self.per_page }
    }

    /// Whether reading it takes long.
    pub(crate) fn is_heavy(self, has_cursor: bool) -> bool {
        self.offset(has_cursor) + ITEM_COST * self.per_page > INLINE_COST_MAX
    }

    /// Whether reading it takes long wherever it begins.
    pub(crate) fn is_large(self) -> bool {
        ITEM_COST * self.per_page > INLINE_COST_MAX
    }

    /// Cuts off the item too many; the last one shown, if more follow.
    pub(crate) fn cut<T>(self, items: &mut Vec<T>) -> Option<&T> {
        let shown = usize::try_from(self.per_page).unwrap_or(usize::MAX);
        let more = items.len() > shown;
        items.truncate(shown);
        if more { items.last() } else { None }
    }
}

/// The parameters of a list that goes on by `lastId`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
pub(crate) struct PageById {
    /// Which page, from 1. Without effect where a cursor is given.
    #[param(minimum = 1, maximum = 1_000_000_000_000_i64, default = 1, example = 1)]
    page: Option<i64>,
    /// How many items at the most.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// The identifier of an item: the list goes on after it, also when it is gone.
    last_id: Option<String>,
    /// Where the list goes on: as the `Link` header of its last part says.
    #[param(pattern = "^[A-Za-z0-9_-]+$")]
    cursor: Option<String>,
}

/// Reads `lastId` or the `cursor` of an earlier answer: the id after which a list goes on.
pub(crate) fn after_id<T: std::str::FromStr>(query: &mut Query) -> Option<String> {
    let last = query.text("lastId");
    let cursor = query.text("cursor");
    let malformed = Invalid::new("invalid_cursor", "is not one that this list gave");
    if let Some(cursor) = cursor {
        let id = decode_cursor(&cursor).and_then(|parts| match &parts[..] {
            [kind, id] if kind == "id" && id.parse::<T>().is_ok() => Some(id.clone()),
            _ => None,
        });
        if id.is_none() {
            query.refuse("cursor", &malformed);
        }
        return id;
    }
    let last = last?;
    if last.parse::<T>().is_err() {
        query.refuse("lastId", &malformed);
        return None;
    }
    Some(last)
}

/// The cursor of a list that is sorted by id.
pub(crate) fn id_cursor(id: impl ToString) -> String {
    encode_cursor(&["id".to_owned(), id.to_string()])
}

/// Writes the parts of a cursor as one opaque text.
pub(crate) fn encode_cursor(parts: &[String]) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(parts).expect("texts are JSON"))
}

/// Reads what [`encode_cursor`] wrote.
pub(crate) fn decode_cursor(cursor: &str) -> Option<Vec<String>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
