//! Where the log goes: text on a terminal, JSON otherwise, always to standard error.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::out::misleads;

/// Starts logging what `filter` lets through.
pub(crate) fn start(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("the log filter {filter:?} is not valid: try info or debug"))?;
    // A line that can't be written, as on a full disk, is lost: telling so on standard error would end the thread.
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_writer(|| Plain);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else {
        builder.json().init();
    }
    Ok(())
}

/// Standard error, for lines in which a client's words may stand.
///
/// What is ASCII is escaped by who writes the line; what misleads beyond that comes as JSON escapes it.
struct Plain;

impl Write for Plain {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        if line.is_ascii() {
            stderr.write_all(line)?;
        } else {
            stderr.write_all(plain(&String::from_utf8_lossy(line)).as_bytes())?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    for c in line.chars() {
        if misleads(c) {
            plain.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}
