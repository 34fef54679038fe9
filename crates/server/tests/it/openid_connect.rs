//! Sign-in with an identity provider: a real one, and its faults.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use galley_openid_connect::{Provider, ProviderSettings};
use galley_server::ServerLimits;
use galley_storage::{Tx, WriteTx};
use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::invites::form;
use crate::service::{Service, TestResponse};
use crate::sign_in::{Browser, OWNER};

const CLIENT: &str = "galley";
const SECRET: &str = "a secret: with 100 % of the characters that / need + encoding";

/// The address of the service as the provider knows it. Tests follow the redirection themselves.
const REDIRECT: &str = "http://127.0.0.1:1/sign-in/callback";

/// A process of `oidc-provider`.
struct IdentityProvider {
    process: Child,
    issuer: String,
    client: Client,
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ended");
    }
}

impl IdentityProvider {
    /// Starts a provider, or returns `None` where its packages are not installed.
    fn start(auth_method: &str) -> Option<Self> {
        let Some(folder) = std::env::var_os("GALLEY_TEST_IDENTITY_PROVIDER").map(PathBuf::from)
        else {
            eprintln!("SKIPPED: GALLEY_TEST_IDENTITY_PROVIDER is not set");
            return None;
        };
        let mut process = Command::new("node")
            .args(["provider.mjs", CLIENT, SECRET, REDIRECT])
            .current_dir(folder)
            .env("AUTH_METHOD", auth_method)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is installed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        // The library warns about http before it listens.
        let issuer = lines.find_map(|line| line.ok().filter(|line| line.starts_with("http://")));
        let redirects = reqwest::redirect::Policy::none();
        let client = Client::builder().no_proxy().redirect(redirects).build().unwrap();
        Some(Self { process, issuer: issuer.expect("the provider starts"), client })
    }

    fn limits(&self, secret: &str) -> ServerLimits {
        let settings = ProviderSettings {
            issuer: self.issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(secret.to_owned()),
            name: "Example & Co".to_owned(),
        };
        let provider = Provider::new(settings, REDIRECT.to_owned()).unwrap();
        ServerLimits { identity_provider: Some(provider), ..ServerLimits::default() }
    }

    async fn service(&self, store: TestStore) -> Service {
        let service = Service::start_with(store, self.limits(SECRET)).await;
        // The first user's address counts as proved, once mail has reached it.
        Browser::default().sign_in(&service, OWNER).await;
        service
    }

    /// Sets the account that signs in, and the faults of the provider's statements about it.
    async fn control(&self, account: Value, faults: Value) {
        let body = json!({"account": account, "faults": faults});
        let request = self.client.post(format!("{}/control", self.issuer)).json(&body);
        assert_eq!(request.send().await.unwrap().status(), 204);
    }

    /// Goes through the provider's pages, and returns the path of the callback.
    async fn pass(&self, url: &str) -> String {
        let mut browser = Browser::default();
        let mut url = url.to_owned();
        for _ in 0..8 {
            if let Some(path) = url.strip_prefix("http://127.0.0.1:1") {
                return path.to_owned();
            }
            let url_there =
                if url.starts_with('/') { format!("{}{url}", self.issuer) } else { url.clone() };
            let request = self.client.get(&url_there).header("cookie", browser.cookie_header());
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 303, "{url_there}: {response:?}");
            browser.keep_cookies(response.headers());
            response.headers()["location"].to_str().unwrap().clone_into(&mut url);
        }
        panic!("the provider does not come to an end: {url}");
    }

    /// Signs in, and returns the response to the callback.
    async fn sign_in(&self, service: &Service, browser: &mut Browser) -> TestResponse {
        let path = self.pass(&start(service, browser).await).await;
        arrive(service, browser, &path).await
    }
}

/// Starts a sign-in, and returns the URL of the provider's page.
async fn start(service: &Service, browser: &mut Browser) -> String {
    let page = browser.post(service, "/sign-in/provider", &[]).await;
    assert_eq!(page.status, 200, "{page:?}");
    let text = page.body.as_str().unwrap();
    let (_, rest) = text.split_once("content=\"0; url=").unwrap();
    rest.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&")
}

/// Sends the browser back from the provider's site.
async fn arrive(service: &Service, browser: &mut Browser, path: &str) -> TestResponse {
    browser.send_from("cross-site", service.request(Method::GET, path)).await
}

fn verified(email: &str) -> Value {
    json!({"email": email, "email_verified": true})
}

