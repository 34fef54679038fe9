//! `galley export --format json`, and the import of the bundle into another store.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use galley_storage::DatabaseUrl;
use galley_testing::reliability_suite::size;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::program::{KEY, Program, data_dir, files, galley, run, stderr, stdout, write};

/// Returns a command on a store, always with the same key.
fn command(store: &TestStore) -> std::process::Command {
    let mut command = galley(store);
    command.env("GALLEY_KEY", KEY);
    command
}

fn serve(store: &TestStore) -> Program {
    let mut command = command(store);
    command.env("GALLEY_INIT_TOKEN", crate::program::init_token());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    Program::start(command)
}

/// Returns a store that doesn't exist yet, of the other engine if available.
async fn another(store: &TestStore) -> TestStore {
    match store.url {
        DatabaseUrl::Sqlite(_) => match TestStore::postgres().await {
            Some(store) => store,
            None => TestStore::sqlite(),
        },
        DatabaseUrl::Postgres(_) => TestStore::sqlite(),
    }
}

async fn send(program: &Program, method: Method, path: &str, body: &Value) -> Value {
    let answer = program.request(method, path).json(body).send().await.unwrap();
    assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
    answer.json().await.unwrap_or_default()
}

async fn create(program: &Program, path: &str, body: Value) -> Value {
    send(program, Method::POST, path, &body).await["id"].clone()
}

