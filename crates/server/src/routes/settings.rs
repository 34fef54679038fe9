//! `/settings`: the settings of the installation.

use galley_api_types::setting::SettingBody;
use galley_application::operations::settings;

use crate::extract::actor::WriteWorkspace;
use crate::routes::prelude::*;

/// List the settings of the installation
///
/// Returns the effective settings of this server, as `galley config` prints them: all of them, in
/// one page. Secrets are left out. In an installation with several workspaces, only its operator
/// sees the settings, by that command.
#[utoipa::path(
    get, path = "/settings", operation_id = "listSettings",
    responses(
        (status = 200, body = [SettingBody]),
        (status = 403, description = "beyond_own_permissions"),
    ),
)]
pub(crate) async fn list(
    State(app): State<App>,
    actor: Actor<WriteWorkspace>,
) -> Result<Response, Problem> {
    settings::require_only_workspace(actor.caller()).await?;
    Ok(response::ok(&app.limits().settings))
}