fn assert_rejected(answer: &TestResponse, status: u16, title: &str) {
    assert_eq!(answer.status, status, "{title}: {answer:?}");
    let text = answer.body.as_str().unwrap();
    assert!(text.contains(title), "{title}: {text}");
    assert!(!text.contains("script"), "{text}");
    assert!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
}

async fn sessions(service: &Service) -> i64 {
    let count =
        async |tx: &Tx<'_>| tx.get("SELECT COUNT(*) FROM sessions", &[], |row| row.get(0)).await;
    service.read(count).await
}

#[on_both_engines]
async fn a_member_signs_in_with_the_address_that_the_provider_has_verified(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    let mut browser = Browser::default();
    let page = browser.get(&service, "/sign-in").await;
    let text = page.body.as_str().unwrap();
    assert!(text.contains("Continue with <bdi>Example &#38; Co</bdi>"), "{text}");

    // The provider states the address at its userinfo endpoint, or in the ID token. Some write the
    // boolean as a text.
    for (account, faults) in [
        (verified(&OWNER.to_uppercase()), json!({})),
        (json!({}), json!({"claims": verified(OWNER)})),
        (json!({}), json!({"claims": {"email": OWNER, "email_verified": "true"}})),
    ] {
        provider.control(account, faults).await;
        let mut browser = Browser::default();
        let answer = provider.sign_in(&service, &mut browser).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"), "{answer:?}");
        assert_eq!(browser.cookies.keys().collect::<Vec<_>>(), ["galley-session"]);
        let sessions = browser.get(&service, "/profile/sessions").await;
        let own = sessions.body.as_array().unwrap().iter().find(|one| one["isCurrent"] == true);
        assert_eq!(own.unwrap()["method"], "openIdConnect", "{sessions:?}");
    }
}

#[on_both_engines]
async fn a_client_secret_is_sent_as_the_provider_takes_it(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_post") else { return };
    let service = provider.service(store).await;
    provider.control(verified(OWNER), json!({})).await;
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_eq!(answer.status, 303, "{answer:?}");
}

#[on_both_engines]
async fn only_members_with_a_verified_address_sign_in(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    let before = sessions(&service).await;
    let users_before = user_count(&service).await;
    let unverified = "The address is not verified";
    for (account, status, title) in [
        (json!({}), 403, unverified),
        (json!({"email": OWNER}), 403, unverified),
        (json!({"email": OWNER, "email_verified": false}), 403, unverified),
        (json!({"email": OWNER, "email_verified": "false"}), 403, unverified),
        (json!({"email": "home", "email_verified": true}), 403, unverified),
        (verified("stranger@example.org"), 403, "No member has this address"),
    ] {
        provider.control(account.clone(), json!({})).await;
        let answer = provider.sign_in(&service, &mut Browser::default()).await;
        assert_rejected(&answer, status, title);
        // The same statements in the ID token.
        provider.control(json!({}), json!({"claims": account})).await;
        let answer = provider.sign_in(&service, &mut Browser::default()).await;
        assert_rejected(&answer, status, title);
    }

    // A user who joined by a copied link has not proved the address.
    let forget = async |tx: &WriteTx<'_>| {
        let sql = "UPDATE users SET email_verified_at_ms = NULL";
        tx.change(sql, &[], galley_storage::Affects::Everything).await
    };
    service.database.write::<_, galley_storage::Error, _>("test", forget).await.unwrap();
    provider.control(verified(OWNER), json!({})).await;
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_rejected(&answer, 403, "Sign in by mail first");
    assert_eq!(sessions(&service).await, before);
    assert_eq!(user_count(&service).await, users_before);

    Browser::default().sign_in(&service, OWNER).await;
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_eq!(answer.status, 303, "{answer:?}");
}

async fn user_count(service: &Service) -> i64 {
    let count =
        async |tx: &Tx<'_>| tx.get("SELECT COUNT(*) FROM users", &[], |row| row.get(0)).await;
    service.read(count).await
}

