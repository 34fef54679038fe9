//! `galley copy`, `backup`, `restore` and `verify`: operations on a whole store.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use galley_application::Environment;
use galley_storage::{
    Database, DatabaseUrl, ProcessRole, StagedStore, TableSummary, back_up, copy as copy_rows,
    restore as restore_file, verify as verify_file,
};

use crate::cli::{CopyArguments, FileArguments};
use crate::out::say;
use crate::settings::Settings;
use crate::version::VERSION;
use crate::{key, paths, progress, store};

/// Copies a store into an empty one.
pub(crate) async fn copy(settings: &Settings, arguments: &CopyArguments) -> anyhow::Result<()> {
    let environment = Environment::default();
    let (from, to) = (parse_url(&arguments.from)?, parse_url(&arguments.to)?);
    if from == to {
        bail!("--from and --to are the same store");
    }
    if let DatabaseUrl::Sqlite(path) = &from
        && !path.exists()
    {
        bail!("the database {} does not exist", path.display());
    }
    if let DatabaseUrl::Sqlite(path) = &from
        && path.metadata().is_ok_and(|file| file.len() == 0)
    {
        bail!("{} is empty: nothing was copied", path.display());
    }
    let alone = matches!(from, DatabaseUrl::Sqlite(_)) && !arguments.live;
    let role = if alone { ProcessRole::Server } else { ProcessRole::Command };
    let source = store::open_url(from.clone(), settings, &environment, role).await;
    let hint = "stop the server, so that the copy contains all writes, or copy the current state \
                with --live";
    let source = source
        .with_context(|| format!("--from can't be copied (if it is being served: {hint})"))?;
    if !alone && !arguments.live && source.is_served().await? {
        bail!("--from is being served: {hint}");
    }
    if let DatabaseUrl::Sqlite(path) = &to {
        store::make_data_dir(path.parent().unwrap_or(Path::new(".")))?;
    }
    let options = store::options(to.clone(), settings, &environment, ProcessRole::Command);
    let target = StagedStore::open(&options).await.with_context(|| format!("--to, {to:?}"))?;
    let started = Instant::now();
    let (bar, tell) = progress::for_store("rows copied and compared");
    let copied = copy_rows(&source.snapshot().await?, &target, tell).await?;
    target.finish().await?;
    bar.finish_and_clear();
    source.close().await;
    print(&copied);
    say!("Copied and compared row by row in {:.1} s.", started.elapsed().as_secs_f64());
    say!("{}", key::hint_for_copy(&from, &to));
    Ok(())
}

/// Creates a backup, also while a server is running.
pub(crate) async fn backup(settings: &Settings, arguments: &FileArguments) -> anyhow::Result<()> {
    let environment = Environment::default();
    let database = store::open_existing(settings, &environment).await?;
    let options =
        store::options(settings.database()?, settings, &environment, ProcessRole::Command);
    let (bar, tell) = progress::for_store("done");
    let file = &arguments.file;
    back_up(&database, &options, file, tell)
        .await
        .with_context(|| format!("{}", file.display()))?;
    bar.finish_and_clear();
    database.close().await;
    let size = std::fs::metadata(file)?.len();
    say!("{} contains all writes acknowledged before its start ({size} bytes).", file.display());
    say!("{}", key::hint_for_backup(settings)?);
    Ok(())
}

/// Restores a backup into an empty store.
pub(crate) async fn restore(settings: &Settings, arguments: &FileArguments) -> anyhow::Result<()> {
    let environment = Environment::default();
    let file = existing(&arguments.file)?;
    store::make_data_dir(&settings.data_dir)?;
    let options =
        store::options(settings.database()?, settings, &environment, ProcessRole::Command);
    let (bar, tell) = progress::for_store("done");
    restore_file(file, &options, tell).await.with_context(|| format!("{}", file.display()))?;
    bar.finish_and_clear();
    let database = Database::open(options).await?;
    let key = key::check(settings, &database).await;
    database.close().await;
    say!("Restored into {:?}.", settings.database()?);
    match key {
        Ok(_) => say!("Start it with `galley serve`."),
        Err(problem) => say!("Fix the problem of its key before you start it: {problem}"),
    }
    Ok(())
}

/// Checks a backup's integrity, and lists its contents.
pub(crate) async fn verify(arguments: &FileArguments) -> anyhow::Result<()> {
    let file = existing(&arguments.file)?;
    let (bar, tell) = progress::for_store("rows");
    let found = verify_file(file, VERSION, tell).await;
    let found = found.with_context(|| format!("{} can't be restored", file.display()))?;
    bar.finish_and_clear();
    print(&found.tables);
    let older = if found.is_older { " (a restore migrates it)" } else { "" };
    say!("{} is intact. Its schema version is {}{older}.", file.display(), found.schema);
    Ok(())
}

fn existing(file: &Path) -> anyhow::Result<&Path> {
    let found = std::fs::metadata(file).with_context(|| format!("{}", file.display()))?;
    if !found.is_file() {
        bail!("{} is not a file", file.display());
    }
    let mut start = Vec::new();
    File::open(file)?.take(16).read_to_end(&mut start)?;
    if start != b"SQLite format 3\0" {
        bail!("{} is not a backup of galley", file.display());
    }
    Ok(file)
}

/// Parses `postgres://…`, `sqlite:PATH` or a path. The path is that of a database file, or of a
/// server's data directory.
fn parse_url(text: &str) -> anyhow::Result<DatabaseUrl> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok(DatabaseUrl::Postgres(text.to_owned()));
    }
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() || path.contains("://") {
        // The text may contain a password, so the message omits it.
        bail!("--from and --to must be postgres://… or sqlite:PATH");
    }
    let path = PathBuf::from(path);
    let is_file = path.is_file() || path.extension().is_some_and(|kind| kind == "db");
    Ok(DatabaseUrl::Sqlite(if is_file { path } else { path.join(paths::DATABASE) }))
}

fn print(tables: &[TableSummary]) {
    let (filled, empty): (Vec<_>, Vec<_>) = tables.iter().partition(|table| table.rows > 0);
    for TableSummary { name, rows, sha256 } in filled {
        let sum = sha256.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes everything");
            text
        });
        say!("{rows:>10}  {name:<32} {sum}");
    }
    let rows: u64 = tables.iter().map(|table| table.rows).sum();
    say!("{rows:>10}  rows; {} tables are empty", empty.len());
}
