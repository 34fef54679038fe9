//! The export of spans to an OpenTelemetry collector, by OTLP over HTTP.

use anyhow::Context;
use async_trait::async_trait;
use galley_commands::logging::SpanLayer;
use galley_commands::version::VERSION;
use galley_http_client::HttpClient;
use galley_storage::TRACE_TARGET;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// The path of traces below an OTLP endpoint.
const TRACES_PATH: &str = "/v1/traces";

/// The exporter of spans. It exports in batches, on a thread of its own.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    /// Creates an exporter to the collector at `endpoint`, and the layer that collects the spans.
    ///
    /// The standard variables `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
    /// `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER` apply.
    pub(crate) fn new(endpoint: &str) -> anyhow::Result<(Self, SpanLayer)> {
        let client = CollectorClient { client: HttpClient::new(), runtime: Handle::current() };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/')))
            .build()
            .context("otlp-endpoint")?;
        let resource = Resource::builder()
            .with_attribute(opentelemetry::KeyValue::new("service.version", VERSION));
        let resource = if std::env::var_os("OTEL_SERVICE_NAME").is_some() {
            resource
        } else {
            resource.with_service_name("galley")
        };
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

    /// Exports the remaining spans.
    pub(crate) async fn shut_down(self) {
        let done = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = done {
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
}

#[async_trait]
impl opentelemetry_http::HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        Ok(self.runtime.spawn(async move { client.send(request).await }).await??)
    }
}
