//! Clients for the API: generated ones and `@galley/client`. Programs that use them compile and
//! run.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, on_both_engines};
use reqwest::Method;
use serde_json::{Value, json};

use crate::guides::guide;
use crate::program::{Program, data_dir, free_port, galley, init_token, run};

/// The limit on the size of `@galley/client` after gzip, in bytes.
const CLIENT_SIZE_LIMIT: usize = 8_000;

/// The folder of the scripts with their npm packages, if there is one.
fn scripts() -> Option<PathBuf> {
    let folder = std::env::var_os("GALLEY_TEST_API_CLIENTS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED: GALLEY_TEST_API_CLIENTS is not set");
    }
    folder
}

/// Runs a tool that npm installed.
fn tool(folder: &Path, name: &str, arguments: &[&str]) {
    let program = folder.join("node_modules/.bin").join(name);
    let output = run(Command::new(program).args(arguments).current_dir(folder));
    assert!(output.status.success(), "{name}: {output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_on_generated_clients_compile_under_strict_and_run() {
    let Some(folder) = scripts() else { return };
    let store = TestStore::sqlite();
    let document = run(galley(&store).arg("openapi"));
    std::fs::write(folder.join("openapi.json"), &document.stdout).unwrap();
    for folder in ["generated", "compiled"].map(|name| folder.join(name)) {
        let _ = std::fs::remove_dir_all(folder);
    }
    tool(&folder, "openapi-typescript", &["openapi.json", "--output", "generated/schema.ts"]);
    let hey_api = ["--input", "openapi.json", "--output", "generated/hey-api", "--silent"];
    tool(&folder, "openapi-ts", &hey_api);
    tool(&folder, "tsc", &["--project", "."]);
    let types = std::fs::read_to_string(folder.join("generated/schema.ts")).unwrap();
    let empty = types.lines().filter(|line| line.contains("Record<string, never>"));
    let empty: Vec<_> = empty.filter(|line| !line.starts_with("export type")).collect();
    assert!(empty.is_empty(), "objects that may hold nothing: {empty:?}");

    let program = Program::serve(&store, free_port());
    let mut node = Command::new("node");
    node.arg("compiled/openapi-fetch.js").current_dir(&folder);
    let output = run(node.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token()));
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outline = json!([
        "2 Two",
        "link /x",
        "highlight plain",
        "code rust",
        "list from 3",
        "row of 2",
        "image /a.png"
    ]);
    assert_eq!(found["found"], outline);
    assert_eq!(found["titles"], json!(["Typed"]));
    assert_eq!(found["reason"], "validation");
    assert_eq!(found["customData"], "{\"pinned\":true,\"weights\":[1,2]}");
}

/// Copies a folder, without what npm and the build have made in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if !["node_modules", "dist", "generated"].iter().any(|made| name == *made) {
            copy(&entry.path(), &target);
        }
    }
}

/// Returns the root of the repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds an npm package from its sources, in a copy beside the installed packages.
fn build_package(folder: &Path, name: &str, configurations: &[&str]) -> PathBuf {
    let package = folder.join("package/clients/typescript").join(name);
    copy(&repository().join("clients/typescript").join(name), &package);
    let generator = package.join("scripts/generate.mjs");
    if generator.exists() {
        let generated = run(node().arg(generator));
        assert!(generated.status.success(), "{generated:?}");
    }
    for configuration in configurations {
        tool(folder, "tsc", &["--project", package.join(configuration).to_str().unwrap()]);
    }
    package
}

/// Builds the packages for the document of this program, once. Returns the main module of
/// `@galley/client`.
fn client(folder: &Path) -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let root = folder.join("package");
        let _ = fs::remove_dir_all(&root);
        let links = root.join("node_modules/@galley");
        fs::create_dir_all(&links).unwrap();
        for name in ["client", "astro", "tiptap"] {
            let target = root.join("clients/typescript").join(name);
            std::os::unix::fs::symlink(target, links.join(name)).unwrap();
        }
        let document = run(galley(&TestStore::sqlite()).arg("openapi"));
        fs::write(root.join("openapi.json"), &document.stdout).unwrap();
        let configurations = ["tsconfig.build.json", "tsconfig.types.json"];
        let client = build_package(folder, "client", &configurations);
        for name in ["astro", "tiptap"] {
            build_package(folder, name, &["tsconfig.build.json"]);
        }
        client.join("dist/index.js")
    })
}

