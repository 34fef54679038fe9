//! Tickets with which browsers open the event stream, as an `EventSource` sends no header
//! `Authorization`.
//!
//! A URL is logged by proxies and browsers, so a ticket can be used first for a short time only.
//! Its first use binds it to the `Origin` of the page, and lets that page reconnect.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_domain::access_token::{self, AccessToken};
use galley_storage::authentication::{self, Authentication};
use galley_storage::event_tickets::{self, EventTicket};
use galley_storage::{Tx, WriteTx};

use crate::caller::Caller;
use crate::error::Error;
use crate::rejection::Rejection;
use crate::service::Service;

/// The time within which a ticket must be used first.
const FIRST_USE_TIMEOUT: Duration = Duration::from_mins(1);

/// The time after the first use within which a page may reconnect.
const LIFETIME: Duration = Duration::from_hours(12);

/// A new ticket. It has the format of an access token.
#[derive(Debug)]
pub struct IssuedTicket {
    /// The text of the ticket.
    pub ticket: AccessToken,
    /// The time by which it must be used first.
    pub expires_at: Timestamp,
}

/// Creates a ticket that stands for the caller's credential. If the request has an `Origin`, pages
/// of other origins can't use the ticket.
pub async fn issue(caller: &Caller, origin: Option<&str>) -> Result<IssuedTicket, Error> {
    let environment = caller.environment();
    let ticket = environment.new_access_token();
    let expires_at = environment.now().later(FIRST_USE_TIMEOUT);
    let hash = ticket.hash();
    let row = EventTicket {
        workspace: caller.workspace(),
        credential: caller.token().credential,
        origin_hash: origin.map(origin_hash),
        is_used: false,
        expires_at,
    };
    let insert = async move |tx: &WriteTx<'_>| {
        // The credential may have ended since the authentication.
        if authentication::find(tx, row.workspace, row.credential).await?.is_none() {
            return Err(Rejection::unauthorized("the access token was revoked").into());
        }
        Ok(event_tickets::insert(tx, &hash, &row).await?)
    };
    caller.write("event_tickets.create", insert).await?;
    Ok(IssuedTicket { ticket, expires_at })
}

/// Returns the current authentication of a ticket's credential, expired or not. Returns `None` if
/// the ticket is unknown, expired, or bound to another origin.
pub async fn authenticate(
    service: &Service,
    ticket: &AccessToken,
    origin: Option<&str>,
) -> Result<Option<Authentication>, Error> {
    let (database, now) = (service.database(), service.environment().now());
    let (hash, origin) = (ticket.hash(), origin.map(origin_hash));
    let find = async move |tx: &Tx<'_>| Ok(event_tickets::find(tx, &hash).await?);
    let found = database.read_row::<_, Error, _>("event_tickets.find", find).await?;
    let Some(found) = found.filter(|found| found.expires_at > now) else { return Ok(None) };
    // A page of the server's own origin sends no `Origin` with its reads.
    let may_bind = origin.is_none() || found.origin_hash.is_none() || found.origin_hash == origin;
    if !found.is_used && may_bind {
        let (origin, expires_at) = (origin.clone(), now.later(LIFETIME));
        let bind = async move |tx: &WriteTx<'_>| {
            event_tickets::record_first_use(tx, &hash, origin.as_deref(), expires_at).await
        };
        database.write::<_, galley_storage::Error, _>("event_tickets.use", bind).await?;
    }
    let read = async move |tx: &Tx<'_>| {
        // Another request may have used the ticket first.
        let found = event_tickets::find(tx, &hash).await?;
        let bound = found.filter(|found| found.is_used && found.origin_hash == origin);
        match bound {
            Some(bound) => Ok(authentication::find(tx, bound.workspace, bound.credential).await?),
            None => Ok(None),
        }
    };
    database.read("event_tickets.authenticate", read).await
}

fn origin_hash(origin: &str) -> Vec<u8> {
    access_token::hash(origin).to_vec()
}