/// Fills a workspace with resources of every kind.
async fn fill(program: &Program, store: &TestStore, count: usize) {
    let role = create(
        program,
        "/roles",
        json!({"name": "Proof-reader", "permissions": ["contentPieces:write"]}),
    )
    .await;
    create(
        program,
        "/workspace-memberships",
        json!({"email": "bo@example.org", "name": "Bo", "roleId": role}),
    )
    .await;
    let added = run(command(store).args([
        "member",
        "add",
        "--email",
        "ann@example.org",
        "--name",
        "Ann Example",
    ]));
    assert!(added.status.success(), "{added:?}");
    let members = program.get("/workspace-memberships/list-members").await;
    let members: Vec<_> = members.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    let tag = create(program, "/tags", json!({"label": "News \u{1f980}", "color": "teal"})).await;
    let german = create(
        program,
        "/variants",
        json!({"key": "de", "label": "German", "description": "Deutsch"}),
    )
    .await;
    create(program, "/variants", json!({"key": "fr", "label": "French"})).await;
    let group = create(
        program,
        "/content-groups",
        json!({"name": "Below", "ancestor": program.group().await, "uniqueSlugs": true,
            "customDataSchema": {"properties": {"b": {"maximum": 2}}},
            "previewUrl": "https://example.org/{id}?token={token}"}),
    )
    .await;
    let deeper =
        create(program, "/content-groups", json!({"name": "Deeper", "ancestor": group})).await;
    create(program, "/content-groups", json!({"name": "Top"})).await;
    create(
        program,
        "/webhooks",
        json!({"url": "https://hooks.invalid/?a=b", "name": "Hook", "event": "contentPieceAdded",
            "events": ["tagChanged"],
        "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "metadata": {"contentGroupId": group}}),
    )
    .await;
    send(program, Method::PUT, "/workspace", &json!({"name": "The paper", "description": "Daily"}))
        .await;
    let mut first = Value::Null;
    for number in 0..count {
        let id = create(program, "/content-pieces", json!({"title": format!("T {number}"), "slug": format!("s-{number}"), "tags": [tag],
            "members": members, "contentGroupId": deeper, "date": "2024-05-06", "description": "<b>a</b> & b",
            "customData": "{ \"b\": 1.50, \"a\": [] }", "coverUrl": "/c.png", "coverAlt": "C", "coverWidth": "3px", "filename": "a/b.md",
            "canonicalLink": "https://example.org/x", "content": "<h2>H</h2><p>a <b>b</b> <a href=\"/x\">c</a></p><table><tr><td>d</td></tr></table>"})).await;
        send(
            program,
            Method::PUT,
            "/content-pieces",
            &json!({"id": id, "variant": german, "title": "Titel", "tags": [],
            "content": "<p>Deutsch</p>"}),
        )
        .await;
        if number == 0 {
            first = id;
        }
    }
    // The maximum depth of content.
    let deep = "<blockquote>".repeat(98) + "<p>deep</p>";
    create(program, "/content-pieces", json!({"title": "Deep", "slug": "deep", "tags": [], "members": [], "contentGroupId": deeper, "content": deep})).await;
    // A webhook outlives its group.
    let gone = create(program, "/content-groups", json!({"name": "Gone"})).await;
    create(program, "/webhooks", json!({"url": "https://hooks.invalid/gone", "name": "Of no group", "event": "contentPieceAdded", "metadata": {"contentGroupId": gone}})).await;
    let deleted =
        program.request(Method::DELETE, &format!("/content-groups?id={}", gone.as_str().unwrap()));
    assert!(deleted.send().await.unwrap().status().is_success());
    // The piece is moved, so that the order differs from that of creation.
    let last = create(program, "/content-pieces", json!({"title": "Plain", "slug": "plain", "tags": [], "members": [], "contentGroupId": deeper})).await;
    send(program, Method::PUT, "/content-pieces", &json!({"id": last, "referenceId": first})).await;
}

/// Publishes the second and third pieces, the second one with pending edits, and schedules the
/// publication of the fourth one.
async fn publish(program: &Program) {
    let pieces = program.get("/content-pieces/list").await;
    for publication in [
        json!({"id": pieces[1]["id"]}),
        json!({"id": pieces[2]["id"]}),
        json!({"id": pieces[3]["id"], "at": "2999-01-01"}),
    ] {
        send(program, Method::POST, "/content-pieces/publish", &publication).await;
    }
    for (variant, title) in [(Value::Null, "Edited"), (json!("de"), "Geändert")] {
        let edit = json!({"id": pieces[1]["id"], "variant": variant, "title": title});
        send(program, Method::PUT, "/content-pieces", &edit).await;
    }
}

/// Changes a piece often, itself and in German.
async fn revise(program: &Program, id: &Value) {
    for change in 0..40 {
        let variant = if change % 4 == 0 { json!("de") } else { Value::Null };
        let change = json!({"id": id, "variant": variant, "title": format!("T {change}"),
            "tags": [], "date": "2024-05-07", "customData": {"b": change % 3},
            "content": format!("<p>Change <i>{change}</i></p>"), "note": "A note"});
        send(program, Method::PUT, "/content-pieces", &change).await;
    }
}

/// Returns the files and folders in a folder, recursively.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(walk(&path));
        }
        all.push(path);
    }
    all
}

/// The number of lists in [`seen`].
const LISTS: usize = 9;

/// Returns all responses that a reader sees. They are texts, because content nests deeper than
/// serde_json's limit.
async fn seen(program: &Program) -> Vec<String> {
    let mut seen = Vec::new();
    let lists: [&str; LISTS] = [
        "/content-groups/list?subtree=true",
        "/tags/list",
        "/variants/list",
        "/roles/list",
        "/workspace-memberships/list-members",
        "/workspace",
        "/content-pieces/trash?perPage=100",
        "/content-pieces/list?perPage=100&content=true",
        "/content-pieces/list?perPage=100&content=true&variant=de",
    ];
    for path in lists {
        let answer = program.request(Method::GET, path).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}");
        seen.push(answer.text().await.unwrap());
    }
    let pieces = program.get("/content-pieces/list?perPage=100").await;
    for piece in pieces.as_array().unwrap() {
        let id = piece["id"].as_str().unwrap();
        let mut listed =
            program.get(&format!("/content-pieces/revisions?id={id}&perPage=100")).await;
        for revision in listed.as_array_mut().unwrap() {
            // The sizes depend on the revisions that have all values.
            revision.as_object_mut().unwrap().remove("size");
            let path = format!(
                "/content-pieces/revision?id={id}&variant=de&content=true&revision={}",
                revision["id"].as_str().unwrap()
            );
            let answer = program.request(Method::GET, &path).send().await.unwrap();
            assert!(answer.status().is_success(), "{path}");
            let state = answer.text().await.unwrap();
            seen.push(state.split(",\"revision\":").next().unwrap().to_owned());
        }
        seen.push(listed.to_string());
    }
    seen
}

