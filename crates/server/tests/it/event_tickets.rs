//! Tickets with which browsers open the event stream.

use std::time::Duration;

use galley_domain::Timestamp;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::event_feed::EventStreamClient;
use crate::service::{Service, TestResponse};

const PAGE: Option<&str> = Some("https://app.example");
const OTHER_PAGE: Option<&str> = Some("https://other.example");

/// Creates a ticket from a page of `origin`.
async fn ticket(service: &Service, token: &str, origin: Option<&str>) -> String {
    let mut request = service.request(Method::POST, "/events/ticket").bearer_auth(token);
    request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
    let response = TestResponse::of(request).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("cache-control"), "no-store");
    let expires_at =
        Timestamp::parse_iso8601(response.body["expiresAt"].as_str().unwrap()).unwrap();
    let left = expires_at.ms() - service.environment.now().ms();
    assert!((55_000..=60_000).contains(&left), "{left}");
    response.body["ticket"].as_str().unwrap().to_owned()
}

/// Opens a stream as the `EventSource` of a page does.
fn stream(
    service: &Service,
    url: &str,
    ticket: &str,
    origin: Option<&str>,
) -> reqwest::RequestBuilder {
    let request = service.request_to(url, Method::GET, &format!("/events?ticket={ticket}"));
    let request = request.header("accept", "text/event-stream");
    origin.into_iter().fold(request, |request, origin| request.header("origin", origin))
}

/// Returns the status of the response to a page that opens a stream.
async fn status(service: &Service, ticket: &str, origin: Option<&str>) -> u16 {
    let response = stream(service, &service.url, ticket, origin).send().await.unwrap();
    response.status().as_u16()
}

#[on_both_engines]
async fn a_page_reconnects_with_its_ticket_for_twelve_hours(store: TestStore) {
    let service = Service::start(store).await;
    let made = ticket(&service, &service.home.token, PAGE).await;
    service.advance_clock(Duration::from_secs(50));
    let response = stream(&service, &service.url, &made, PAGE).send().await.unwrap();
    let mut opened = EventStreamClient::of(response);
    let last = service.last_sequence().await;
    let group = service.create("/content-groups", &json!({"name": "new"})).await;
    let (sequence, event, data) = opened.next().await.unwrap();
    assert_eq!((sequence, event.as_str()), (last + 1, "contentGroupAdded"));
    assert_eq!(data["data"]["id"], group);
    drop(opened);
    service.advance_clock(Duration::from_hours(11));
    let again = stream(&service, &service.url, &made, PAGE).header("last-event-id", last);
    let mut again = EventStreamClient::of(again.send().await.unwrap());
    assert_eq!(again.next().await.unwrap().0, last + 1);
    service.advance_clock(Duration::from_hours(1));
    assert_eq!(status(&service, &made, PAGE).await, 401);
}

#[on_both_engines]
async fn an_unused_ticket_expires_after_a_minute(store: TestStore) {
    let service = Service::start(store).await;
    let made = ticket(&service, &service.home.token, None).await;
    service.advance_clock(Duration::from_mins(1));
    assert_eq!(status(&service, &made, None).await, 401);
    let never_made = galley_domain::access_token::AccessToken::from_random([7; 32]);
    assert_eq!(status(&service, never_made.reveal(), None).await, 401);
    let request = stream(&service, &service.url, "x", None);
    TestResponse::of(request).await.assert_problem(401, "unauthorized", &[]);
}

