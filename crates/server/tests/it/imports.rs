//! Imports of files that a request contains.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::service::{Service, TestResponse};

const POST: &str =
    "---\ntitle: The harbour\ntags: [News]\ndate: 2026-01-02\n---\n\nText with **bold**.\n";

fn request(service: &Service, files: &[(&str, &str)], options: Value) -> Value {
    let files: Vec<_> =
        files.iter().map(|(name, content)| json!({"name": name, "content": content})).collect();
    let mut body = json!({"contentGroupId": service.home.group, "files": files});
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    body
}

async fn import(service: &Service, files: &[(&str, &str)], options: Value) -> Value {
    let response = service.post("/imports", &request(service, files, options)).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

fn counts(report: &Value) -> [usize; 4] {
    let count = |name: &str| usize::try_from(report[name].as_u64().unwrap()).unwrap();
    let conflicts = report["documents"].as_array().unwrap().iter();
    let conflicts = conflicts.filter(|one| one["outcome"] == "conflict").count();
    [count("created"), count("updated"), count("unchanged"), conflicts]
}

async fn pieces(service: &Service) -> Vec<Value> {
    service.get("/content-pieces/list?perPage=100").await.body.as_array().unwrap().clone()
}

#[on_both_engines]
async fn files_become_pieces_and_a_second_import_updates_changed_ones(store: TestStore) {
    let service = Service::start(store).await;
    let files = [("posts/harbour.md", POST), ("about.html", "<title>About</title><p>Us</p>")];
    let planned = import(&service, &files, json!({"dryRun": true})).await;
    assert_eq!((counts(&planned), &planned["dryRun"]), ([2, 0, 0, 0], &json!(true)));
    assert_eq!(pieces(&service).await.len(), 0);

    let done = import(&service, &files, json!({})).await;
    assert_eq!(counts(&done), [2, 0, 0, 0]);
    assert_eq!(done["published"], 2);
    let all = pieces(&service).await;
    let harbour = all.iter().find(|one| one["title"] == "The harbour").unwrap();
    assert_eq!(harbour["filename"], "posts/harbour.md");
    assert_eq!(harbour["tags"][0]["label"], "News");
    assert_eq!(harbour["publication"]["state"], "published");
    let path = format!(
        "/content-pieces?id={}&content=true&contentFormat=html",
        harbour["id"].as_str().unwrap()
    );
    assert_eq!(service.get(&path).await.body["content"], "<p>Text with <strong>bold</strong>.</p>");
    let revisions = format!("/content-pieces/revisions?id={}", harbour["id"].as_str().unwrap());
    assert_eq!(service.get(&revisions).await.body[0]["origin"], "import");

    let changed = POST.replace("bold", "changed");
    let again = [("posts/harbour.md", changed.as_str()), files[1]];
    assert_eq!(counts(&import(&service, &again, json!({})).await), [0, 1, 1, 0]);

    // An edit in Galley and one at the source are a conflict, unless the request overwrites it.
    let id = harbour["id"].as_str().unwrap();
    let edited = service.put("/content-pieces", &json!({"id": id, "title": "Edited"})).await;
    assert_eq!(edited.status, 204);
    let other = [("posts/harbour.md", POST)];
    assert_eq!(counts(&import(&service, &other, json!({})).await), [0, 0, 0, 1]);
    assert_eq!(counts(&import(&service, &other, json!({"overwrite": true})).await), [0, 1, 0, 0]);
    assert_eq!(pieces(&service).await.len(), 2);
}

#[on_both_engines]
async fn the_choices_of_an_import_apply(store: TestStore) {
    let service = Service::start(store).await;
    let draft = "---\ntitle: A draft\ndraft: true\n---\nText";
    let files = [
        ("en/news/a.md", "# A"),
        ("de/news/a.md", "# Auf Deutsch"),
        ("en/b.md", draft),
        ("image.png", "x"),
    ];
    let options = json!({"groups": true, "tagLabels": ["Imported"], "variants": ["en", "de"],
        "drafts": false, "publish": false});
    let report = import(&service, &files, options).await;
    assert_eq!(counts(&report), [1, 1, 0, 0], "{report}");
    let left_out: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["group"] == "leftOut")
        .map(|one| one["what"].clone())
        .collect();
    assert!(
        left_out.contains(&json!("*.png files")) && left_out.contains(&json!("drafts")),
        "{report}"
    );
    let all = pieces(&service).await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["publication"]["state"], "draft");
    assert_eq!(all[0]["tags"][0]["label"], "Imported");
    assert_eq!(all[0]["variants"], json!(["de"]));
    let group = service
        .get(&format!("/content-groups?id={}", all[0]["contentGroupId"].as_str().unwrap()))
        .await;
    assert_eq!(group.body["name"], "news");
    assert_eq!(group.body["ancestors"], json!([service.home.group]));
}