/// Copies an example beside the packages, and returns its folder. Without earlier builds, its
/// content is loaded anew.
fn example(folder: &Path, name: &str, copied: &str) -> PathBuf {
    client(folder);
    let example = folder.join("package/examples").join(copied);
    let _ = fs::remove_dir_all(&example);
    copy(&repository().join("examples").join(name), &example);
    example
}

/// Compiles the programs in a folder under `strict`, without output.
fn compile(folder: &Path, programs: &Path) {
    let options = json!({"target": "es2022", "module": "nodenext", "strict": true, "noEmit": true,
        "exactOptionalPropertyTypes": true, "allowImportingTsExtensions": true, "types": [],
        "skipLibCheck": true, "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"]});
    let config = json!({"compilerOptions": options, "include": ["*.ts"]});
    fs::write(programs.join("tsconfig.json"), config.to_string()).unwrap();
    fs::write(programs.join("package.json"), r#"{"type": "module"}"#).unwrap();
    tool(folder, "tsc", &["--project", programs.to_str().unwrap()]);
}

/// Starts a server with a setting.
fn serve_with(store: &TestStore, name: &str, value: &str) -> Program {
    let mut command = galley(store);
    command.env("GALLEY_INIT_TOKEN", init_token()).env(name, value);
    command.args(["serve", "--listen", &format!("127.0.0.1:{}", free_port())]);
    Program::start(command)
}

/// Returns a command of a script with the client and the address of a server.
fn script(folder: &Path, mut runtime: Command, name: &str, program: &Program) -> Command {
    runtime.arg(name).current_dir(folder).env("GALLEY_CLIENT", client(folder));
    runtime.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token());
    runtime
}

fn node() -> Command {
    Command::new("node")
}

/// Runs a script that prints `done` at its end.
fn completes(command: &mut Command) {
    let output = run(command);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "done", "{output:?}");
}

/// Returns the file of a package that npm installed for this platform.
fn installed(folder: &Path, packages: &str, file: &str) -> PathBuf {
    let packages = fs::read_dir(folder.join("node_modules").join(packages)).unwrap();
    let files = packages.map(|package| package.unwrap().path().join(file));
    let is_usable = |file: &PathBuf| {
        file.exists()
            && Command::new(file).arg("--version").output().is_ok_and(|run| run.status.success())
    };
    files.filter(is_usable).min().expect("a package of this platform is installed")
}

#[on_both_engines]
async fn the_client_runs_in_node(store: TestStore) {
    let Some(folder) = scripts() else { return };
    let program = Program::serve(&store, free_port());
    completes(&mut script(&folder, node(), "story-program.mjs", &program));
}