/// Returns the audit log.
async fn audit_log(program: &Program) -> Vec<Value> {
    program.get("/audit?perPage=1000").await.as_array().unwrap().clone()
}

/// Returns the published view, itself and in German, without the times and authors of changes: a
/// move is not a revision.
async fn published(program: &Program, store: &TestStore) -> [Value; 2] {
    let token = run(command(store).args(["token", "create", "--view", "published"]));
    let token = stdout(&token).trim().to_owned();
    let list = async |variant: &str| {
        let path = format!("{}/content-pieces/list?content=true{variant}", program.url);
        let request = program.client.get(path).bearer_auth(&token);
        let mut list: Value = request.send().await.unwrap().json().await.unwrap();
        for piece in list.as_array_mut().unwrap() {
            for name in ["updatedAt", "updatedBy"] {
                piece.as_object_mut().unwrap().remove(name);
            }
        }
        list
    };
    [list("").await, list("&variant=de").await]
}

#[on_both_engines]
async fn an_imported_bundle_restores_the_same_workspace(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 20).await;
    revise(&program, &program.get("/content-pieces/list").await[0]["id"]).await;
    publish(&program).await;
    let folder = store.directory().join("bundle");
    let export = |store: &TestStore, folder: &Path| {
        let output = run(command(store).arg("export").arg(folder).args(["--format", "json"]));
        assert!(output.status.success(), "{output:?}");
        stdout(&output).lines().next().unwrap().to_owned()
    };
    assert!(export(&store, &folder).starts_with("22 pieces: "));
    assert_eq!(export(&store, &folder), "22 pieces: 0 files written, 0 removed");
    // The permissions are restricted also in an existing folder that other users may enter.
    let open = store.directory().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    export(&store, &open);
    for file in walk(&open) {
        let (mode, owners) =
            (std::fs::metadata(&file).unwrap().mode(), if file.is_dir() { 0o700 } else { 0o600 });
        assert_eq!(mode & 0o777, owners, "{}", file.display());
    }
    let exported = files(&folder);
    for secret in ["whsec_", "galley_h"] {
        assert!(exported.iter().all(|(_, text)| !text.contains(secret)), "{secret}");
    }

    let other = another(&store).await;
    let import = || run(command(&other).arg("import").arg(&folder));
    let first = import();
    assert!(first.status.success(), "{first:?}");
    assert!(stdout(&first).contains("22 pieces, 0 existed already, 0 with problems"), "{first:?}");
    let token = run(command(&other).args(["token", "create"]));
    let token = stdout(&token).trim().to_owned();
    let mut restored = command(&other);
    restored.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut restored = Program::start(restored);
    restored.token = token;
    assert_eq!(seen(&restored).await, seen(&program).await);
    let site = published(&program, &store).await;
    assert_eq!(site[0].as_array().unwrap().len(), 2);
    assert_eq!((&site[0][0]["title"], &site[1][1]["title"]), (&json!("Plain"), &json!("Titel")));
    assert_eq!(published(&restored, &other).await, site);
    // The restored log also has entries of the restoration and of the new tokens.
    let logs = [audit_log(&program).await, audit_log(&restored).await];
    let added = logs[1].iter().position(|entry| *entry == logs[0][1]).unwrap();
    assert_eq!(logs[1][added..], logs[0][1..], "a token was created after the export");
    let actions: Vec<_> = logs[1][..added].iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["token.create", "token.create", "workspace.restore"]);
    assert_eq!(logs[1][2]["changes"], json!([{"field": "pieces", "after": 22}]));
    let webhooks = restored.get("/webhooks/list").await;
    for (index, reason) in ["requested", "group_deleted"].into_iter().enumerate() {
        let webhook = &webhooks[index];
        assert_eq!(
            (&webhook["enabled"], &webhook["disabledReason"]),
            (&json!(false), &json!(reason)),
            "{webhook}"
        );
    }
    assert_eq!(webhooks[0]["events"], json!(["contentPieceAdded", "tagChanged"]));
    // The webhook gets no deliveries for restored pieces.
    let id = webhooks[0]["id"].as_str().unwrap();
    assert_eq!(restored.get(&format!("/webhooks/deliveries?webhookId={id}")).await, json!([]));

    let before = restored.position().await;
    let again = import();
    assert!(stdout(&again).contains("0 pieces, 22 existed already, 0 with problems"), "{again:?}");
    assert_eq!(restored.position().await, before);
    let second = other.directory().join("second");
    export(&other, &second);
    let is_same = |name: &str| name != "webhooks.json" && !name.starts_with("audit/");
    let lasting = |files: Vec<(String, String)>| -> Vec<_> {
        files.into_iter().filter(|(name, _)| is_same(name)).collect()
    };
    assert_eq!(lasting(files(&second)), lasting(exported));

    // Pieces that were deleted for good are restored. Those in the trash and changed ones stay.
    let pieces = restored.get("/content-pieces/list").await;
    let id = pieces[3]["id"].as_str().unwrap();
    let response = restored.request(Method::GET, &format!("/content-pieces?id={id}"));
    let old = response.send().await.unwrap().headers()["etag"].clone();
    restored.request(Method::DELETE, &format!("/content-pieces?id={id}")).send().await.unwrap();
    let trashed = import();
    assert!(stdout(&trashed).contains("0 pieces, 22 existed already"), "{trashed:?}");
    let path = format!("/content-pieces?id={id}&permanent=true");
    restored.request(Method::DELETE, &path).send().await.unwrap();
    send(
        &restored,
        Method::PUT,
        "/content-pieces",
        &json!({"id": pieces[4]["id"], "title": "Changed"}),
    )
    .await;
    let third = import();
    assert!(stdout(&third).contains("1 piece, 21 existed already, 0 with problems"), "{third:?}");
    let after = restored.get("/content-pieces/list").await;
    assert_eq!((&after[3], &after[4]["title"]), (&pieces[3], &json!("Changed")));
    // No entity tag from before the deletion matches the restored piece.
    let path = format!("/content-pieces?id={id}");
    let response = restored.request(Method::GET, &path).send().await.unwrap();
    let new = response.headers()["etag"].clone();
    let put = async |tag: &reqwest::header::HeaderValue, title: &str| {
        let request = restored.request(Method::PUT, "/content-pieces").header("if-match", tag);
        request.json(&json!({"id": id, "title": title})).send().await.unwrap().status()
    };
    assert_eq!(put(&old, "Old").await, 412);
    assert_eq!(put(&new, "New").await, 204);
}

