//! Response times must not reveal data that the responses hide.

use std::time::{Duration, Instant};

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, piece_in};

/// The number of requested pieces of the other workspace.
const PIECES: usize = 20;

/// Returns an adjacent id without a resource.
fn adjacent_id(id: &str) -> String {
    let (start, last) = id.split_at(id.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" })
}

/// Measures a request whose response must be a 404 or an empty list.
async fn response_time(service: &Service, path: &str) -> Duration {
    let request = service.request(Method::GET, path).bearer_auth(&service.home.token);
    let started = Instant::now();
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let body = answer.bytes().await.unwrap();
    let took = started.elapsed();
    assert!(status == 404 || (status == 200 && body == "[]"), "{path}: {status}");
    took
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[on_both_engines]
async fn foreign_resources_take_as_long_as_absent_ones(store: TestStore) {
    let engine = store.engine();
    let service = Service::start(store).await;
    let other = service.other_workspace().await;
    let make = async |path: &str, body: Value| service.create_as(&other.token, path, &body).await;
    let text = "<p>of some length</p>".repeat(10_000);
    let mut pieces = Vec::new();
    for number in 0..PIECES {
        let mut piece = piece_in(&other.group, &format!("theirs-{number}"));
        piece["content"] = json!(text);
        pieces.push(make("/content-pieces", piece).await);
    }
    let tag = make("/tags", json!({"label": "theirs"})).await;
    let variant = make("/variants", json!({"key": "theirs", "label": "theirs"})).await;
    let role = make("/roles", json!({"name": "theirs", "permissions": []})).await;
    let token = make("/tokens", json!({"name": "theirs", "permissions": []})).await;
    let webhook = make(
        "/webhooks",
        json!({"url": "https://hooks.invalid/", "name": "theirs",
        "event": "memberAdded"}),
    )
    .await;
    let mut kinds = vec![
        ("/content-groups?id=", vec![other.group.clone()]),
        ("/content-pieces/list?contentGroupId=", vec![other.group.clone()]),
        ("/content-groups/list?ancestor=", vec![other.group.clone()]),
        ("/tags?id=", vec![tag]),
        ("/variants?id=", vec![variant]),
        ("/roles?id=", vec![role]),
        ("/tokens?id=", vec![token]),
        ("/webhooks?id=", vec![webhook]),
        ("/content-pieces?content=true&id=", pieces),
    ];
    let rounds = size(4, 400, 4_000);
    let (mut ratios, mut later) = (Vec::new(), 0);
    for (path, ids) in &mut kinds {
        let (mut theirs, mut nothing) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let id = &ids[round % ids.len()];
            let (there, absent) = (format!("{path}{id}"), format!("{path}{}", adjacent_id(id)));
            // The order alternates between rounds.
            if round % 2 == 0 {
                theirs.push(response_time(&service, &there).await);
                nothing.push(response_time(&service, &absent).await);
            } else {
                nothing.push(response_time(&service, &absent).await);
                theirs.push(response_time(&service, &there).await);
            }
        }
        later += theirs.iter().zip(&nothing).filter(|(theirs, nothing)| theirs > nothing).count();
        ratios
            .push((median(&mut theirs).as_secs_f64() / median(&mut nothing).as_secs_f64(), *path));
    }
    let pairs = rounds * kinds.len();
    let far = |ratio: f64| (ratio - 1.0).abs();
    ratios.sort_by(|one, other| far(one.0).total_cmp(&far(other.0)));
    let (farthest, path) = ratios[ratios.len() - 1];
    let share = later * 1_000 / pairs;
    let found = format!(
        "of {} medians of {rounds} the farthest is {farthest:.3} times the other ({path}); of 1,000 pairs in {share} \
         the foreign one took longer",
        kinds.len()
    );
    report_figure(
        &format!("{engine}: 404 of another workspace's and of nothing"),
        &found,
        "0.95 to 1.05 times",
    );
    // Few rounds are not significant, so the bound depends on the extent.
    let bar = size(f64::INFINITY, 0.25, 0.05);
    assert!(far(farthest) < bar, "{found}");
}
