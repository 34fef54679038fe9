//! The settings of the installation, which are given at its start.

use galley_storage::{Tx, workspaces};

use crate::caller::Caller;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};

/// Rejects callers in an installation with several workspaces: its settings are not those of one
/// workspace, whose Admins need not know the operator.
pub async fn require_only_workspace(caller: &Caller) -> Result<(), Error> {
    let own = caller.workspace();
    let read = async move |tx: &Tx<'_>| {
        if workspaces::has_others(tx, own).await? {
            let detail = "the installation has several workspaces: its operator sees the settings \
                          with `galley config`";
            return Err(Rejection::new(Reason::BeyondOwn, detail).into());
        }
        Ok(())
    };
    caller.read("settings.require_only_workspace", read).await
}
