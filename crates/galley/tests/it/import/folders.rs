//! Import of folders with Markdown files.

use std::process::Command;

use galley_testing::{TestStore, on_both_engines};
use serde_json::{Value, json};

use super::{corpus, summary};
use crate::program::{Program, free_port, galley, run, stderr, stdout, write};

#[on_both_engines]
async fn folders_become_groups_and_languages_variants(store: TestStore) {
    let folder = store.directory().join("docs");
    write(&folder.join("guide/start.md"), "---\ntitle: Start\n---\nHello\n");
    write(&folder.join("guide/start.de.md"), "---\ntitle: Anfang\n---\nHallo\n");
    write(&folder.join("de/guide/deep/more.md"), "---\ntitle: Mehr\n---\nMehr\n");
    write(&folder.join("en/guide/deep/more.md"), "---\ntitle: More\n---\nMore\n");
    write(&folder.join("fr/only.md"), "---\ntitle: Seul\n---\nSeul\n");
    write(
        &folder.join("page.html"),
        "<html><head><title>Page</title></head><body><nav>x</nav><main><p>Text</p></main></body></html>",
    );
    let program = Program::serve(&store, free_port());
    let import = || {
        run(galley(&store).arg("import").arg(&folder).args(["--groups", "--variants", "en,de,fr"]))
    };
    let dry = run(galley(&store).arg("import").arg(&folder).args([
        "--groups",
        "--variants",
        "en,de,fr",
        "--dry-run",
    ]));
    assert_eq!(
        summary(&dry),
        "3 would be imported, 2 updated, 0 unchanged, 0 with conflicts, 1 with problems"
    );
    let output = import();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        summary(&output),
        "3 imported, 2 updated, 0 unchanged, 0 with conflicts, 1 with problems"
    );
    let problem = "only.md: it would be a variant of a piece with this name in en, \
                   which does not exist";
    assert!(stderr(&output).contains(problem), "{output:?}");
    let groups =
        program.get(&format!("/content-groups/list?ancestor={}", program.group().await)).await;
    assert_eq!(groups.as_array().unwrap().len(), 1);
    assert_eq!(groups[0]["name"], "guide");
    let in_variant = program.pieces("variant=de&content=true&contentFormat=markdown").await;
    let texts: Vec<_> = in_variant
        .iter()
        .map(|piece| (piece["title"].as_str().unwrap(), piece["content"].as_str().unwrap()))
        .collect();
    assert!(
        texts.contains(&("Anfang", "Hallo\n")) && texts.contains(&("Mehr", "Mehr\n")),
        "{texts:?}"
    );
    assert!(texts.contains(&("Page", "Text\n")), "{texts:?}");
    let own = program.pieces("content=true").await;
    assert!(
        own.iter()
            .any(|piece| piece["title"] == "Start" && piece["contentGroupId"] == groups[0]["id"]),
        "{own:?}"
    );
    let before = program.position().await;
    assert_eq!(
        summary(&import()),
        "0 imported, 0 updated, 5 unchanged, 0 with conflicts, 1 with problems"
    );
    assert_eq!(program.position().await, before);
    let wrong = run(galley(&store).arg("import").arg(&folder).args(["--variants", "en,d\u{e9}"]));
    assert!(stderr(&wrong).contains("--variants: the language \"d\u{e9}\""), "{wrong:?}");
}

