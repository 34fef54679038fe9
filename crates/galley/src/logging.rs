//! Where the log goes: text on a terminal, JSON otherwise, always to standard error.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts logging what `filter` lets through.
pub(crate) fn start(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("the log filter {filter:?} is not valid: try info or debug"))?;
    // A line that can't be written, as on a full disk, is lost: telling so on standard error would end the thread.
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else {
        builder.json().init();
    }
    Ok(())
}
