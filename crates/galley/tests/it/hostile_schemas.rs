//! Hostile schemas of custom data take bounded time and memory, and are rejected with clear errors.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{Behaviour, Receiver, TestStore, free_port};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::load::status;
use crate::program::{Program, piece};

/// The codes of rejected schemas.
const CODES: [&str; 4] =
    ["invalid_schema", "recursive_schema", "schema_too_complex", "unsupported"];

/// The time after which one schema counts as unbounded, whatever the machine is doing.
const HANG: Duration = Duration::from_mins(1);

fn part(elsewhere: &str) -> impl Strategy<Value = Value> {
    let leaves = [
        json!({"type": "string"}),
        json!({"$ref": "#/$defs/a"}),
        json!({"$ref": "#/$defs/b"}),
        json!({"$ref": "#/$defs/c"}),
        json!({"$ref": "#"}),
        json!({"$ref": elsewhere}),
        json!({"pattern": "^(a|a|b|[ab])*(x+x+)+y{1,30}$"}),
        json!({"pattern": "(\\p{L}{1,10}|\\w+\\s?)*!$"}),
        json!({"pattern": "(?=a)b"}),
        json!({"uniqueItems": true}),
        json!({"enum": (0..100).collect::<Vec<_>>()}),
        json!({"format": "email"}),
        json!({"minLength": 10}),
        json!({"multipleOf": 0.0001}),
        json!(false),
    ];
    prop::sample::select(leaves.to_vec()).prop_recursive(6, 60, 6, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..6);
        prop_oneof![
            list().prop_map(|all| json!({"allOf": all})),
            list().prop_map(|all| json!({"anyOf": all})),
            list().prop_map(|all| json!({"oneOf": all})),
            list().prop_map(|all| json!({"anyOf": all, "unevaluatedProperties": false})),
            list().prop_map(|all| json!({"allOf": all, "unevaluatedItems": {"type": "number"}})),
            inner.clone().prop_map(|one| json!({"items": one})),
            inner.clone().prop_map(|one| json!({"additionalProperties": one})),
            inner.clone().prop_map(|one| json!({"not": one})),
            inner.clone().prop_map(|one| json!({"contains": one})),
            inner.clone().prop_map(|one| json!({"propertyNames": one})),
            list().prop_map(|all| json!({"patternProperties": {".*": all[0], "^a+$": all.last()}})),
        ]
    })
}

fn schema(elsewhere: &str) -> impl Strategy<Value = Value> {
    (part(elsewhere), part(elsewhere), part(elsewhere), part(elsewhere)).prop_map(
        |(mut root, a, b, c)| {
            if !root.is_object() {
                root = json!({"not": root});
            }
            root["$defs"] = json!({"a": a, "b": b, "c": c});
            root
        },
    )
}

/// Returns custom data of different shapes, most of them as large as possible.
fn data() -> [Value; 5] {
    let deep = (0..100).fold(json!("a".repeat(36)), |inner, _| json!([inner, {"a": 1}]));
    let wide: Map<String, Value> =
        (0..15_000).map(|number| (format!("a{number}"), json!(number))).collect();
    [
        json!({"a": "b", "c": [1, 2, {"d": "e"}]}),
        json!((0..40_000).collect::<Vec<_>>()),
        json!((0..60).map(|_| "ax".repeat(2_000)).collect::<Vec<_>>()),
        deep,
        Value::Object(wide),
    ]
}

#[tokio::test]
async fn hostile_schemas_are_bounded() {
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    let elsewhere = Receiver::start(Behaviour::Body(b"true".to_vec())).await;
    let group = program.group().await;
    let (data, wanted) = (data(), size(150, 1_000, 10_000));
    let mut runner = TestRunner::deterministic();
    let (mut reasons, mut slowest) = (BTreeMap::<_, usize>::new(), Duration::ZERO);
    let mut send = async |method: Method, path: &str, body: Value| {
        let started = Instant::now();
        let request = program.request(method, path).timeout(HANG).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let problem = response.text().await.unwrap();
        slowest = slowest.max(started.elapsed());
        (status, serde_json::from_str::<Value>(&problem).unwrap_or_default())
    };
    for _ in 0..wanted {
        let schema = schema(&elsewhere.url).new_tree(&mut runner).unwrap().current();
        let change = json!({"id": group, "customDataSchema": schema});
        let (status, problem) = send(Method::PUT, "/content-groups", change).await;
        if status != StatusCode::NO_CONTENT {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
            let issue = &problem["issues"][0];
            let code = CODES.iter().find(|code| issue["code"] == **code);
            let code = code.unwrap_or_else(|| panic!("{problem}"));
            assert!(issue["message"].as_str().unwrap().len() > 30, "{issue}");
            *reasons.entry(*code).or_default() += 1;
            continue;
        }
        *reasons.entry("accepted").or_default() += 1;
        for data in &data {
            let mut piece = piece(&group, "p", "");
            piece["customData"] = data.clone();
            let (status, problem) = send(Method::POST, "/content-pieces?dryRun=true", piece).await;
            if status != StatusCode::OK {
                assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
                let issues = problem["issues"].as_array().unwrap();
                assert!((1..=100).contains(&issues.len()), "{problem}");
                let is_violation = |issue: &Value| issue["code"] == "schema_violation";
                assert!(issues.iter().all(is_violation), "{problem}");
            }
        }
    }
    assert!(reasons.len() >= 4, "{reasons:?}");
    assert_eq!(elsewhere.connections(), 0, "a schema was fetched");
    let megabytes = status(&program, "VmHWM") / 1_000;
    let found = format!("{wanted} schemas, {reasons:?}; slowest {slowest:?}, peak {megabytes} MB");
    eprintln!("{found}");
    report_figure("hostile schemas of custom data", found, "each bounded");
    assert!(megabytes < 500, "{megabytes} MB");
}
