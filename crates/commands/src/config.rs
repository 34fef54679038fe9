//! `galley config`

use galley_storage::DatabaseUrl;

use crate::out::say;
use crate::settings::{SettingSource, Settings};

pub(crate) fn run(settings: &Settings) -> anyhow::Result<()> {
    let database = settings.database()?;
    settings.cors_origins()?;
    settings.mailer()?;
    settings.webhook_addresses(settings.listen)?;
    settings.trusted_proxies()?;
    match &settings.file {
        Some(path) => say!("# with {}", path.display()),
        None => say!("# without a galley.toml"),
    }
    for setting in &settings.effective {
        let text = match (setting.name.as_str(), &setting.text) {
            ("database-url", _) => format!("{database:?}"),
            ("public-url", None) => settings.public_url(settings.listen),
            ("smtp-url", None) => "none: mails are stored as files".to_owned(),
            ("key", None) => match database {
                DatabaseUrl::Sqlite(_) => "galley.key in the data directory".to_owned(),
                DatabaseUrl::Postgres(_) => "missing".to_owned(),
            },
            (_, None) => "none".to_owned(),
            (_, Some(_)) if setting.is_secret => "given".to_owned(),
            (_, Some(text)) => text.clone(),
        };
        let source = match setting.source {
            SettingSource::Default => "default",
            SettingSource::File => "file",
            SettingSource::Command => "variable or flag",
        };
        say!("{:<22}{text:<44}# {source}", setting.name);
    }
    Ok(())
}
