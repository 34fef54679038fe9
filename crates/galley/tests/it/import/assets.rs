//! Files that imports bring along, and that exports write beside the Markdown.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::Value;

use crate::program::{Program, files, free_port, galley, init_token, run, stderr, stdout, write};

/// Returns a PNG of one pixel. Its end makes it differ from others.
fn png(end: &str) -> Vec<u8> {
    let mut bytes =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \0\0\0\rIDAT\x78\x9c\x63\x60\xa0\x0d\0\0\0\x69\0\x01\x23\x0c\x49\x42\
        \0\0\0\0IEND\xae\x42\x60\x82"
            .to_vec();
    bytes.extend(end.as_bytes());
    bytes
}

/// Writes a blog as generators of static sites have it.
fn write_blog(folder: &Path) {
    write(
        &folder.join("posts/first/index.md"),
        "---\ntitle: First\ncover: cover.png\n---\n![a](a%20b.png)\n\n![root](/images/r.png?v=3)\n\n\
         [paper](../paper.pdf#page=2) [key](../../id_rsa) ![gone](gone.png)\n\n![out](../../../secret.png)\n",
    );
    write(&folder.join("posts/second.md"), "---\ntitle: Second\n---\n![again](first/a%20b.png)\n");
    write(&folder.join("posts/first/a b.png"), png("a"));
    write(&folder.join("posts/first/cover.png"), png("cover"));
    write(&folder.join("static/images/r.png"), png("r"));
    write(&folder.join("posts/paper.pdf"), "%PDF-1.4\n%%EOF\n");
    write(&folder.join("id_rsa"), "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    write(&folder.join("unused.png"), png("unused"));
    write(&folder.parent().unwrap().join("secret.png"), png("secret"));
}

fn import(store: &TestStore, folder: &Path, arguments: &[&str]) -> Output {
    run(galley(store).arg("import").arg(folder).args(arguments))
}

/// Returns the addresses in the HTML of all pieces, and their covers.
async fn addresses(program: &Program) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for piece in program.pieces("content=true&contentFormat=html").await {
        let html = piece["content"].as_str().unwrap().to_owned();
        for attribute in ["src=\"", "href=\""] {
            let parts = html.split(attribute).skip(1);
            found.extend(parts.map(|part| part.split('"').next().unwrap().to_owned()));
        }
        found.extend(piece["coverUrl"].as_str().map(ToOwned::to_owned));
    }
    found
}

/// Returns the bytes at the address of an asset, served by any server of its database.
async fn fetch(program: &Program, address: &str) -> Vec<u8> {
    let path = address.find("/a/").map_or_else(|| panic!("{address}"), |at| &address[at..]);
    let path = path.split('#').next().unwrap();
    let response = program.client.get(format!("{}{path}", program.url)).send().await.unwrap();
    assert_eq!(response.status(), 200, "{address}");
    response.bytes().await.unwrap().to_vec()
}

