//! The log on standard error: text on a terminal, JSON otherwise.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use galley_storage::TRACE_TARGET;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use crate::out::is_misleading;

/// The target of the access log's events.
const ACCESS_LOG: &str = "galley::access";

/// The target of the spans of requests, whose fields are on each line within a request.
const REQUEST_SPAN: &str = "galley::request";

/// A layer that collects spans besides the log.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging of the events that match `filter`, and of every request if `access_log` is set.
pub fn start(filter: &str, access_log: bool, spans: Option<SpanLayer>) -> anyhow::Result<()> {
    let filter = self::filter(filter, access_log)?;
    // A line that can't be written, as on a full disk, is dropped. Reporting the error on standard
    // error would fail, too, and end the thread.
    let log = fmt::layer().log_internal_errors(false).with_writer(|| EscapingStderr);
    let log: SpanLayer = if std::io::stderr().is_terminal() {
        log.with_target(false).boxed()
    } else {
        // The list of spans would repeat the fields of the only one.
        log.json().with_span_list(false).boxed()
    };
    match spans {
        // A filter of the whole subscriber decides faster than one of a layer.
        None => tracing_subscriber::registry().with(log).with(filter).init(),
        Some(spans) => {
            let layers: Vec<SpanLayer> = vec![spans, log.with_filter(filter).boxed()];
            tracing_subscriber::registry().with(layers).init();
        }
    }
    Ok(())
}

/// Parses a filter.
pub(crate) fn filter(text: &str, access_log: bool) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::try_new(text)
        .with_context(|| format!("the log filter {text:?} is not valid: try info or debug"))?;
    let level = if access_log { LevelFilter::INFO } else { LevelFilter::OFF };
    let directive = |target: &str, level: LevelFilter| {
        format!("{target}={level}").parse().expect("the directive is right")
    };
    let levels = [
        (ACCESS_LOG, level),
        (REQUEST_SPAN, LevelFilter::INFO),
        // Exported spans are not part of the log.
        (TRACE_TARGET, LevelFilter::OFF),
    ];
    Ok(levels
        .into_iter()
        .fold(filter, |filter, (target, level)| filter.add_directive(directive(target, level))))
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
