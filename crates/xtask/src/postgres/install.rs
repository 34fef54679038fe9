//! How PostgreSQL's programs get onto a machine that has none: Debian's way, or not at all.

use anyhow::{Result, bail};
use rustix::process::geteuid;

use super::{debian_download, debian_install, privileges::Account};
use crate::child;

/// Fetches the programs, so that [`super::find`] finds them.
///
/// Root installs Debian's package. Anybody else, and root on a machine where somebody has already
/// set up how PostgreSQL is to be installed, unpacks the packages into the target directory.
pub(super) fn install(account: &Account) -> Result<()> {
    if !apt_is_there(account) {
        bail!("this system has no apt-get, with which they could be fetched");
    }
    if geteuid().is_root() && debian_install::is_harmless() {
        debian_install::install()
    } else {
        debian_download::download()
    }
}

fn apt_is_there(account: &Account) -> bool {
    child::output(account.command("apt-get").arg("--version").current_dir("/")).is_ok()
}