#[on_both_engines]
async fn creates_of_the_client_survive_kills_of_the_server(store: TestStore) {
    let Some(folder) = scripts() else { return };
    let (count, port) = (size(80, 2_000, 10_000), free_port());
    let mut program = Program::serve(&store, port);
    let group = program.request(Method::POST, "/content-groups").json(&json!({"name": "Kills"}));
    let group: Value = group.send().await.unwrap().json().await.unwrap();
    let mut command = script(&folder, node(), "creates.mjs", &program);
    command.env("GALLEY_GROUP", group["id"].as_str().unwrap()).env("COUNT", count.to_string());
    let mut creates = command.stdout(Stdio::piped()).spawn().unwrap();
    let (sender, created_lines) = std::sync::mpsc::channel();
    let output = BufReader::new(creates.stdout.take().unwrap());
    std::thread::spawn(move || {
        output.lines().try_for_each(|line| sender.send(line.unwrap()).map_err(drop))
    });
    let mut created = BTreeMap::new();
    let mut kills = 0;
    // The server lives until one create has succeeded, so each life makes progress on any machine.
    while let Ok(line) = created_lines.recv() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        program.kill();
        kills += 1;
        for line in std::iter::once(line).chain(created_lines.try_iter()) {
            let (slug, id) = line.split_once(' ').unwrap();
            assert_eq!(created.insert(slug.to_owned(), id.to_owned()), None);
        }
        program = Program::serve(&store, port);
    }
    assert!(creates.wait().unwrap().success());
    assert_eq!(created.len(), count);
    let mut stored = BTreeMap::new();
    let mut path = Some("/content-pieces/list?perPage=1000&fields=slug".to_owned());
    while let Some(page) = path {
        let response = program.request(Method::GET, &page).send().await.unwrap();
        path = response.headers().get("link").map(|link| {
            let link = link.to_str().unwrap();
            link[1..link.find('>').unwrap()].to_owned()
        });
        for piece in response.json::<Vec<Value>>().await.unwrap() {
            let [slug, id] = ["slug", "id"].map(|field| piece[field].as_str().unwrap().to_owned());
            if slug.starts_with("created-") {
                let earlier = stored.insert(slug, id);
                assert_eq!(earlier, None, "{piece} is stored twice");
            }
        }
    }
    assert_eq!(stored, created);
    report_figure("kills of the server during creates of the client", kills, "at least 3");
    assert!(kills >= 3, "{kills} kills");
}

