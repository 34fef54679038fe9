//! The settings file: it is read, and printed as a template.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use galley_api_types::setting::SettingSource;
use toml::Spanned;

use crate::settings::{EffectiveSetting, Settings, without_empty_variables};

/// The settings files of which the first that exists is read, if none is named. The second one is
/// that of the machine's service, so that commands use its database from any directory.
const DEFAULT_FILES: [&str; 2] = ["galley.toml", "/etc/galley/galley.toml"];

/// The settings that the settings file can't have.
const NOT_IN_FILE: [&str; 2] = ["config", "init-token"];

/// Adds the settings file to the flags and variables in `given`.
///
/// The settings are parsed again, all as flags: those that were given, and the others of the file.
pub fn load(given: &ArgMatches) -> anyhow::Result<Settings> {
    let file = match given.get_one::<PathBuf>("config") {
        Some(path) => Some(path.clone()),
        None => DEFAULT_FILES.iter().map(PathBuf::from).find(|path| path.exists()),
    };
    let mut in_file = match &file {
        Some(path) => read_file(path)?,
        None => BTreeMap::new(),
    };
    let command = Settings::augment_args(clap::Command::new("galley").no_binary_name(true))
        .mut_args(without_empty_variables);
    let mut flags = Vec::new();
    let mut sources = Vec::new();
    for argument in command.get_arguments() {
        let (id, name) = (argument.get_id(), argument.get_long().expect("a setting is a flag"));
        let from_file = in_file.remove(name).map(|(text, _)| text);
        let is_given = matches!(
            given.value_source(id.as_str()),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        let (text, source) = match from_file {
            _ if is_given => {
                let text = given.get_raw(id.as_str()).and_then(Iterator::last);
                (text.map(ToOwned::to_owned), SettingSource::Command)
            }
            Some(text) => (Some(text.into()), SettingSource::File),
            None => (None, SettingSource::Default),
        };
        if let Some(text) = text {
            let mut flag = OsString::from(format!("--{name}="));
            flag.push(text);
            flags.push(flag);
        }
        sources.push((id.clone(), name.to_owned(), argument.is_hide_env_values_set(), source));
    }
    let shown = file.as_deref().unwrap_or(Path::new(DEFAULT_FILES[0])).display();
    if let Some((name, (_, line))) = in_file.first_key_value() {
        anyhow::bail!("{shown}:{line}: unknown setting `{name}`");
    }
    // Only a value of the file can be invalid, as the others were parsed before.
    let matches = command.try_get_matches_from(flags).map_err(|error| {
        let message = error.to_string();
        let line = message.lines().next().unwrap_or_default();
        anyhow::anyhow!("{shown}: {}", line.trim_start_matches("error: "))
    })?;
    let mut settings = Settings::from_arg_matches(&matches)?;
    settings.file = file;
    let effective = sources.into_iter().map(|(id, name, is_secret, source)| {
        let text = matches.get_raw(id.as_str()).and_then(Iterator::last);
        let text = text.map(|text| text.to_string_lossy().into_owned());
        EffectiveSetting { name, text, is_secret, source }
    });
    settings.effective =
        effective.filter(|setting| !NOT_IN_FILE.contains(&setting.name.as_str())).collect();
    settings.check()?;
    Ok(settings)
}

/// Returns a settings file with every setting as a comment: its description and its default.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "# The settings of Galley. Remove the # in front of a setting to change it. Variables, such as\n\
         # GALLEY_LISTEN, and flags, such as --listen, override this file. A file with passwords or\n\
         # the key must be readable by the service's user only.\n",
    );
    let command = Settings::augment_args(clap::Command::new("galley"));
    for argument in command.get_arguments() {
        let name = argument.get_long().unwrap_or_default();
        if NOT_IN_FILE.contains(&name) {
            continue;
        }
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let defaults = argument.get_default_values();
        let default = defaults.first().map(|default| default.to_string_lossy());
        let value = match default.filter(|_| !argument.is_hide_default_value_set()) {
            Some(number) if number.parse::<u64>().is_ok() => number.into_owned(),
            Some(text) => serde_json::Value::from(&*text).to_string(),
            None => {
                let value = argument.get_value_names().unwrap_or_default().first();
                serde_json::Value::from(value.map_or("", |name| name.as_str())).to_string()
            }
        };
        text.push_str(&format!("\n# {help}\n#{name} = {value}\n"));
    }
    text
}

/// Reads a settings file. Returns the text and line of each setting.
fn read_file(path: &Path) -> anyhow::Result<BTreeMap<String, (String, usize)>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("the settings file {shown} can't be read"))?;
    let line_at = |offset: usize| text[..offset].matches('\n').count() + 1;
    let table = toml::from_str::<BTreeMap<String, Spanned<toml::Value>>>(&text);
    let table = table.map_err(|error| {
        let line = error.span().map_or(1, |span| line_at(span.start));
        anyhow::anyhow!("{shown}:{line}: {}", error.message())
    })?;
    let entries = table.into_iter().map(|(name, value)| {
        let line = line_at(value.span().start);
        let text = match value.into_inner() {
            _ if NOT_IN_FILE.contains(&name.as_str()) => {
                anyhow::bail!("{shown}:{line}: `{name}` can't be set in the file")
            }
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            _ => anyhow::bail!("{shown}:{line}: `{name}` must be a text or an integer"),
        };
        Ok((name, (text, line)))
    });
    entries.collect()
}