#[on_both_engines]
async fn a_statement_with_any_fault_is_rejected(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    let before = sessions(&service).await;
    let rejected = "The identity is not accepted";
    let failed = "The identity provider failed";
    for (faults, status, title) in [
        (json!({"claims": {"nonce": "another"}}), 403, rejected),
        (json!({"without": ["nonce"]}), 403, rejected),
        (json!({"claims": {"iss": "https://id.example.org"}}), 403, rejected),
        (json!({"claims": {"iss": format!("{}/", provider.issuer)}}), 403, rejected),
        (json!({"claims": {"aud": "another"}}), 403, rejected),
        (json!({"claims": {"aud": [CLIENT, "another"]}}), 403, rejected),
        (json!({"claims": {"aud": []}}), 403, rejected),
        (json!({"key": "none"}), 403, rejected),
        (json!({"key": "secret"}), 403, rejected),
        (json!({"key": "public"}), 403, rejected),
        (json!({"key": "unpublished"}), 403, rejected),
        (json!({"exp": -61}), 403, rejected),
        (json!({"iat": 120}), 403, rejected),
        (json!({"iat": -901}), 403, rejected),
        (json!({"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}), 403, rejected),
        (json!({"accessToken": "another"}), 502, failed),
        (json!({"subject": "another"}), 403, rejected),
        (json!({"declines": true}), 403, rejected),
        (json!({"withoutIdToken": true}), 403, rejected),
        (json!({"without": ["sub"]}), 502, failed),
        (json!({"unavailable": "/token"}), 502, failed),
        (json!({"unavailable": "/me"}), 502, failed),
    ] {
        provider.control(verified(OWNER), faults.clone()).await;
        let answer = provider.sign_in(&service, &mut Browser::default()).await;
        println!("{faults}");
        assert_rejected(&answer, status, title);
    }
    assert_eq!(sessions(&service).await, before);

    // Small differences of the clocks are allowed.
    for faults in [json!({"exp": -30}), json!({"iat": 30}), json!({})] {
        provider.control(verified(OWNER), faults).await;
        let answer = provider.sign_in(&service, &mut Browser::default()).await;
        assert_eq!(answer.status, 303, "{answer:?}");
    }
    service.advance_clock(Duration::from_mins(20));
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_rejected(&answer, 403, rejected);
}

#[on_both_engines]
async fn a_sign_in_works_once_and_in_its_browser(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    provider.control(verified(OWNER), json!({})).await;
    let (mut browser, mut other) = (Browser::default(), Browser::default());
    let path = provider.pass(&start(&service, &mut browser).await).await;
    assert!(path.starts_with("/sign-in/callback?code="), "{path}");
    // An unknown parameter of the provider is ignored.
    let path = format!("{path}&session_state=x");

    // Another browser, without a sign-in and with one of its own.
    let wrong = "This is another browser";
    assert_rejected(&arrive(&service, &mut other, &path).await, 403, wrong);
    let own = provider.pass(&start(&service, &mut other).await).await;
    assert_rejected(&arrive(&service, &mut other, &path).await, 403, wrong);
    // The code of one sign-in with the state of another.
    let part = |path: &str, name: &str| {
        let (_, query) = path.split_once('?').unwrap();
        let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        value.unwrap().to_owned()
    };
    let mixed = format!(
        "/sign-in/callback?code={}&state={}&iss={}",
        part(&path, "code"),
        part(&own, "state"),
        part(&own, "iss")
    );
    assert_rejected(&arrive(&service, &mut other, &mixed).await, 403, "not accepted");

    // The provider ended that code, as it was used twice: the sign-in starts again.
    let path = provider.pass(&start(&service, &mut browser).await).await;
    let cookies = browser.cookies.clone();
    assert_eq!(arrive(&service, &mut browser, &path).await.status, 303);
    let ended = "The link or code has ended";
    let mut copy = Browser { cookies };
    assert_rejected(&arrive(&service, &mut copy, &path).await, 410, ended);

    // Two at once.
    let mut browser = Browser::default();
    let path = provider.pass(&start(&service, &mut browser).await).await;
    let mut copy = Browser { cookies: browser.cookies.clone() };
    let (one, two) =
        tokio::join!(arrive(&service, &mut browser, &path), arrive(&service, &mut copy, &path));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410]);

    // The response of another provider, one that is late, and one without a code or a state.
    let mut browser = Browser::default();
    let url = start(&service, &mut browser).await;
    let path = provider.pass(&url).await;
    let foreign =
        format!("{}&iss=https%3A%2F%2Fid.example.org", path.split("&iss=").next().unwrap());
    assert_rejected(&arrive(&service, &mut browser, &foreign).await, 403, "not accepted");
    let mut browser = Browser::default();
    let path = provider.pass(&start(&service, &mut browser).await).await;
    let without_code = format!("/sign-in/callback?state={}", part(&path, "state"));
    assert_rejected(&arrive(&service, &mut browser, &without_code).await, 403, "not accepted");
    assert_rejected(&arrive(&service, &mut browser, "/sign-in/callback").await, 410, ended);
    let mut browser = Browser::default();
    let path = provider.pass(&start(&service, &mut browser).await).await;
    service.advance_clock(Duration::from_mins(16));
    assert_rejected(&arrive(&service, &mut browser, &path).await, 410, ended);
}

#[on_both_engines]
async fn codes_of_mails_and_states_are_not_interchangeable(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    provider.control(verified(OWNER), json!({})).await;
    let ended = "The link or code has ended";
    let mut browser = Browser::default();
    let path = provider.pass(&start(&service, &mut browser).await).await;
    let (_, state) = path.split_once("state=").unwrap();
    let state = state.split('&').next().unwrap();
    let fields = [("code", state)];
    assert_rejected(&browser.post(&service, "/sign-in/link", &fields).await, 410, ended);
    let typed = [("code", "0000-0000")];
    assert_rejected(&browser.post(&service, "/sign-in/code", &typed).await, 410, ended);
    let mail = browser.ask(&service, OWNER).await;
    let as_state = format!("/sign-in/callback?code=x&state={}", mail.link_code);
    assert_rejected(&arrive(&service, &mut browser, &as_state).await, 410, ended);
    let answer = browser.post(&service, "/sign-in/link", &[("code", &mail.link_code)]).await;
    assert_eq!(answer.status, 303, "{answer:?}");
}

#[on_both_engines]
async fn a_new_key_of_the_provider_is_fetched_at_most_once_a_minute(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = provider.service(store).await;
    provider.control(verified(OWNER), json!({"key": "next"})).await;
    // The keys of the first request are those of the provider at that time.
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    provider.control(verified(OWNER), json!({})).await;
    let answer = provider.sign_in(&service, &mut Browser::default()).await;
    assert_rejected(&answer, 403, "The identity is not accepted");
}

#[on_both_engines]
async fn a_foreign_page_starts_no_sign_in_and_an_absent_provider_fails(store: TestStore) {
    let Some(provider) = IdentityProvider::start("client_secret_basic") else { return };
    let service = Service::start_with(store, provider.limits("wrong")).await;
    let mut browser = Browser::default();
    let request = form(service.request(Method::POST, "/sign-in/provider"), &[]);
    let answer = browser.send_from("cross-site", request).await;
    assert_rejected(&answer, 403, "Another site sent the request");

    // With a wrong client secret, the provider rejects the code.
    provider.control(verified(OWNER), json!({})).await;
    let answer = provider.sign_in(&service, &mut browser).await;
    assert_rejected(&answer, 403, "The identity is not accepted");

    let limits = provider.limits(SECRET);
    drop(provider);
    let absent = service.serve_again(limits).await;
    let request = form(service.request_to(&absent, Method::POST, "/sign-in/provider"), &[]);
    let answer = Browser::default().send(request).await;
    assert_rejected(&answer, 502, "The identity provider failed");
}

#[on_both_engines]
async fn without_a_provider_there_is_no_button_and_no_route(store: TestStore) {
    let service = Service::start(store).await;
    let mut browser = Browser::default();
    let page = browser.get(&service, "/sign-in").await;
    assert!(!page.body.as_str().unwrap().contains("Continue with"), "{page:?}");
    let answer = browser.post(&service, "/sign-in/provider", &[]).await;
    answer.assert_problem(404, "not_found", &[]);
    let answer = arrive(&service, &mut browser, "/sign-in/callback?code=x&state=y").await;
    answer.assert_problem(404, "not_found", &[]);
}

#[test]
fn an_issuer_is_a_url_with_https_or_on_this_machine() {
    let provider = |issuer: &str| {
        let settings = ProviderSettings {
            issuer: issuer.to_owned(),
            client_id: CLIENT.to_owned(),
            client_secret: None,
            name: "x".to_owned(),
        };
        assert!(!format!("{settings:?}").contains(SECRET));
        Provider::new(settings, REDIRECT.to_owned())
    };
    for issuer in
        ["https://id.example.org", "https://id.example.org/realms/x", "http://127.0.0.1:9"]
    {
        assert!(provider(issuer).is_ok(), "{issuer}");
    }
    for issuer in
        ["", "id.example.org", "http://id.example.org", "https://x/?a=b", "ftp://127.0.0.1"]
    {
        let error = provider(issuer).unwrap_err().to_string();
        assert!(error.contains("openid-connect-issuer"), "{error}");
    }
}
