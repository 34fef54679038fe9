//! The commands of guides, run as a reader would run them, in an empty folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use galley_testing::TestStore;

use crate::import::{GHOST, WORDPRESS};
use crate::program::{free_port, galley, run};

/// The command with which a guide starts the server in a second terminal.
const SERVE: &str = "galley serve";

/// The variables that guides use: a server, a token, and ids of a group, a piece and its revisions.
/// A request with an error ends the script.
const VARIABLES: &str = r#"
curl() { command curl --fail-with-body "$@"; }
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

/// The guides whose commands run: the commands before them, and parts of their output. The other
/// guides have marked commands only. `$FILES` has an image and exports of other systems.
const GUIDES: [(&str, &[&str], &[&str]); 14] = [
    (
        "concepts",
        &[],
        &[
            "\"content\":\"## At dawn\\n\\nBoats **leave**.\\n\"",
            "\"title\":\"H\u{e4}fen\",\"slug\":\"harbours\"",
            "precondition_failed",
            "\"number\":4",
            "\n[]\n",
            "\"title\":\"Harbours at dawn\"}]\n\"type\":\"contentPieceAdded\"\n",
            "\"type\":\"contentPiecePublished\"\n",
        ],
    ),
    (
        "history",
        &[VARIABLES],
        &["\"diff\":\"~ Boats{+ return+}", "\"title\":\"The harbour at dawn\"", "HTTP/1.1 204"],
    ),
    (
        "publishing",
        &[VARIABLES],
        &["https://example.org/preview?id=cp_", "HTTP/1.1 204", "\"id\":\"wh_"],
    ),
    ("assets", &[VARIABLES, "cp $FILES/harbour.jpg ."], &["/harbour.jpg\""]),
    ("workspaces", &[VARIABLES], &["  Posts\n"]),
    ("monitoring", &[VARIABLES], &["{\"status\":\"ok\"}{\"status\":\"ready\"}"]),
    ("configuration", &[VARIABLES], &["data-dir"]),
    ("backup", &[VARIABLES], &["galley-2026-11-22.backup"]),
    ("typescript", &[VARIABLES, "mkdir src"], &[]),
    ("running", &[], &["database"]),
    ("small-server", &["galley init > first-token"], &["database"]),
    (
        "wordpress",
        &[VARIABLES, "cp $FILES/diary.xml .", "mkdir uploads"],
        &["2 imported", "0 with problems"],
    ),
    (
        "ghost",
        &[VARIABLES, "cp $FILES/site.json .", "mkdir images"],
        &["3 imported", "0 with problems"],
    ),
    (
        "import-export",
        &[
            VARIABLES,
            "cp $FILES/diary.xml diary.wordpress.2026-11-22.xml",
            "cp $FILES/site.json site.ghost.2026-11-22.json",
            "mkdir posts docs docs/de",
            "echo '# A' | tee posts/a.md docs/b.md > docs/de/b.md",
        ],
        &["1 imported", " in variants: "],
    ),
];

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

/// Runs a script in a folder. The line `galley serve` starts the server beside it.
fn run_script(folder: &Path, files: &Path, commands: &str) -> Output {
    let port = free_port();
    let serve = format!(
        "galley serve --listen 127.0.0.1:{port} 2> log &\ntrap 'kill %1' EXIT\n\
         until command curl -sf http://127.0.0.1:{port}/readyz > /dev/null; do\n\
         kill -0 %1; sleep 0.1\ndone"
    );
    let script = format!("set -euo pipefail\n{commands}\n");
    let script = script.replace(&format!("\n{SERVE}\n"), &format!("\n{serve}\n"));
    let script = script.replace("http://127.0.0.1:8080", &format!("http://127.0.0.1:{port}"));
    let store = TestStore::sqlite();
    let program = galley(&store);
    let programs = Path::new(program.get_program()).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder).env("PATH", path).env("FILES", files);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GALLEY_")) {
        bash.env_remove(name);
    }
    run(&mut bash)
}

#[test]
fn every_command_of_the_guides_runs_or_is_marked() {
    for entry in fs::read_dir(guides()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if !GUIDES.iter().any(|(known, ..)| *known == name) {
            let text = fs::read_to_string(&path).unwrap();
            for (mark, commands) in blocks(&text) {
                assert_eq!(mark, "no-run", "{name}: {commands}");
            }
        }
    }
}

#[test]
fn the_commands_of_the_guides_work_in_an_empty_folder() {
    let files = tempfile::tempdir().unwrap();
    let image = guides().join("../../examples/content/harbour.jpg");
    fs::copy(image, files.path().join("harbour.jpg")).unwrap();
    fs::write(files.path().join("diary.xml"), WORDPRESS).unwrap();
    // A post without HTML can't be imported.
    let ghost = GHOST.replace("\"html\":null", "\"html\":\"<p>New</p>\"");
    fs::write(files.path().join("site.json"), ghost).unwrap();
    for (name, before, expected) in GUIDES {
        let folder = tempfile::tempdir().unwrap();
        let commands = format!("{}\n{}", before.join("\n"), commands(&guide(name)));
        let output = run_script(folder.path(), files.path(), &commands);
        assert!(output.status.success(), "{name}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        for part in expected {
            assert!(text.contains(part), "{name}: {part} is missing: {text}");
        }
    }
}
