//! Whole responses of reads, compared with the recorded ones in `snapshots`. After an intended
//! change, `INSTA_UPDATE=always cargo xtask test` records them anew.

use std::collections::BTreeMap;
use std::fmt::Write;

use galley_testing::{TestStore, on_both_engines};

use crate::round_trip::create_resources;
use crate::service::Service;

/// The paths of lists and of other reads that need no id.
const LISTS: [&str; 15] = [
    "/content-groups/list",
    "/content-pieces/list?sort=title",
    "/content-pieces/list?sort=title&content=true&variant=de",
    "/content-pieces/sources",
    "/events",
    "/roles/list",
    "/tags/list",
    "/tokens/list",
    "/variants/list",
    "/webhooks/deliveries",
    "/webhooks/list",
    "/workspace-memberships/list-members",
    "/workspace-memberships/list-workspaces",
    // These fail.
    "/tags?id=tag_00000000000000000000000000",
    "/content-pieces/list?sort=unknown",
];

/// The parts that differ between runs, and their replacements.
const VARIABLE: [(&str, &str); 4] = [
    (r"\b([a-z]+)_[0-9a-z]{26}\b", "${1}_[id]"),
    (r"\b20[0-3]\d-\d\d-\d\dT[0-9:.]+Z", "[time]"),
    (r#""order": "\w+""#, r#""order": "[order key]""#),
    (r"\b[0-9a-f]{32}\b", "[request-id]"),
];

#[on_both_engines]
async fn whole_responses_equal_the_recorded_ones(store: TestStore) {
    let service = Service::start(store).await;
    let (paths, _) = create_resources(&service).await;
    let mut by_resource = BTreeMap::<String, String>::new();
    let pieces = paths.iter().filter_map(|path| path.strip_prefix("/content-pieces?"));
    let revisions: Vec<_> =
        pieces.map(|piece| format!("/content-pieces/revisions?{piece}")).collect();
    for path in paths.iter().chain(&revisions).map(String::as_str).chain(LISTS) {
        let response = service.get(path).await;
        let resource = path.split(['/', '?']).nth(1).unwrap();
        let text = by_resource.entry(resource.to_owned()).or_default();
        writeln!(text, "GET {path}\n{}\n{:#}\n", response.status, response.body).unwrap();
    }
    insta::with_settings!({filters => VARIABLE, prepend_module_to_snapshot => false}, {
        for (resource, text) in by_resource {
            insta::assert_snapshot!(resource, text);
        }
    });
}
