//! `galley import` of folders, checked through the API.

mod assets;
mod folders;

use std::path::PathBuf;

use galley_testing::{TestStore, on_both_engines, report_skipped};
use serde_json::{Value, json};

use crate::program::{Program, free_port, galley, run, stderr, stdout, write};

/// Returns a folder of real posts, if one exists beside the repository.
pub(crate) fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/posts");
    let path =
        std::env::var_os("GALLEY_TEST_POSTS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    report_skipped(&format!("a real blog: there are no posts in {}", path.display()));
    None
}

/// Returns the first line of the report.
pub(crate) fn summary(output: &std::process::Output) -> String {
    stdout(output).lines().next().unwrap_or_default().to_owned()
}

pub(crate) const WORDPRESS: &str = r#"<?xml version="1.0" encoding="UTF-8" ?>
<!-- generator="WordPress/6.5" -->
<rss version="2.0" xmlns:excerpt="http://wordpress.org/export/1.2/excerpt/" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
<title>Diary &amp; more</title><link>https://diary.example.org</link><language>en-GB</language>
<wp:wxr_version>1.2</wp:wxr_version><wp:base_blog_url>https://diary.example.org</wp:base_blog_url>
<wp:author><wp:author_id>1</wp:author_id><wp:author_login><![CDATA[ann]]></wp:author_login>
 <wp:author_email><![CDATA[ann@example.org]]></wp:author_email><wp:author_display_name><![CDATA[Ann Example]]></wp:author_display_name></wp:author>
<wp:category><wp:term_id>2</wp:term_id><wp:category_nicename><![CDATA[travel]]></wp:category_nicename></wp:category>
<item><title><![CDATA[Blocks & more]]></title><link>https://diary.example.org/blocks/</link>
 <dc:creator><![CDATA[ann]]></dc:creator><guid isPermaLink="false">https://diary.example.org/?p=7</guid>
 <content:encoded><![CDATA[<!-- wp:paragraph -->
<p>Hello <strong>blocks</strong></p>
<!-- /wp:paragraph -->

<!-- wp:image {"id":9} -->
<figure class="wp-block-image"><img src="https://diary.example.org/a.jpg" alt="A"/></figure>
<!-- /wp:image -->]]></content:encoded>
 <excerpt:encoded><![CDATA[Short]]></excerpt:encoded>
 <wp:post_id>7</wp:post_id><wp:post_date><![CDATA[2024-05-06 12:00:00]]></wp:post_date>
 <wp:post_date_gmt><![CDATA[2024-05-06 10:00:00]]></wp:post_date_gmt><wp:post_name><![CDATA[blocks]]></wp:post_name>
 <wp:status><![CDATA[publish]]></wp:status><wp:post_parent>0</wp:post_parent><wp:post_type><![CDATA[post]]></wp:post_type>
 <wp:is_sticky>1</wp:is_sticky>
 <category domain="category" nicename="travel"><![CDATA[Travel]]></category>
 <category domain="post_tag" nicename="sea"><![CDATA[Sea &amp; sun]]></category>
 <category domain="series" nicename="one"><![CDATA[One]]></category>
 <wp:postmeta><wp:meta_key><![CDATA[_thumbnail_id]]></wp:meta_key><wp:meta_value><![CDATA[9]]></wp:meta_value></wp:postmeta>
 <wp:comment><wp:comment_id>1</wp:comment_id><wp:comment_content><![CDATA[Nice]]></wp:comment_content></wp:comment>
</item>
<item><title>Classic</title><dc:creator><![CDATA[bob]]></dc:creator>
 <content:encoded><![CDATA[One
two

[caption id="x" width="3"]<img src="/b.png" /> Words[/caption]

[gallery ids="1,2"]]]></content:encoded><excerpt:encoded></excerpt:encoded>
 <wp:post_id>8</wp:post_id><wp:post_date>2024-05-07 10:00:00</wp:post_date><wp:post_date_gmt>0000-00-00 00:00:00</wp:post_date_gmt>
 <wp:post_name>gr%C3%BC%C3%9Fe</wp:post_name><wp:status>draft</wp:status><wp:post_type>page</wp:post_type>
 <category domain="category" nicename="uncategorized">Uncategorized</category>
</item>
<item><title>a</title><wp:post_id>9</wp:post_id><wp:status>inherit</wp:status><wp:post_type>attachment</wp:post_type>
 <wp:attachment_url>https://diary.example.org/cover.jpg</wp:attachment_url></item>