#[on_both_engines]
async fn a_blog_brings_its_images_and_linked_files(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let blog = store.directory().join("blog");
    write_blog(&blog);
    let tried = import(&store, &blog, &["--dry-run"]);
    assert!(stdout(&tried).contains("4 files with"), "{tried:?}");
    assert_eq!(program.get("/assets/list").await, Value::Array(Vec::new()));

    let output = import(&store, &blog, &[]);
    let printed = stdout(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(printed.contains("4 files with") && printed.contains("stored, 0 existed"), "{printed}");
    assert!(printed.contains("set public-url"), "{printed}");
    // The unused image is named as left out, and the others are not.
    assert!(printed.contains("1 x *.png files"), "{printed}");
    let mut found = Vec::new();
    for address in addresses(&program).await {
        match &*address {
            "gone.png" | "../../../secret.png" | "../../id_rsa" => found.push(address.into_bytes()),
            _ => found.push(fetch(&program, &address).await),
        }
        if let Some(rest) = String::from_utf8_lossy(found.last().unwrap()).strip_prefix("%PDF") {
            assert!(!rest.is_empty());
        }
    }
    found.sort();
    let mut expected = vec![
        png("a"),
        png("cover"),
        png("r"),
        b"%PDF-1.4\n%%EOF\n".to_vec(),
        b"gone.png".to_vec(),
        b"../../../secret.png".to_vec(),
        b"../../id_rsa".to_vec(),
    ];
    expected.sort();
    assert_eq!(found, expected);
    let covers = program.pieces("").await;
    let widths: BTreeSet<_> = covers.iter().map(|piece| piece["coverWidth"].to_string()).collect();
    assert_eq!(widths, BTreeSet::from(["\"1\"".to_owned(), "null".to_owned()]));

    // A single file brings its images along, and no other file of its folder.
    write(&blog.join("posts/single.md"), "![a](first/cover.png) [paper](paper.pdf)\n");
    let mut command = galley(&store);
    command.current_dir(blog.join("posts")).args(["import", "single.md"]);
    let output = run(&mut command);
    assert!(stdout(&output).contains("0 files with 0 B stored, 1 existed"), "{output:?}");
    std::fs::remove_file(blog.join("posts/single.md")).unwrap();

    // A repetition changes nothing, and a changed image changes its pieces.
    let again = import(&store, &blog, &[]);
    assert!(stdout(&again).starts_with("0 imported, 0 updated, 2 unchanged"), "{again:?}");
    assert!(stdout(&again).contains("0 files with 0 B stored, 4 existed"), "{again:?}");
    write(&blog.join("posts/first/a b.png"), png("changed"));
    let changed = import(&store, &blog, &[]);
    assert!(stdout(&changed).starts_with("0 imported, 2 updated"), "{changed:?}");
    let mut all = Vec::new();
    for address in addresses(&program).await.into_iter().filter(|one| one.contains("/a/")) {
        all.push(fetch(&program, &address).await);
    }
    assert!(all.contains(&png("changed")) && !all.contains(&png("a")));
}

#[on_both_engines]
async fn an_import_through_a_server_and_an_export_keep_the_images(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let blog = store.directory().join("blog");
    write_blog(&blog);
    let through = ["--url", &program.url, "--token", &init_token()];
    let output = import(&store, &blog, &through);
    assert!(stdout(&output).contains("4 files with"), "{output:?}");
    let again = import(&store, &blog, &through);
    assert!(stdout(&again).starts_with("0 imported, 0 updated, 2 unchanged"), "{again:?}");
    let before = addresses(&program).await;
    assert_eq!(before.iter().filter(|one| one.contains("/a/")).count(), 4, "{before:?}");

    let exported = store.directory().join("exported");
    let output = run(galley(&store).arg("export").arg(&exported));
    assert!(output.status.success(), "{output:?}");
    let names = || {
        let assets = std::fs::read_dir(exported.join("assets")).unwrap();
        let names = assets.map(|one| one.unwrap().file_name().into_string().unwrap());
        names.collect::<BTreeSet<_>>()
    };
    let expected = ["a b.png", "cover.png", "paper.pdf", "r.png"].map(ToOwned::to_owned);
    assert_eq!(names(), BTreeSet::from(expected));
    let text = std::fs::read_to_string(exported.join("posts/first/index.md")).unwrap();
    assert!(text.contains("../../assets/a%20b.png") && text.contains("assets/cover.png"), "{text}");
    assert!(text.contains("../../assets/paper.pdf#page=2"), "{text}");
    let again = run(galley(&store).arg("export").arg(&exported));
    assert!(stdout(&again).contains("0 files written"), "{again:?}");
    let back = import(&store, &exported, &through);
    assert!(stdout(&back).starts_with("0 imported, 0 updated, 2 unchanged"), "{back:?}");

    // Another store gets the images from the export.
    let other = TestStore::sqlite();
    let second = Program::serve(&other, free_port());
    let output = import(&other, &exported, &["--url", &second.url, "--token", &init_token()]);
    assert!(stdout(&output).contains("4 files with"), "{output:?}");
    let after = addresses(&second).await;
    let mut contents = Vec::new();
    for address in after.iter().filter(|one| one.contains("/a/")) {
        assert!(address.starts_with(&second.url), "{address}");
        contents.push(fetch(&second, address).await);
    }
    contents.sort();
    let mut expected = vec![png("a"), png("cover"), png("r"), b"%PDF-1.4\n%%EOF\n".to_vec()];
    expected.sort();
    assert_eq!(contents, expected);

    // An image that no piece has any more is removed from the export.
    write(&blog.join("posts/second.md"), "---\ntitle: Second\n---\nText\n");
    write(&blog.join("posts/first/index.md"), "---\ntitle: First\n---\nText\n");
    let output = import(&store, &blog, &[&through[..], &["--overwrite"]].concat());
    assert!(stdout(&output).starts_with("0 imported, 2 updated"), "{output:?}");
    let output = run(galley(&store).arg("export").arg(&exported));
    assert!(output.status.success(), "{output:?}");
    assert!(!exported.join("assets").exists());
    assert_eq!(files(&exported).len(), 3);
}

/// Uploads an image, and returns its address.
async fn upload(program: &Program, name: &str, bytes: Vec<u8>) -> String {
    let path = format!("/assets?filename={name}");
    let request = program.request(Method::POST, &path).header("prefer", "return=representation");
    let asset: Value = request.body(bytes).send().await.unwrap().json().await.unwrap();
    asset["url"].as_str().unwrap().to_owned()
}

fn wordpress(images: &[&str]) -> String {
    let images: Vec<_> =
        images.iter().map(|image| format!("<p><img src=\"{image}\"></p>")).collect();
    let images = images.concat();
    format!(
        "<?xml version=\"1.0\"?><rss xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
         xmlns:wp=\"http://wordpress.org/export/1.2/\"><channel><title>Diary</title>\
         <link>https://diary.example.org</link><wp:wxr_version>1.2</wp:wxr_version>\
         <item><title>Images</title><content:encoded><![CDATA[{images}]]></content:encoded>\
         <wp:post_id>7</wp:post_id><wp:post_name>images</wp:post_name><wp:status>publish</wp:status>\
         <wp:post_type>post</wp:post_type></item></channel></rss>"
    )
}

#[on_both_engines]
async fn images_of_an_export_are_found_in_a_folder_or_fetched(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let uploads = store.directory().join("backup/uploads");
    write(&uploads.join("2020/01/a.png"), png("a"));
    let other = TestStore::sqlite();
    let elsewhere = Program::serve(&other, 0);
    let web = upload(&elsewhere, "web.png", png("web")).await;
    let text = upload(&elsewhere, "text.png", b"<p>no image</p>".to_vec()).await;
    let gone = format!("{}/gone.png", elsewhere.url);
    let file = store.directory().join("diary.xml");
    let local = "https://diary.example.org/wp-content/uploads/2020/01/a.png";
    let images = [local, &web, &text, &gone, "http://10.255.255.1/private.png"];
    write(&file, wordpress(&images));

    let output = import(&store, &file, &[]);
    assert!(output.status.success() && !stdout(&output).contains("files with"), "{output:?}");
    let told = stdout(&output);
    assert!(told.contains("1 x images that stay at the site's address"), "{output:?}");
    let folder = uploads.to_str().unwrap();
    let report = store.directory().join("report.json");
    let arguments = ["--assets", folder, "--fetch-assets", "--report", report.to_str().unwrap()];
    // The machine itself is out of reach, unless webhooks may call it.
    let output = import(&store, &file, &arguments);
    assert!(stdout(&output).contains("1 file with"), "{output:?}");
    let fetch_all = || {
        let mut command = galley(&store);
        command.env("GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8").arg("import").arg(&file);
        run(command.args(arguments))
    };
    let output = fetch_all();
    assert!(stdout(&output).contains("1 file with 72 B stored, 1 existed"), "{output:?}");
    let found = addresses(&program).await;
    let own: Vec<_> =
        found.iter().filter(|one| one.contains("/a/") && !images.contains(&&***one)).collect();
    let mut contents = Vec::new();
    for address in &own {
        contents.push(fetch(&program, address).await);
    }
    contents.sort();
    assert_eq!(contents, [png("a"), png("web")], "{found:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert_eq!(report["assets"]["stored"], 1, "{report}");
    let findings = report["findings"].as_array().unwrap();
    let failed = findings.iter().find(|one| one["what"] == "files that could not be stored");
    let details = failed.unwrap()["places"][0]["details"].to_string();
    for reason in ["text.png: is no image", "gone.png: responded with 404", "10.255.255.1 is"] {
        assert!(details.contains(reason), "{details}");
    }
    // Without its images, a later import of the same text changes nothing.
    let before = addresses(&program).await;
    for output in [import(&store, &file, &[]), import(&store, &file, &arguments), fetch_all()] {
        assert!(stdout(&output).starts_with("0 imported, 0 updated, 1 unchanged"), "{output:?}");
    }
    assert_eq!(addresses(&program).await, before);
    let missing = import(&store, &file, &["--assets", "nowhere"]);
    assert!(stderr(&missing).contains("--assets nowhere is not a folder"), "{missing:?}");
}

/// Starts a server whose connections end, then fail, and then have an image. Returns its URL.
fn unreliable_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/late.png", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, connection) in listener.incoming().enumerate() {
            let mut connection = connection.unwrap();
            // The head of the request ends with an empty line.
            let lines = BufReader::new(&connection).lines().map_while(Result::ok);
            assert!(lines.take_while(|line| !line.is_empty()).count() > 0);
            let image = png("late");
            let head = match number {
                0 => continue,
                1 => "503 Service Unavailable\r\ncontent-length: 0".to_owned(),
                // The body is cut.
                2 => format!("200 OK\r\ncontent-length: {}", image.len() + 1),
                _ => format!("200 OK\r\ncontent-length: {}", image.len()),
            };
            let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n");
            connection.write_all(&[head.as_bytes(), &image].concat()).unwrap();
        }
    });
    url
}

