//! The commands of guides, run as a reader would run them, in an empty folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use galley_testing::TestStore;

use crate::import::{GHOST, WORDPRESS};
use crate::program::{free_port, galley, run};

/// The command with which a guide starts the server in a second terminal.
const SERVE: &str = "galley serve";

/// The guides whose commands run here, or with the clients. The other guides have marked commands
/// only.
const GUIDES_THAT_RUN: [&str; 15] = [
    "assets",
    "backup",
    "concepts",
    "configuration",
    "ghost",
    "history",
    "import-export",
    "monitoring",
    "publishing",
    "running",
    "small-server",
    "typescript",
    "vrite",
    "wordpress",
    "workspaces",
];

/// The variables that guides use: a server, a token, and ids of a group, a piece and its revisions.
const VARIABLES: &str = r#"
galley init --workspace Guide --email ann@example.org > first-token
export GALLEY_TOKEN=$(galley token create --name Guide)
TOKEN=$GALLEY_TOKEN
galley serve
URL=http://127.0.0.1:8080
send() { curl -s -X "$1" "$URL$2" -H "Authorization: Bearer $TOKEN" \
  -H 'Content-Type: application/json' -d "$3"; }
GROUP=$(galley group list | grep -o '^cg_[0-9a-z]*')
PIECE=$(send POST /content-pieces '{"title":"The harbour at dawn","slug":"dawn","tags":[],
  "members":[],"contentGroupId":"'$GROUP'","content":"<p>Boats</p>"}' | grep -o 'cp_[0-9a-z]*')
send PUT /content-pieces '{"id":"'$PIECE'","title":"The harbour at dusk",
  "content":"<p>Boats return</p>"}'
REVISIONS=$(curl -s "$URL/content-pieces/revisions?id=$PIECE" -H "Authorization: Bearer $TOKEN")
LATEST=$(echo "$REVISIONS" | grep -o 'rev_[0-9a-z]*' | head -1)
FIRST=$(echo "$REVISIONS" | grep -o 'rev_[0-9a-z]*' | tail -1)
REVISION=$FIRST
"#;

/// Returns the folder of the guides.
fn guides() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides")
}

pub(crate) fn guide(name: &str) -> String {
    fs::read_to_string(guides().join(format!("{name}.md"))).unwrap()
}

/// Returns the blocks of commands with their marks.
fn blocks(guide: &str) -> impl Iterator<Item = (&str, &str)> {
    guide.split("\n```sh").skip(1).map(|block| {
        let (mark, block) = block.split_once('\n').expect("a block has lines");
        let (commands, _) = block.split_once("\n```").expect("a block ends");
        (mark.trim(), commands.trim())
    })
}

/// Returns the commands of a guide as one script. Blocks that are marked with `no-run` are left
/// out, except the start of the server.
fn commands(guide: &str) -> String {
    let run = blocks(guide).map(|block| match block {
        ("", commands) => commands,
        ("no-run", SERVE) => SERVE,
        ("no-run", _) => "",
        (mark, _) => panic!("a block has the unknown mark {mark:?}"),
    });
    run.collect::<Vec<_>>().join("\n")
}

/// Runs a script in a folder. The line `galley serve` starts the server beside it, and a request
/// with an error ends it.
fn run_script(folder: &Path, commands: &str) -> Output {
    let port = free_port();
    let serve = format!(
        "galley serve --listen 127.0.0.1:{port} 2> log &\ntrap 'kill %1' EXIT\n\
         until command curl -sf http://127.0.0.1:{port}/readyz > /dev/null; do sleep 0.1; done"
    );
    let script = format!(
        "set -euo pipefail\ncurl() {{ command curl --fail-with-body \"$@\"; }}\n{commands}\n"
    );
    let script = script.replace(&format!("\n{SERVE}\n"), &format!("\n{serve}\n"));
    let script = script.replace("http://127.0.0.1:8080", &format!("http://127.0.0.1:{port}"));
    let store = TestStore::sqlite();
    let program = galley(&store);
    let programs = Path::new(program.get_program()).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder).env("PATH", path);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GALLEY_")) {
        bash.env_remove(name);
    }
    run(&mut bash)
}