<item><title>Menu</title><wp:post_id>10</wp:post_id><wp:status>publish</wp:status><wp:post_type>nav_menu_item</wp:post_type></item>
<item><title>Gone</title><wp:post_id>11</wp:post_id><wp:status>trash</wp:status><wp:post_type>post</wp:post_type></item>
</channel>
</rss>
"#;

pub(crate) const GHOST: &str = r##"{"db":[{"meta":{"exported_on":1715000000000,"version":"5.80.0"},"data":{
"posts":[
 {"id":"a1","uuid":"u-1","title":"Hello","slug":"hello","html":"<p>Hi <a href=\"__GHOST_URL__/x/\">x</a></p>","mobiledoc":null,
  "lexical":"{}","feature_image":"__GHOST_URL__/content/images/c.jpg","status":"published","type":"post","visibility":"members",
  "custom_excerpt":"Short","canonical_url":null,"published_at":"2024-05-06T10:00:00.000Z","created_at":"2024-05-01T10:00:00.000Z"},
 {"id":"a2","uuid":"u-2","title":"Draft","slug":"draft","html":"<p>Later</p>","status":"draft","type":"page",
  "published_at":null,"created_at":"2024-05-02T10:00:00.000Z"},
 {"id":"a3","uuid":"u-3","title":"New","slug":"new","html":null,"lexical":"{\"root\":{}}","status":"published","type":"post",
  "published_at":"2024-05-03T10:00:00.000Z"}],
"posts_meta":[{"post_id":"a1","feature_image_alt":"A cover"}],
"tags":[{"id":"t1","name":"News","slug":"news","visibility":"public"},{"id":"t2","name":"#draft","slug":"hash-draft","visibility":"internal"},
 {"id":"t3","name":"First","slug":"first","visibility":"public"}],
"posts_tags":[{"post_id":"a1","tag_id":"t1","sort_order":1},{"post_id":"a1","tag_id":"t3","sort_order":0},{"post_id":"a1","tag_id":"t2","sort_order":2}],
"users":[{"id":"1","name":"Ann Example"}],"posts_authors":[{"post_id":"a1","author_id":"1","sort_order":0}]}}]}"##;

