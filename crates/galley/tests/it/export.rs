//! `galley export` and a repeated import: the pieces and the files stay the same.

use std::path::Path;

use galley_storage::DatabaseUrl;
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::import::{corpus, summary};
use crate::program::{Program, free_port, galley, run, stderr, stdout, write};

/// Returns the fields of pieces that don't depend on the store.
fn said(pieces: &[Value]) -> Vec<Value> {
    let mut said: Vec<Value> = pieces.iter().map(|piece| {
        let labels: Vec<_> = piece["tags"].as_array().unwrap().iter().map(|tag| tag["label"].clone()).collect();
        json!({"title": piece["title"], "slug": piece["slug"], "date": piece["date"], "tags": labels,
            "description": piece["description"], "coverUrl": piece["coverUrl"], "coverAlt": piece["coverAlt"],
            "coverWidth": piece["coverWidth"], "canonicalLink": piece["canonicalLink"],
            "customData": piece["customData"], "content": piece["content"]})
    }).collect();
    said.sort_by_key(|piece| piece["slug"].to_string());
    said
}

/// Returns the files of a folder with their texts, without the ids.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut files = crate::program::files(folder);
    for (_, text) in &mut files {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("id: ")).collect();
        *text = lines.join("\n");
    }
    files
}

/// Returns pieces that are known or likely to break an export or import.
fn hard_pieces() -> Vec<Value> {
    let contents = [
        "<p>@ann wrote <i>this</i> and <code>that</code></p>",
        "<p>me@example.org, https://example.org/a_b and www.example.org</p>",
        "<ul><li><p>@bob <b>bold</b></p></li></ul><blockquote><p>@carl</p></blockquote>",
        "<h2>A title {#id}</h2><p>text[^1]</p><p>[^1]: note</p>",
        "<p><mark>plain</mark> <mark data-color=\"red\">red</mark></p>",
        "<table><tr><th>@x|y</th></tr><tr><td><code>a|b</code></td></tr></table>",
        "<ul data-type=\"taskList\"><li data-type=\"taskItem\" data-checked=\"true\"><p>@done</p></li></ul>",
        "<p>{{ shortcode() }} {% tag %} &lt;!-- x --&gt;</p>",
        "<p>---</p><p>+++</p><p>{\"a\": 1}</p>",
        "<h1># @a</h1><p>1. b</p><p>- c</p><p>&gt; d</p>",
        "<p>a\u{2028}b</p><h2>c\u{2028} </h2>",
        "<p>x<sub>1</sub><sup>2</sup> <u>u</u> <s>s</s></p><hr><img src=\"a.png\" alt=\"\">",
        "",
    ];
    let contents = contents.iter().enumerate().map(|(number, content)| {
        json!({"title": format!("Hard {number}"), "slug": format!("hard-{number}"), "content": content})
    });
    let fields = [
        json!({"slug": "2022-04-07-timing"}),
        json!({"slug": "2022-04-08-timing", "date": "2020-01-02"}),
        json!({"slug": "2022/04/07/timing", "filename": "2022-04-07-timing.md"}),
        json!({"slug": "a", "filename": "blog/2024/05/06/a.md"}),
        json!({"description": ""}),
        json!({"description": "", "coverUrl": "", "coverAlt": ""}),
        json!({"coverAlt": "alone"}),
        json!({"coverUrl": "a.png", "coverAlt": ""}),
        json!({"canonicalLink": ""}),
        json!({"title": "# Title: \"q\" [x]"}),
        json!({"title": "2024"}),
        json!({"title": "null", "slug": "null"}),
        json!({"customData": "{\"draft\":true}"}),
        json!({"customData": "{\"date\":null}"}),
        json!({"customData": "{\"description\":\"other\"}"}),
        json!({"customData": "null"}),
        json!({"filename": "_index.md"}),
        json!({"filename": "index.md"}),
        json!({"description": "<p>@ann</p>"}),
    ];
    let fields = fields.into_iter().enumerate().map(|(number, mut fields)| {
        for (name, value) in
            [("title", format!("Field {number}")), ("slug", format!("field-{number}"))]
        {
            if fields[name].is_null() {
                fields[name] = json!(value);
            }
        }
        fields["content"] = json!("<p>Text</p>");
        fields
    });
    contents.chain(fields).collect()
}

