//! Other programs that open the database beside the server, with a SQLite library that relies on
//! POSIX locks. They read, copy and edit it, and no acknowledged write is lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{TestStore, locks, report_skipped};
use reqwest::Method;
use serde_json::Value;

use crate::kills::{Load, assert_acknowledged_is_stored, receive_from, role};
use crate::program::{Program, data_dir, free_port, galley, piece, run, stderr, stdout};

/// A program with a SQLite library of its own, and its operation on the database.
#[derive(Debug, Clone, Copy)]
enum Visit {
    /// `SELECT` in the command line shell.
    ShellSelect,
    /// `.backup`, which reads a hundred pages at a time.
    ShellBackup,
    ShellVacuumInto,
    /// A manual `UPDATE`.
    ShellEdit,
    PythonSelect,
    /// The same call as `.backup`, but for all pages at once.
    PythonBackup,
    GalleyBackup,
    GalleyToken,
}

const VISITS: [Visit; 8] = [
    Visit::ShellSelect,
    Visit::PythonSelect,
    Visit::ShellEdit,
    Visit::ShellVacuumInto,
    Visit::GalleyBackup,
    Visit::PythonBackup,
    Visit::GalleyToken,
    Visit::ShellBackup,
];

/// The visiting programs and the number of their copies.
struct Visitors<'a> {
    store: &'a TestStore,
    shell: PathBuf,
    database: PathBuf,
    copies: usize,
}

impl<'a> Visitors<'a> {
    fn new(store: &'a TestStore) -> Option<Self> {
        let Some(shell) = std::env::var_os("GALLEY_TEST_SQLITE3").map(PathBuf::from) else {
            report_skipped("sqlite3: GALLEY_TEST_SQLITE3 is not set (cargo xtask test sets it)");
            return None;
        };
        Some(Self { store, shell, database: data_dir(store).join("galley.db"), copies: 0 })
    }

    fn shell(&self, statement: &str) -> String {
        let mut command = Command::new(&self.shell);
        let output = run(command
            .args(["-batch", "-cmd", ".timeout 20000"])
            .arg(&self.database)
            .arg(statement));
        assert!(output.status.success(), "{statement}: {}", stderr(&output));
        stdout(&output).trim().to_owned()
    }

    fn python(&self, script: &str, copy: &Path) -> String {
        let mut command = Command::new("python3");
        let script = format!(
            "import sqlite3, sys\nd = sqlite3.connect(sys.argv[1], timeout=20)\n{script}\nd.close()"
        );
        let output = run(command.args(["-c", &script]).arg(&self.database).arg(copy));
        assert!(output.status.success(), "{script}: {}", stderr(&output));
        stdout(&output).trim().to_owned()
    }

    /// Returns the SQLite versions of the visiting programs.
    fn versions(&self) -> String {
        let shell = self.shell("SELECT sqlite_version()");
        let python = self.python("print(sqlite3.sqlite_version)", Path::new(""));
        format!("sqlite3 {shell}, Python's {python}")
    }

    /// Runs a program on the database. Returns the copy that it made, if any.
    fn visit(&mut self, visit: Visit) -> Option<PathBuf> {
        const COUNT: &str = "SELECT count(*) FROM content_pieces";
        self.copies += 1;
        let copy = self.store.directory().join(format!("copy-{}.db", self.copies));
        let name = copy.display();
        match visit {
            Visit::ShellSelect => assert!(self.shell(COUNT).parse::<u32>().is_ok()),
            Visit::ShellEdit => {
                self.shell("UPDATE workspaces SET description = 'by hand'");
            }
            Visit::PythonSelect => {
                let script = format!("print(d.execute('{COUNT}').fetchone()[0])");
                assert!(self.python(&script, &copy).parse::<u32>().is_ok());
            }
            Visit::GalleyToken => {
                let mut command = galley(self.store);
                let output = run(command.args(["token", "create", "--name", "visitor"]));
                assert!(output.status.success(), "{}", stderr(&output));
            }
            Visit::ShellBackup => {
                self.shell(&format!(".backup '{name}'"));
                return Some(copy);
            }
            Visit::ShellVacuumInto => {
                self.shell(&format!("VACUUM INTO '{name}'"));
                return Some(copy);
            }
            Visit::PythonBackup => {
                self.python("t = sqlite3.connect(sys.argv[2])\nd.backup(t)\nt.close()", &copy);
                return Some(copy);
            }
            Visit::GalleyBackup => {
                let mut command = galley(self.store);
                let output = run(command.arg("backup").arg(&copy));
                assert!(output.status.success(), "{}", stderr(&output));
                return Some(copy);
            }
        }
        None
    }
}

/// Returns a table's row count, in a database without a server or in a copy. Checks the integrity
/// as well.
fn count_of(database: &Path, table: &str) -> usize {
    let connection = rusqlite::Connection::open(database).unwrap();
    let check: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok", "{}", database.display());
    let count = format!("SELECT count(*) FROM {table}");
    let count: i64 = connection.query_row(&count, [], |row| row.get(0)).unwrap();
    usize::try_from(count).unwrap()
}

