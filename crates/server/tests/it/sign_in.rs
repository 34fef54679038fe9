//! Sign-in by mail: by the link and by the code, once, in the browser that asked.

use std::collections::BTreeMap;
use std::time::Duration;

use galley_application::operations::members::mail_aad;
use galley_application::operations::sign_in::{SIGN_IN_MAIL, SignInMail, create_link};
use galley_domain::MailId;
use galley_server::ServerLimits;
use galley_storage::{Tx, WriteTx, users};
use galley_testing::{TestStore, on_both_engines};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::invites::form;
use crate::secrets;
use crate::service::{Service, TestResponse, key};

/// The address of the home workspace's owner.
pub(crate) const OWNER: &str = "home@example.org";

/// A browser: it keeps cookies, and states the origin of requests.
#[derive(Debug, Default)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Returns the header with the cookies.
    pub(crate) fn cookie_header(&self) -> String {
        let pairs = self.cookies.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    /// Sends a request from a page of the service, and keeps the cookies of the response.
    pub(crate) async fn send(&mut self, request: RequestBuilder) -> TestResponse {
        self.send_from("same-origin", request).await
    }

    /// Sends a request from a page of this site, and keeps the cookies of the response.
    pub(crate) async fn send_from(&mut self, site: &str, request: RequestBuilder) -> TestResponse {
        let request = request.header("sec-fetch-site", site);
        let request = if self.cookies.is_empty() {
            request
        } else {
            request.header("cookie", self.cookie_header())
        };
        let answer = TestResponse::of(request).await;
        self.keep_cookies(&answer.headers);
        answer
    }

    /// Keeps the cookies of a response.
    pub(crate) fn keep_cookies(&mut self, headers: &HeaderMap) {
        for value in headers.get_all("set-cookie") {
            let text = value.to_str().unwrap();
            let (name, rest) = text.split_once('=').unwrap();
            let (value, attributes) = rest.split_once(';').unwrap();
            if value.is_empty() || attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                secrets::record_secret_for_log(value);
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    pub(crate) async fn get(&mut self, service: &Service, path: &str) -> TestResponse {
        self.send(service.request(Method::GET, path)).await
    }

    pub(crate) async fn post(
        &mut self,
        service: &Service,
        path: &str,
        fields: &[(&str, &str)],
    ) -> TestResponse {
        self.send(form(service.request(Method::POST, path), fields)).await
    }

    /// Asks for a mail and returns it.
    pub(crate) async fn ask(&mut self, service: &Service, email: &str) -> SignInMail {
        let before = mails(service).await.len();
        let answer = self.post(service, "/sign-in", &[("email", email)]).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        wait_for_mails(service, before + 1).await.swap_remove(before)
    }

    /// Signs in by a mail.
    pub(crate) async fn sign_in(&mut self, service: &Service, email: &str) {
        let mail = self.ask(service, email).await;
        let answer = self.post(service, "/sign-in/link", &[("code", &mail.link_code)]).await;
        assert_eq!(answer.status, 303, "{answer:?}");
    }
}

/// Returns the mails for sign-ins, in their order.
async fn mails(service: &Service) -> Vec<SignInMail> {
    let read = async move |tx: &Tx<'_>| {
        let sql = "SELECT id, sealed FROM mails WHERE kind = ?1 ORDER BY id";
        tx.query(sql, &[SIGN_IN_MAIL.into()], |row| {
            Ok((row.get::<MailId>(0)?, row.get::<Vec<u8>>(1)?))
        })
        .await
    };
    let open = |(id, sealed): (MailId, Vec<u8>)| {
        let text = key().decrypt(&mail_aad(id), &sealed).unwrap();
        let mail: SignInMail = serde_json::from_slice(&text).unwrap();
        secrets::record_secret_for_log(&mail.link_code);
        secrets::record_secret_for_log(&mail.code);
        mail
    };
    service.read(read).await.into_iter().map(open).collect()
}

/// Waits until there are `count` mails, as a mail is written after the response.
async fn wait_for_mails(service: &Service, count: usize) -> Vec<SignInMail> {
    for _ in 0..3_000 {
        let mails = mails(service).await;
        if mails.len() >= count {
            return mails;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no mail was written for a minute");
}

fn assert_page(answer: &TestResponse, status: u16, words: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(answer.body.as_str().unwrap().contains(words), "{words}: {answer:?}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(!answer.body.as_str().unwrap().contains("<script"), "{answer:?}");
}

/// Returns the workspaces that a browser's session reaches.
async fn workspaces(service: &Service, browser: &mut Browser) -> TestResponse {
    browser.get(service, "/workspace-memberships/list-workspaces").await
}

#[on_both_engines]
async fn a_mailed_link_signs_in_once_and_only_by_its_button(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    assert_page(&browser.get(&service, "/sign-in").await, 200, "E-mail address");
    let mail = browser.ask(&service, &OWNER.to_uppercase()).await;
    assert_eq!(mail.name, "home");
    let path = format!("/sign-in/link?code={}", mail.link_code);
    for _ in 0..3 {
        // Mail scanners open links, too.
        assert_page(&browser.get(&service, &path).await, 200, "You sign in as");
    }
    let code = [("code", mail.link_code.as_str())];
    let answer = browser.post(&service, "/sign-in/link", &code).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"));
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("galley-session="), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=34560000"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert_eq!(browser.cookies.keys().collect::<Vec<_>>(), ["galley-session"]);
    assert_eq!(workspaces(&service, &mut browser).await.column("id").len(), 1);

    let mut other = Browser::default();
    other.cookies.insert("galley-sign-in".to_owned(), "x".to_owned());
    assert_page(&other.post(&service, "/sign-in/link", &code).await, 410, "Ask for a new mail");
    assert_page(&other.get(&service, &path).await, 410, "has ended");
}

#[on_both_engines]
async fn a_link_works_only_in_the_browser_that_asked(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    let code = [("code", mail.link_code.as_str())];
    for cookie in [None, Some("another")] {
        let mut other = Browser::default();
        let pair = cookie.map(|value| ("galley-sign-in".to_owned(), value.to_owned()));
        other.cookies.extend(pair);
        let path = format!("/sign-in/link?code={}", mail.link_code);
        assert_page(&other.get(&service, &path).await, 403, "Enter the code");
        assert_page(&other.post(&service, "/sign-in/link", &code).await, 403, "another browser");
        assert!(!other.cookies.contains_key("galley-session"));
        let typed = [("code", mail.code.as_str())];
        let answer = other.post(&service, "/sign-in/code", &typed).await;
        assert_page(&answer, if cookie.is_some() { 410 } else { 403 }, "browser");
    }
    let typed = [("code", mail.code.as_str())];
    assert_eq!(browser.post(&service, "/sign-in/code", &typed).await.status, 303);
    assert_eq!(browser.post(&service, "/sign-in/link", &code).await.status, 410, "it is used up");
}

#[on_both_engines]
async fn a_code_allows_five_attempts(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    let wrong = if mail.code.starts_with('0') { "1111-1111" } else { "0000-0000" };
    for left in ["4", "3", "2", "1"] {
        let answer = browser.post(&service, "/sign-in/code", &[("code", wrong)]).await;
        assert_page(&answer, 403, &format!("attempts left: {left}"));
    }
    let typed = mail.code.to_lowercase().replace('-', " ");
    let answer = browser.post(&service, "/sign-in/code", &[("code", &typed)]).await;
    assert_eq!(answer.status, 303, "{answer:?}");

    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    for _ in 0..5 {
        browser.post(&service, "/sign-in/code", &[("code", "not a code")]).await;
    }
    let right = [("code", mail.code.as_str())];
    assert_page(&browser.post(&service, "/sign-in/code", &right).await, 410, "new mail");
}

#[on_both_engines]
async fn wrong_codes_are_limited_over_all_requests_of_an_address(store: TestStore) {
    let service = Service::start(store).await;
    for _ in 0..4 {
        let mut browser = Browser::default();
        browser.ask(&service, OWNER).await;
        for _ in 0..5 {
            browser.post(&service, "/sign-in/code", &[("code", "0")]).await;
        }
    }
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    let right = [("code", mail.code.as_str())];
    let answer = browser.post(&service, "/sign-in/code", &right).await;
    assert_page(&answer, 429, "Too many attempts");
    let wait: u64 = answer.header("retry-after").parse().unwrap();
    assert!((3_500..=3_601).contains(&wait), "{wait}");
    service.advance_clock(Duration::from_hours(1));
    let mail = browser.ask(&service, OWNER).await;
    let answer = browser.post(&service, "/sign-in/code", &[("code", &mail.code)]).await;
    assert_eq!(answer.status, 303, "{answer:?}");
}

#[on_both_engines]
async fn mails_are_limited_by_address_and_by_client(store: TestStore) {
    let service = Service::start(store).await;
    let ask = async |email: &str| {
        let body = json!({ "email": email });
        TestResponse::of(service.request(Method::POST, "/sign-in").json(&body)).await
    };
    for _ in 0..10 {
        assert_eq!(ask("nobody@example.org").await.status, 202);
    }
    ask("Nobody@example.org").await.assert_problem(429, "too_many_sign_ins", &[]);
    for number in 0..49 {
        let answer = ask(&format!("n{number}@example.org")).await;
        assert_eq!(answer.status, 202, "{number}: {answer:?}");
    }
    let answer = ask("last@example.org").await;
    answer.assert_problem(429, "too_many_sign_ins", &[]);
    assert_ne!(answer.header("retry-after"), "");
    let form = [("email", "last@example.org")];
    let answer = Browser::default().post(&service, "/sign-in", &form).await;
    assert_page(&answer, 429, "last@example.org");
}

#[on_both_engines]
async fn a_response_does_not_tell_if_an_address_is_known(store: TestStore) {
    let service = Service::start(store).await;
    let mut answers = Vec::new();
    for (email, is_form) in
        [(OWNER, true), ("nobody@example.org", true), (OWNER, false), ("nobody@example.org", false)]
    {
        service.forget_statements().await;
        let request = service.request(Method::POST, "/sign-in");
        let request = if is_form {
            form(request, &[("email", email)])
        } else {
            request.json(&json!({ "email": email }))
        };
        let answer = TestResponse::of(request).await;
        let statements: Vec<String> = service.statements.take().into_keys().collect();
        // The mail is written later, and housekeeping deletes expired rows at any time.
        let is_later = |sql: &String| sql.starts_with("UPDATE") || sql.starts_with("DELETE");
        let of_request =
            statements.into_iter().filter(|sql| sql.contains("sign_ins") && !is_later(sql));
        let mut names: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        names.sort();
        let cookie = answer.header("set-cookie");
        let cookie = cookie.split_once('=').map(|(name, rest)| (name.to_owned(), rest.len()));
        let mut body = answer.body.clone();
        body.as_object_mut().map(|body| body.remove("expiresAt"));
        let told = json!([answer.status.as_u16(), body, names, cookie]);
        answers.push((told, of_request.collect::<Vec<_>>()));
    }
    for [known, unknown] in [[&answers[0], &answers[1]], [&answers[2], &answers[3]]] {
        assert_eq!(known.1, unknown.1, "statements");
        assert_eq!(known.0, unknown.0, "responses");
    }
    // Without a user, no code is right.
    let mut browser = Browser::default();
    browser.post(&service, "/sign-in", &[("email", "nobody@example.org")]).await;
    let answer = browser.post(&service, "/sign-in/code", &[("code", "0000-0000")]).await;
    assert_page(&answer, 403, "attempts left: 4");
    wait_for_mails(&service, 2).await;
    // This mail is written later, so those of the unknown address would be there.
    browser.ask(&service, OWNER).await;
    let names: Vec<_> = mails(&service).await.into_iter().map(|mail| mail.name).collect();
    assert_eq!(names, ["home"; 3], "only the owner got mails");
}

#[on_both_engines]
async fn a_person_without_membership_gets_no_mail(store: TestStore) {
    let service = Service::start(store).await;
    let [_, editor, _] = service.roles();
    let ben = service.person("ben", &editor).await;
    let path = format!("/workspace-memberships?id={}", ben.member);
    let mut browser = Browser::default();
    browser.ask(&service, "ben@example.org").await;
    assert_eq!(service.delete(&path).await.status, 204);
    let mut browser = Browser::default();
    let asked = browser.post(&service, "/sign-in", &[("email", "ben@example.org")]).await;
    assert_eq!(asked.status, 202);
    // The owner's mail is written later, so Ben's would be there.
    Browser::default().ask(&service, OWNER).await;
    let names: Vec<_> = mails(&service).await.into_iter().map(|mail| mail.name).collect();
    assert_eq!(names, ["home"], "the mail of a removed member is deleted as well");
}

#[on_both_engines]
async fn links_and_codes_expire_after_fifteen_minutes(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    service.advance_clock(Duration::from_mins(15));
    for (path, code) in [("/sign-in/link", &mail.link_code), ("/sign-in/code", &mail.code)] {
        let answer = browser.post(&service, path, &[("code", code)]).await;
        assert_page(&answer, 410, "has ended");
    }
}

#[on_both_engines]
async fn a_link_of_the_operator_works_in_any_browser_once(store: TestStore) {
    let service = Service::start(store).await;
    let (environment, user) = (service.environment.clone(), service.home.made.user);
    let write = async move |tx: &WriteTx<'_>| {
        let user = users::find(tx, user).await?.unwrap();
        create_link(tx, &environment, &user).await
    };
    let code = service.database.write("test", write).await.unwrap();
    secrets::record_secret_for_log(&code);
    let mut browser = Browser::default();
    let path = format!("/sign-in/link?code={code}");
    assert_page(&browser.get(&service, &path).await, 200, OWNER);
    assert_eq!(browser.post(&service, "/sign-in/link", &[("code", &code)]).await.status, 303);
    let sessions = browser.get(&service, "/profile/sessions").await;
    assert_eq!(sessions.body[0]["method"], "terminal", "{sessions:?}");
    let mut other = Browser::default();
    assert_eq!(other.post(&service, "/sign-in/link", &[("code", &code)]).await.status, 410);
}

#[on_both_engines]
async fn two_requests_use_a_link_once(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    let cookie = browser.cookie_header();
    let attempt = || {
        let request = service.request(Method::POST, "/sign-in/link");
        let request = form(request, &[("code", &mail.link_code)]);
        TestResponse::of(request.header("cookie", cookie.clone()))
    };
    let answers = futures_util::future::join_all((0..8).map(|_| attempt())).await;
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((count(303), count(410)), (1, 7), "{answers:?}");
}

#[on_both_engines]
async fn forms_of_other_origins_are_rejected(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let mail = browser.ask(&service, OWNER).await;
    for (path, field, value) in [
        ("/sign-in", "email", OWNER),
        ("/sign-in/link", "code", &mail.link_code),
        ("/sign-in/code", "code", &mail.code),
    ] {
        for (header, origin) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
        ] {
            for cookie in [browser.cookie_header(), String::new()] {
                let request = form(service.request(Method::POST, path), &[(field, value)]);
                let request = request.header(header, origin).header("cookie", &cookie);
                let answer = TestResponse::of(request).await;
                assert_eq!(answer.status, 403, "{path} {header}: {origin}: {answer:?}");
                assert!(answer.headers.get("set-cookie").is_none());
            }
        }
    }
    // A browser that tells no `Sec-Fetch-Site` tells the origin.
    let request =
        form(service.request(Method::POST, "/sign-in/link"), &[("code", &mail.link_code)]);
    let request = request.header("origin", &service.url).header("cookie", browser.cookie_header());
    assert_eq!(TestResponse::of(request).await.status, 303);
}

#[on_both_engines]
async fn sessions_need_https_unless_the_operator_allows_http(store: TestStore) {
    let of = |url: &str| ServerLimits { public_url: url.to_owned(), ..ServerLimits::default() };
    let service = Service::start_with(store, of("http://galley.example.org")).await;
    let answer = Browser::default().post(&service, "/sign-in", &[("email", OWNER)]).await;
    assert_page(&answer, 403, "neither https nor a loopback");
    let body = json!({"email": OWNER});
    let answer = TestResponse::of(service.request(Method::POST, "/sign-in").json(&body)).await;
    answer.assert_problem(403, "insecure_connection", &[]);
}

#[on_both_engines]
async fn cookies_are_secure_under_https(store: TestStore) {
    let url = "https://galley.example.org/".to_owned();
    let limits = ServerLimits { public_url: url, ..ServerLimits::default() };
    let service = Service::start_with(store, limits).await;
    let mut browser = Browser::default();
    browser.sign_in(&service, OWNER).await;
    assert_eq!(browser.cookies.keys().collect::<Vec<_>>(), ["__Host-galley-session"]);
    assert_eq!(workspaces(&service, &mut browser).await.status, 200);
    let answer = browser.post(&service, "/sign-out", &[]).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(answer.header("set-cookie").ends_with("Max-Age=0; Secure"), "{answer:?}");
}

#[on_both_engines]
async fn malformed_addresses_are_rejected_with_the_field(store: TestStore) {
    let service = Service::start(store).await;
    let answer = Browser::default().post(&service, "/sign-in", &[("email", "<b>x")]).await;
    assert_page(&answer, 400, "&#60;b&#62;x");
    for (body, path) in [(json!({"email": "x"}), "email"), (json!({}), "email")] {
        let answer = TestResponse::of(service.request(Method::POST, "/sign-in").json(&body)).await;
        answer.assert_problem(400, "validation", &[path]);
    }
    let answer = TestResponse::of(service.request(Method::POST, "/sign-in").json(&json!([]))).await;
    assert_eq!(answer.body["reason"], Value::from("malformed_body"));
}

#[on_both_engines]
async fn pages_are_in_german_for_browsers_that_prefer_it(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let german =
        |request: RequestBuilder| request.header("accept-language", "de-CH,de;q=0.9,en;q=0.5");
    let page = browser.send(german(service.request(Method::GET, "/sign-in"))).await;
    let assert_german = |answer: &TestResponse, status: u16, words: &str| {
        assert_eq!(answer.status, status, "{answer:?}");
        assert_eq!(answer.header("content-language"), "de");
        let text = answer.body.as_str().unwrap();
        assert!(text.contains("<html lang=\"de\">") && text.contains(words), "{words}: {text}");
    };
    assert_german(&page, 200, "E-Mail-Adresse");
    let send = |path: &str, fields: &[(&str, &str)]| {
        german(form(service.request(Method::POST, path), fields))
    };
    let invalid = browser.send(send("/sign-in", &[("email", "nobody")])).await;
    assert_german(&invalid, 400, "Die Adresse ist ungültig.");
    let asked = browser.send(send("/sign-in", &[("email", OWNER)])).await;
    assert_german(&asked, 202, "Sehen Sie in Ihre Mails");
    let wrong = browser.send(send("/sign-in/code", &[("code", "AAAA-AAAA")])).await;
    assert_german(&wrong, 403, "Der Code ist nicht der aus der zuletzt angeforderten Mail.");
    let ended = browser.send(german(service.request(Method::GET, "/sign-in/link?code=x"))).await;
    assert_german(&ended, 410, "Der Link oder der Code gilt nicht mehr");
    let unknown = browser.send(german(service.request(Method::GET, "/invite?code=x"))).await;
    assert_german(&unknown, 404, "Die Einladung gibt es nicht");
    let english = browser.get(&service, "/sign-in").await;
    assert_eq!(english.header("content-language"), "en");
    assert!(english.body.as_str().unwrap().contains("E-mail address"));
}