/// Runs the commands of a guide after those of `before`, and returns their output.
fn follow(name: &str, folder: &Path, before: &str) -> String {
    let output = run_script(folder, &format!("{before}\n{}", commands(&guide(name))));
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

#[test]
fn every_command_of_the_guides_runs_or_is_marked() {
    for entry in fs::read_dir(guides()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !GUIDES_THAT_RUN.contains(&name) {
            let text = fs::read_to_string(&path).unwrap();
            for (mark, commands) in blocks(&text) {
                assert_eq!(mark, "no-run", "{name}: {commands}");
            }
        }
    }
}

#[test]
fn the_commands_of_the_concepts_work_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    let guide = guide("concepts");
    // A change of an older version is rejected there, on purpose.
    let script = commands(&guide).replace("--fail-with-body", "-s");
    let output = run_script(folder.path(), &format!("unset -f curl\n{script}"));
    assert!(output.status.success(), "{output:?}");
    assert_contains(
        &String::from_utf8(output.stdout).unwrap(),
        &[
            "\"content\":\"## At dawn\\n\\nBoats **leave**.\\n\"",
            "\"title\":\"H\u{e4}fen\",\"slug\":\"harbours\"",
            "precondition_failed",
            "\"number\":4",
            "\n[]\n",
            "\"title\":\"Harbours at dawn\"}]\n\"type\":\"contentPieceAdded\"\n",
            "\"type\":\"contentPiecePublished\"\n",
        ],
    );
}

#[test]
fn the_commands_of_guides_to_the_api_work() {
    let image = guides().join("../../examples/content/harbour.jpg");
    for (name, expected) in [
        (
            "history",
            &["\"diff\":\"~ Boats{+ return+}", "\"title\":\"The harbour at dawn\"", "HTTP/1.1 204"]
                [..],
        ),
        ("publishing", &["https://example.org/preview?id=cp_", "HTTP/1.1 204", "\"id\":\"wh_"]),
        ("assets", &["/harbour.jpg\""]),
        ("workspaces", &["  Posts\n"]),
        ("monitoring", &["{\"status\":\"ok\"}{\"status\":\"ready\"}"]),
        ("configuration", &["data-dir"]),
        ("backup", &["galley-2026-11-22.backup"]),
        ("typescript", &[]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(&image, folder.path().join("harbour.jpg")).unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        assert_contains(&follow(name, folder.path(), VARIABLES), expected);
    }
}

#[test]
fn the_commands_of_guides_to_a_first_start_work() {
    for (name, before) in [("running", ""), ("small-server", "galley init > first-token")] {
        let folder = tempfile::tempdir().unwrap();
        assert_contains(&follow(name, folder.path(), before), &["database"]);
    }
}

#[test]
fn the_commands_of_guides_to_imports_work() {
    let image = guides().join("../../examples/content/harbour.jpg");
    let ghost = GHOST.replace("\"html\":null", "\"html\":\"<p>New</p>\"");
    for (name, export, content, images) in
        [("wordpress", "diary.xml", WORDPRESS, "uploads"), ("ghost", "site.json", &ghost, "images")]
    {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(export), content).unwrap();
        fs::create_dir_all(folder.path().join(images)).unwrap();
        fs::copy(&image, folder.path().join(images).join("a.jpg")).unwrap();
        let found = follow(name, folder.path(), VARIABLES);
        assert_contains(&found, &[" imported", "0 with problems"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let before = format!(
        "{VARIABLES}mkdir posts docs docs/de\necho '# A' > posts/a.md\necho '# B' > docs/b.md\n\
         echo '# C' > docs/de/b.md\n"
    );
    fs::write(folder.path().join("diary.wordpress.2026-11-22.xml"), WORDPRESS).unwrap();
    fs::write(folder.path().join("site.ghost.2026-11-22.json"), ghost).unwrap();
    assert_contains(&follow("import-export", folder.path(), &before), &["imported"]);
}
