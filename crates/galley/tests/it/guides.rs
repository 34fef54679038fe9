//! The commands of guides, run as a reader would run them, in an empty folder.

use std::path::Path;
use std::process::Command;

use galley_testing::TestStore;

use crate::program::{free_port, galley, run};

/// The command with which a guide starts the server in a second terminal.
const SERVE: &str = "galley serve";

/// Returns the commands of a guide as one script. Blocks that are marked with `no-run` are left
/// out, except the start of the server.
fn script(guide: &str, port: u16) -> String {
    let serve = format!(
        "{SERVE} --listen 127.0.0.1:{port} 2>/dev/null &\ntrap 'kill %1' EXIT\n\
         until curl -sf http://127.0.0.1:{port}/readyz > /dev/null; do sleep 0.1; done\n"
    );
    let mut script = "set -euo pipefail\n".to_owned();
    for block in guide.split("\n```sh").skip(1) {
        let (mark, block) = block.split_once('\n').expect("a block has lines");
        let (commands, _) = block.split_once("\n```").expect("a block ends");
        match (mark.trim(), commands.trim()) {
            ("", commands) => script.extend([commands, "\n"]),
            ("no-run", SERVE) => script.push_str(&serve),
            ("no-run", _) => {}
            (mark, _) => panic!("a block has the unknown mark {mark:?}"),
        }
    }
    script.replace("http://127.0.0.1:8080", &format!("http://127.0.0.1:{port}"))
}

#[test]
fn the_commands_of_the_concepts_work_in_an_empty_folder() {
    let guide = include_str!("../../../../docs/guides/concepts.md");
    let store = TestStore::sqlite();
    let program = galley(&store);
    let folder = tempfile::tempdir().unwrap();
    let programs = Path::new(program.get_program()).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &script(guide, free_port())]).current_dir(folder.path()).env("PATH", path);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GALLEY_")) {
        bash.env_remove(name);
    }
    let output = run(&mut bash);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "\"content\":\"## At dawn\\n\\nBoats **leave**.\\n\"",
        "\"title\":\"H\u{e4}fen\",\"slug\":\"harbours\"",
        "precondition_failed",
        "\"number\":4",
        "\n[]\n",
        "\"title\":\"Harbours at dawn\"}]\n\"type\":\"contentPieceAdded\"\n",
        "\"type\":\"contentPiecePublished\"\n",
    ] {
        assert!(text.contains(expected), "{expected} is missing: {text}");
    }
}