#[on_both_engines]
async fn a_bundle_restores_a_published_edit_of_a_deleted_variant(store: TestStore) {
    let program = serve(&store);
    let piece = json!({"title": "T", "slug": "t", "tags": [], "members": [],
        "contentGroupId": program.group().await});
    let id = create(&program, "/content-pieces", piece).await;
    let german = create(&program, "/variants", json!({"key": "de", "label": "German"})).await;
    let edit = json!({"id": id, "variant": german, "title": "Titel"});
    send(&program, Method::PUT, "/content-pieces", &edit).await;
    send(&program, Method::POST, "/content-pieces/publish", &json!({"id": id})).await;
    let path = format!("/variants?id={}", german.as_str().unwrap());
    assert!(program.request(Method::DELETE, &path).send().await.unwrap().status().is_success());
    create(&program, "/variants", json!({"key": "de", "label": "German"})).await;
    let folder = store.directory().join("bundle");
    let exported = run(command(&store).arg("export").arg(&folder).args(["--format", "json"]));
    assert!(exported.status.success(), "{exported:?}");
    let other = another(&store).await;
    let imported = run(command(&other).arg("import").arg(&folder));
    assert!(imported.status.success(), "{imported:?}");
    let mut restored = command(&other);
    restored.args(["serve", "--listen", "127.0.0.1:0"]);
    let restored = Program::start(restored);
    let site = published(&program, &store).await;
    assert_eq!((&site[0][0]["title"], &site[1][0]["title"]), (&json!("T"), &json!("T")));
    assert_eq!(published(&restored, &other).await, site);
}

