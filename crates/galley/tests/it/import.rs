//! `galley import`: a folder of Markdown in, and through the API out again.

use std::path::PathBuf;

use galley_testing::{on_both_engines, skipped};
use serde_json::{Value, json};

use crate::program::{Program, free_port, galley, run, stderr, stdout, write};

/// Real posts, where somebody has put them beside the repository.
fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus/posts");
    let path =
        std::env::var_os("GALLEY_TEST_POSTS").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    skipped(&format!("a real blog: there are no posts in {}", path.display()));
    None
}

on_both_engines! {
    async fn a_folder_is_imported_once_and_updated_after_that(store: TestStore) {
        let folder = store.directory().join("blog");
        write(&folder.join("2024-05-06-first.md"), "---\ntitle: First\ntags: [a, b]\n---\nHello *you*.\n");
        write(&folder.join("trip/index.md"),
            "+++\ntitle = \"Trip\"\ndate = 2024-07-01\n[taxonomies]\ntags = [\"b\"]\n+++\n# Away\n");
        write(&folder.join("plain.markdown"), "# A heading\n\nText\n");
        write(&folder.join("picture.png"), [0x89, b'P']);
        write(&folder.join(".hidden/draft.md"), "x");
        let program = Program::serve(&store, free_port());
        let import = || run(galley(&store).arg("import").arg(&folder).args(["--tag", "blog"]));
        let first = import();
        assert!(first.status.success(), "{first:?}");
        assert_eq!(stdout(&first).trim(), "3 imported, 0 updated, 0 unchanged, 0 with problems");
        let pieces = program.pieces("content=true&contentFormat=markdown").await;
        let column = |key: &str| -> Vec<Value> {
            pieces.iter().map(|piece| piece[key].clone()).collect()
        };
        assert_eq!(column("slug"), ["first", "plain", "trip"]);
        assert_eq!(column("title"), ["First", "A heading", "Trip"]);
        assert_eq!(column("filename"), ["2024-05-06-first.md", "plain.markdown", "trip/index.md"]);
        assert_eq!(column("date"),
            [json!("2024-05-06T00:00:00.000Z"), Value::Null, json!("2024-07-01T00:00:00.000Z")]);
        assert_eq!(pieces[0]["content"].as_str().unwrap().trim(), "Hello _you_.");
        let labels: Vec<_> = pieces[0]["tags"].as_array().unwrap().iter()
            .map(|tag| tag["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["blog", "a", "b"]);

        let second = import();
        assert_eq!(stdout(&second).trim(), "0 imported, 0 updated, 3 unchanged, 0 with problems");
        write(&folder.join("plain.markdown"), "# A heading\n\nOther text\n");
        let third = import();
        assert_eq!(stdout(&third).trim(), "0 imported, 1 updated, 2 unchanged, 0 with problems");
        assert_eq!(program.pieces("").await.len(), 3);
        assert_eq!(program.get("/tags/list").await.as_array().unwrap().len(), 3, "made once");
    }

    async fn what_cannot_be_read_is_named_and_the_rest_imported(store: TestStore) {
        let folder = store.directory().join("blog");
        write(&folder.join("good.md"), "---\ntitle: Good\n---\nText\n");
        write(&folder.join("bad-toml.md"), "+++\ntitle = \"A\"\nslug = \n+++\nText\n");
        write(&folder.join("bad-yaml.md"), "---\ntitle: A\ntags: [\n---\nText\n");
        write(&folder.join("open.md"), "+++\ntitle = \"A\"\n");
        write(&folder.join("bad-date.md"), "---\ntitle: A\ndate: soon\n---\n");
        write(&folder.join("latin1.md"), b"---\ntitle: A\n---\n\nCaf\xe9\n".as_slice());
        write(&folder.join("deep.md"), ">".repeat(400));
        write(&folder.join("nul.md"), "a\0b");
        write(&folder.join("nul-in-title.md"), "---\ntitle: \"a\\0b\"\n---\n");
        write(&folder.join("unsafe.md"), "---\ndescription: <script>x</script><b>ok</b>\n---\n");
        std::os::unix::fs::symlink("/etc/hostname", folder.join("link.md")).unwrap();
        std::os::unix::fs::symlink(&folder, folder.join("loop")).unwrap();
        run(galley(&store).arg("init").env("GALLEY_INIT_TOKEN", crate::program::init_token()));
        let output = run(galley(&store).arg("import").arg(&folder));
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stdout(&output).trim(), "2 imported, 0 updated, 0 unchanged, 10 with problems");
        let told = stderr(&output);
        for place in ["bad-toml.md:3:", "bad-yaml.md:3:", "open.md:1:", "bad-date.md: date \"soon\"",
            "latin1.md:5:", "deep.md: ", "nul.md: ", "nul-in-title.md: title must not contain NUL",
            "link.md: is a link", "loop: is a link"] {
            assert!(told.contains(place), "{place} is not named in:\n{told}");
        }
        let program = Program::serve(&store, free_port());
        assert_eq!(program.pieces("slug=unsafe").await[0]["description"], "<b>ok</b>");
    }

    async fn two_files_of_one_name_do_not_overwrite_each_other(store: TestStore) {
        let folder = store.directory();
        write(&folder.join("a/index.md"), "# One\n");
        write(&folder.join("b/index.md"), "# Two\n");
        let program = Program::serve(&store, free_port());
        let both = [folder.join("a/index.md"), folder.join("b/index.md")];
        let output = run(galley(&store).arg("import").args(&both));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("b/index.md: another file is known as"), "{output:?}");
        assert_eq!(program.pieces("").await[0]["title"], "One");
    }

    async fn a_dry_run_changes_nothing(store: TestStore) {
        let folder = store.directory().join("blog");
        write(&folder.join("a.md"), "# A\n");
        let program = Program::serve(&store, free_port());
        let output = run(galley(&store).arg("import").arg(&folder).arg("--dry-run"));
        assert!(stdout(&output).starts_with("1 would be imported"), "{output:?}");
        assert_eq!(stdout(&output).lines().count(), 1, "nothing is lost: {output:?}");
        assert_eq!(program.pieces("").await, Vec::<Value>::new());
    }

    async fn what_could_not_be_kept_is_summed_up(store: TestStore) {
        let folder = store.directory().join("blog");
        write(&folder.join("a.md"), "# A\n\n<p class=x>a <font>b</font></p>\n");
        write(&folder.join("b.md"), "# B\n\n<font color=red>c</font> <font>d</font>\n\n<script>e</script>\n");
        assert!(run(galley(&store).arg("init")).status.success());
        for more in [&["--dry-run"][..], &[], &[]] {
            let output = run(galley(&store).arg("import").arg(&folder).args(more));
            assert!(output.status.success(), "{output:?}");
            let text = stdout(&output);
            let lines: Vec<Vec<_>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
            assert_eq!(lines[0], ["3", "x", "<font>,", "but", "for", "what", "is", "in", "it", "a.md"], "{text}");
            let rest = [vec!["1", "x", "class", "of", "<p>", "a.md"], vec!["1", "x", "<script>", "b.md"]];
            assert_eq!(lines[1..], rest, "{text}");
        }
    }

    async fn a_blog_goes_in_and_comes_out(store: TestStore) {
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
}
