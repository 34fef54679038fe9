//! `GET /events/position`

use axum::response::Response;
use galley_application::operations::events;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::actor::{Actor, ReadEvents};
use crate::problem::Problem;
use crate::respond::response;

/// The position of the newest event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventPosition)]
struct EventPositionBody {
    /// The `sequence` of the newest event, or 0 if there was none.
    #[schema(minimum = 0, example = 1042)]
    sequence: i64,
}

/// Get the position of the newest event
///
/// A client that reads all resources first asks for the position before, and then lists the events
/// after it.
#[utoipa::path(
    get, path = "/events/position", operation_id = "getEventPosition",
    responses((status = 200, body = EventPositionBody)),
)]
pub(crate) async fn handle(actor: Actor<ReadEvents>) -> Result<Response, Problem> {
    let sequence = events::position(actor.caller()).await?;
    Ok(response::resource(0, &EventPositionBody { sequence }))
}