#[on_both_engines]
async fn a_bundle_contains_the_trash(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 3).await;
    let group = json!({"name": "Deleted", "uniqueSlugs": true});
    let group = create(&program, "/content-groups", group).await;
    let below = json!({"name": "Below it", "ancestor": group,
        "customDataSchema": {"properties": {"b": {"maximum": 5}}}});
    let below = create(&program, "/content-groups", below).await;
    let pieces = program.get("/content-pieces/list").await;
    let [first, second] = [&pieces[0]["id"], &pieces[1]["id"]];
    revise(&program, first).await;
    for id in [first, second] {
        let moved = json!({"id": id, "contentGroupId": below});
        send(&program, Method::PUT, "/content-pieces", &moved).await;
    }
    let sources = json!({"sources": [
        {"contentPieceId": first, "sourceHash": "a", "importedHash": "b"},
        {"contentPieceId": first, "variant": "de", "sourceHash": "c", "importedHash": "d"}]});
    send(&program, Method::PUT, "/content-pieces/sources", &sources).await;
    let before = seen(&program).await;
    let alone = pieces[2]["id"].as_str().unwrap();
    let entries = [group.as_str().unwrap(), alone];
    for path in [
        format!("/content-groups?id={}&recursive=true", entries[0]),
        format!("/content-pieces?id={alone}"),
    ] {
        let deleted = program.request(Method::DELETE, &path).send().await.unwrap();
        assert_eq!(deleted.status(), 204, "{path}");
    }
    let folder = store.directory().join("bundle");
    let output = run(command(&store).arg("export").arg(&folder).args(["--format", "json"]));
    assert!(output.status.success(), "{output:?}");
    // The bundle of an older version lacks a permission, which an Admin has nevertheless.
    let roles = folder.join("roles.json");
    let older = std::fs::read_to_string(&roles).unwrap();
    std::fs::write(&roles, older.replace(",\n      \"trash:write\"", "")).unwrap();
    assert_ne!(std::fs::read_to_string(&roles).unwrap(), older);

    let other = another(&store).await;
    for restored in [true, false] {
        let imported = run(command(&other).arg("import").arg(&folder));
        assert!(imported.status.success(), "{imported:?}");
        let said = stdout(&imported);
        assert_eq!(said.contains("3 pieces restored into the trash"), restored, "{said}");
    }
    let token = run(command(&other).args(["token", "create"]));
    let mut restored = command(&other);
    restored.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut restored = Program::start(restored);
    stdout(&token).trim().clone_into(&mut restored.token);
    assert_eq!(seen(&restored).await, seen(&program).await);
    for program in [&restored, &program] {
        for id in entries {
            send(program, Method::POST, "/content-pieces/undelete", &json!({"id": id})).await;
        }
    }
    // The time and the author of the last change are those of the restoration.
    let lists = async |program: &Program| {
        let mut list = program.get("/content-pieces/list?perPage=100&variant=de").await;
        for piece in list.as_array_mut().unwrap() {
            for name in ["updatedAt", "updatedBy"] {
                piece.as_object_mut().unwrap().remove(name);
            }
        }
        [list, program.get("/content-pieces/sources").await]
    };
    assert_eq!(lists(&restored).await, lists(&program).await);
    // The groups, and the pieces at their revisions, are as before the deletion.
    let [now, before] = [seen(&restored).await, before];
    assert_eq!((&now[0], &now[LISTS..]), (&before[0], &before[LISTS..]));
}

