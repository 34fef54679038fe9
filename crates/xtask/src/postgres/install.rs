//! Installation of PostgreSQL's programs on a machine that has none, by apt-get only.

use anyhow::{Result, bail};
use rustix::process::geteuid;

use super::{debian_download, debian_install, privileges::Account};
use crate::child;

/// Fetches the programs, so that [`super::find`] finds them.
///
/// Root installs Debian's package. Other users unpack the packages into the target directory. So
/// does root on a machine that already has settings for PostgreSQL's installation.
pub(super) fn install(account: &Account) -> Result<()> {
    if !apt_is_there(account) {
        bail!("apt-get, which could install them, is not available");
    }
    if geteuid().is_root() && debian_install::keeps_existing_settings() {
        debian_install::install()
    } else {
        debian_download::download()
    }
}

fn apt_is_there(account: &Account) -> bool {
    child::output(account.command("apt-get").arg("--version").current_dir("/")).is_ok()
}