#[on_both_engines]
async fn a_download_is_repeated_after_a_lost_connection(store: TestStore) {
    let program = Program::serve(&store, free_port());
    let file = store.directory().join("diary.xml");
    write(&file, wordpress(&[&unreliable_server()]));
    let mut command = galley(&store);
    command.env("GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8").arg("import").arg(&file);
    let output = run(command.arg("--fetch-assets"));
    assert!(stdout(&output).contains("1 file with"), "{output:?}");
    let found = addresses(&program).await;
    let [address] = &found.iter().collect::<Vec<_>>()[..] else { panic!("{found:?}") };
    assert_eq!(fetch(&program, address).await, png("late"));
}

#[on_both_engines]
async fn a_bundle_restores_assets_with_their_addresses(store: TestStore) {
    let program = Program::serve(&store, 0);
    let address = upload(&program, "a.png", png("a")).await;
    let equal = upload(&program, "equal.png", png("a")).await;
    upload(&program, "b.png", png("b")).await;
    let folder = store.directory().join("bundle");
    let export = || run(galley(&store).arg("export").arg(&folder).args(["--format", "json"]));
    let output = export();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(folder.join("assets/files")).unwrap().count(), 2);
    assert!(stdout(&export()).contains("0 files written, 0 removed"));

    let other = TestStore::sqlite();
    let mut restore = galley(&other);
    let output = run(restore.arg("import").arg(&folder));
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).contains("3 assets restored"), "{output:?}");
    let again = run(&mut restore);
    assert!(again.status.success() && !stdout(&again).contains("assets restored"), "{again:?}");
    let second = Program::serve(&other, 0);
    for address in [&address, &equal] {
        assert_eq!(fetch(&second, address).await, png("a"));
    }
    let stored = run(galley(&other).args(["assets", "check", "--hashes"]));
    assert!(stdout(&stored).contains("2 files"), "{stored:?}");

    // A changed file is reported, and the others are restored.
    let path =
        std::fs::read_dir(folder.join("assets/files")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&path, "changed").unwrap();
    let third = TestStore::sqlite();
    let output = run(galley(&third).arg("import").arg(&folder));
    assert!(!output.status.success() && stderr(&output).contains("SHA-256"), "{output:?}");
    let stored = run(galley(&third).args(["assets", "check", "--hashes"]));
    assert!(stdout(&stored).contains("1 file with"), "{stored:?}");
}