#[on_both_engines]
async fn an_interrupted_restore_continues(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 60).await;
    let folder = store.directory().join("bundle");
    assert!(
        run(command(&store).arg("export").arg(&folder).args(["--format", "json"])).status.success()
    );
    let other = another(&store).await;
    // Each kill comes a little later, until one import completes.
    let (mut killed, mut wait) = (0, Duration::from_millis(5));
    loop {
        let mut child = command(&other)
            .arg("import")
            .arg(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(wait);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "after {killed} kills: {status}");
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        wait = wait.mul_f64(size(1.3, 1.1, 1.03)) + Duration::from_millis(1);
    }
    assert!(killed > 1, "hardly an import was stopped: {killed}");
    let last = run(command(&other).arg("import").arg(&folder));
    assert!(last.status.success(), "{last:?}");
    let second = other.directory().join("second");
    assert!(
        run(command(&other).arg("export").arg(&second).args(["--format", "json"])).status.success()
    );
    let pieces = |folder: &Path| files(&folder.join("pieces"));
    assert_eq!(pieces(&second), pieces(&folder));
}

#[on_both_engines]
async fn invalid_bundle_files_are_reported_by_name(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 4).await;
    let folder = store.directory().join("bundle");
    assert!(
        run(command(&store).arg("export").arg(&folder).args(["--format", "json"])).status.success()
    );
    let pieces: Vec<_> =
        files(&folder).into_iter().filter(|(name, _)| name.starts_with("pieces/")).collect();
    let full: Vec<_> = pieces.iter().filter(|(_, text)| text.contains("\"Titel\"")).collect();
    let change = |index: usize, from: &str, to: &str| {
        let (name, text) = full[index];
        assert!(text.contains(from), "{text}");
        write(&folder.join(name), text.replacen(from, to, 1));
    };
    change(0, "\"title\": \"T ", "\"title\": \"\", \"x\": \"");
    change(1, "\"cg_", "\"cg_0");
    change(2, "\"href\": \"/x\"", "\"href\": \"javascript:alert(1)\"");
    change(3, "\"description\": \"<b>a</b>", "\"description\": \"<script>x</script><b>a</b>");
    // Earlier values are validated, too.
    let (name, _) = full[3];
    let revisions = name.replace("pieces/", "revisions/").replace(".json", ".1.jsonl");
    let safe = std::fs::read_to_string(folder.join(&revisions)).unwrap();
    assert!(safe.contains("\"before\":{}"), "{safe}");
    let unsafe_before = safe.replacen("\"fields\":[", "\"fields\":[\"description\",", 1).replacen(
        "\"before\":{}",
        "\"before\":{\"description\":\"<script>x</script><b>y</b>\"}",
        1,
    );
    write(&folder.join(revisions), unsafe_before);
    let other = another(&store).await;
    let output = run(command(&other).arg("import").arg(&folder));
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("3 pieces, 0 existed already, 3 with problems"), "{output:?}");
    let told = stderr(&output);
    assert!(full[..3].iter().all(|(name, _)| told.contains(&format!("{name}:"))), "{told}");
    let second = other.directory().join("second");
    assert!(
        run(command(&other).arg("export").arg(&second).args(["--format", "json"])).status.success()
    );
    for (name, text) in files(&second) {
        assert!(!text.contains("javascript:") && !text.contains("<script"), "{name}: {text}");
    }

    // The workspace's data is written completely or not at all.
    for (name, from, to, problem) in [
        ("roles.json", ",\n    \"baseType\": \"admin\"", "", "no member with a user is an Admin"),
        ("roles.json", "\"admin\"", "\"viewer\"", "viewer occurs twice"),
        ("roles.json", "contentPieces:write", "everything", "roles.json: role_"),
        ("members.json", "\"roleId\": \"role_", "\"roleId\": \"role_0", "members.json"),
        ("groups.json", "[", "[[", "groups.json:2:"),
        ("groups.json", "{\\\"maximum\\\":2}", "3", "groups.json: cg_"),
        ("groups.json", "{\\\"maximum\\\":2}", "3", "customDataSchema.properties.b "),
        ("groups.json", "{\\\"maximum\\\":2}", "", "must be JSON of at most 128 levels"),
        ("tags.json", "teal", "beige", "tags.json: tag_"),
        (
            "tags.json",
            "[",
            "[{\"id\":\"tag_00000000000000000000000000\",\"label\":\"a\",\"color\":\"teal\"},{\"id\":\"tag_00000000000000000000000000\",\"label\":\"b\",\"color\":\"teal\"},",
            "tags.json: tag_00000000000000000000000000 occurs twice",
        ),
        (
            "members.json",
            "\"invitedEmail\": \"bo@example.org\",",
            "",
            "neither user nor invitedEmail",
        ),
        ("webhooks.json", "contentPieceAdded", "somethingElse", "webhooks.json: wh"),
        ("galley.json", "\"galleyBundle\": 1", "\"galleyBundle\": 99", "newer galley"),
    ] {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}: {text}");
        write(&path, text.replacen(from, to, 1));
        let empty = TestStore::sqlite();
        let output = run(command(&empty).arg("import").arg(&folder));
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(stderr(&output).contains(problem), "{name}: {output:?}");
        assert!(!data_dir(&empty).exists(), "{name}");
        write(&path, text);
    }
    let (name, _) = full[3];
    let revisions = name.replace("pieces/", "revisions/").replace(".json", ".1.jsonl");
    let valid = std::fs::read_to_string(folder.join(&revisions)).unwrap();
    for (from, to, problem) in [
        ("\"number\":2", "\"number\":9223372036854775807", "the numbers must be positive"),
        ("\"number\":2", "\"number\":0", "the numbers must be positive"),
        ("\"fields\":[", "\"fields\":[\"name\",", "fields must be one of"),
        ("\"origin\":\"api\"", "\"origin\":\"x\"", "origin must be one of"),
    ] {
        assert!(valid.contains(from), "{valid}");
        write(&folder.join(&revisions), valid.replacen(from, to, 1));
        let empty = TestStore::sqlite();
        let output = run(command(&empty).arg("import").arg(&folder));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = stderr(&output);
        assert!(told.contains(&revisions) && told.contains(problem), "{told}");
    }
    write(&folder.join(&revisions), valid);
    let whole = std::fs::read_to_string(folder.join("members.json")).unwrap();
    write(
        &folder.join("members.json"),
        whole.replace("\"invitedEmail\": \"bo@", "\"invitedEmail\": \"ann@"),
    );
    for arguments in [&["--dry-run"][..], &[]] {
        let empty = TestStore::sqlite();
        assert!(run(command(&empty).arg("init")).status.success());
        let output = run(command(&empty).arg("import").arg(&folder).args(arguments));
        assert!(stderr(&output).contains("the same person is a member"), "{output:?}");
    }
    write(&folder.join("members.json"), whole);
    let whole = "a bundle contains a whole workspace";
    for (flags, expected) in [
        (&["--url", "http://127.0.0.1:1", "--token", "x"][..], "a bundle is restored with its ids"),
        (&["--groups"], whole),
        (&["--group", "Posts"], whole),
    ] {
        let output = run(command(&other).arg("import").arg(&folder).args(flags));
        assert!(stderr(&output).contains(expected), "{output:?}");
    }
}

