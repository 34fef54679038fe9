//! Repeated imports: edits in Galley are kept, and changes of the sources are imported.

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::import::summary;
use crate::program::{Program, free_port, galley, init_token, run, stderr, stdout, write};

/// Imports a folder directly or through the server. Returns the summary.
fn import(store: &TestStore, program: &Program, by_url: bool, more: &[&str]) -> String {
    import_from("blog", store, program, by_url, more).0
}

/// Imports a file or folder of the test's directory. Returns the summary and the report.
fn import_from(
    source: &str,
    store: &TestStore,
    program: &Program,
    by_url: bool,
    more: &[&str],
) -> (String, String) {
    let mut command = galley(store);
    command.arg("import").arg(store.directory().join(source)).args(more);
    if by_url {
        command.args(["--url", &program.url, "--token", &init_token()]);
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{output:?}");
    (summary(&output), stdout(&output))
}

async fn titled(program: &Program) -> Vec<(String, String)> {
    let pieces = program.pieces("sort=title").await;
    let text = |piece: &Value, name: &str| piece[name].as_str().unwrap_or("-").to_owned();
    pieces.iter().map(|piece| (text(piece, "title"), text(piece, "description"))).collect()
}

async fn edit(program: &Program, title: &str, change: Value) {
    let pieces = program.pieces("").await;
    let piece = pieces.iter().find(|piece| piece["title"] == title).unwrap();
    let mut body = change;
    body["id"] = piece["id"].clone();
    let answer = program.request(Method::PUT, "/content-pieces").json(&body).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
}

#[on_both_engines]
async fn edits_and_source_changes_are_distinguished(store: TestStore) {
    let folder = store.directory().join("blog");
    let source = |title: &str, about: &str| {
        format!("---\ntitle: {title}\ndescription: {about}\ntags: [x]\n---\nText\n")
    };
    for title in ["edited", "changed", "both", "same", "untouched"] {
        write(&folder.join(format!("{title}.md")), source(title, "first"));
    }
    let program = Program::serve(&store, free_port());
    let all = |by_url, more: &[&str]| import(&store, &program, by_url, more);
    assert_eq!(
        all(false, &[]),
        "5 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
    for title in ["edited", "both"] {
        edit(&program, title, json!({"description": "by hand"})).await;
    }
    edit(&program, "same", json!({"description": "second"})).await;
    for title in ["changed", "both", "same"] {
        write(&folder.join(format!("{title}.md")), source(title, "second"));
    }
    let before = program.position().await;
    for by_url in [false, true] {
        let dry = all(by_url, &["--dry-run"]);
        assert_eq!(
            dry,
            "0 would be imported, 1 updated, 3 unchanged, 1 with conflicts, 0 with problems"
        );
    }
    assert_eq!(program.position().await, before);
    assert_eq!(
        all(true, &[]),
        "0 imported, 1 updated, 3 unchanged, 1 with conflicts, 0 with problems"
    );
    let pair = |title: &str, about: &str| (title.to_owned(), about.to_owned());
    let now = [
        pair("both", "by hand"),
        pair("changed", "second"),
        pair("edited", "by hand"),
        pair("same", "second"),
        pair("untouched", "first"),
    ];
    assert_eq!(titled(&program).await, now);
    // A direct import recognizes sources that were imported through the server, and vice versa.
    assert_eq!(
        all(false, &[]),
        "0 imported, 0 updated, 4 unchanged, 1 with conflicts, 0 with problems"
    );
    let output = run(galley(&store).arg("import").arg(&folder));
    assert!(stdout(&output).contains("both.md"), "the conflict is named: {output:?}");
    // A move to another group is not an edit.
    let other = json!({"name": "Elsewhere", "ancestor": program.group().await});
    let other = program.request(Method::POST, "/content-groups").json(&other).send().await.unwrap();
    let other = other.json::<Value>().await.unwrap()["id"].clone();
    edit(&program, "changed", json!({"contentGroupId": other})).await;
    write(&folder.join("changed.md"), source("changed", "third"));
    assert_eq!(
        all(false, &["--groups"]),
        "0 imported, 1 updated, 3 unchanged, 1 with conflicts, 0 with problems"
    );
    assert_eq!(
        all(true, &["--groups", "--overwrite"]),
        "0 imported, 2 updated, 3 unchanged, 0 with conflicts, 0 with problems"
    );
    let now = [
        pair("both", "second"),
        pair("changed", "third"),
        pair("edited", "first"),
        pair("same", "second"),
        pair("untouched", "first"),
    ];
    assert_eq!(titled(&program).await, now);
    assert_eq!(
        all(false, &["--groups"]),
        "0 imported, 0 updated, 5 unchanged, 0 with conflicts, 0 with problems"
    );
    // A tag for all pieces changes each source's hash.
    assert_eq!(
        all(false, &["--groups", "--tag", "y"]),
        "0 imported, 5 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
}

#[on_both_engines]
async fn a_piece_without_a_noted_source_is_a_conflict_unless_identical(store: TestStore) {
    let folder = store.directory().join("blog");
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    for (name, title) in [("a.md", "A"), ("b.md", "B")] {
        let body = json!({"title": title, "slug": title.to_lowercase(), "tags": [], "members": [],
            "contentGroupId": group, "filename": name, "content": "<p>Text</p>"});
        let made =
            program.request(Method::POST, "/content-pieces").json(&body).send().await.unwrap();
        assert_eq!(made.status(), 201);
    }
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    write(&folder.join("b.md"), "---\ntitle: Other\nslug: b\n---\nText\n");
    let conflict = "0 imported, 0 updated, 1 unchanged, 1 with conflicts, 0 with problems";
    let dry = import(&store, &program, true, &["--dry-run"]);
    assert_eq!(dry, conflict.replacen("imported", "would be imported", 1));
    assert_eq!(import(&store, &program, false, &[]), conflict);
    // From now on, the identical piece has a noted source.
    write(&folder.join("a.md"), "---\ntitle: A2\nslug: a\n---\nText\n");
    assert_eq!(
        import(&store, &program, false, &[]),
        "0 imported, 1 updated, 0 unchanged, 1 with conflicts, 0 with problems"
    );
}

#[on_both_engines]
async fn a_new_translation_is_not_a_conflict(store: TestStore) {
    let folder = store.directory().join("blog");
    let program = Program::serve(&store, free_port());
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    let flags = ["--variants", "en,de"];
    import(&store, &program, false, &flags);
    write(&folder.join("b.md"), "---\ntitle: B\n---\nText\n");
    write(&folder.join("b.de.md"), "---\ntitle: Be\n---\nText\n");
    import(&store, &program, false, &flags);
    write(&folder.join("a.de.md"), "---\ntitle: Ah\n---\nText\n");
    assert_eq!(
        import(&store, &program, true, &flags),
        "0 imported, 1 updated, 3 unchanged, 0 with conflicts, 0 with problems"
    );
    let pieces = program.pieces("variant=de").await;
    assert_eq!(pieces[0]["title"], "Ah");
    edit(&program, "A", json!({"variant": "de", "title": "By hand"})).await;
    write(&folder.join("a.de.md"), "---\ntitle: Aah\n---\nText\n");
    for by_url in [true, false] {
        let conflict = "0 imported, 0 updated, 3 unchanged, 1 with conflicts, 0 with problems";
        assert_eq!(import(&store, &program, by_url, &flags), conflict);
    }
}

/// Returns the state and the scheduled time of each piece of a group, by title.
async fn states(program: &Program, group: &str) -> Vec<(String, String, Value)> {
    let pieces = program.pieces(&format!("contentGroupId={group}&sort=title")).await;
    let state = |piece: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let publication = &piece["publication"];
        (text(&piece["title"]), text(&publication["state"]), publication["publishAt"].clone())
    };
    pieces.iter().map(state).collect()
}

fn with_states(expected: &[(&str, &str)]) -> Vec<(String, String, Value)> {
    let state = |(title, state): &(&str, &str)| match state.split_once(' ') {
        Some((state, at)) => ((*title).to_owned(), state.to_owned(), Value::from(at)),
        None => ((*title).to_owned(), (*state).to_owned(), Value::Null),
    };
    expected.iter().map(state).collect()
}

/// Creates a token and returns it.
fn new_token(store: &TestStore, more: &[&str]) -> String {
    let output = run(galley(store).args(["token", "create"]).args(more));
    assert!(output.status.success(), "{output:?}");
    stdout(&output).trim().to_owned()
}

/// Creates a group and returns its id.
async fn new_group(program: &Program, name: &str) -> String {
    let body = json!({"name": name});
    let made = program.request(Method::POST, "/content-groups").json(&body).send().await.unwrap();
    made.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
}

#[on_both_engines]
async fn pieces_follow_the_states_of_their_sources(store: TestStore) {
    let item = |id: u32, status: &str, password: &str, text: &str| {
        format!(
            "<item><title>P{id}</title><wp:post_id>{id}</wp:post_id><wp:status>{status}</wp:status>\
         <wp:post_type>post</wp:post_type><wp:post_password>{password}</wp:post_password>\
         <wp:post_date_gmt>2199-05-06 10:00:00</wp:post_date_gmt>\
         <content:encoded><![CDATA[<p>{text}</p>[caption id=\"x\" width=\"3\" caption=\"Old words\"]<img src=\"/b.png\" />[/caption]]]></content:encoded>\
         <wp:postmeta><wp:meta_key>price</wp:meta_key><wp:meta_value>9</wp:meta_value></wp:postmeta>\
         <wp:postmeta><wp:meta_key>_plugin</wp:meta_key><wp:meta_value>x</wp:meta_value></wp:postmeta>\
         <category domain=\"post_tag\"><![CDATA[Food &amp; <i>Drink</i>]]></category>\
         <wp:comment><wp:comment_id>1</wp:comment_id></wp:comment><wp:comment><wp:comment_id>2</wp:comment_id></wp:comment></item>"
        )
    };
    let export = |first: &str, status: &str| {
        format!(
            "<rss xmlns:wp=\"w\" xmlns:content=\"c\"><channel><title>T</title><link>https://x.example.org</link>\
         <wp:wxr_version>1.2</wp:wxr_version>{}{}{}{}{}{}</channel></rss>",
            item(1, "publish", "", first),
            item(2, status, "", "Text"),
            item(3, "future", "", "Text"),
            item(4, "private", "", "Text"),
            item(5, "publish", "secret", "Text"),
            item(6, "future", "secret", "Text")
        )
    };
    let file = store.directory().join("diary.xml");
    let program = Program::serve(&store, free_port());
    let report = store.directory().join("report.json");
    let rest = [
        ("P3", "draft 2199-05-06T10:00:00.000Z"),
        ("P4", "draft"),
        ("P5", "draft"),
        ("P6", "draft"),
    ];
    let states_are = async |group: &str, first: &str, second: &str| {
        let expected = [&[("P1", first), ("P2", second)], &rest[..]].concat();
        assert_eq!(states(&program, group).await, with_states(&expected));
    };
    for by_url in [false, true] {
        let group = new_group(&program, if by_url { "By URL" } else { "Direct" }).await;
        let import = |text: String, more: &[&str]| {
            write(&file, text);
            let flags = ["--group", &group, "--report", report.to_str().unwrap()];
            import_from("diary.xml", &store, &program, by_url, &[&flags, more].concat())
        };
        let counts = |counts: &str| format!("{counts}, 0 with conflicts, 0 with problems");
        let new = counts("6 imported, 0 updated, 0 unchanged");
        let (found, told) = import(export("Text", "draft"), &["--dry-run"]);
        assert_eq!(found, new.replace("imported", "would be imported"));
        assert!(told.contains("\n1 would be published, 1 scheduled, 0 unpublished\n"), "{told}");
        let (found, told) = import(export("Text", "draft"), &[]);
        assert_eq!(found, new);
        for line in [
            "1 published, 1 scheduled, 0 unpublished",
            "12 x comments",
            "6 x hidden custom fields",
            "1 x drafts",
            "1 x scheduled posts",
            "1 x private posts",
            "2 x password-protected posts",
        ] {
            assert!(told.contains(line), "{line}: {told}");
        }
        let whole: Value =
            serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
        assert_eq!(
            (&whole["created"], &whole["published"], &whole["scheduled"], &whole["unpublished"]),
            (&json!(6), &json!(1), &json!(1), &json!(0))
        );
        let findings = whole["findings"].as_array().unwrap();
        let comments = findings.iter().find(|one| one["what"] == "comments").unwrap();
        let places = comments["places"].as_array().unwrap().len();
        assert_eq!((&comments["count"], places), (&json!(12), 6));
        states_are(&group, "published", "draft").await;
        let query = format!("contentGroupId={group}&content=true&contentFormat=html");
        for piece in program.pieces(&query).await {
            assert!(piece["content"].as_str().unwrap().contains("Old words"), "{piece}");
            assert_eq!(piece["tags"][0]["label"], "Food & Drink");
            let data = piece["customData"].as_str().unwrap();
            assert!(data.contains("\"customFields\":{\"price\":\"9\"}"), "{piece}");
        }
        let before = program.position().await;
        let (found, told) = import(export("Text", "draft"), &[]);
        assert_eq!(found, counts("0 imported, 0 updated, 6 unchanged"));
        assert!(!told.contains(" unpublished\n"), "{told}");
        assert_eq!(program.position().await, before);

        // The draft is published at its source, and withdrawn later.
        let one = counts("0 imported, 1 updated, 5 unchanged");
        let (found, told) = import(export("Text", "publish"), &[]);
        assert!(told.contains("1 published, 0 scheduled, 0 unpublished"), "{told}");
        assert_eq!(found, one);
        states_are(&group, "published", "published").await;
        let (found, told) = import(export("Text", "draft"), &[]);
        assert!(told.contains("0 published, 0 scheduled, 1 unpublished"), "{told}");
        assert_eq!(found, one);
        states_are(&group, "published", "draft").await;

        // A changed source is published again, unless the piece was unpublished in Galley.
        assert_eq!(import(export("New", "draft"), &[]).0, one);
        states_are(&group, "published", "draft").await;
        let pieces = program.pieces(&format!("contentGroupId={group}&sort=title")).await;
        let unpublished = program
            .request(Method::POST, "/content-pieces/unpublish")
            .json(&json!({"id": pieces[0]["id"]}))
            .send()
            .await
            .unwrap();
        assert!(unpublished.status().is_success(), "{unpublished:?}");
        let (found, told) = import(export("Newer", "draft"), &[]);
        assert_eq!(found, one);
        let line = "1 x published posts whose pieces were changed or unpublished in Galley";
        assert!(told.contains(line), "{told}");
        states_are(&group, "draft", "draft").await;
    }
}

#[on_both_engines]
async fn no_publish_leaves_drafts_that_the_next_import_publishes(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    write(&folder.join("b.md"), "---\ntitle: B\npublishDate: 2199-05-06\n---\nText\n");
    write(&folder.join("c.md"), "---\ntitle: C\ndraft: true\n---\nText\n");
    let program = Program::serve(&store, free_port());
    for by_url in [false, true] {
        let group = new_group(&program, if by_url { "By URL" } else { "Direct" }).await;
        let import = |more: &[&str]| {
            import(&store, &program, by_url, &[&["--group", &group], more].concat())
        };
        assert_eq!(
            import(&["--no-publish"]),
            "3 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"
        );
        let drafts = with_states(&[("A", "draft"), ("B", "draft"), ("C", "draft")]);
        assert_eq!(states(&program, &group).await, drafts);
        let same = "0 imported, 0 updated, 3 unchanged, 0 with conflicts, 0 with problems";
        assert_eq!(import(&["--no-publish"]), same);
        assert_eq!(states(&program, &group).await, drafts);
        assert_eq!(import(&[]), same);
        let scheduled = "draft 2199-05-06T00:00:00.000Z";
        let all = with_states(&[("A", "published"), ("B", scheduled), ("C", "draft")]);
        assert_eq!(states(&program, &group).await, all);
        assert_eq!(import(&["--no-publish"]), same);
        assert_eq!(states(&program, &group).await, all);
        // A pending change of an import is published by a later one.
        write(&folder.join("a.md"), "---\ntitle: A\n---\nChanged\n");
        let one = "0 imported, 1 updated, 2 unchanged, 0 with conflicts, 0 with problems";
        assert_eq!(import(&["--no-publish"]), one);
        assert_eq!(states(&program, &group).await[0].1, "changed");
        assert_eq!(import(&[]), same);
        assert_eq!(states(&program, &group).await, all);
        write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    }
}

#[on_both_engines]
async fn changes_made_in_galley_are_not_published_and_withdrawn_sources_are_not_public(
    store: TestStore,
) {
    let folder = store.directory().join("blog");
    let program = Program::serve(&store, free_port());
    let source = |title: &str, field: &str| {
        write(
            &folder.join(format!("{title}.md")),
            format!("---\ntitle: {title}\n{field}---\nText of {title}\n"),
        );
    };
    let scheduled = "publishDate: 2199-05-06\n";
    for by_url in [false, true] {
        let group = new_group(&program, if by_url { "By URL" } else { "Direct" }).await;
        let import = || import_from("blog", &store, &program, by_url, &["--group", &group]);
        let edit = async |title: &str, change: Value| {
            let pieces = program.pieces(&format!("contentGroupId={group}")).await;
            let piece = pieces.iter().find(|piece| piece["title"] == title).unwrap();
            let mut body = change;
            body["id"] = piece["id"].clone();
            let path = if body.get("at").is_some() { "/content-pieces/publish" } else { "" };
            let sent = match path {
                "" => program.request(Method::PUT, "/content-pieces"),
                path => program.request(Method::POST, path),
            };
            let response = sent.json(&body).send().await.unwrap();
            assert!(response.status().is_success(), "{response:?}");
        };
        for title in ["A", "B"] {
            source(title, "draft: true\n");
        }
        for title in ["C", "D", "E"] {
            source(title, scheduled);
        }
        source("F", "");
        assert_eq!(
            import().0,
            "6 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"
        );
        let later = "draft 2199-05-06T00:00:00.000Z";
        let expected = [("A", "draft"), ("B", "draft"), ("C", later), ("D", later), ("E", later)];
        let expected = [&expected[..], &[("F", "published")]].concat();
        assert_eq!(states(&program, &group).await, with_states(&expected));

        // A was edited, and the schedules of D and E were changed and cancelled.
        edit("A", json!({"description": "by hand"})).await;
        edit("D", json!({"at": "2198-01-01T00:00:00.000Z"})).await;
        edit("E", json!({"at": null})).await;
        edit("F", json!({"description": "by hand"})).await;
        for title in ["A", "B", "C"] {
            source(title, "");
        }
        for title in ["D", "E"] {
            source(title, "publishDate: 2199-06-07\n");
        }
        source("F", "draft: true\ndescription: at the source\n");
        let (found, told) = import();
        assert_eq!(found, "0 imported, 3 updated, 2 unchanged, 1 with conflicts, 0 with problems");
        assert!(told.contains("2 published, 0 scheduled, 1 unpublished"), "{told}");
        let withheld = "1 x published posts whose pieces were changed or unpublished in Galley";
        assert!(told.contains(withheld), "{told}");
        let other = "draft 2198-01-01T00:00:00.000Z";
        let expected = [("A", "draft"), ("B", "published"), ("C", "published"), ("D", other)];
        let expected = [&expected[..], &[("E", "draft"), ("F", "draft")]].concat();
        assert_eq!(states(&program, &group).await, with_states(&expected));
    }
}

#[on_both_engines]
async fn variants_are_published_with_their_pieces_and_their_drafts_are_left_out(store: TestStore) {
    let folder = store.directory().join("blog");
    let program = Program::serve(&store, free_port());
    let source = |title: &str| format!("---\ntitle: {title}\n---\nText\n");
    let site = new_token(&store, &["--view", "published"]);
    for by_url in [false, true] {
        let group = new_group(&program, if by_url { "By URL" } else { "Direct" }).await;
        let flags = ["--variants", "en,de,fr,it", "--group", &group];
        let shown = async |variant: &str| {
            let path = format!("/content-pieces/list?contentGroupId={group}&variant={variant}");
            let list = program.client.get(format!("{}{path}", program.url)).bearer_auth(&site);
            list.send().await.unwrap().json::<Value>().await.unwrap()[0]["title"].clone()
        };
        write(&folder.join("a.md"), source("A"));
        write(&folder.join("a.de.md"), source("Ah"));
        write(&folder.join("a.fr.md"), source("Aa"));
        write(&folder.join("a.it.md"), "---\ntitle: Draft\ndraft: true\n---\nText\n");
        assert_eq!(
            import(&store, &program, by_url, &flags),
            "1 imported, 2 updated, 0 unchanged, 0 with conflicts, 0 with problems"
        );
        assert_eq!((shown("de").await, shown("fr").await), (json!("Ah"), json!("Aa")));
        assert_eq!(states(&program, &group).await, with_states(&[("A", "published")]));
        write(&folder.join("a.de.md"), source("Ah!"));
        write(&folder.join("a.fr.md"), source("Aa!"));
        write(&folder.join("a.it.md"), source("Ai"));
        assert_eq!(
            import(&store, &program, by_url, &flags),
            "0 imported, 3 updated, 1 unchanged, 0 with conflicts, 0 with problems"
        );
        assert_eq!((shown("de").await, shown("fr").await), (json!("Ah!"), json!("Aa!")));
        assert_eq!(shown("it").await, json!("Ai"));
        assert_eq!(states(&program, &group).await, with_states(&[("A", "published")]));
    }
}

#[on_both_engines]
async fn an_import_without_the_permission_to_publish_is_continued_by_the_next_one(
    store: TestStore,
) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    let program = Program::serve(&store, free_port());
    let resources = ["contentPieces", "contentGroups", "tags", "variants", "workspaceMemberships"];
    let mut permissions = resources.map(|name| format!("--permission={name}:read")).to_vec();
    permissions.push("--permission=contentPieces:write".to_owned());
    let permissions: Vec<_> = permissions.iter().map(String::as_str).collect();
    let token = new_token(&store, &permissions);
    let mut command = galley(&store);
    command.arg("import").arg(&folder).args(["--url", &program.url, "--token", &token]);
    let output = run(&mut command);
    assert!(!output.status.success(), "{output:?}");
    for words in ["publishing:write", "--no-publish"] {
        assert!(stderr(&output).contains(words), "{output:?}");
    }
    let group = program.group().await;
    assert_eq!(states(&program, &group).await, with_states(&[("A", "draft")]));
    let same = "0 imported, 0 updated, 1 unchanged, 0 with conflicts, 0 with problems";
    assert_eq!(import(&store, &program, true, &[]), same);
    assert_eq!(states(&program, &group).await, with_states(&[("A", "published")]));
    // The change of a published piece is interrupted before its publication.
    write(&folder.join("a.md"), "---\ntitle: A\n---\nChanged\n");
    assert!(!run(&mut command).status.success());
    assert_eq!(states(&program, &group).await, with_states(&[("A", "changed")]));
    assert_eq!(import(&store, &program, true, &[]), same);
    assert_eq!(states(&program, &group).await, with_states(&[("A", "published")]));
}

#[on_both_engines]
async fn exports_name_drafts_and_export_the_published_view(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText\n");
    write(&folder.join("b.md"), "---\ntitle: B\n---\nText\n");
    write(&folder.join("c.md"), "---\ntitle: C\ndraft: true\n---\nText\n");
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    let out = store.directory().join("out");
    let export = |more: &[&str]| {
        let output = run(galley(&store).arg("export").arg(&out).args(more));
        assert!(output.status.success(), "{output:?}");
        ["a", "b", "c"].map(|name| {
            let text = std::fs::read_to_string(out.join(format!("{name}.md"))).ok()?;
            Some((text.contains("\ndraft: true\n"), text.contains("by hand")))
        })
    };
    import(&store, &program, false, &["--no-publish"]);
    // Nothing is published, so drafts are nothing special.
    assert_eq!(export(&[]), [Some((false, false)); 3]);
    import(&store, &program, false, &[]);
    edit(&program, "B", json!({"description": "by hand"})).await;
    assert_eq!(export(&[]), [Some((false, false)), Some((true, true)), Some((true, false))]);
    // The files have the states that the pieces have.
    let before = states(&program, &group).await;
    assert_eq!(before, with_states(&[("A", "published"), ("B", "changed"), ("C", "draft")]));
    let output = run(galley(&store).arg("import").arg(&out));
    assert_eq!(
        summary(&output),
        "0 imported, 0 updated, 3 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(states(&program, &group).await, before);
    assert_eq!(
        export(&["--view", "published"]),
        [Some((false, false)), Some((false, false)), None]
    );
}

#[on_both_engines]
async fn an_exported_file_does_not_replace_the_noted_source(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "---\ntitle: A\n---\nText *one*\n");
    let program = Program::serve(&store, free_port());
    assert!(run(galley(&store).args(["group", "create", "Posts/Below"])).status.success());
    import(&store, &program, false, &["--group", "Posts/Below"]);
    let out = store.directory().join("out");
    let export = || assert!(run(galley(&store).arg("export").arg(&out)).status.success());
    let back = || summary(&run(galley(&store).arg("import").arg(&out)));
    export();
    // The file is found by its id, also in a subgroup.
    let same = "0 imported, 0 updated, 1 unchanged, 0 with conflicts, 0 with problems";
    assert_eq!(back(), same);
    edit(&program, "A", json!({"description": "by hand"})).await;
    assert_eq!(import(&store, &program, false, &["--group", "Posts/Below"]), same);
    export();
    let file = out.join("Below/a.md");
    let text = std::fs::read_to_string(&file).unwrap();
    write(&file, text.replace("by hand", "in the file"));
    assert_eq!(back(), "0 imported, 0 updated, 0 unchanged, 1 with conflicts, 0 with problems");
    let forced = run(galley(&store).arg("import").arg(&out).arg("--overwrite"));
    assert_eq!(
        summary(&forced),
        "0 imported, 1 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(import(&store, &program, false, &["--group", "Posts/Below"]), same);
    write(&file, text.replace("by hand", "again"));
    assert_eq!(back(), "0 imported, 1 updated, 0 unchanged, 0 with conflicts, 0 with problems");
}

#[on_both_engines]
async fn the_report_names_every_loss_with_its_first_source(store: TestStore) {
    let folder = store.directory().join("blog");
    write(
        &folder.join("2020/07/27/dated.md"),
        "---\ntitle: Dated\n---\n![a](img/a.png) and text[^1]\n\n![b](img/b.png)\n\n[^1]: Note\n",
    );
    write(
        &folder.join("_index.md"),
        "---\ntitle: Section\n---\nA {{ shortcode(x=1) }} and missing[^2]\n",
    );
    write(
        &folder.join("path.md"),
        "+++\ntitle = \"Path\"\npath = \"inside/2020/07/28/path\"\n+++\n## Two {#two}\n\n[there](#two) [gone](#three) [file](../other.md)\n",
    );
    write(&folder.join("img/a.png"), "png");
    write(&folder.join("img/b.png"), "png");
    write(&folder.join("LICENSE"), "text");
    let program = Program::serve(&store, free_port());
    let report = store.directory().join("report.json");
    let output = run(galley(&store).arg("import").arg(&folder).arg("--report").arg(&report));
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "2 x *.png files img/a.png",
        "1 x files without an extension LICENSE",
        "2 x a date from the path 2020/07/27/dated.md",
        "1 x _index files as pieces _index.md",
        "1 x a date _index.md",
        "1 x {#id} of headings path.md",
        "1 x links of footnotes, which become numbers and a list 2020/07/27/dated.md",
        "2 x images at relative addresses 2020/07/27/dated.md",
        "1 x links to anchors that the piece lacks path.md",
        "1 x links at relative addresses path.md",
        "1 x footnotes, which stay as text _index.md",
        "1 x shortcodes or template tags, which stay as text _index.md",
    ] {
        assert!(lines.iter().any(|found| found == line), "{line}: {text}");
    }
    assert!(!text.contains("other kinds"), "{text}");
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let findings = whole["findings"].as_array().unwrap();
    let images = findings.iter().find(|one| one["what"] == "images at relative addresses").unwrap();
    assert_eq!(
        images["places"],
        json!([{"source": "2020/07/27/dated.md", "count": 2, "details": ["img/a.png", "img/b.png"]}])
    );
    let pieces = program.pieces("sort=title&content=true&contentFormat=html").await;
    assert_eq!(pieces[0]["date"], "2020-07-27T00:00:00.000Z");
    assert_eq!(pieces[1]["date"], "2020-07-28T00:00:00.000Z");
    assert!(pieces[1]["content"].as_str().unwrap().starts_with("<h2>Two</h2>"), "{pieces:?}");
}

#[on_both_engines]
async fn groups_are_created_moved_and_deleted_by_their_paths(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let group = |arguments: &[&str]| run(galley(&store).arg("group").args(arguments));
    let created = group(&["create", "Published/Rust Blog"]);
    assert!(created.status.success(), "{created:?}");
    let id = stdout(&created).trim().to_owned();
    let listed = stdout(&group(&["list"]));
    let paths: Vec<_> = listed.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(paths, ["Posts", "Published", "Published/Rust Blog"]);
    assert!(stderr(&group(&["create", "Published/Rust Blog"])).contains("exists already"));
    write(&store.directory().join("blog/a.md"), "# A\n");
    import(&store, &program, false, &["--group", "Published/Rust Blog"]);
    import(&store, &program, true, &["--group", "Published/Rust Blog"]);
    assert_eq!(program.pieces(&format!("contentGroupId={id}")).await.len(), 1);
    let exported = run(galley(&store).args(["export", "out", "--group", "Published"]));
    assert!(
        stdout(&exported).starts_with("1 piece and 0 in variants: 1 file written"),
        "{exported:?}"
    );
    assert!(store.directory().join("out/Rust Blog/a.md").exists(), "{exported:?}");
    let token = run(galley(&store).args(["token", "create", "--group", "Published/Rust Blog"]));
    assert!(token.status.success(), "{token:?}");
    assert!(group(&["move", "Published/Rust Blog", "Posts"]).status.success());
    assert!(stdout(&group(&["list"])).contains("Posts/Rust Blog"));
    assert!(group(&["move", "Posts/Rust Blog", "/"]).status.success());
    let refused = group(&["delete", "Rust Blog"]);
    assert!(!refused.status.success() && stderr(&refused).contains("--recursive"), "{refused:?}");
    assert!(group(&["delete", "Rust Blog", "--recursive"]).status.success());
    let unknown = group(&["delete", "Rust Blog"]);
    assert!(
        stderr(&unknown).contains(
            "the content group Rust Blog does not exist; the top-level groups are: Posts, Published"
        ),
        "{unknown:?}"
    );
    // If two groups have the same path, only their ids identify them.
    for _ in 0..2 {
        let body = json!({"name": "Twin"});
        program.request(Method::POST, "/content-groups").json(&body).send().await.unwrap();
    }
    let twins = group(&["delete", "Twin"]);
    assert!(stderr(&twins).contains("2 content groups have the path Twin"), "{twins:?}");
}