#[on_both_engines]
async fn the_published_client_of_vrite_runs_unchanged(store: TestStore) {
    let Some(folder) = scripts() else { return };
    let program = Program::serve(&store, free_port());
    completes(&mut script(&folder, node(), "vrite-sdk.mjs", &program));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_programs_of_the_guide_to_clients_of_vrite_run() {
    let Some(folder) = scripts() else { return };
    let guide = guide("vrite");
    let programs: Vec<&str> = guide.split("\n```js\n").skip(1).collect();
    let [first, copy] = programs[..] else { panic!("{} programs", programs.len()) };
    let stores = [TestStore::sqlite(), TestStore::sqlite()];
    let [source, target] = stores.each_ref().map(|store| Program::serve(store, free_port()));
    for (name, text, program) in [("first", first, &source), ("copy", copy, &target)] {
        let name = format!("guide-{name}.mjs");
        let (text, _) = text.split_once("\n```").unwrap();
        fs::write(folder.join(&name), text).unwrap();
        let mut node = script(&folder, node(), &name, program);
        node.env("VRITE_URL", &source.url).env("VRITE_TOKEN", init_token());
        let output = run(&mut node);
        assert!(output.status.success(), "{output:?}");
        if program.url == source.url {
            assert_eq!(String::from_utf8(output.stdout).unwrap(), "Boats  1 My workspace\n");
        }
    }
    let list = "/content-pieces/list?fields=title,content,tags&contentFormat=html";
    let copied = target.request(Method::GET, list).send().await.unwrap();
    let copied: Value = copied.json().await.unwrap();
    assert_eq!(copied[0]["title"], "Harbours");
    assert_eq!(copied[0]["content"], "<p>Boats <strong>leave</strong>.</p>");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trees_of_the_api_load_into_tiptap_and_are_saved_unchanged() {
    let Some(folder) = scripts() else { return };
    let package = client(&folder).ancestors().nth(3).unwrap().join("tiptap");
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    let mut command = script(&folder, node(), "tiptap.mjs", &program);
    completes(command.env("GALLEY_TIPTAP", package.join("dist/index.js")));
    let editor = folder.join("package/editor");
    fs::create_dir_all(&editor).unwrap();
    fs::copy(folder.join("editor.ts"), editor.join("editor.ts")).unwrap();
    compile(&folder, &editor);
}

/// A server of a built page, which ends with its value.
struct Preview(Child);

impl Preview {
    fn start(folder: &Path, tool: &str, port: &str, page: &Path) -> Self {
        let mut preview = Command::new(folder.join("node_modules/.bin").join(tool));
        preview.args(["preview", "--port", port]).current_dir(page);
        Self(preview.stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a script that uses a page in a browser, if there is one.
fn browse(script: &str, page: &str, program: &Program) {
    let Some(folder) = std::env::var_os("GALLEY_TEST_BROWSER") else {
        eprintln!("SKIPPED: GALLEY_TEST_BROWSER is not set");
        return;
    };
    let mut node = node();
    node.arg(script).current_dir(folder).env("PAGE_URL", page).env("GALLEY_LINKS", "[]");
    let output = run(node.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token()));
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_editor_saves_and_asks_after_changes_by_others() {
    let Some(folder) = scripts() else { return };
    let editor = example(&folder, "tiptap-editor", "tiptap-editor");
    tool(&folder, "tsc", &["--project", editor.to_str().unwrap()]);
    tool(&folder, "vite", &["build", editor.to_str().unwrap()]);
    let (store, port) = (TestStore::sqlite(), free_port().to_string());
    let page = format!("http://localhost:{port}");
    let program = serve_with(&store, "GALLEY_CORS_ORIGINS", &page);
    let _preview = Preview::start(&folder, "vite", &port, &editor);
    browse("example-editor.mjs", &page, &program);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_blog_has_the_sample_content_a_search_and_previews() {
    let Some(folder) = scripts() else { return };
    let blog = example(&folder, "astro-blog", "astro-blog");
    let (store, port) = (TestStore::sqlite(), free_port().to_string());
    let page = format!("http://localhost:{port}");
    let program = serve_with(&store, "GALLEY_CORS_ORIGINS", &page);
    let mut import = galley(&store);
    import.arg("import").arg(repository().join("examples/content"));
    import.args(["--variants", "en,de"]).env("GALLEY_PUBLIC_URL", &program.url);
    let imported = run(&mut import);
    assert!(imported.status.success(), "{imported:?}");
    let mut build = Command::new(folder.join("node_modules/.bin/astro"));
    build.arg("build").current_dir(&blog).env("ASTRO_TELEMETRY_DISABLED", "1");
    for prefix in ["", "PUBLIC_"] {
        build.env(format!("{prefix}GALLEY_URL"), &program.url);
        build.env(format!("{prefix}GALLEY_TOKEN"), init_token());
    }
    let output = run(&mut build);
    assert!(output.status.success(), "{output:?}");
    let _preview = Preview::start(&folder, "astro", &port, &blog);
    browse("example-blog.mjs", &page, &program);
}

#[test]
fn one_command_builds_an_example_with_a_server() {
    let Some(_) = scripts() else { return };
    let dist = repository().join("examples/tiptap-editor/dist");
    let _ = fs::remove_dir_all(&dist);
    let mut start = node();
    start.args(["examples/start.mjs", "tiptap-editor", "--build"]).current_dir(repository());
    let output = run(start.env("GALLEY_PROGRAM", galley(&TestStore::sqlite()).get_program()));
    assert!(output.status.success(), "{output:?}");
    assert!(dist.join("index.html").exists(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_the_client_without_a_response_take_effect_once() {
    let Some(folder) = scripts() else { return };
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    completes(&mut script(&folder, node(), "losses.mjs", &program));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_runs_in_deno_bun_and_a_browser() {
    let Some(folder) = scripts() else { return };
    let (store, page) = (TestStore::sqlite(), free_port());
    let program = serve_with(&store, "GALLEY_CORS_ORIGINS", &format!("http://127.0.0.1:{page}"));
    let mut deno = Command::new(installed(&folder, "@deno", "deno"));
    deno.args(["run", "--allow-env", "--allow-net", "--allow-read", "--no-lock", "--no-remote"]);
    deno.env("DENO_DIR", store.directory().join("deno")).env("DENO_NO_UPDATE_CHECK", "1");
    completes(&mut script(&folder, deno, "story-program.mjs", &program));
    let bun = Command::new(installed(&folder, "@oven", "bin/bun"));
    completes(&mut script(&folder, bun, "story-program.mjs", &program));
    let Some(_) = std::env::var_os("GALLEY_TEST_CHROMIUM") else {
        eprintln!("SKIPPED: GALLEY_TEST_CHROMIUM is not set");
        return;
    };
    let mut browser = script(&folder, node(), "story-browser.mjs", &program);
    completes(browser.env("PAGE_PORT", page.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_is_small_and_its_types_follow_the_parameters() {
    let Some(folder) = scripts() else { return };
    let package = client(&folder).ancestors().nth(2).unwrap();
    tool(&folder, "tsc", &["--noEmit", "--project", package.to_str().unwrap()]);
    let output =
        run(node().arg("size.mjs").current_dir(&folder).env("GALLEY_CLIENT", client(&folder)));
    let found: usize = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    report_figure("bytes of the client after gzip", found, "at most 8,000");
    assert!(found <= CLIENT_SIZE_LIMIT, "{found} bytes");
}

#[test]
fn samples_of_the_api_reference_compile() {
    let Some(folder) = scripts() else { return };
    client(&folder);
    let document = fs::read(folder.join("package/openapi.json")).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let sources =
        operations.filter_map(|operation| operation["x-codeSamples"][0]["source"].as_str());
    let sources: Vec<_> = sources.map(|source| format!("{{\n{source}}}\n")).collect();
    assert!(sources.len() > 80, "{} samples", sources.len());
    let samples = folder.join("package/samples");
    fs::create_dir_all(&samples).unwrap();
    let header = "import { createClient } from \"@galley/client\";\n\
                  const galley = createClient({ url: \"http://127.0.0.1:8080\", token: \"\" });\n\
                  declare const file: Blob;\n";
    fs::write(samples.join("samples.ts"), format!("{header}{}", sources.concat())).unwrap();
    compile(&folder, &samples);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_verifies_requests_of_webhooks() {
    let Some(folder) = scripts() else { return };
    let store = TestStore::sqlite();
    let program = serve_with(&store, "GALLEY_WEBHOOKS_ALLOW", "127.0.0.0/8");
    let mut receiver = script(&folder, node(), "receiver.mjs", &program);
    let output = run(receiver.env("RECEIVER_PORT", free_port().to_string()));
    assert!(output.status.success(), "{output:?}");
    let outcomes: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({
        "verified": "tagChanged",
        "fetched": "tagChanged",
        "text": "tagChanged",
        "rotated": "tagChanged",
        "label": "Verified",
        "changed": "no signature is valid",
        "other": "no signature is valid",
        "late": "the timestamp is too far from the clock",
        "unsigned": "the header webhook-id is missing",
    });
    assert_eq!(outcomes, expected);
}

/// The groups of a test, with the names of their parents and their schemas.
fn described_groups() -> [(&'static str, Option<&'static str>, Value); 5] {
    let seo = json!({"type": "object", "required": ["title"], "additionalProperties": true,
        "properties": {"title": {"type": "string"}, "description": {"type": ["string", "null"]}}});
    let posts = json!({"type": "object", "required": ["seo"], "additionalProperties": false,
        "properties": {"seo": {"$ref": "#/$defs/seo"}, "rating": {"enum": [1, 2, 3]},
            "weights": {"items": {"type": "number"}, "maxItems": 9}},
        "$defs": {"seo": seo}});
    let menu = json!({"type": "object", "required": ["label", "entries"], "additionalProperties": false,
        "title": "A menu", "description": "It nests */ itself",
        "properties": {"label": {"type": "string"}, "entries": {"type": "array", "items": {"$ref": "#"}}}});
    let circle = json!({"type": "object", "required": ["kind", "radius"],
        "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}});
    let rectangle = json!({"type": "object", "required": ["kind", "sides"],
        "properties": {"kind": {"const": "rectangle"}, "sides": {"type": "array", "minItems": 1,
            "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false}}});
    let shapes = json!({"properties": {"shape": {"oneOf": [circle, rectangle]},
        "a \"quoted\" name": {"enum": ["*/", null]},
        "by-language": {"type": "object", "additionalProperties": {"type": "string"}}}});
    [
        ("Posts", None, posts),
        ("News", Some("Posts"), Value::Null),
        ("Menus & more", Some("Posts"), menu),
        ("Shapes", None, shapes),
        ("Notes", None, Value::Null),
    ]
}

#[on_both_engines]
async fn types_of_a_workspace_compile_with_the_client(store: TestStore) {
    let Some(folder) = scripts() else { return };
    let program = Program::serve(&store, free_port());
    let listed = program.request(Method::GET, "/content-groups/list").send().await.unwrap();
    let listed: Vec<Value> = listed.json().await.unwrap();
    let mut ids = BTreeMap::from([("Posts", listed[0]["id"].clone())]);
    for (name, parent, schema) in described_groups() {
        let mut body = json!({"name": name, "customDataSchema": schema});
        let method = if let Some(id) = ids.get(name) {
            body["id"] = id.clone();
            Method::PUT
        } else {
            body["ancestor"] = parent.map_or(Value::Null, |parent| ids[parent].clone());
            Method::POST
        };
        let request = program.request(method, "/content-groups").json(&body);
        let response = request.header("prefer", "return=representation").send().await.unwrap();
        assert!(response.status().is_success(), "{name}: {}", response.text().await.unwrap());
        ids.insert(name, response.json::<Value>().await.unwrap()["id"].take());
    }
    for key in ["de", "pt-BR"] {
        let body = json!({"key": key, "label": key});
        let request = program.request(Method::POST, "/variants").json(&body);
        assert!(request.send().await.unwrap().status().is_success());
    }
    client(&folder);
    let fixture = folder.join("package").join(store.engine());
    fs::create_dir_all(&fixture).unwrap();
    let types = fixture.join("workspace.ts");
    let by_url = ["types", "--url", &program.url, "--out", types.to_str().unwrap()];
    let output = run(galley(&store).args(by_url).env("GALLEY_TOKEN", init_token()));
    assert!(output.status.success(), "{output:?}");
    let printed = run(galley(&store).arg("types"));
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), fs::read_to_string(&types).unwrap());
    fs::copy(folder.join("workspace-types.ts"), fixture.join("program.ts")).unwrap();
    compile(&folder, &fixture);

    let own = store.directory().join("linked.ts");
    let target = data_dir(&store).join("galley.db");
    if target.exists() {
        // A hard link has another name, and is the same file.
        fs::hard_link(&target, &own).unwrap();
        for path in [&target, &own] {
            let output = run(galley(&store).arg("types").arg("--out").arg(path));
            assert!(!output.status.success(), "{output:?}");
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(error.contains("belongs to the database"), "{error}");
        }
    }
    let mut check = galley(&store);
    check.args(["types", "--check", "--out", types.to_str().unwrap()]);
    assert!(run(&mut check).status.success());
    let body = json!({"key": "fr", "label": "French"});
    program.request(Method::POST, "/variants").json(&body).send().await.unwrap();
    let output = run(&mut check);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("workspace.ts differs"));
}

/// Builds the blog, and returns the numbers of requests of it by route.
async fn build_blog(
    folder: &Path,
    blog: &Path,
    program: &Program,
    metrics: &str,
) -> BTreeMap<String, u64> {
    let count = async || {
        let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("galley_http_requests_total{")) {
            let route = line.split("route=\"").nth(1).and_then(|rest| rest.split('"').next());
            let number = line.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
            *counts.entry(route.unwrap().to_owned()).or_default() += number.unwrap();
        }
        counts
    };
    let before = count().await;
    let mut build = Command::new(folder.join("node_modules/.bin/astro"));
    build.arg("build").current_dir(blog).env("ASTRO_TELEMETRY_DISABLED", "1");
    build.env("GALLEY_URL", &program.url).env("GALLEY_TOKEN", init_token());
    let output = run(&mut build);
    assert!(output.status.success(), "{output:?}");
    let mut counts = count().await;
    for (route, earlier) in before {
        *counts.get_mut(&route).unwrap() -= earlier;
    }
    counts.retain(|_, count| *count > 0);
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_build_of_the_blog_requests_changed_pieces_only() {
    let Some(folder) = scripts() else { return };
    // The pieces of the blog, in batches of a hundred.
    let batches: usize = size(2, 10, 10);
    let (store, metrics) = (TestStore::sqlite(), free_port());
    let program = serve_with(&store, "GALLEY_METRICS_ADDR", &format!("127.0.0.1:{metrics}"));
    let send = async |method: Method, path: &str, body: Value| -> Value {
        let response = program.request(method, path).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {}", response.text().await.unwrap());
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
    };
    let group = send(Method::POST, "/content-groups", json!({"name": "Blog"})).await["id"].take();
    let tag = send(Method::POST, "/tags", json!({"label": "Harbours"})).await["id"].take();
    send(Method::POST, "/variants", json!({"key": "de", "label": "German"})).await;
    let mut ids = Vec::new();
    for batch in 0..batches {
        let pieces = (batch * 100..batch * 100 + 100).map(|number| {
            let tags = if number % 100 == 0 { vec![tag.clone()] } else { Vec::new() };
            json!({"title": format!("Post {number}"), "slug": format!("post-{number}"), "tags": tags,
                "members": [], "contentGroupId": group,
                "content": format!("<h2>A heading</h2><p>Text {number}</p><img src=\"/a/x/y.jpg\">")})
        });
        let body = json!({"pieces": pieces.collect::<Vec<_>>()});
        let created = send(Method::POST, "/content-pieces/batch", body).await;
        let created = created["pieces"].as_array().unwrap();
        ids.extend(created.iter().map(|piece| piece["id"].as_str().unwrap().to_owned()));
    }
    // A slug can't lead out of the site's folder.
    let outside = json!({"title": "Outside", "slug": "../../../outside", "tags": [], "members": [],
        "contentGroupId": group});
    send(Method::POST, "/content-pieces", outside).await;
    let translated = json!({"id": ids[1], "variant": "de", "title": "Beitrag", "slug": "beitrag"});
    send(Method::PUT, "/content-pieces", translated).await;
    let blog = example(&folder, "astro-blog", "large-blog");
    let metrics = format!("http://127.0.0.1:{metrics}/metrics");
    let page = |path: &str| fs::read_to_string(blog.join("dist").join(path)).unwrap_or_default();

    let requests = build_blog(&folder, &blog, &program, &metrics).await;
    assert_eq!(requests["/content-pieces/list"], batches as u64 + 2, "{requests:?}");
    let post = page("post-1/index.html");
    assert!(post.contains("<h2 id=\"a-heading\">A heading</h2><p>Text 1</p>"), "{post}");
    let image = format!("srcset=\"{}/a/x/y.jpg?w=640 640w, ", program.url);
    assert!(post.contains(&image), "{post}");
    assert!(post.contains("hreflang=\"de\""), "{post}");
    assert!(page("de/beitrag/index.html").contains("<h1>Beitrag</h1>"));
    assert!(page("tags/harbours/index.html").contains("Post 100"));
    assert_eq!(page("rss.xml").matches("<item>").count(), batches * 100);
    assert!(page("sitemap-0.xml").contains(&format!("/post-{}/", batches * 100 - 1)));
    assert!(!blog.join("../outside").exists() && !blog.join("dist/outside").exists());

    let requests = build_blog(&folder, &blog, &program, &metrics).await;
    let none: BTreeMap<String, u64> =
        ["/events", "/events/position", "/tags/list"].map(|route| (route.to_owned(), 1)).into();
    assert_eq!(requests, none);

    send(Method::PUT, "/tags", json!({"id": tag, "label": "Ports"})).await;
    let changed = json!({"id": ids[2], "title": "Another title", "slug": "another"});
    send(Method::PUT, "/content-pieces", changed).await;
    send(Method::DELETE, &format!("/content-pieces?id={}", ids[3]), Value::Null).await;
    let body = json!({"id": ids[1], "variant": "de", "title": null, "slug": null});
    send(Method::PUT, "/content-pieces", body).await;
    let requests = build_blog(&folder, &blog, &program, &metrics).await;
    // Thirteen pieces fit in a request, which is sent once for each language.
    assert_eq!(requests["/content-pieces/list"], 2, "{requests:?}");
    assert!(page("tags/ports/index.html").contains("Post 100"));
    assert!(page("tags/harbours/index.html").is_empty());
    assert!(page("another/index.html").contains("<h1>Another title</h1>"));
    for gone in ["post-2", "post-3", "de/beitrag"] {
        assert!(page(&format!("{gone}/index.html")).is_empty(), "{gone} is still there");
    }
    assert!(page("post-4/index.html").contains("Text 4"));
}