async fn add_piece(program: &Program, group: &str, number: usize) {
    let piece = piece(group, &format!("piece-{number}"), "<p>Some text</p>");
    let made = program.request(Method::POST, "/content-pieces").json(&piece).send().await.unwrap();
    assert!(made.status().is_success(), "{made:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_server_loses_nothing_to_programs_that_open_its_database() {
    let store = TestStore::sqlite();
    let Some(mut visitors) = Visitors::new(&store) else { return };
    let (port, mut pieces) = (free_port(), 0);
    for round in 0..size(2, 8, 100) {
        let mut program = Program::serve(&store, port);
        let group = program.group().await;
        for visit in VISITS.into_iter().cycle().skip(round).take(VISITS.len()) {
            for _ in 0..20 {
                add_piece(&program, &group, pieces).await;
                pieces += 1;
            }
            if let Some(copy) = visitors.visit(visit) {
                assert_eq!(
                    count_of(&copy, "content_pieces"),
                    pieces,
                    "{visit:?} leaves out what was answered"
                );
                std::fs::remove_file(copy).unwrap();
            }
            let database = &visitors.database;
            assert!(locks::are_held(program.child.id(), database), "no lock after {visit:?}");
        }
        add_piece(&program, &group, pieces).await;
        pieces += 1;
        program.kill();
        assert_eq!(
            count_of(&visitors.database, "content_pieces"),
            pieces,
            "an answered piece was lost"
        );
    }
    let found = format!("{pieces} pieces answered, 0 lost; {}", visitors.versions());
    report_figure("SQLite: killed after visits of other programs, at rest", found, "0 lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loaded_server_loses_nothing_to_programs_that_open_its_database() {
    let store = TestStore::sqlite();
    let Some(mut visitors) = Visitors::new(&store) else { return };
    let port = free_port();
    let mut program = Program::serve(&store, port);
    let group = program.group().await;
    let receiver = receive_from(&program, &group).await;
    let load = Arc::new(Load::default());
    let clients = load.start(&program.url, &group, &role(&program).await);
    let kills = size(2, 16, 200);
    // A copy in steps of a hundred pages never completes beside concurrent writers.
    let visits = VISITS.into_iter().filter(|visit| !matches!(visit, Visit::ShellBackup)).cycle();
    let mut visits = visits.enumerate();
    for _ in 0..kills {
        for (_, visit) in visits.by_ref().take(4) {
            load.wait_for(10).await;
            let copy = tokio::task::block_in_place(|| visitors.visit(visit));
            if let Some(copy) = copy {
                assert!(count_of(&copy, "content_pieces") > 0);
                std::fs::remove_file(copy).unwrap();
            }
            let database = &visitors.database;
            assert!(locks::are_held(program.child.id(), database), "no lock after {visit:?}");
        }
        program.kill();
        count_of(&visitors.database, "content_pieces");
        program = Program::serve(&store, port);
    }
    let acknowledged = load.end(clients).await;
    assert_acknowledged_is_stored(&store, &program, &receiver, &acknowledged).await;
    let workspace: Value = program.get("/workspace").await;
    assert_eq!(workspace["description"], "by hand", "the edit is lost, or an old response cached");
    let found = format!("{} changes answered, 0 lost; {}", acknowledged.len(), visitors.versions());
    report_figure(
        &format!("SQLite: {kills} kills beside visits of other programs"),
        found,
        "0 lost",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_reads_no_hard_link_to_its_own_database() {
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    add_piece(&program, &group, 1).await;
    let folder = store.directory().join("posts");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "# A\n\nText").unwrap();
    for (end, name) in [("", "b.md"), ("-wal", "c.html"), ("-shm", "d.md")] {
        let file = data_dir(&store).join(format!("galley.db{end}"));
        std::fs::hard_link(file, folder.join(name)).unwrap();
    }
    let output = run(galley(&store).arg("import").arg(&folder));
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(said.matches("belongs to the database").count(), 3, "{said}");
    let named = run(galley(&store).arg("import").arg(folder.join("b.md")));
    assert!(stderr(&named).contains("belongs to the database"), "{named:?}");
    assert_eq!(program.pieces("").await.len(), 2, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_writes_or_reads_through_a_link_to_the_database() {
    let store = TestStore::sqlite();
    let program = Program::serve(&store, free_port());
    let group = program.group().await;
    add_piece(&program, &group, 1).await;
    let database = data_dir(&store).join("galley.db");
    let folder = store.directory().join("repository");
    std::fs::create_dir(&folder).unwrap();
    for (number, link) in [".galley-export.unfinished", "piece-1.md.unfinished"].iter().enumerate()
    {
        let link = folder.join(link);
        if number == 0 {
            std::os::unix::fs::symlink(&database, &link).unwrap();
        } else {
            std::fs::hard_link(&database, &link).unwrap();
        }
        let output = run(galley(&store).arg("export").arg(&folder));
        assert!(output.status.success(), "{output:?}");
        let _ = std::fs::remove_file(&link);
    }
    std::fs::remove_file(folder.join(".galley-export")).unwrap();
    std::fs::hard_link(&database, folder.join(".galley-export")).unwrap();
    let output = run(galley(&store).arg("export").arg(&folder));
    assert!(stderr(&output).contains("belongs to the database"), "{output:?}");
    let backup = store.directory().join("a.backup");
    let unfinished = store.directory().join("a.backup.unfinished");
    std::fs::hard_link(&database, &unfinished).unwrap();
    let output = run(galley(&store).arg("backup").arg(&backup));
    assert!(stderr(&output).contains("is a link or not a regular file"), "{output:?}");
    std::fs::remove_file(&unfinished).unwrap();
    let bundle = store.directory().join("bundle");
    let exported = run(galley(&store).args(["export", "--format", "json"]).arg(&bundle));
    assert!(exported.status.success(), "{exported:?}");
    let piece = walk(&bundle.join("pieces")).into_iter().find(|path| path.is_file()).unwrap();
    std::fs::remove_file(&piece).unwrap();
    std::fs::hard_link(&database, &piece).unwrap();
    let output = run(galley(&store).arg("import").arg(&bundle));
    assert!(stderr(&output).contains("belongs to the database"), "{output:?}");
    add_piece(&program, &group, 2).await;
    assert_eq!(program.pieces("").await.len(), 2);
}

/// Returns the files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