fn labels(piece: &Value) -> Vec<String> {
    piece["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["label"].as_str().unwrap().to_owned())
        .collect()
}

#[on_both_engines]
async fn wordpress_exports_are_imported_and_losses_reported(store: TestStore) {
    let file = store.directory().join("diary.xml");
    write(&file, WORDPRESS);
    let program = Program::serve(&store, free_port());
    let people = json!({"email": "ann@example.org", "name": "Ann Example",
        "roleId": program.get("/roles/list").await[1]["id"]});
    let invited =
        program.request(reqwest::Method::POST, "/workspace-memberships").json(&people).send().await;
    let member = invited.unwrap().json::<Value>().await.unwrap()["id"].clone();
    let output = run(galley(&store).arg("import").arg(&file));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        summary(&output),
        "2 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
    let told = stdout(&output);
    for line in [
        "1 x attachments",
        "1 x items of the type nav_menu_item",
        "1 x posts of the status trash",
        "1 x comments",
        "1 x texts with shortcodes",
        "1 x drafts",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let pieces = program.pieces("content=true&contentFormat=html").await;
    let (blocks, classic) = (&pieces[0], &pieces[1]);
    assert_eq!((&blocks["title"], &blocks["slug"]), (&json!("Blocks & more"), &json!("blocks")));
    assert_eq!(blocks["date"], "2024-05-06T10:00:00.000Z");
    let operator = json!({"type": "system", "id": null, "memberId": null, "name": null});
    assert_eq!((&blocks["createdBy"], &blocks["updatedBy"]), (&operator, &operator));
    assert_eq!(
        (&blocks["description"], &blocks["coverUrl"]),
        (&json!("Short"), &json!("https://diary.example.org/cover.jpg"))
    );
    assert_eq!(labels(blocks), ["Travel", "Sea & sun"]);
    assert_eq!(blocks["members"][0]["id"], member);
    let content = blocks["content"].as_str().unwrap();
    assert!(
        content.contains("<p>Hello <strong>blocks</strong></p>") && content.contains("a.jpg"),
        "{content}"
    );
    let data: Value = serde_json::from_str(blocks["customData"].as_str().unwrap()).unwrap();
    assert_eq!(
        data,
        json!({"series": ["One"], "link": "https://diary.example.org/blocks/", "sticky": "1", "authors": ["Ann Example"]})
    );
    assert_eq!(
        (&classic["slug"], &classic["date"]),
        (&json!("gr\u{fc}\u{df}e"), &json!("2024-05-07T10:00:00.000Z"))
    );
    let content = classic["content"].as_str().unwrap();
    assert!(content.starts_with("<p>One<br>two</p>") && content.contains("[gallery"), "{content}");
    assert!(!content.contains("[caption") && content.contains("Words"), "{content}");
    let data: Value = serde_json::from_str(classic["customData"].as_str().unwrap()).unwrap();
    assert_eq!(data, json!({"type": "page", "status": "draft", "authors": ["bob"]}));

    let before = program.position().await;
    let again = run(galley(&store).arg("import").arg(&file));
    assert_eq!(
        summary(&again),
        "0 imported, 0 updated, 2 unchanged, 0 with conflicts, 0 with problems"
    );
    let published = run(galley(&store).arg("import").arg(&file).arg("--no-drafts"));
    assert_eq!(
        summary(&published),
        "0 imported, 0 updated, 1 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(program.position().await, before);
    write(&file, WORDPRESS.replace("Hello <strong>", "Hi <strong>"));
    let changed = run(galley(&store).arg("import").arg(&file));
    assert_eq!(
        summary(&changed),
        "0 imported, 1 updated, 1 unchanged, 0 with conflicts, 0 with problems"
    );
}

#[on_both_engines]
async fn ghost_exports_are_imported_and_losses_reported(store: TestStore) {
    let file = store.directory().join("ghost.json");
    write(&file, GHOST);
    let program = Program::serve(&store, free_port());
    let output = run(galley(&store).arg("import").arg(&file));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        summary(&output),
        "2 imported, 0 updated, 0 unchanged, 0 with conflicts, 1 with problems"
    );
    assert!(stderr(&output).contains("new: its text is only in Ghost's own format"), "{output:?}");
    let pieces = program.pieces("content=true&contentFormat=html").await;
    let hello = &pieces[0];
    // A post for members of the site is not made public.
    assert!(stdout(&output).contains("1 x posts for members of the site"), "{output:?}");
    assert_eq!(hello["publication"]["state"], "draft");
    assert_eq!((&hello["title"], &hello["slug"]), (&json!("Hello"), &json!("hello")));
    assert_eq!(
        (&hello["coverUrl"], &hello["coverAlt"]),
        (&json!("/content/images/c.jpg"), &json!("A cover"))
    );
    assert_eq!(
        (&hello["date"], &hello["description"]),
        (&json!("2024-05-06T10:00:00.000Z"), &json!("Short"))
    );
    assert_eq!(labels(hello), ["First", "News"]);
    assert!(hello["content"].as_str().unwrap().contains("href=\"/x/\""), "{hello}");
    let data: Value = serde_json::from_str(hello["customData"].as_str().unwrap()).unwrap();
    assert_eq!(
        data,
        json!({"visibility": "members", "authors": ["Ann Example"], "internalTags": ["#draft"]})
    );
    let before = program.position().await;
    let again = run(galley(&store).arg("import").arg(store.directory()));
    assert_eq!(
        summary(&again),
        "0 imported, 0 updated, 2 unchanged, 0 with conflicts, 1 with problems"
    );
    assert_eq!(program.position().await, before);
}

#[on_both_engines]
async fn authors_become_the_members_with_their_address_or_unique_name(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let role = program.get("/roles/list").await[1]["id"].clone();
    let mut invited = Vec::new();
    for email in ["other@example.org", "ann@example.org", "cleo@example.org"] {
        let name = if email.starts_with("cleo") { "Cleo" } else { "Ann Example" };
        let person = json!({"email": email, "name": name, "roleId": role});
        let path = "/workspace-memberships";
        let response = program.request(reqwest::Method::POST, path).json(&person).send().await;
        invited.push(response.unwrap().json::<Value>().await.unwrap()["id"].clone());
    }
    let folder = store.directory().join("site");
    write(&folder.join("diary.xml"), WORDPRESS);
    let named = "\"name\":\"Ann Example\"";
    let with_address = format!("{named},\"email\":\"Ann@Example.org\"");
    write(&folder.join("ghost.json"), GHOST.replace(named, &with_address));
    for (file, author) in
        [("shared", "Ann Example"), ("address", "other@example.org"), ("name", "cleo")]
    {
        write(&folder.join(file).with_extension("md"), format!("---\nauthor: {author}\n---\n"));
    }
    let expected = [
        ("blocks", vec![&invited[1]]),
        ("hello", vec![&invited[1]]),
        ("shared", vec![]),
        ("address", vec![&invited[0]]),
        ("name", vec![&invited[2]]),
    ];
    let group = json!({"name": "Elsewhere"});
    let request = program.request(reqwest::Method::POST, "/content-groups").json(&group);
    assert!(request.send().await.unwrap().status().is_success());
    let elsewhere = ["--url", &program.url, "--token", &program.token, "--group", "Elsewhere"];
    for arguments in [&[][..], &elsewhere] {
        let output = run(galley(&store).arg("import").arg(&folder).args(arguments));
        assert!(summary(&output).starts_with("7 imported"), "{output:?}");
    }
    let pieces = program.pieces("content=false").await;
    for (slug, members) in expected {
        let of_slug: Vec<_> = pieces.iter().filter(|piece| piece["slug"] == slug).collect();
        assert_eq!(of_slug.len(), 2, "{slug}: {pieces:?}");
        for piece in of_slug {
            let found: Vec<_> =
                piece["members"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
            assert_eq!(found, members, "{slug}");
        }
    }
}

#[on_both_engines]
async fn a_malformed_row_excludes_only_itself(store: TestStore) {
    let ghost = store.directory().join("ghost.json");
    let odd = GHOST
        .replace("\"title\":\"Draft\"", "\"title\":null")
        .replace("{\"id\":\"t3\",\"name\":\"First\"", "{\"id\":\"t3\",\"name\":7")
        .replace("\"slug\":\"new\"", "\"slug\":\"\"");
    write(&ghost, format!("\u{feff}{odd}"));
    let diary = store.directory().join("diary.xml");
    let twice = WORDPRESS.replace("<wp:post_id>8<", "<wp:post_id>7<");
    write(
        &diary,
        twice
            .replace("<title>Diary &amp; more</title>", "<title>Diary&nbsp;&hellip;</title>")
            .replace("<title>Classic</title>", "<title>Caf&eacute;</title>"),
    );
    write(&store.directory().join("blog/a.md"), "---\ntitle: 2024\ndate: 20240506\n---\n");
    write(&store.directory().join("blog/b.md"), "---\ndate: 1715000000\n---\n");
    write(&store.directory().join("blog/\u{1b}[31m.md"), "---\ndate: soon\n---\n");
    let program = Program::serve(&store, free_port());
    let import = |path: &std::path::Path| run(galley(&store).arg("import").arg(path));
    let output = import(&ghost);
    assert_eq!(
        summary(&output),
        "2 imported, 0 updated, 0 unchanged, 0 with conflicts, 2 with problems",
        "{output:?}"
    );
    assert!(
        stderr(&output).contains("a row of tags, \"First\"")
            || stderr(&output).contains("a row of tags, \"first\""),
        "{output:?}"
    );
    assert!(stderr(&output).contains("a3: its text is only in Ghost's own format"), "{output:?}");
    for _ in 0..2 {
        let output = import(&diary);
        assert!(stdout(&output).contains("1 with problems"), "{output:?}");
        let problem = "?p=7: an earlier source has the same id";
        assert!(stderr(&output).contains(problem), "{output:?}");
    }
    let output = import(&store.directory().join("blog"));
    assert_eq!(
        summary(&output),
        "1 imported, 0 updated, 0 unchanged, 0 with conflicts, 2 with problems",
        "{output:?}"
    );
    assert!(
        stderr(&output).contains("b.md: date \"1715000000\" is not an ISO 8601 date"),
        "{output:?}"
    );
    assert!(!stderr(&output).contains('\u{1b}'), "{output:?}");
    let pieces = program.pieces("").await;
    let mut titles: Vec<_> = pieces.iter().map(|piece| piece["title"].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["2024", "Blocks & more", "Hello", "draft"]);
    let by_number = pieces.iter().find(|piece| piece["title"] == "2024").unwrap();
    assert_eq!(by_number["date"], "2024-05-06T00:00:00.000Z");
}

#[on_both_engines]
async fn broken_exports_are_reported_with_their_line(store: TestStore) {
    let directory = store.directory();
    let bomb = "<?xml version=\"1.0\"?>\n<!DOCTYPE rss [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>\n\
        <rss><channel><wp:wxr_version>1.2</wp:wxr_version>\n<title>&b;</title></channel></rss>";
    let cut = WORDPRESS.find("<wp:post_id>8").unwrap();
    let entity = WORDPRESS
        .replace("<item><title><![CDATA[Blocks & more]]></title>", "<item><title>&bogus;</title>");
    for (name, text, place, imported) in [
        ("bomb.xml", bomb.as_bytes(), ":4: contains the entity &b;", 0),
        (
            "cut.xml",
            &WORDPRESS.as_bytes()[..cut],
            "the file is truncated; the rest was not read",
            1,
        ),
        ("entity.xml", entity.as_bytes(), "contains the entity &bogus;", 1),
        ("feed.xml", b"<rss><channel></channel></rss>".as_slice(), ":1: is not a WordPress export", 0),
        ("text.xml", b"<rss>\n<channel>\n</rss>".as_slice(), ":3: is not XML", 0),
        ("latin.xml", b"<rss><channel><wp:wxr_version>1</wp:wxr_version>\n<title>\xe9</title></channel></rss>".as_slice(), ":2: is not XML", 0),
        ("cut.json", &GHOST.as_bytes()[..500], ": is not a Ghost export", 0),
        ("list.json", b"[]".as_slice(), ":1: is not a Ghost export", 0),
    ] {
        let store = if matches!(store.url, galley_storage::DatabaseUrl::Sqlite(_)) {
            galley_testing::TestStore::sqlite()
        } else {
            galley_testing::TestStore::postgres().await.unwrap()
        };
        assert!(run(galley(&store).arg("init")).status.success());
        let file = directory.join(name);
        write(&file, text);
        let output = run(galley(&store).arg("import").arg(&file));
        assert_eq!(output.status.code(), Some(1), "{name}: {output:?}");
        assert!(stderr(&output).contains(place), "{name}: {output:?}");
        assert!(stdout(&output).starts_with(&format!("{imported} imported")), "{name}: {output:?}");
    }
}

#[on_both_engines]
async fn an_interrupted_import_continues(store: TestStore) {
    const PIECES: usize = 1_000;
    let folder = store.directory().join("blog");
    for number in 0..PIECES {
        write(
            &folder.join(format!("{number:04}.md")),
            format!("---\ntitle: T {number}\ntags: [a, t{}]\n---\nText\n", number % 7),
        );
    }
    let program = Program::serve(&store, free_port());
    for killed in 1..=4 {
        let before = program.position().await;
        let mut command = galley(&store);
        command
            .arg("import")
            .arg(&folder)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        // The kill comes after the first change, before the import completes.
        while program.position().await == before {
            assert!(child.try_wait().unwrap().is_none(), "{killed}: it ended by itself");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = program.pieces("").await.len();
    assert!((1..PIECES).contains(&before), "{before}: nothing was left to do");
    let last = run(galley(&store).arg("import").arg(&folder));
    assert_eq!(
        summary(&last),
        format!(
            "{} imported, 0 updated, {before} unchanged, 0 with conflicts, 0 with problems",
            PIECES - before
        )
    );
    let mut names: Vec<_> =
        program.pieces("").await.iter().map(|piece| piece["filename"].to_string()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), PIECES, "each once");
    assert_eq!(program.get("/tags/list").await.as_array().unwrap().len(), 8);
}

#[on_both_engines]
async fn a_dry_run_changes_nothing(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "# A\n");
    let program = Program::serve(&store, free_port());
    let output = run(galley(&store).arg("import").arg(&folder).arg("--dry-run"));
    assert!(stdout(&output).starts_with("1 would be imported"), "{output:?}");
    assert!(!stdout(&output).contains("Lost"), "nothing is lost: {output:?}");
    assert_eq!(program.pieces("").await, Vec::<Value>::new());
}

#[on_both_engines]
async fn lost_content_is_summarized_in_the_report(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("a.md"), "# A\n\n<p class=x>a <font>b</font></p>\n");
    write(
        &folder.join("b.md"),
        "# B\n\n<font color=red>c</font> <font>d</font>\n\n<script>e</script>\n",
    );
    assert!(run(galley(&store).arg("init")).status.success());
    for more in [&["--dry-run"][..], &[], &[]] {
        let output = run(galley(&store).arg("import").arg(&folder).args(more));
        assert!(output.status.success(), "{output:?}");
        let text = stdout(&output);
        let lines: Vec<Vec<_>> = text
            .lines()
            .skip_while(|line| !line.starts_with("Lost"))
            .skip(1)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["3", "x", "<font>,", "except", "its", "contents", "a.md"], "{text}");
        let rest =
            [vec!["1", "x", "class", "of", "<p>", "a.md"], vec!["1", "x", "<script>", "b.md"]];
        assert_eq!(lines[1..], rest, "{text}");
    }
}
