//! Kills between the acceptance of an invite and its response: a retry returns the same token.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use galley_testing::{TestStore, on_both_engines};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::mails::{in_outbox, invite, link};
use crate::program::Program;

/// The fields of a form.
type FormFields = Vec<(String, String)>;

const INVITES: usize = 80;

/// Returns the codes in the outbox, by address.
async fn codes(store: &TestStore) -> HashMap<String, String> {
    let mails = in_outbox(store, INVITES).await;
    mails.iter().map(|mail| (address(mail), code(mail))).collect()
}

fn address(mail: &str) -> String {
    let line = mail.lines().find_map(|line| line.strip_prefix("To: ")).unwrap();
    line.trim().to_owned()
}

pub(crate) fn code(mail: &str) -> String {
    link(mail).split_once("/invite?code=").unwrap().1.to_owned()
}

/// Accepts an invite through the API. Returns the token if there is a response.
async fn accept(client: Client, url: String, code: String, name: String) -> Option<String> {
    let body = json!({"code": code, "username": name, "fullName": "Somebody"});
    let request = client.post(format!("{url}/invites/accept")).json(&body);
    // An unguessable key that stays the same for a retry.
    let answer = request.header("idempotency-key", format!("{name} {code}")).send().await.ok()?;
    assert_eq!(answer.status(), StatusCode::OK, "{name}");
    Some(answer.json::<Value>().await.ok()?["token"].as_str()?.to_owned())
}

/// Submits the page's form. Returns the token if there is a response.
async fn send_form(client: Client, url: String, form: FormFields) -> Option<String> {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = client.post(format!("{url}/invite")).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.send().await.ok()?;
    assert_eq!(answer.status(), StatusCode::OK);
    let text = answer.text().await.ok()?;
    let token = text.split("galley_").nth(1)?.get(..49)?;
    Some(format!("galley_{token}"))
}

/// Returns the fields of the page's form, as a browser would.
async fn open_form(client: &Client, url: &str, code: &str, name: &str) -> FormFields {
    let page = client.get(format!("{url}/invite?code={code}")).send().await.unwrap();
    let page = page.text().await.unwrap();
    let (_, attempt) = page.split_once("name=\"attempt\" value=\"").unwrap();
    let (attempt, _) = attempt.split_once('"').unwrap();
    let fields =
        [("code", code), ("attempt", attempt), ("username", name), ("fullName", "Some body")];
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

#[on_both_engines]
async fn accepting_an_invite_can_be_retried_after_a_kill(store: TestStore) {
    let client = Client::builder().no_proxy().build().unwrap();
    let mut program = Program::serve(&store, 0);
    for number in 0..INVITES {
        invite(&program, &format!("p{number}@example.org"), "Somebody").await;
    }
    let codes = codes(&store).await;
    let (mut tokens, mut again) = (Vec::new(), 0);
    // A few invites at a time: some are answered before the kill, and some are not.
    for round in 0..INVITES / 8 {
        let mut forms = Vec::new();
        for number in round * 8..round * 8 + 4 {
            let code = &codes[&format!("p{number}@example.org")];
            forms.push(open_form(&client, &program.url, code, &format!("p{number}")).await);
        }
        let clicks = async |url: &str| {
            let by_page = forms
                .iter()
                .map(|form| tokio::spawn(send_form(client.clone(), url.to_owned(), form.clone())));
            let by_program = (round * 8 + 4..round * 8 + 8).map(|number| {
                let code = codes[&format!("p{number}@example.org")].clone();
                tokio::spawn(accept(client.clone(), url.to_owned(), code, format!("p{number}")))
            });
            by_page.chain(by_program).collect::<Vec<_>>()
        };
        let first = clicks(&program.url).await;
        // The kill comes at once, after one response, after two, and so on.
        let started = Instant::now();
        while first.iter().filter(|click| click.is_finished()).count() < round % 8 {
            assert!(started.elapsed() < Duration::from_mins(1), "no answer");
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        program.kill();
        program = Program::serve(&store, 0);
        let second = clicks(&program.url).await;
        for (first, second) in first.into_iter().zip(second) {
            let second = second.await.unwrap().expect("an answer, as nobody kills now");
            if let Some(first) = first.await.unwrap() {
                assert_eq!(first, second);
            } else {
                again += 1;
            }
            tokens.push(second);
        }
    }
    eprintln!("{again} of {INVITES} had no answer at first");
    assert!((1..INVITES).contains(&again), "no kill came between a click and its token");
    let mut addresses: Vec<String> = Vec::new();
    for token in &tokens {
        let own =
            client.get(format!("{}/profile", program.url)).bearer_auth(token).send().await.unwrap();
        addresses.push(own.json::<Value>().await.unwrap()["email"].as_str().unwrap().to_owned());
    }
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), INVITES);
    let members = "/workspace-memberships/list-members?perPage=100";
    let members: Value = program.get(members).await;
    assert_eq!(members.as_array().unwrap().len(), INVITES + 1);
    let mut added = 0;
    for after in [0, 100] {
        let page = program.get(&format!("/events?perPage=100&after={after}")).await;
        added +=
            page.as_array().unwrap().iter().filter(|event| event["type"] == "memberAdded").count();
    }
    assert_eq!(added, INVITES, "each once");
}