#[on_both_engines]
async fn addresses_of_named_files_become_those_of_their_assets(store: TestStore) {
    let service = Service::start(store).await;
    let post = "---\ntitle: A\ncover: /cover.png\n---\n![x](b%20c.png) ![y](../gone.png)\n\n\
                [pdf](../files/menu.pdf#page=2) ![z](/static/unnamed.png)";
    let files = [("posts/a.md", post)];
    let bytes =
        [("posts/b c.png", "one"), ("files/menu.pdf", "two"), ("static/cover.png", "three")];
    let hash = |bytes: &str| -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let named = |name: &str, bytes: &str| json!({"name": name, "hash": hash(bytes)});
    let mut assets: Vec<_> = bytes.iter().map(|(name, bytes)| named(name, bytes)).collect();
    assets.push(named("posts/other.png", "four"));
    let options = |dry_run: bool| json!({"assets": assets, "dryRun": dry_run});
    let referred = |is_missing: bool| -> Value {
        ["files/menu.pdf", "posts/b c.png", "static/cover.png"]
            .map(|name| json!({"name": name, "isMissing": is_missing}))
            .into()
    };
    let planned = import(&service, &files, options(true)).await;
    assert_eq!(planned["assets"], referred(true));

    // Without the assets, the addresses are kept, and the report has them again.
    let early = import(&service, &files, options(false)).await;
    assert_eq!((counts(&early), &early["assets"]), ([1, 0, 0, 0], &referred(true)));

    // The plan counts them as uploaded, so the piece would change.
    let again = import(&service, &files, options(true)).await;
    assert_eq!((counts(&again), &again["assets"]), ([0, 1, 0, 0], &referred(true)));

    for (name, bytes) in bytes {
        let name = name.rsplit('/').next().unwrap().replace(' ', "%20");
        let path = format!("/assets?filename={name}&contentGroupId={}", service.home.group);
        let upload = service.request(Method::POST, &path).bearer_auth(&service.home.token);
        assert_eq!(TestResponse::of(upload.body(bytes)).await.status, 201);
    }
    let done = import(&service, &files, options(false)).await;
    assert_eq!((counts(&done), &done["assets"]), ([0, 1, 0, 0], &referred(false)));
    let assets = service.get("/assets/list").await.body;
    let url = |filename: &str| {
        let mut assets = assets.as_array().unwrap().iter();
        let found = assets.find(|asset| asset["filename"] == filename).unwrap();
        found["url"].as_str().unwrap().to_owned()
    };
    let [piece] = &pieces(&service).await[..] else { panic!() };
    assert_eq!(piece["coverUrl"], url("cover.png"));
    let path = format!(
        "/content-pieces?id={}&content=true&contentFormat=html",
        piece["id"].as_str().unwrap()
    );
    let html = service.get(&path).await.body["content"].as_str().unwrap().to_owned();
    for address in [url("b c.png"), format!("{}#page=2", url("menu.pdf"))] {
        assert!(html.contains(&format!("\"{address}\"")), "{address}: {html}");
    }
    assert!(html.contains("\"../gone.png\"") && html.contains("\"/static/unnamed.png\""), "{html}");
    assert_eq!(counts(&import(&service, &files, options(false)).await), [0, 0, 1, 0]);

    // Another workspace has no such assets.
    let other = service.other_workspace().await;
    let mut body = request(&service, &files, options(true));
    body["contentGroupId"] = json!(other.group);
    let foreign = service.request(Method::POST, "/imports").bearer_auth(&other.token).json(&body);
    assert_eq!(TestResponse::of(foreign).await.body["assets"], referred(true));
}

