//! Lists with a link to their next page (RFC 8288).

use axum::http::HeaderValue;
use axum::http::header::LINK;
use axum::response::Response;
use serde::Serialize;

use crate::extract::pagination::{PageRequest, id_cursor};
use crate::extract::query::Query;
use crate::respond::response;

/// Returns a page of a list that is sorted by id, with the link to the next page.
pub(crate) fn list_by_id<'i, T, Id: ToString, B: Serialize>(
    page: PageRequest,
    query: &Query,
    items: &'i mut Vec<T>,
    id: impl FnOnce(&T) -> Id,
    body: impl FnMut(&'i T) -> B,
) -> Response {
    let next = page.truncate(items).map(|last| id_cursor(id(last)));
    let mut response = response::ok(&items.iter().map(body).collect::<Vec<_>>());
    link_next(&mut response, query, next.as_deref());
    response
}

/// Links the next page if there is one: the page of the query after `cursor`.
pub(crate) fn link_next(response: &mut Response, query: &Query, cursor: Option<&str>) {
    let Some(cursor) = cursor else { return };
    link_to(response, &query.uri_with("cursor", cursor));
}

/// Links the next page.
pub(crate) fn link_to(response: &mut Response, next: &str) {
    let link = format!("<{next}>; rel=\"next\"");
    // A percent-encoded reference is visible ASCII.
    if let Ok(value) = HeaderValue::try_from(link) {
        response.headers_mut().insert(LINK, value);
    }
}
