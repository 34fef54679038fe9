//! `GET /events`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::Rejection;
use galley_application::operations::events;
use utoipa::IntoParams;

use super::stream::{self, StreamRequest};
use super::ticket::EventReader;
use crate::app::App;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::{large_response, page_links, response};

/// The default and the maximum of `perPage`.
const PER_PAGE_DEFAULT: i64 = 20;
const PER_PAGE_MAX: i64 = 1_000;

/// The query parameters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only its description is used")]
struct EventListParameters {
    /// The `sequence` of the event after which the list begins. Without it, the list begins with
    /// the oldest stored event.
    #[param(minimum = 0, example = 1042)]
    after: Option<i64>,
    /// The limit on events in a page.
    #[param(minimum = 1, maximum = 1000, default = 20, example = 50)]
    per_page: Option<i64>,
    /// A [ticket](#tag/events/operation/createEventTicket), in place of the header
    /// `Authorization`. It opens streams only.
    ticket: Option<String>,
}

/// List events
///
/// Returns the workspace's events as webhooks receive them, oldest first and without a gap in
/// `sequence`. A token sees the events of resources that it may read. A token limited to groups
/// sees the events within these groups, as seen in its scope. Events are kept for 30 days.
///
/// With `Accept: text/event-stream` the response is a stream of server-sent events that stays open.
/// Each has its `sequence` as `id`, its type as `event` and its envelope as `data`. A client that
/// reconnects sends its position as `Last-Event-ID`. The stream ends when its token expires or is
/// revoked.
#[utoipa::path(
    get,
    path = "/events",
    operation_id = "listEvents",
    params(
        EventListParameters,
        (
            "Last-Event-ID" = Option<String>, Header,
            description = "The position of a stream: the `sequence` of the last received event. It \
                           overrides `after`. Pages ignore it.",
            example = "1042",
        ),
    ),
    responses(
        (status = 200, body = [schemas::EventEnvelope]),
        (status = 410, description = "events_forgotten, after_beyond_newest"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    EventReader(actor): EventReader,
    request: StreamRequest,
    mut query: Query,
) -> Result<Response, Problem> {
    let after = query.integer("after", 0, i64::MAX);
    let per_page = query.integer("perPage", 1, PER_PAGE_MAX).unwrap_or(PER_PAGE_DEFAULT);
    // [`EventReader`] uses the ticket, unless it is given twice.
    query.text("ticket");
    query.finish()?;
    let workspace = actor.workspace;
    if request.is_wanted {
        let after = request.last_event_id.or(after);
        let after = events::start_sequence(actor.caller(), after).await?;
        return stream::open(&app, actor.into_authentication(), after, request);
    }
    let max = usize::try_from(per_page).unwrap_or(usize::MAX);
    let bytes = app.limits().response_size_limit;
    let page = events::list(actor.caller(), after, max, bytes).await?;
    let size = page.seen.iter().map(|seen| seen.json.get().len()).sum();
    let reservation = large_response::reserve(&app, workspace, size)?;
    let envelopes: Vec<_> = page.seen.iter().map(|seen| &seen.json).collect();
    let json = large_response::json(&app, reservation, &envelopes)?
        .ok_or_else(|| Rejection::response_too_large("perPage", bytes))?;
    let mut response = response::reserved_resource(0, json);
    if page.more {
        let next = query.uri_with("after", &page.looked_up_to.to_string());
        page_links::link_to(&mut response, &next);
    }
    Ok(response)
}
