//! The key that encrypts secrets in the database.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use galley_application::secrets::{KeyError, SecretKey};
use galley_storage::{Database, DatabaseUrl, Error as StorageError, Tx, installation};

use crate::private_files;
use crate::settings::Settings;

/// The key's file in the data directory, used if the settings have no key.
const KEY_FILE: &str = "galley.key";

/// Rejects an invalid key, and PostgreSQL without a key, before the database is opened.
pub fn check_given(settings: &Settings) -> anyhow::Result<()> {
    match (settings.key.as_deref(), settings.database()?) {
        (Some(text), _) => {
            SecretKey::parse(text).context("GALLEY_KEY can't be used")?;
            Ok(())
        }
        (None, DatabaseUrl::Postgres(_)) => bail!(
            "PostgreSQL requires the setting GALLEY_KEY, the same on every node: it encrypts \
             secrets. Create one with `openssl rand -base64 32` and store it safely"
        ),
        (None, DatabaseUrl::Sqlite(_)) => Ok(()),
    }
}

/// Returns the key of the settings or of the file. Creates the file for a SQLite database that has
/// no key yet.
pub(crate) async fn load(settings: &Settings, database: &Database) -> anyhow::Result<SecretKey> {
    // The database is read before the file. A concurrent start creates the file before it registers
    // the key, so the other order could report a missing file.
    let known = has_key(database).await?;
    let (key, from) = find_or_create(settings, known)?;
    key.adopt(database).await.map_err(|refused| explain(refused, &from))?;
    Ok(key)
}

/// Returns the key and its origin. Creates a file only if the database has no registered key.
fn find_or_create(settings: &Settings, known: bool) -> anyhow::Result<(SecretKey, String)> {
    let path = settings.data_dir.join(KEY_FILE);
    let shown = path.display();
    check_given(settings)?;
    Ok(if let Some(text) = settings.key.as_deref() {
        let key = SecretKey::parse(text).context("GALLEY_KEY can't be used")?;
        (key, "GALLEY_KEY".to_owned())
    } else if path.exists() {
        let key = read(&path)?;
        if private_files::is_open_to_others(&path) {
            tracing::warn!("the key file {shown} can be read by other users: chmod 600 {shown}");
        }
        (key, shown.to_string())
    } else if known {
        bail!(
            "the key file {shown} is missing: restore it, or set GALLEY_KEY to its contents; the \
             database's secrets can't be read without it"
        );
    } else {
        (create_file(&path)?, shown.to_string())
    })
}

fn explain(refused: KeyError, from: &str) -> anyhow::Error {
    match refused {
        KeyError::OtherKey => anyhow!(
            "the key of {from} differs from the key that encrypted the database: start with the \
             latter"
        ),
        KeyError::Storage(error) => error.into(),
    }
}

async fn has_key(database: &Database) -> anyhow::Result<bool> {
    let find = async |tx: &Tx<'_>| installation::find_key_check(tx).await;
    Ok(database.read::<_, StorageError, _>("installation.key", find).await?.is_some())
}

/// Creates the file of a new key, with access only for its owner. The file is complete before
/// anything is encrypted.
fn create_file(path: &Path) -> anyhow::Result<SecretKey> {
    let failed = || format!("the key file {} can't be created", path.display());
    let text = SecretKey::generate();
    let unfinished = path.with_extension(format!("key.{}", std::process::id()));
    // An existing file is a leftover of a killed start, or a link to another file. So it is
    // removed, not overwritten.
    let _ = std::fs::remove_file(&unfinished);
    let mut file = private_files::create(&unfinished).with_context(failed)?;
    writeln!(file, "{text}").with_context(failed)?;
    file.sync_all().with_context(failed)?;
    // If several processes start at once, one creates the file, and the others read it.
    let linked = std::fs::hard_link(&unfinished, path);
    std::fs::remove_file(&unfinished).with_context(failed)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return read(path),
        linked => linked.with_context(failed)?,
    }
    if let Some(directory) = path.parent() {
        // The directory entry, too, must survive a power loss.
        std::fs::File::open(directory)
            .and_then(|directory| directory.sync_all())
            .with_context(failed)?;
    }
    tracing::info!(file = %path.display(), "created a key: store a copy apart from the database");
    Ok(SecretKey::parse(&text)?)
}

fn read(path: &Path) -> anyhow::Result<SecretKey> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the key file {shown} can't be read"))?;
    SecretKey::parse(&text).with_context(|| format!("the key file {shown} can't be used"))
}

/// Returns a hint about the key for a copied store, whose secrets stay encrypted with it.
pub(crate) fn hint_for_copy(from: &DatabaseUrl, to: &DatabaseUrl) -> String {
    let beside = |url: &DatabaseUrl| match url {
        DatabaseUrl::Sqlite(path) => Some(path.with_file_name(KEY_FILE)),
        DatabaseUrl::Postgres(_) => None,
    };
    match (beside(from).filter(|file| file.exists()), beside(to)) {
        (Some(from), Some(to)) => {
            format!("Copy the key as well: cp -p {} {}", from.display(), to.display())
        }
        (Some(from), None) => {
            format!(
                "The store needs the same key: start with GALLEY_KEY=\"$(cat {})\"",
                from.display()
            )
        }
        (None, _) => "The store needs the same key: start with the same GALLEY_KEY.".to_owned(),
    }
}

/// Returns a hint about the key for a new backup.
pub(crate) fn hint_for_backup(settings: &Settings) -> anyhow::Result<String> {
    let path = settings.data_dir.join(KEY_FILE);
    let sqlite = matches!(settings.database()?, DatabaseUrl::Sqlite(_));
    Ok(if sqlite && settings.key.is_none() {
        format!(
            "The backup does not contain the key: store {} as well, apart from the backups. \
             Webhooks' secrets can't be read without it.",
            path.display()
        )
    } else {
        "The backup does not contain the key: store GALLEY_KEY as well, apart from the backups. \
         Webhooks' secrets can't be read without it."
            .to_owned()
    })
}

/// Returns the finding of `galley doctor` about the key before the first start on SQLite.
pub(crate) fn check_unused(settings: &Settings) -> Result<String, String> {
    if settings.key.is_none() && !settings.data_dir.join(KEY_FILE).exists() {
        return Ok("created at the first start".to_owned());
    }
    find_or_create(settings, false).map_err(|error| format!("{error:#}"))?;
    finding(settings)
}

/// Returns the finding of `galley doctor` about the key. Creates no key.
pub(crate) async fn check(settings: &Settings, database: &Database) -> Result<String, String> {
    let sqlite = matches!(settings.database(), Ok(DatabaseUrl::Sqlite(_)));
    let stored = has_key(database).await.map_err(|error| error.to_string())?;
    if sqlite && !stored {
        return check_unused(settings);
    }
    let (key, from) = find_or_create(settings, stored).map_err(|error| format!("{error:#}"))?;
    key.check(database).await.map_err(|refused| format!("{:#}", explain(refused, &from)))?;
    finding(settings)
}

/// Returns the finding about a key that can be used.
fn finding(settings: &Settings) -> Result<String, String> {
    let path = settings.data_dir.join(KEY_FILE);
    if settings.key.is_none() && private_files::is_open_to_others(&path) {
        let shown = path.display();
        return Err(format!("{shown} can be read by other users: chmod 600 {shown}"));
    }
    Ok(match settings.key {
        Some(_) => "of GALLEY_KEY".to_owned(),
        None => format!("in {}; backups of the database don't contain it", path.display()),
    })
}
