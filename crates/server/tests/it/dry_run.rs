//! `dryRun=true`: the request is validated, nothing is changed, and conversion losses are reported.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TestResponse};

const PATH: &str = "/content-pieces?dryRun=true";

#[on_both_engines]
async fn a_dry_run_of_a_creation_creates_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let before = service.workspace_state().await;
    let mut body = service.piece("tried");
    body["content"] = json!("<p class=lead>Hello <b>you</b></p>\n<script>x</script><font>a</font>");
    for path in [PATH, "/content-pieces/?dryRun=1", "/content-pieces?dryRun=TRUE"] {
        let request = service.request(Method::POST, path).bearer_auth(&service.home.token);
        let tried = TestResponse::of(request.header("idempotency-key", "k").json(&body)).await;
        assert_eq!(tried.status, 200, "{tried:?}");
        assert_eq!(tried.header("location"), "");
        let losses = &tried.body["report"]["losses"];
        assert_eq!(
            losses[0],
            json!({"element": "p", "attribute": "class", "property": null,
            "effect": "dropped", "count": 1, "first": {"line": 1, "path": "p:nth-child(1)"}})
        );
        let elements: Vec<_> = losses
            .as_array()
            .unwrap()
            .iter()
            .map(|loss| (loss["element"].as_str().unwrap(), loss["effect"].as_str().unwrap()))
            .collect();
        assert_eq!(elements, [("p", "dropped"), ("script", "dropped"), ("font", "unwrapped")]);
        assert_eq!(losses[1]["first"]["line"], 2);
        assert_eq!(service.workspace_state().await, before);
    }
    // The created piece has the content of the dry run, and the dry run did not use the key.
    let tried = service.post(PATH, &body).await.body;
    let request = service.request(Method::POST, "/content-pieces").bearer_auth(&service.home.token);
    let made = TestResponse::of(request.header("idempotency-key", "k").json(&body)).await;
    assert_eq!((made.status.as_u16(), made.header("idempotency-replayed")), (201, ""));
    let kept = service.get(&format!("/content-pieces?id={}&content=true", made.id())).await.body;
    assert_eq!(kept["content"], tried["content"]);
}

#[on_both_engines]
async fn a_dry_run_reports_the_same_errors(store: TestStore) {
    let service = Service::start(store).await;
    let id = service.create("/content-pieces", &service.piece("kept")).await;
    let reader = service.token("contentPieces:read", None).await;
    let before = service.workspace_state().await;
    let answer = service.post(PATH, &json!({"tags": ["x"]})).await;
    answer.assert_problem(
        400,
        "validation",
        &["title", "slug", "members", "contentGroupId", "tags[0]"],
    );
    let mut body = service.piece("x");
    body["contentGroupId"] = json!("cg_00000000000000000000000000");
    service.post(PATH, &body).await.assert_problem(400, "unknown_reference", &["contentGroupId"]);
    body["content"] = json!("<blockquote>".repeat(300));
    let answer = service.post(PATH, &body).await;
    answer.assert_problem(400, "validation", &["content", "contentGroupId"]);
    let answer = service.post("/content-pieces?dryRun=perhaps", &json!({"title": 3})).await;
    answer.assert_problem(
        400,
        "validation",
        &["dryRun", "title", "slug", "tags", "members", "contentGroupId"],
    );
    let answer = service.put(PATH, &json!({"id": "cp_x", "title": "x"})).await;
    answer.assert_problem(404, "not_found", &[]);
    let answer = service.put(PATH, &json!({"id": id, "variant": "none", "title": "x"})).await;
    answer.assert_problem(404, "not_found", &[]);
    let request = service.request(Method::PUT, PATH).bearer_auth(&service.home.token);
    let late = request.header("if-match", "\"7.x\"").json(&json!({"id": id, "title": "x"}));
    TestResponse::of(late).await.assert_problem(412, "precondition_failed", &[]);
    let answer = service.send_as(&reader, Method::PUT, PATH, Some(&json!({"id": id}))).await;
    answer.assert_problem(403, "insufficient_permissions", &[]);
    assert_eq!(service.workspace_state().await, before);
}

#[on_both_engines]
async fn a_dry_run_of_an_update_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    service.create("/variants", &json!({"key": "de", "label": "German"})).await;
    let mut body = service.piece("p");
    body["content"] = json!("<p>as it is</p>");
    let id = service.create("/content-pieces", &body).await;
    let group = service.create("/content-groups", &json!({"name": "A"})).await;
    let before = service.workspace_state().await;
    let text =
        |answer: &TestResponse| answer.body["content"]["content"][0]["content"][0]["text"].clone();
    for (change, shown) in [
        (json!({"title": "New"}), json!("as it is")),
        (json!({"content": "<h1 id=x>new</h1>", "contentGroupId": group}), json!("new")),
        (json!({"content": null}), Value::Null),
        (json!({"variant": "de", "title": "Neu"}), json!("as it is")),
        (json!({"variant": "de", "content": "<p>neu</p>"}), json!("neu")),
    ] {
        let mut body = change.clone();
        body["id"] = json!(id);
        for prefer in ["return=minimal", "return=representation"] {
            let request = service.request(Method::PUT, PATH).bearer_auth(&service.home.token);
            let tried = TestResponse::of(request.header("prefer", prefer).json(&body)).await;
            assert_eq!(tried.status, 200, "{change}: {tried:?}");
            assert_eq!(text(&tried), shown, "{change}");
            let lost =
                usize::from(change["content"].as_str().is_some_and(|html| html.contains("id=")));
            assert_eq!(tried.body["report"]["losses"].as_array().unwrap().len(), lost, "{tried:?}");
        }
        assert_eq!(service.workspace_state().await, before, "{change}");
    }
}
