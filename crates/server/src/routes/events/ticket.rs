//! `POST /events/ticket`, and the authentication of a stream by a ticket.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use galley_api_types::schemas::Time;
use galley_application::operations::event_tickets::{self, IssuedTicket};
use galley_domain::Timestamp;
use galley_domain::access_token::AccessToken;
use serde::Serialize;
use utoipa::ToSchema;

use super::stream;
use crate::app::App;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::extract::actor::{Actor, ReadEvents};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// A ticket for the event stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventTicket)]
#[serde(rename_all = "camelCase")]
struct EventTicketBody<'a> {
    /// The value of the parameter `ticket` of `GET /events`.
    #[schema(example = "galley_0000000000000000000000000000000000000000000000000")]
    ticket: &'a str,
    /// The time by which the ticket must be used first.
    #[schema(value_type = Time)]
    expires_at: Timestamp,
}

/// Create a ticket for the event stream
///
/// A browser's `EventSource` can't send the header `Authorization`. It opens the stream with a
/// ticket in the URL: `GET /events?ticket=…`.
///
/// The ticket must be used within 60 seconds. The page that used it can reconnect with it for 12
/// hours. It stands for the requesting token, with its current permissions and groups, and ends
/// with it. Its first use binds it to the `Origin` of the page. If this request has an `Origin`,
/// pages of other origins can't use the ticket.
#[utoipa::path(
    post, path = "/events/ticket", operation_id = "createEventTicket",
    responses((status = 200, body = EventTicketBody<'_>)),
)]
pub(crate) async fn create(
    actor: Actor<ReadEvents>,
    OriginHeader(origin): OriginHeader,
) -> Result<Response, Problem> {
    let IssuedTicket { ticket, expires_at } =
        event_tickets::issue(actor.caller(), origin.as_deref()).await?;
    let body = EventTicketBody { ticket: ticket.reveal(), expires_at };
    let mut response = response::ok(&body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The header `Origin` of a request.
#[derive(Debug)]
pub(crate) struct OriginHeader(Option<String>);

impl OriginHeader {
    fn of(headers: &HeaderMap) -> Self {
        let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
        Self(origin.map(String::from_utf8_lossy).map(Cow::into_owned))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OriginHeader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self::of(&parts.headers))
    }
}

impl HandlerArgument for OriginHeader {
    fn add_facts(_: &mut HandlerFacts) {}
}

/// The detail of the rejection of a ticket.
const UNKNOWN_TICKET: &str =
    "the ticket is unknown, has expired, was revoked with its token, or belongs to another origin";

/// A reader of events, authenticated by its token or, for a stream, by a ticket.
#[derive(Debug)]
pub(crate) struct EventReader(pub(super) Actor<ReadEvents>);

impl FromRequestParts<App> for EventReader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if parts.headers.contains_key(AUTHORIZATION) || !stream::is_wanted(&parts.headers) {
            return Ok(Self(Actor::from_request_parts(parts, app).await?));
        }
        let Some(ticket) = Query::from_request_parts(parts, app).await?.text("ticket") else {
            return Ok(Self(Actor::from_request_parts(parts, app).await?));
        };
        let OriginHeader(origin) = OriginHeader::of(&parts.headers);
        let found = match AccessToken::parse(&ticket) {
            Ok(ticket) => {
                event_tickets::authenticate(app.service(), &ticket, origin.as_deref()).await?
            }
            Err(_) => None,
        };
        Ok(Self(Actor::admit(parts, app, found.map(Into::into), UNKNOWN_TICKET)?))
    }
}

impl HandlerArgument for EventReader {
    fn add_facts(facts: &mut HandlerFacts) {
        Actor::<ReadEvents>::add_facts(facts);
    }
}