#[on_both_engines]
async fn a_folder_is_imported_once_and_updated_after_that(store: TestStore) {
    let folder = store.directory().join("blog");
    write(
        &folder.join("2024-05-06-first.md"),
        "---\ntitle: First\ntags: [a, b]\n---\nHello *you*.\n",
    );
    write(
        &folder.join("trip/index.md"),
        "+++\ntitle = \"Trip\"\ndate = 2024-07-01\n[taxonomies]\ntags = [\"b\"]\n+++\n# Away\n",
    );
    write(&folder.join("plain.markdown"), "# A heading\n\nText\n");
    write(&folder.join("picture.png"), [0x89, b'P']);
    write(&folder.join(".hidden/draft.md"), "x");
    let program = Program::serve(&store, free_port());
    let import = || run(galley(&store).arg("import").arg(&folder).args(["--tag", "blog"]));
    let first = import();
    assert!(first.status.success(), "{first:?}");
    assert_eq!(
        summary(&first),
        "3 imported, 0 updated, 0 unchanged, 0 with conflicts, 0 with problems"
    );
    let pieces = program.pieces("content=true&contentFormat=markdown").await;
    let column =
        |key: &str| -> Vec<Value> { pieces.iter().map(|piece| piece[key].clone()).collect() };
    assert_eq!(column("slug"), ["first", "plain", "trip"]);
    assert_eq!(column("title"), ["First", "A heading", "Trip"]);
    assert_eq!(column("filename"), ["2024-05-06-first.md", "plain.markdown", "trip/index.md"]);
    assert_eq!(
        column("date"),
        [json!("2024-05-06T00:00:00.000Z"), Value::Null, json!("2024-07-01T00:00:00.000Z")]
    );
    assert_eq!(pieces[0]["content"].as_str().unwrap().trim(), "Hello _you_.");
    let labels: Vec<_> = pieces[0]["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["blog", "a", "b"]);

    let second = import();
    assert_eq!(
        summary(&second),
        "0 imported, 0 updated, 3 unchanged, 0 with conflicts, 0 with problems"
    );
    write(&folder.join("plain.markdown"), "# A heading\n\nOther text\n");
    let third = import();
    assert_eq!(
        summary(&third),
        "0 imported, 1 updated, 2 unchanged, 0 with conflicts, 0 with problems"
    );
    assert_eq!(program.pieces("").await.len(), 3);
    assert_eq!(program.get("/tags/list").await.as_array().unwrap().len(), 3, "made once");
}

#[on_both_engines]
async fn unreadable_files_are_reported_and_all_others_imported(store: TestStore) {
    let folder = store.directory().join("blog");
    write(&folder.join("good.md"), "---\ntitle: Good\n---\nText\n");
    write(&folder.join("bad-toml.md"), "+++\ntitle = \"A\"\nslug = \n+++\nText\n");
    write(&folder.join("bad-yaml.md"), "---\ntitle: A\ntags: [\n---\nText\n");
    write(&folder.join("open.md"), "+++\ntitle = \"A\"\n");
    write(&folder.join("bad-date.md"), "---\ntitle: A\ndate: soon\n---\n");
    write(&folder.join("latin1.md"), b"---\ntitle: A\n---\n\nCaf\xe9\n".as_slice());
    write(&folder.join("deep.md"), ">".repeat(400));
    std::fs::File::create(folder.join("huge.md")).unwrap().set_len(100 * 1024 * 1024).unwrap();
    write(&folder.join("nul.md"), "a\0b");
    let tags: Vec<_> = (0..101).map(|number| format!("t{number}")).collect();
    write(&folder.join("tags.md"), format!("---\ntags: [{}]\n---\n", tags.join(", ")));
    write(&folder.join("long.md"), "word ".repeat(500_000));
    assert!(Command::new("mkfifo").arg(folder.join("pipe.md")).status().unwrap().success());
    write(&folder.join("nul-in-title.md"), "---\ntitle: \"a\\0b\"\n---\n");
    write(&folder.join("unsafe.md"), "---\ndescription: <script>x</script><b>ok</b>\n---\n");
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link.md")).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("loop")).unwrap();
    run(galley(&store).arg("init").env("GALLEY_INIT_TOKEN", crate::program::init_token()));
    let output = run(galley(&store).arg("import").arg(&folder));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        summary(&output),
        "2 imported, 0 updated, 0 unchanged, 0 with conflicts, 14 with problems"
    );
    let told = stderr(&output);
    for place in [
        "bad-toml.md:3:",
        "bad-yaml.md:3:",
        "open.md:1:",
        "bad-date.md: date \"soon\"",
        "latin1.md:5:",
        "deep.md: ",
        "huge.md: has 104857600 bytes, more than the limit of 8388608",
        "nul.md: ",
        "nul-in-title.md: title must not contain NUL",
        "link.md: is a link",
        "loop: is a link",
        "tags.md: tags has 101 items",
        "long.md: the text has ",
        "pipe.md: is not a file",
    ] {
        assert!(told.contains(place), "{place} is not named in:\n{told}");
    }
    let program = Program::serve(&store, free_port());
    assert_eq!(program.pieces("slug=unsafe").await[0]["description"], "<b>ok</b>");
}

#[on_both_engines]
async fn two_files_of_one_name_do_not_overwrite_each_other(store: TestStore) {
    let folder = store.directory();
    write(&folder.join("a/index.md"), "# One\n");
    write(&folder.join("b/index.md"), "# Two\n");
    let program = Program::serve(&store, free_port());
    let both = [folder.join("a/index.md"), folder.join("b/index.md")];
    let output = run(galley(&store).arg("import").args(&both));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("b/index.md: another file has the name"), "{output:?}");
    assert_eq!(program.pieces("").await[0]["title"], "One");
}

#[on_both_engines]
async fn a_real_blog_is_imported_completely(store: TestStore) {
    let Some(posts) = corpus() else { return };
    let program = Program::serve(&store, free_port());
    let output = run(galley(&store).arg("import").arg(&posts).args(["--tag", "Rust"]));
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).starts_with("112 imported"), "{output:?}");
    let pieces = program.pieces("").await;
    assert_eq!(pieces.len(), 112);
    let tag = program.get("/tags/list").await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(program.pieces(&format!("tagId={tag}")).await.len(), 112);
    for piece in &pieces {
        let slug = piece["slug"].as_str().unwrap();
        let encoded = slug.replace('@', "%40");
        let by_slug = program.get(&format!("/content-pieces/list?slug={encoded}")).await;
        assert_eq!(by_slug[0]["id"], piece["id"], "{slug}");
        let id = piece["id"].as_str().unwrap();
        let get = async |format: &str| {
            let path = format!("/content-pieces?id={id}&content=true&contentFormat={format}");
            program.get(&path).await["content"].clone()
        };
        let tree = get("json").await;
        assert_eq!(tree["type"], "doc", "{slug}");
        assert!(tree["content"].as_array().is_some_and(|blocks| !blocks.is_empty()), "{slug}");
        assert!(get("html").await.as_str().is_some_and(|html| html.contains("</p>")), "{slug}");
        assert!(get("markdown").await.as_str().is_some_and(|text| text.len() > 100), "{slug}");
    }
    let again = run(galley(&store).arg("import").arg(&posts).args(["--tag", "Rust"]));
    assert!(stdout(&again).starts_with("0 imported, 0 updated, 112 unchanged"), "{again:?}");
}