/// Returns the documents of the corpus except the posts.
fn corpus_documents() -> Vec<String> {
    let Some(posts) = corpus() else { return Vec::new() };
    let mut documents = Vec::new();
    for file in ["blog.json", "commonmark.json"] {
        let text = std::fs::read_to_string(posts.join("../content").join(file)).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        documents.extend(cases.iter().map(|case| case["html"].as_str().unwrap().to_owned()));
    }
    documents
}

fn command(store: &TestStore, arguments: &[&str]) -> std::process::Output {
    run(galley(store).args(arguments))
}

async fn another(store: &TestStore) -> TestStore {
    match store.url {
        DatabaseUrl::Sqlite(_) => TestStore::sqlite(),
        DatabaseUrl::Postgres(_) => TestStore::postgres().await.unwrap(),
    }
}

#[on_both_engines]
async fn a_real_blog_survives_export_and_import(store: TestStore) {
    let Some(posts) = corpus() else { return };
    let program = Program::serve(&store, free_port());
    assert!(command(&store, &["import", posts.to_str().unwrap()]).status.success());
    let pieces = program.pieces("content=true").await;
    let out = store.directory().join("out");
    let out = out.to_str().unwrap();
    let exported = command(&store, &["export", out]);
    assert!(
        stdout(&exported).contains(&format!(
            "{0} pieces and 0 in variants: {0} files written, 0 removed",
            pieces.len()
        )),
        "{exported:?}"
    );
    assert!(!stdout(&exported).contains("mark drafts"), "{exported:?}");
    let before = program.position().await;
    let again = command(&store, &["import", out]);
    assert_eq!(
        summary(&again),
        format!(
            "0 imported, 0 updated, {} unchanged, 0 with conflicts, 0 with problems",
            pieces.len()
        )
    );
    assert_eq!(program.position().await, before);
    assert!(stdout(&command(&store, &["export", out])).contains("0 files written, 0 removed"));

    let there = another(&store).await;
    let other = Program::serve(&there, free_port());
    assert_eq!(
        summary(&command(&there, &["import", out])),
        format!(
            "{} imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems",
            pieces.len()
        )
    );
    assert_eq!(said(&other.pieces("content=true").await), said(&pieces));
    let second = there.directory().join("out");
    assert!(command(&there, &["export", second.to_str().unwrap()]).status.success());
    assert_eq!(files(&second), files(Path::new(out)));
}

