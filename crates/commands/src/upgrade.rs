//! `galley upgrade`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use galley_application::Environment;
use galley_storage::{DatabaseUrl, Inspection, ProcessRole};
use indicatif::{HumanBytes, HumanDuration};

use crate::cli::UpgradeArguments;
use crate::disk_space::free_bytes;
use crate::out::{counted, say};
use crate::settings::Settings;
use crate::version::VERSION;
use crate::{logging, store};

/// The bytes of a rewritten table that a migration reads and writes in a second, at least, and the
/// bytes of a backup. A slow disk with all indexes of a table takes this long.
const BYTES_PER_SECOND: u64 = 10 << 20;

/// The exit status of `--check` if an upgrade is pending.
const PENDING: u8 = 3;

/// Applies the pending migrations, or describes them.
pub(crate) async fn run(
    settings: &Settings,
    arguments: &UpgradeArguments,
) -> anyhow::Result<ExitCode> {
    let environment = Environment::default();
    let url = settings.database()?;
    if let DatabaseUrl::Sqlite(path) = &url
        && !path.try_exists().with_context(|| path.display().to_string())?
    {
        bail!("the database {} does not exist: there is nothing to upgrade", path.display());
    }
    let options = store::options(url.clone(), settings, &environment, ProcessRole::Command);
    let found = Inspection::of(&options).await.map_err(|error| store::explain(&url, &error))?;
    let Some(last) = found.pending.last() else {
        say!("The schema {} is that of galley {VERSION}: nothing to upgrade.", found.schema);
        return Ok(ExitCode::SUCCESS);
    };
    let last = last.version;
    if arguments.check {
        let free = free_space(settings, &url)?;
        for line in describe(&found, free) {
            say!("{line}");
        }
        let is_sufficient = free.is_none_or(|free| free >= needed_space(&found));
        return Ok(if is_sufficient { PENDING.into() } else { ExitCode::FAILURE });
    }
    // The steps of the upgrade are lines of the log.
    logging::start("info", false, None)?;
    let database = store::open_existing(settings, &environment).await?;
    database.close().await;
    let count = counted(found.pending.len() as u64, "migration");
    say!("Applied {count}: the schema is now {last}.");
    Ok(ExitCode::SUCCESS)
}

/// Returns the free space beside a SQLite database, which an upgrade backs up there.
fn free_space(settings: &Settings, url: &DatabaseUrl) -> anyhow::Result<Option<u64>> {
    if matches!(url, DatabaseUrl::Postgres(_)) {
        return Ok(None);
    }
    Ok(Some(free_bytes(&settings.data_dir)?))
}

/// Returns the space for the backup, and for the migration's own log.
fn needed_space(found: &Inspection) -> u64 {
    found.bytes + found.rewritten_bytes
}

/// Describes the upgrade. `free` is the space for the backup on SQLite.
fn describe(found: &Inspection, free: Option<u64>) -> Vec<String> {
    let to = found.pending.last().map_or(found.schema, |last| last.version);
    let bytes = HumanBytes(found.bytes);
    let mut lines = vec![
        format!("{}, {bytes}", found.engine),
        format!("galley {VERSION} upgrades the schema from {} to {to}:", found.schema),
    ];
    lines.extend(found.pending.iter().map(|one| format!("{:>6}  {}", one.version, one.name)));
    let oldest = found.pending.last().map_or(VERSION, |last| last.oldest_program);
    lines.push(format!("Programs older than {oldest} can't use it afterwards."));
    lines.push(match free {
        None => {
            format!("Make a backup of up to {bytes} with the program in use now, or with pg_dump.")
        }
        Some(free) => {
            let needed = needed_space(found);
            let free_text = HumanBytes(free);
            let shortage = if free < needed {
                format!(" This is not enough: free {}.", HumanBytes(needed - free))
            } else {
                String::new()
            };
            format!("It first makes a backup of {bytes}; {free_text} are free.{shortage}")
        }
    });
    let backup = if free.is_some() { found.bytes } else { 0 };
    let seconds = 1 + (backup + found.rewritten_bytes) / BYTES_PER_SECOND;
    let duration = HumanDuration(Duration::from_secs(seconds));
    lines.push(format!("Expected duration: up to {duration}."));
    lines
}

#[cfg(test)]
mod tests {
    use galley_storage::PendingMigration;

    use super::*;

    #[test]
    fn a_description_has_the_changes_the_backup_the_space_and_the_duration() {
        let pending = PendingMigration {
            version: 2,
            name: "comments",
            oldest_program: "0.3.0",
            rewritten_tables: vec!["events"],
        };
        let found = Inspection {
            engine: "SQLite 3.54.1".to_owned(),
            schema: 1,
            pending: vec![pending],
            bytes: 600 << 20,
            rewritten_bytes: 600 << 20,
            clock: None,
            last_event: None,
            warnings: Vec::new(),
        };
        let text = describe(&found, Some(700 << 20)).join("\n");
        for words in [
            "from 1 to 2:",
            "2  comments",
            "older than 0.3.0 can't",
            "a backup of 600.00 MiB; 700.00 MiB are free. This is not enough: free 500.00 MiB.",
            "up to 2 minutes",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let enough = describe(&found, Some(2 << 30)).join("\n");
        assert!(!enough.contains("not enough"), "{enough}");
        let postgres = describe(&found, None).join("\n");
        for words in ["the program in use now", "up to 61 seconds"] {
            assert!(postgres.contains(words), "{words}: {postgres}");
        }
    }
}
