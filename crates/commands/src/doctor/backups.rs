//! The check of the age of backups.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use galley_application::Environment;
use indicatif::HumanDuration;

use super::finding::Finding;
use crate::backups::is_backup;
use crate::cli::DoctorArguments;
use crate::settings::Settings;

/// The folder of backups in the data directory, into which the packaged timer writes.
const FOLDER: &str = "backups";

/// Checks the age of the newest backup in the folder of backups.
pub(super) fn check(settings: &Settings, arguments: &DoctorArguments) -> Finding {
    let default = settings.data_dir.join(FOLDER);
    let folder = match &arguments.backups {
        Some(folder) => folder,
        None if default.is_dir() => &default,
        None if settings.data_dir.exists() => {
            return Finding::ok(format!(
                "not checked: name their folder with --backups, or write them to {}",
                default.display()
            ));
        }
        None => return Finding::ok("none yet"),
    };
    let shown = folder.display();
    let (path, changed) = match newest(folder, arguments.backups.is_some()) {
        Ok(Some(newest)) => newest,
        Ok(None) => {
            return Finding::failure(format!("{shown} has none: run `galley backup FILE`"));
        }
        Err(error) => {
            return Finding::failure(format!("{shown} can't be read: {error}: correct --backups"));
        }
    };
    let now = u64::try_from(Environment::default().now().ms()).unwrap_or_default();
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole seconds, as fractions are of no interest here.
    let age = Duration::from_secs((now / 1_000).saturating_sub(changed.as_secs()));
    let state = format!("{} was made {} ago", path.display(), HumanDuration(age));
    if age > Duration::from_secs(u64::from(arguments.backup_age) * 3_600) {
        return Finding::failure(format!(
            "{state}: check the job that makes backups, or raise --backup-age"
        ));
    }
    Finding::ok(state)
}

/// Returns the newest backup of a folder, and the time of its last change. A folder that is named
/// may have backups of other tools, such as `pg_dump`.
fn newest(folder: &Path, accepts_any: bool) -> std::io::Result<Option<(PathBuf, SystemTime)>> {
    let mut newest: Option<(PathBuf, SystemTime)> = None;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // An unfinished backup has another name until it is complete. A rotation may delete a file
        // at any moment, and a link may lead to the newest one.
        let is_hidden = name.starts_with('.') || name.contains(".unfinished");
        let Ok(found) = std::fs::metadata(&path) else { continue };
        let changed = found.modified()?;
        let is_newer = newest.as_ref().is_none_or(|(_, time)| *time < changed);
        if found.is_file()
            && is_newer
            && !is_hidden
            && (accepts_any || is_backup(&path).unwrap_or(false))
        {
            newest = Some((path, changed));
        }
    }
    Ok(newest)
}