#[on_both_engines]
async fn all_piece_fields_survive_export_and_import(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let post = async |path: &str, body: Value| {
        let made = program.request(Method::POST, path).json(&body).send().await.unwrap();
        let (status, text) = (made.status(), made.text().await.unwrap());
        assert_eq!(status, 201, "{body} {text}");
        serde_json::from_str::<Value>(&text).unwrap()["id"].clone()
    };
    let below = post("/content-groups", json!({"name": "../x: y", "ancestor": group})).await;
    let tag = post("/tags", json!({"label": "a, \"b\": [c]"})).await;
    post("/variants", json!({"key": "pt_br", "label": "Portugu\u{ea}s"})).await;
    let me = program.get("/workspace-memberships/list-members").await[0]["id"].clone();
    let custom = [
        "{\"weight\":1.50}",
        "{\"weight\":1,\"on\":null,\"a b\":{\"c\":[true]}}",
        "{\"title\":\"other\"}",
        "[1, 2]",
        "\"text\"",
        "{}",
        "{ \"a\": 1 }",
        "{\"a\":\"\u{2028}\u{85}\u{7f}\u{1f600}\"}",
        "{\"authors\":[\"X\"],\"draft\":true}",
    ];
    for (number, data) in custom.iter().enumerate() {
        let name = [
            "../../etc/x.md",
            "a.md",
            "A.md",
            "/abs.md",
            "dir/../b.md",
            "a.pt_br.md",
            "x\\y.md",
            "con:1.md",
            "n\u{e9}/ok.md",
        ][number];
        let piece = json!({"contentGroupId": if number % 2 == 0 { json!(group) } else { below.clone() },
            "title": format!("T {number}: \"q\" # - [x]\u{2029} \u{feff}"), "slug": format!("s/{number}/\u{e9}"),
            "date": "2024-05-06T10:11:12.345Z", "description": "<b>d</b>: x", "coverUrl": "/a b.png",
            "coverAlt": "alt\n\"x\"", "coverWidth": "50%", "canonicalLink": "https://example.org/?a=b#c",
            "filename": name, "customData": data, "tags": [tag], "members": [me],
            "content": "<h1>---</h1><p>---</p><p>+++ <u>under</u> &lt;b&gt;</p><pre><code>---\nx\n---</code></pre><ul><li><p>a</p></li></ul>"});
        let id = post("/content-pieces", piece).await;
        let change =
            json!({"id": id, "variant": "pt_br", "title": "Outro", "content": "<p>Ol\u{e1}</p>"});
        let changed =
            program.request(Method::PUT, "/content-pieces").json(&change).send().await.unwrap();
        assert_eq!(changed.status(), 204);
    }
    post("/content-pieces", json!({"contentGroupId": group, "title": "Plain", "slug": "plain", "content": "", "tags": [], "members": []})).await;
    let own = program.pieces("content=true").await;
    let in_variant = program.pieces("content=true&variant=pt_br").await;
    let out = store.directory().join("out");
    let out = out.to_str().unwrap();
    let exported = command(&store, &["export", out]);
    assert!(
        stdout(&exported).contains("10 pieces and 9 in variants: 19 files written, 0 removed"),
        "{exported:?}"
    );
    assert!(exported.status.success());
    assert!(!store.directory().join("etc").exists() && !Path::new("/abs.md").exists());
    let before = program.position().await;
    let import =
        |store: &TestStore| command(store, &["import", out, "--groups", "--variants", "en,pt_br"]);
    let again = import(&store);
    assert_eq!(
        summary(&again),
        "0 imported, 0 updated, 19 unchanged, 0 with conflicts, 0 with problems",
        "{again:?}"
    );
    assert_eq!(program.position().await, before);
    assert!(stdout(&command(&store, &["export", out])).contains("0 files written, 0 removed"));
    // The files of a variant are not taken for the pieces themselves.
    let without = command(&store, &["import", out, "--groups"]);
    assert_eq!(
        summary(&without),
        "0 imported, 0 updated, 10 unchanged, 0 with conflicts, 9 with problems"
    );
    let message = "is the variant pt_br of a piece; the import has no language pt_br";
    assert!(stderr(&without).contains(message), "{without:?}");
    assert_eq!(program.position().await, before);

    let there = another(&store).await;
    let other = Program::serve(&there, free_port());
    assert_eq!(
        summary(&import(&there)),
        "10 imported, 9 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(said(&other.pieces("content=true").await), said(&own));
    assert_eq!(said(&other.pieces("content=true&variant=pt_br").await), said(&in_variant));

    let gone = own.iter().find(|piece| piece["title"] == "Plain").unwrap()["id"].as_str().unwrap();
    let deleted = program
        .request(Method::DELETE, &format!("/content-pieces?id={gone}"))
        .send()
        .await
        .unwrap();
    assert_eq!(deleted.status(), 204);
    assert!(stdout(&command(&store, &["export", out])).contains("0 files written, 1 removed"));
    assert!(!Path::new(out).join("plain.md").exists());
}

#[on_both_engines]
async fn difficult_content_survives_export_and_import(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let mut pieces = hard_pieces();
    for (number, html) in corpus_documents().into_iter().enumerate() {
        pieces.push(json!({"title": format!("Document {number}"), "slug": format!("d{number}"), "content": html}));
    }
    let count = pieces.len();
    for some in pieces.chunks_mut(50) {
        for piece in some.iter_mut() {
            for (name, value) in
                [("tags", json!([])), ("members", json!([])), ("contentGroupId", json!(group))]
            {
                piece[name] = value;
            }
        }
        let made =
            program.request(Method::POST, "/content-pieces/batch").json(&json!({"pieces": some}));
        let made = made.send().await.unwrap();
        assert_eq!(made.status(), 201, "{}", made.text().await.unwrap());
    }
    let own = program.pieces("content=true").await;
    let out = store.directory().join("out");
    let out = out.to_str().unwrap();
    assert!(command(&store, &["export", out]).status.success());
    let before = program.position().await;
    let again = command(&store, &["import", out]);
    assert_eq!(
        summary(&again),
        format!("0 imported, 0 updated, {count} unchanged, 0 with conflicts, 0 with problems"),
        "{again:?}"
    );
    assert_eq!(program.position().await, before);
    let there = another(&store).await;
    let other = Program::serve(&there, free_port());
    assert_eq!(
        summary(&command(&there, &["import", out])),
        format!("{count} imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems")
    );
    let (found, expected) = (said(&other.pieces("content=true").await), said(&own));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    let second = there.directory().join("out");
    assert!(command(&there, &["export", second.to_str().unwrap()]).status.success());
    let (found, expected) = (files(&second), files(Path::new(out)));
    let differing: Vec<_> = expected.iter().filter(|file| !found.contains(file)).collect();
    assert!(differing.is_empty() && found.len() == expected.len(), "{differing:#?}");
}

#[on_both_engines]
async fn a_group_and_a_piece_with_one_name_are_both_exported(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let parent = program.group().await;
    let group = program
        .request(Method::POST, "/content-groups")
        .json(&json!({"name": "One.md", "ancestor": parent}));
    let group: Value = group.send().await.unwrap().json().await.unwrap();
    for (group, slug) in [
        (json!(parent), "one"),
        (group["id"].clone(), "two"),
        (group["id"].clone(), "x.markdown/y"),
    ] {
        let body = json!({"title": slug, "slug": slug, "tags": [], "members": [], "contentGroupId": group});
        assert!(
            program
                .request(Method::POST, "/content-pieces")
                .json(&body)
                .send()
                .await
                .unwrap()
                .status()
                .is_success()
        );
    }
    let folder = store.directory().join("out");
    let output = run(galley(&store).arg("export").arg(&folder));
    assert!(output.status.success(), "{output:?}");
    let names: Vec<_> = files(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [".galley-export", "One.md_/two.md", "One.md_/x.markdown_/y.md", "one.md"]);
}

#[on_both_engines]
async fn exports_do_not_change_foreign_folders(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let piece = json!({"contentGroupId": group, "title": "T", "slug": "t", "filename": "sub/t.md", "tags": [], "members": [], "content": "<p>x</p>"});
    assert_eq!(
        program
            .request(Method::POST, "/content-pieces")
            .json(&piece)
            .send()
            .await
            .unwrap()
            .status(),
        201
    );
    let theirs = store.directory().join("theirs");
    write(&theirs.join("notes.txt"), "mine");
    let refused = command(&store, &["export", theirs.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("neither empty nor an earlier export"), "{refused:?}");
    let repository = store.directory().join("repository");
    write(&repository.join(".git/config"), "x");
    let elsewhere = store.directory().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, repository.join("sub")).unwrap();
    write(&repository.join(".galley-export"), "sub/old.md\n../theirs/notes.txt\n");
    write(&elsewhere.join("old.md"), "theirs");
    let output = command(&store, &["export", repository.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("is a link, which is not followed"), "{output:?}");
    assert!(elsewhere.join("old.md").exists() && !elsewhere.join("t.md").exists());
    assert!(theirs.join("notes.txt").exists());
    std::fs::remove_file(repository.join("sub")).unwrap();
    assert!(command(&store, &["export", repository.to_str().unwrap()]).status.success());
    assert!(repository.join("sub/t.md").exists() && repository.join(".git/config").exists());
    // A file of the user with the name of a piece's file stays.
    let piece = json!({"contentGroupId": group, "title": "R", "slug": "readme", "tags": [], "members": [], "content": "<p>x</p>"});
    let created = program.request(Method::POST, "/content-pieces").json(&piece).send().await;
    assert_eq!(created.unwrap().status(), 201);
    write(&repository.join("readme.md"), "mine");
    let output = command(&store, &["export", repository.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("readme.md: is not from an earlier export"), "{output:?}");
    assert_eq!(std::fs::read_to_string(repository.join("readme.md")).unwrap(), "mine");
    std::fs::remove_file(repository.join("readme.md")).unwrap();
    for _ in 0..2 {
        let output = command(&store, &["export", repository.to_str().unwrap()]);
        assert!(stdout(&output).contains("the files don't mark drafts"), "{output:?}");
        assert!(output.status.success(), "{output:?}");
        assert_ne!(std::fs::read_to_string(repository.join("readme.md")).unwrap(), "mine");
    }
    let unknown = command(&store, &["export", "x", "--group", "none"]);
    let problem = "the content group none does not exist; the top-level groups are: Posts";
    assert!(stderr(&unknown).contains(problem), "{unknown:?}");
}
