//! The files and commands for installations: completions, manual pages, the settings file, and the
//! health check of containers.

use std::process::Command;

use galley_testing::{TestStore, on_both_engines};

use crate::program::{Program, free_port, galley, run, stderr, stdout, write};

/// Returns the names of the commands in `galley --help`.
fn commands(store: &TestStore) -> Vec<String> {
    let help = stdout(&run(galley(store).arg("--help")));
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // Long descriptions continue on lines with more spaces.
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names =
        lines.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "help").map(ToOwned::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let store = TestStore::sqlite();
    let pages = store.directory().join("share/man");
    let output = run(galley(&store).args(["manpage", "--directory"]).arg(&pages));
    assert!(output.status.success(), "{output:?}");
    let names = commands(&store);
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(pages.join(format!("galley-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && !page.contains("data\\-dir"), "{page}");
    }
    assert!(pages.join("galley-token-create.1").is_file());
    let program = std::fs::read_to_string(pages.join("galley.1")).unwrap();
    assert!(program.contains("data\\-dir") && program.contains("GALLEY_DATA_DIR"), "{program}");
}

#[test]
fn bash_completes_commands_and_options() {
    let store = TestStore::sqlite();
    let script = store.directory().join("galley.bash");
    write(&script, run(galley(&store).args(["completion", "bash"])).stdout);
    for (words, completed) in
        [("gro", "group"), ("token cre", "create"), ("serve --data-d", "--data-dir")]
    {
        let typed = format!("galley {words}");
        let count = typed.split(' ').count() - 1;
        let shell = format!(
            "source \"$1\"; COMP_WORDS=({typed}); COMP_CWORD={count}; \
             _galley galley \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[*]}}\""
        );
        let output = Command::new("bash").args(["-c", &shell, "bash"]).arg(&script).output();
        assert_eq!(stdout(&output.unwrap()).trim(), completed, "{words}");
    }
    let other = run(galley(&store).args(["completion", "cmd"]));
    assert!(stderr(&other).contains("bash, elvish, fish, powershell, zsh"), "{other:?}");
}

#[test]
fn the_template_is_a_settings_file_with_all_settings() {
    let store = TestStore::sqlite();
    let template = stdout(&run(galley(&store).args(["config", "--template"])));
    let file = store.directory().join("galley.toml");
    let config = |text: &str| {
        write(&file, text);
        let output = run(galley(&store).args(["config", "--config"]).arg(&file));
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    let before = config(&template);
    assert!(!before.contains("# file"), "{before}");
    for line in before.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split_whitespace().next().unwrap();
        assert!(template.contains(&format!("\n#{name} = ")), "{name}: {template}");
    }
    let defaults = ["#rate-limit = 0", "#log = \"info\""];
    let after = config(&defaults.iter().fold(template, |text, default| {
        assert!(text.contains(default), "{text}");
        text.replace(default, &default[1..])
    }));
    assert_eq!(after.matches("# file").count(), defaults.len(), "{after}");
}

#[on_both_engines]
async fn the_health_check_fails_unless_the_server_is_ready(store: TestStore) {
    let port = free_port();
    let check = || {
        let listen = format!("0.0.0.0:{port}");
        run(galley(&store).args(["healthcheck", "--listen", &listen]))
    };
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    let address = format!("http://127.0.0.1:{port}/readyz");
    assert!(stderr(&output).contains(&address), "{output:?}");
    let mut command = galley(&store);
    command.args(["serve", "--shutdown-delay", "5", "--listen", &format!("127.0.0.1:{port}")]);
    let program = Program::start(command);
    let output = check();
    assert!(output.status.success() && stdout(&output).contains("ready"), "{output:?}");
    program.send_stop_signal();
    program.wait_for_log("draining").await;
    let output = check();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!stdout(&output).contains("\"ready\""), "{output:?}");
}
