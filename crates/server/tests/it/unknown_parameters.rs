//! Unknown query parameters are rejected, unless the client or the operator accepts them.

use galley_server::ServerLimits;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::json;

use crate::service::{Service, TestResponse};

async fn get_with(service: &Service, path: &str, prefer: &str) -> TestResponse {
    let request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    TestResponse::of(request.header("prefer", prefer)).await
}

#[on_both_engines]
async fn every_endpoint_with_a_token_rejects_unknown_parameters(store: TestStore) {
    let service = Service::start(store).await;
    let document: serde_json::Value = service.get("/openapi.json").await.body;
    let before = service.workspace_state().await;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"] == json!([]) {
                continue;
            }
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = format!("{path}?galley=1&galley=2");
            let body = json!({});
            let body = (method != Method::GET && method != Method::DELETE).then_some(&body);
            let response = service.send(method, &path, body).await;
            response.assert_problem(400, "unknown_parameter", &["galley"]);
        }
    }
    assert_eq!(service.workspace_state().await, before);
    // Requests without a valid token don't get this far, and pages ignore the query.
    let unauthorized = service.send_as("wrong", Method::GET, "/tags/list?galley=1", None).await;
    unauthorized.assert_problem(401, "unauthorized", &[]);
    let token = service.token("tags:read", None).await;
    let forbidden = service.send_as(&token, Method::GET, "/roles/list?galley=1", None).await;
    forbidden.assert_problem(403, "insufficient_permissions", &[]);
    for path in ["/healthz?galley=1", "/docs?galley=1", "/openapi.json?galley=1", "/?galley=1"] {
        assert_eq!(service.get(path).await.status, 200, "{path}");
    }
}

#[on_both_engines]
async fn a_misspelt_parameter_gets_a_suggestion_and_changes_nothing(store: TestStore) {
    let service = Service::start(store).await;
    let path = "/content-pieces/list?contentGroupID=x&perpage=7&zzz&page=1";
    let list = service.get(path).await;
    list.assert_problem(400, "unknown_parameter", &["contentGroupID", "perpage", "zzz"]);
    let messages: Vec<_> = list.body["issues"].as_array().unwrap().iter().collect();
    let ends =
        |index: usize, end: &str| messages[index]["message"].as_str().unwrap().ends_with(end);
    assert!(
        ends(0, "did you mean contentGroupId?") && ends(1, "did you mean perPage?"),
        "{list:?}"
    );
    let zzz = messages[2]["message"].as_str().unwrap();
    assert!(zzz.contains("contentGroupId, ") && zzz.contains("cursor"), "{zzz}");

    // A query with thousands of unknown parameters costs no more than one with a few.
    let many = (0..2_000).map(|number| number.to_string()).collect::<Vec<_>>().join("&");
    let list = service.get(&format!("/content-pieces/list?{many}")).await;
    assert_eq!(list.body["issues"].as_array().map(Vec::len), Some(20));

    // With a misspelt `dryRun`, the piece would be created.
    let created = service.post("/content-pieces?dryrun=true", &service.piece("a")).await;
    created.assert_problem(400, "unknown_parameter", &["dryrun"]);
    assert_eq!(service.get("/content-pieces/list").await.body, json!([]));
}

#[on_both_engines]
async fn a_client_accepts_unknown_parameters(store: TestStore) {
    accepts_by_preference(&Service::start(store).await, 400).await;
}

#[on_both_engines]
async fn an_operator_accepts_unknown_parameters(store: TestStore) {
    let lenient = ServerLimits { ignores_unknown_parameters: true, ..ServerLimits::default() };
    accepts_by_preference(&Service::start_with(store, lenient).await, 200).await;
}

async fn accepts_by_preference(service: &Service, without_preference: u16) {
    let path = "/content-pieces/list?slug=a&utm_source=x";
    // The third request for a response gets it from the cache, separately for each preference.
    for _ in 0..3 {
        assert_eq!(get_with(service, path, "handling=lenient").await.status, 200);
        assert_eq!(get_with(service, path, "return=minimal").await.status, without_preference);
        assert_eq!(service.get(path).await.status, without_preference);
        assert_eq!(get_with(service, path, "handling=strict").await.status, 400);
    }
}