#[on_both_engines]
async fn a_ticket_belongs_to_the_origin_of_its_first_use(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.home.token.as_str();
    // A page of another origin can neither use the ticket of this page nor spoil it.
    let made = ticket(&service, token, PAGE).await;
    assert_eq!(status(&service, &made, OTHER_PAGE).await, 401);
    assert_eq!(status(&service, &made, PAGE).await, 200);
    assert_eq!(status(&service, &made, PAGE).await, 200);
    assert_eq!(status(&service, &made, OTHER_PAGE).await, 401);
    assert_eq!(status(&service, &made, None).await, 401);
    // A backend asked for this one on behalf of the page.
    let made = ticket(&service, token, None).await;
    assert_eq!(status(&service, &made, PAGE).await, 200);
    assert_eq!(status(&service, &made, OTHER_PAGE).await, 401);
    assert_eq!(status(&service, &made, None).await, 401);
    // A page of the server's own origin sends `Origin` with a POST, and none with a GET.
    let made = ticket(&service, token, PAGE).await;
    assert_eq!(status(&service, &made, None).await, 200);
    assert_eq!(status(&service, &made, None).await, 200);
    assert_eq!(status(&service, &made, PAGE).await, 401);
}

#[on_both_engines]
async fn one_origin_gets_a_ticket_that_several_use_at_once(store: TestStore) {
    let service = Service::start(store).await;
    for _ in 0..10 {
        let made = ticket(&service, &service.home.token, None).await;
        let pages = (0..6).map(|number| format!("https://{number}.example")).collect::<Vec<_>>();
        let uses = pages.iter().map(|page| status(&service, &made, Some(page)));
        let statuses = futures_util::future::join_all(uses).await;
        let accepted = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(accepted, 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [200, 401].contains(status)), "{statuses:?}");
    }
}

#[on_both_engines]
async fn a_ticket_ends_with_its_token(store: TestStore) {
    let service = Service::start(store).await;
    let token = service.token("all", None).await;
    let id = service.token_id(&token).await;
    let used = ticket(&service, &token, None).await;
    let unused = ticket(&service, &token, None).await;
    let response = stream(&service, &service.url, &used, None).send().await.unwrap();
    let mut opened = EventStreamClient::of(response);
    // The ticket has the permissions that the token has now.
    let change = json!({"id": id, "permissions": ["tags:read", "roles:read"]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    service.create("/tags", &json!({"label": "shown"})).await;
    loop {
        let (_, event, _) = opened.next().await.unwrap();
        if event == "tagChanged" {
            break;
        }
    }
    let change = json!({"id": id, "permissions": ["roles:read"]});
    assert_eq!(service.put("/tokens", &change).await.status, 204);
    assert_eq!(status(&service, &used, None).await, 403);
    assert_eq!(service.delete(&format!("/tokens?id={id}")).await.status, 204);
    while opened.next().await.is_some() {}
    assert_eq!(status(&service, &used, None).await, 401);
    assert_eq!(status(&service, &unused, None).await, 401);
}

#[on_both_engines]
async fn a_ticket_opens_streams_only(store: TestStore) {
    let service = Service::start(store).await;
    let made = ticket(&service, &service.home.token, None).await;
    for request in [
        service.request(Method::GET, &format!("/events?ticket={made}")),
        service.request(Method::GET, "/tags/list").bearer_auth(&made),
        service.request(Method::POST, "/events/ticket").bearer_auth(&made),
    ] {
        TestResponse::of(request).await.assert_problem(401, "unauthorized", &[]);
    }
    let request = service.request(Method::GET, &format!("/events/position?ticket={made}"));
    let request = request.bearer_auth(&service.home.token);
    TestResponse::of(request).await.assert_problem(400, "unknown_parameter", &["ticket"]);
    // The header takes precedence.
    let token = service.token("roles:read", None).await;
    let request = stream(&service, &service.url, &made, None).bearer_auth(token);
    TestResponse::of(request).await.assert_problem(403, "insufficient_permissions", &[]);
}

#[on_both_engines]
async fn a_ticket_is_valid_on_every_node(store: TestStore) {
    let service = Service::start(store).await;
    let Some(second) = service.start_second_server().await else { return };
    let made = ticket(&service, &service.home.token, PAGE).await;
    for (url, origin, expected) in [
        (&second, PAGE, 200),
        (&service.url, PAGE, 200),
        (&service.url, OTHER_PAGE, 401),
        (&second, OTHER_PAGE, 401),
    ] {
        let response = stream(&service, url, &made, origin).send().await.unwrap();
        assert_eq!(response.status(), expected, "{url} {origin:?}");
    }
}