#[on_both_engines]
async fn a_file_that_cannot_be_imported_is_named_and_the_others_are_imported(store: TestStore) {
    let service = Service::start(store).await;
    let files = [
        ("good.md", "Text"),
        ("bad.md", "---\ntitle: [\n---\nText"),
        ("long.md", &format!("---\nslug: {}\n---\nText", "x".repeat(600))),
        ("export.json", "{\"exported_on\": 1, \"db\": 5}"),
    ];
    let report = import(&service, &files, json!({})).await;
    assert_eq!(counts(&report), [1, 0, 0, 0], "{report}");
    let problems = report["problems"].as_array().unwrap();
    for name in ["bad.md:", "long.md: slug", "export.json:1: is not a Ghost export"] {
        let names = |problem: &&Value| problem.as_str().unwrap().starts_with(name);
        assert_eq!(problems.iter().filter(names).count(), 1, "{name}: {report}");
    }
    assert_eq!(pieces(&service).await.len(), 1);
}

#[on_both_engines]
async fn concurrent_imports_of_one_folder_create_each_piece_once(store: TestStore) {
    let service = Service::start(store).await;
    // On PostgreSQL, the second import runs on another node.
    let other = service.start_second_server().await.unwrap_or_else(|| service.url.clone());
    let names: Vec<_> = (0..60).map(|number| format!("posts/{number}.md")).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "Text")).collect();
    let body = request(&service, &files, json!({}));
    let send = async |url: &str| {
        let to = service.request_to(url, Method::POST, "/imports").bearer_auth(&service.home.token);
        let report = to.json(&body).send().await.unwrap().json::<Value>().await.unwrap();
        let known = counts(&report)[2] + report["problems"].as_array().unwrap().len();
        (counts(&report)[0], known)
    };
    let [one, two] = <[_; 2]>::from(tokio::join!(send(&service.url), send(&other)));
    assert_eq!([one.0 + two.0, one.1 + two.1], [60, 60]);
    assert_eq!(pieces(&service).await.len(), 60);
    // A repeated request finds all of them.
    assert_eq!(counts(&import(&service, &files, json!({})).await), [0, 0, 60, 0]);
}

#[on_both_engines]
async fn an_import_needs_all_permissions_and_no_limit(store: TestStore) {
    let service = Service::start(store).await;
    let all = [
        "contentPieces:write",
        "contentGroups:write",
        "tags:write",
        "variants:write",
        "publishing:write",
        "workspaceMemberships:read",
        "assets:read",
    ];
    let assets = json!([{"name": "a.png", "hash": "0".repeat(64)}]);
    let all_of = json!({"groups": true, "variants": ["en"], "assets": assets});
    let body = request(&service, &[("a.md", "Text")], all_of);
    let send =
        async |token: &str| service.send_as(token, Method::POST, "/imports", Some(&body)).await;
    for missing in all {
        let rest: Vec<_> = all.into_iter().filter(|one| *one != missing).collect();
        let token = service.token(&rest.join(" "), None).await;
        send(&token).await.assert_problem(403, "insufficient_permissions", &[]);
    }
    let limited = service.token(&all.join(" "), Some(&[&service.home.group])).await;
    send(&limited).await.assert_problem(403, "outside_group_limit", &[]);
    assert_eq!(pieces(&service).await.len(), 0);
    let token = service.token(&all.join(" "), None).await;
    assert_eq!(send(&token).await.status, 200);
    assert_eq!(pieces(&service).await.len(), 1);
    // Plain drafts need less.
    let some =
        service.token("contentPieces:write tags:write workspaceMemberships:read", None).await;
    let drafts = request(&service, &[("b.md", "Text")], json!({"publish": false}));
    let response = service.send_as(&some, Method::POST, "/imports", Some(&drafts)).await;
    assert_eq!(response.status, 200);
}
