//! The spans of transactions that OpenTelemetry exports.

use tracing::{Level, Span};

/// The target of all spans that are exported, and of no others. It is off unless the service has a
/// trace collector. A filter applies to all targets that begin so, and no module can: its name has
/// no hyphen.
pub const TRACE_TARGET: &str = "galley-trace";

/// Creates the span of a transaction within a request. Transactions of background work have none:
/// they run all the time, and most find nothing to do.
pub(crate) fn transaction(engine: &'static str, name: &'static str) -> Span {
    if !tracing::enabled!(target: TRACE_TARGET, Level::INFO) || Span::current().is_none() {
        return Span::none();
    }
    tracing::info_span!(
        target: TRACE_TARGET,
        "transaction",
        otel.name = name,
        otel.kind = "client",
        db.system.name = engine,
        db.operation.name = name,
    )
}
