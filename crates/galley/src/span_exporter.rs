//! The export of spans to an OpenTelemetry collector, by OTLP over HTTP.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use galley_commands::logging::SpanLayer;
use galley_commands::version::VERSION;
use galley_http_client::HttpClient;
use galley_storage::TRACE_TARGET;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpError, Request, Response};
use opentelemetry_otlp::{WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The name of the service, unless a standard variable states another.
const SERVICE_NAME: &str = "galley";

/// The timeout of the last export.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval between two log lines about failed exports.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// An exporter in batches, on a thread of its own.
pub(crate) struct SpanExporter(SdkTracerProvider);

impl SpanExporter {
    /// Creates an exporter to the collector at `url`, and the layer that collects the spans.
    ///
    /// The standard variables `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
    /// `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER` apply.
    pub(crate) fn new(url: &str) -> anyhow::Result<(Self, SpanLayer)> {
        let client = CollectorClient {
            client: HttpClient::new(),
            runtime: Handle::current(),
            logged_at: Mutex::default(),
        };
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .build()
            .context("otlp-endpoint")?;
        let mut resource = Resource::builder_empty()
            .with_service_name(SERVICE_NAME)
            .with_attribute(KeyValue::new("service.version", VERSION))
            .with_detector(Box::new(EnvResourceDetector::new()));
        if let Some(name) = std::env::var("OTEL_SERVICE_NAME").ok().filter(|name| !name.is_empty())
        {
            resource = resource.with_service_name(name);
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("galley"))
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(Targets::new().with_target(TRACE_TARGET, LevelFilter::INFO));
        Ok((Self(provider), Box::new(layer)))
    }

    /// Exports the remaining spans, within a time limit.
    pub(crate) async fn shut_down(self) {
        let shut_down = move || self.0.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(shut_down).await {
            tracing::warn!(%error, "the last spans could not be exported");
        }
    }
}

/// The HTTP client of exports. The exporter's thread has no runtime, so the requests run on the
/// server's.
#[derive(Debug)]
struct CollectorClient {
    client: HttpClient,
    runtime: Handle,
    /// The time of the last log line about a failure.
    logged_at: Mutex<Option<Instant>>,
}

impl CollectorClient {
    /// Logs a failed export, at most once in the interval.
    fn log_failure(&self, problem: &str) {
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|logged_at| logged_at.elapsed() >= LOG_INTERVAL) {
            *logged_at = Some(Instant::now());
            tracing::warn!(problem, "traces could not be exported: check otlp-endpoint");
        }
    }
}

#[async_trait]
impl opentelemetry_http::HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { client.send(request).await }).await?;
        let response = sent.inspect_err(|error| {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            self.log_failure(&format!("{error}: {}", cause.unwrap_or_default()));
        })?;
        if !response.status().is_success() {
            self.log_failure(&format!("the collector responded with {}", response.status()));
        }
        Ok(response)
    }
}
