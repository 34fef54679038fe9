//! `galley config`

use anyhow::Result;
use galley_api_types::setting::{SettingBody, SettingSource};
use galley_storage::DatabaseUrl;

use crate::out::say;
use crate::settings::Settings;

pub(crate) fn run(settings: &Settings) -> Result<()> {
    settings.cors_origins()?;
    settings.mailer()?;
    settings.webhook_addresses(settings.listen)?;
    settings.trusted_proxies()?;
    let effective = effective(settings)?;
    match &settings.file {
        Some(path) => say!("# with {}", path.display()),
        None => say!("# without a galley.toml"),
    }
    let width = effective.iter().map(|setting| setting.name.len()).max().unwrap_or_default();
    for SettingBody { name, value, source } in &effective {
        let source = match source {
            SettingSource::Default => "default",
            SettingSource::File => "file",
            SettingSource::Command => "variable or flag",
        };
        say!("{name:<width$}  {value:<44}# {source}");
    }
    Ok(())
}

/// Returns the effective settings as they are shown, without secrets.
pub fn effective(settings: &Settings) -> Result<Vec<SettingBody>> {
    let database = settings.database()?;
    let effective = settings.effective.iter().map(|setting| {
        let value = match (setting.name.as_str(), &setting.text) {
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
        SettingBody { name: setting.name.clone(), value, source: setting.source }
    });
    Ok(effective.collect())
}