#[on_both_engines]
async fn conflicting_resources_are_reported_by_file(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 2).await;
    let folder = store.directory().join("bundle");
    assert!(
        run(command(&store).arg("export").arg(&folder).args(["--format", "json"])).status.success()
    );
    let variants = program.get("/variants/list").await;
    let id = variants[0]["id"].as_str().unwrap();
    program.request(Method::DELETE, &format!("/variants?id={id}")).send().await.unwrap();
    create(&program, "/variants", json!({"key": "de", "label": "German again"})).await;
    for arguments in [&["--dry-run"][..], &[]] {
        let output = run(command(&store).arg("import").arg(&folder).args(arguments));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(&format!("variants.json: {id}: ")), "{output:?}");
    }
}

#[on_both_engines]
async fn bundle_pieces_are_validated_like_requests(store: TestStore) {
    let program = serve(&store);
    fill(&program, &store, 4).await;
    let folder = store.directory().join("bundle");
    assert!(
        run(command(&store).arg("export").arg(&folder).args(["--format", "json"])).status.success()
    );
    let of_pieces: Vec<_> =
        files(&folder).into_iter().filter(|(_, text)| text.contains("\"Titel\"")).collect();
    // A duplicate tag, and too many tags.
    let tag = program.get("/tags/list").await[0]["id"].to_string();
    let tags = |index: usize, tags: String| {
        let (name, text) = &of_pieces[index];
        let before = format!("\"tags\": [\n    {tag}\n  ]");
        assert!(text.contains(&before), "{text}");
        write(&folder.join(name), text.replacen(&before, &format!("\"tags\": [{tags}]"), 1));
    };
    tags(0, format!("{tag}, {tag}"));
    let many: Vec<_> = (0..101)
        .map(|number| format!("\"tag_000000000000000000000000{:02}\"", number % 100))
        .chain([tag.clone(), tag.clone()])
        .collect();
    tags(1, many.join(","));
    // One file is missing, and one is a link to an endless device.
    std::fs::remove_file(folder.join(&of_pieces[2].0)).unwrap();
    std::fs::remove_file(folder.join(&of_pieces[3].0)).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join(&of_pieces[3].0)).unwrap();
    let other = another(&store).await;
    let output = run(command(&other).arg("import").arg(&folder));
    assert!(stdout(&output).contains("3 pieces, 0 existed already, 3 with problems"), "{output:?}");
    let told = stderr(&output);
    for (index, problem) in
        [(1, "tags must have at most 100 items"), (2, "is missing"), (3, "is not a regular file")]
    {
        assert!(told.contains(&format!("{}: {problem}", of_pieces[index].0)), "{told}");
    }
}

#[on_both_engines]
async fn an_export_does_not_replace_one_of_another_format(store: TestStore) {
    let program = serve(&store);
    create(&program, "/content-pieces", json!({"title": "T", "slug": "t", "tags": [], "members": [], "contentGroupId": program.group().await})).await;
    let bundle = store.directory().join("bundle");
    let markdown = store.directory().join("markdown");
    let export = |folder: &Path, format: &str| {
        run(command(&store).arg("export").arg(folder).args(["--format", format]))
    };
    assert!(export(&bundle, "json").status.success());
    let group = program.get("/content-groups/list").await[0]["name"].as_str().unwrap().to_owned();
    let output = run(command(&store).arg("export").arg(&markdown).args(["--group", &group]));
    assert!(output.status.success(), "{output:?}");
    let before = (files(&bundle), files(&markdown));
    let output = run(command(&store).arg("export").arg(&bundle).args(["--group", &group]));
    assert!(stderr(&output).contains("contains a bundle"), "{output:?}");
    let output = export(&markdown, "json");
    assert!(stderr(&output).contains("contains Markdown files"), "{output:?}");
    assert_eq!((files(&bundle), files(&markdown)), before);
}
