//! The JSON representation of the installation's settings.

use serde::Serialize;
use utoipa::ToSchema;

/// An effective setting of the installation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Setting)]
pub struct SettingBody {
    /// The name, as in the settings file.
    #[schema(example = "revision-retention")]
    pub name: String,
    /// The value as text. A secret is `given` or `none`.
    #[schema(example = "30")]
    pub value: String,
    /// The source of the value.
    pub source: SettingSource,
}

/// `default`, `file` (the settings file) or `command` (a variable or a flag).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum SettingSource {
    /// The default.
    Default,
    /// The settings file.
    File,
    /// A variable or a flag.
    Command,
}
