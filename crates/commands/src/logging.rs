//! The log on standard error: text on a terminal, JSON otherwise.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::out::is_misleading;

/// Starts logging of the events that match `filter`.
pub fn start(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("the log filter {filter:?} is not valid: try info or debug"))?;
    // A line that can't be written, as on a full disk, is dropped. Reporting the error on standard
    // error would fail, too, and end the thread.
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(|| EscapingStderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else {
        builder.json().init();
    }
    Ok(())
}

/// A writer to standard error for log lines that may contain text from clients.
///
/// The formatter escapes ASCII characters itself. This writer escapes other misleading characters
/// as JSON does.
struct EscapingStderr;

impl Write for EscapingStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if line.is_ascii() {
            stderr.write_all(line)?;
        } else {
            stderr.write_all(escape_misleading(&String::from_utf8_lossy(line)).as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn escape_misleading(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for c in line.chars() {
        if is_misleading(c) {
            plain.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}
