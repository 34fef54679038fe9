//! The page with the form that accepts an invite.

use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use super::{invite, state};
use crate::service::{Service, TestResponse};

pub(super) async fn page(service: &Service, code: &str) -> TestResponse {
    let path = format!("/invite?code={code}");
    TestResponse::of(service.request(Method::GET, &path)).await
}

pub(super) async fn send_form(service: &Service, fields: &[(&str, &str)]) -> TestResponse {
    TestResponse::of(form(service.request(Method::POST, "/invite"), fields)).await
}

/// Encodes fields as a browser's form does.
pub(crate) fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    request.header("content-type", "application/x-www-form-urlencoded").body(body.finish())
}

pub(super) fn assert_page(answer: &TestResponse, status: u16, words: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.body.as_str().unwrap().contains(words), "{words}: {answer:?}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("referrer-policy"), "same-origin");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("etag"), "");
    let policy = answer.header("content-security-policy");
    for part in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!answer.body.as_str().unwrap().contains("<script"), "{answer:?}");
}

#[on_both_engines]
async fn the_page_shows_a_form_and_then_the_token_once(store: TestStore) {
    let limits = ServerLimits {
        public_url: "https://galley.example.org/".to_owned(),
        ..ServerLimits::default()
    };
    let service = Service::start_with(store, limits).await;
    let name = "<b>Ann</b> & \"co\"";
    let (_, code) = invite(&service, "ann+x@example.org", name).await;
    for _ in 0..3 {
        // A GET, such as by link checkers, changes nothing.
        let answer = page(&service, &code).await;
        assert_page(&answer, 200, "Join home");
        let text = answer.body.as_str().unwrap();
        assert!(text.contains("<strong><bdi>home</bdi></strong> invites you"), "{text}");
        assert!(text.contains("<strong><bdi>Editor</bdi></strong>"), "{text}");
        assert!(text.contains("value=\"ann+x\""), "{text}");
        assert!(!text.contains("<b>") && text.contains("&#60;b&#62;Ann"), "{text}");
    }
    let before = state(&service).await;
    let refused =
        send_form(&service, &[("code", &code), ("username", "a b<i>"), ("fullName", " ")]).await;
    assert_page(&refused, 400, "Your username must not contain white space");
    assert_page(&refused, 400, "Your full name ");
    assert_page(&refused, 400, "value=\"a b&#60;i&#62;\"");
    let taken =
        send_form(&service, &[("code", &code), ("username", "Home"), ("fullName", "Ann")]).await;
    assert_page(&taken, 409, "Your username belongs to another user: choose another one.");
    assert_eq!(state(&service).await, before);

    let fields = [("code", code.as_str()), ("username", " ann "), ("fullName", " Ann <i>E</i> ")];
    let done = send_form(&service, &fields).await;
    assert_page(&done, 200, "Welcome to home");
    let text = done.body.as_str().unwrap();
    assert!(text.contains("Ann &#60;i&#62;E") && !text.contains("<i>"), "{text}");
    assert!(text.contains("curl -s https://galley.example.org/profile"), "{text}");
    let token = text.split("galley_").nth(1).unwrap().get(..49).unwrap();
    let own = service.send_as(&format!("galley_{token}"), Method::GET, "/profile", None).await;
    assert_eq!((own.status.as_u16(), &own.body["username"]), (200, &json!("ann")));
    assert_page(&send_form(&service, &fields).await, 410, "The invite was accepted");
}

#[on_both_engines]
async fn a_resubmitted_form_shows_the_token_again(store: TestStore) {
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let own = service.send_as(&other.token, Method::GET, "/profile", None).await.body;
    // One person is new, the other one an existing user, whose form has no name fields.
    for (email, names) in [("ann@example.org", true), (own["email"].as_str().unwrap(), false)] {
        let (_, code) = invite(&service, email, "Ann").await;
        let attempt = async || {
            let page = page(&service, &code).await;
            let text = page.body.as_str().unwrap();
            let (_, attempt) = text.split_once("name=\"attempt\" value=\"").unwrap();
            attempt.split_once('"').unwrap().0.to_owned()
        };
        let (first, second) = (attempt().await, attempt().await);
        assert_ne!(first, second);
        let send = async |attempt: &str| {
            let mut fields = vec![("code", code.as_str()), ("attempt", attempt)];
            if names {
                fields.extend([("username", " ann "), ("fullName", "Ann")]);
            }
            send_form(&service, &fields).await
        };
        let done = send(&first).await;
        assert_page(&done, 200, "Welcome to home");
        assert_eq!(send(&first).await.body, done.body);
        assert_page(&send(&second).await, 410, "The invite was accepted");
        assert_page(&send("").await, 410, "The invite was accepted");
    }
}

#[on_both_engines]
async fn ambiguous_forms_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let (_, code) = invite(&service, "ann@example.org", "Ann").await;
    let before = state(&service).await;
    for body in [
        format!("code={code}&username=ann&fullName=C%FF"),
        format!("code={code}&username=ann&fullName=%ED%A0%80"),
        format!("code={code}&username=ann&fullName=A&fullName=B"),
        format!("code={code}&username=ann&fullName=A&code=x"),
    ] {
        let request = service.request(Method::POST, "/invite").body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        TestResponse::of(request).await.assert_problem(400, "malformed_body", &[]);
    }
    let twice = service.request(Method::GET, &format!("/invite?code={code}&code=x"));
    TestResponse::of(twice).await.assert_problem(400, "validation", &["code"]);
    assert_eq!(state(&service).await, before);
}

#[on_both_engines]
async fn the_page_is_in_german_for_browsers_that_prefer_it(store: TestStore) {
    let service = Service::start(store).await;
    let (_, code) = invite(&service, "ann@example.org", "Ann").await;
    let german = |request: RequestBuilder| request.header("accept-language", "de");
    let path = format!("/invite?code={code}");
    let shown = TestResponse::of(german(service.request(Method::GET, &path))).await;
    assert_page(&shown, 200, "<strong><bdi>home</bdi></strong> lädt Sie in den Arbeitsbereich");
    let send = async |username: &str| {
        let fields = [("code", code.as_str()), ("fullName", "Ann"), ("username", username)];
        TestResponse::of(german(form(service.request(Method::POST, "/invite"), &fields))).await
    };
    assert_page(
        &send("a b").await,
        400,
        "Der Benutzername ist leer, zu lang oder hat Leerzeichen.",
    );
    assert_page(&send("ann").await, 200, "Sie sind jetzt Mitglied");
}
