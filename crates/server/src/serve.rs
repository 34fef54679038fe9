//! The listener: connections, their limits, and graceful shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::Response;
use futures_util::future::BoxFuture;
use galley_application::search::indexer;
use galley_application::{housekeeping, mail_worker, webhook_worker};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

use crate::app::App;
use crate::client_socket::ClientSocket;
use crate::middleware::error_response;
use crate::middleware::pipeline::Pipeline;
use crate::router::router;

/// The timeout for running requests and deliveries once shutdown has begun.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that is bound to its address.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Binds the address. Connections wait in the backlog until [`Server::run`].
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await? })
    }

    /// Returns the bound address. If port 0 was given, it has the port that the system chose.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves `app` until `stop` completes, and then for the configured delay, in which load
    /// balancers notice the stop. After that it accepts no connections and waits for the running
    /// requests.
    pub async fn run<'s>(self, app: App, stop: impl Future<Output = ()> + Send + 's) {
        // The boxed future is compiled in this crate, beside the commands.
        let serving: BoxFuture<'s, ()> = Box::pin(self.run_until(app, Box::pin(stop)));
        serving.await;
    }

    async fn run_until(self, app: App, stop: BoxFuture<'_, ()>) {
        let pipeline = Pipeline::new(app.clone(), router(app.clone()));
        let connections = GracefulShutdown::new();
        let limiter = ConnectionLimiter::new(app.limits().connection_limit);
        let housekeeping_task = tokio::spawn(housekeeping::run(app.service().clone()));
        let monitored = app.clone();
        let monitor_task = tokio::spawn(async move {
            tokio::join!(monitored.overload().monitor(), monitored.clean_up_limits())
        });
        let service = app.service();
        let mail_task =
            service.mailer().map(|mailer| tokio::spawn(mail_worker::run(service.clone(), mailer)));
        let delivery_task = match webhook_worker::start(service.clone()) {
            Ok(sending) => Some(sending),
            Err(error) => {
                tracing::error!(
                    %error,
                    "the webhook worker can't start its threads: nothing is sent to webhooks"
                );
                None
            }
        };
        let search_task = indexer::start(service.clone()).inspect_err(|error| {
            tracing::error!(%error, "search indexes are not updated: their thread can't start");
        });
        self.accept(&app, &pipeline, &connections, &limiter, stop).await;
        app.start_draining();
        let delay = app.limits().drain_delay;
        if !delay.is_zero() {
            tracing::info!(seconds = delay.as_secs(), "draining: /readyz reports not ready");
            let end = tokio::time::sleep(delay);
            self.accept(&app, &pipeline, &connections, &limiter, end).await;
        }
        drop(self.listener);
        housekeeping_task.abort();
        monitor_task.abort();
        tracing::info!("stopping: waiting for running requests and deliveries");
        app.stop();
        let indexed = async {
            if let Ok(indexing) = search_task {
                let _ = indexing.await;
            }
        };
        let mailed = async {
            if let Some(mailing) = mail_task {
                let _ = mailing.await;
            }
        };
        let sent = async {
            if let Some(sending) = delivery_task {
                let _ = sending.await;
            }
        };
        let all = async { tokio::join!(connections.shutdown(), sent, mailed, indexed) };
        if tokio::time::timeout(DRAIN_TIMEOUT, all).await.is_err() {
            tracing::warn!("stopped with work still running after {DRAIN_TIMEOUT:?}");
        }
    }

    /// Accepts connections until `stop` completes.
    async fn accept(
        &self,
        app: &App,
        pipeline: &Pipeline,
        connections: &GracefulShutdown,
        limiter: &ConnectionLimiter,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        if let Some(permit) = limiter.acquire() {
                            serve_connection(stream, app, pipeline, connections, permit);
                        }
                    }
                    // An immediate retry would fail again, for example without free file
                    // descriptors.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                () = &mut stop => break,
            }
        }
    }
}

/// The connection limiter. Without it, connections could use up all file descriptors, including
/// those of the database.
struct ConnectionLimiter {
    served: Arc<Semaphore>,
    rejected: Arc<Semaphore>,
}

/// An accepted connection.
struct ConnectionPermit {
    /// True if the connection only gets an error response.
    is_rejected: bool,
    permit: CountedPermit,
}

/// A permit that the gauge of open connections counts.
struct CountedPermit(#[expect(dead_code, reason = "its drop ends it")] OwnedSemaphorePermit);

impl CountedPermit {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        metrics::gauge!("galley_connections_open").increment(1.0);
        Self(permit)
    }
}

impl Drop for CountedPermit {
    fn drop(&mut self) {
        metrics::gauge!("galley_connections_open").decrement(1.0);
    }
}

/// The limit of rejected connections that get an error response at the same time. Further ones are
/// closed.
const REJECTED_LIMIT: usize = 64;

/// The timeout of a rejected connection, for the headers of its request and for writing.
const REJECTED_TIMEOUT: Duration = Duration::from_secs(2);

impl ConnectionLimiter {
    fn new(max: usize) -> Self {
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
        metrics::gauge!("galley_connections_limit").set(max as f64);
        Self { served: permits(max), rejected: permits(REJECTED_LIMIT) }
    }

    fn acquire(&self) -> Option<ConnectionPermit> {
        let enter = |is_rejected, permits: &Arc<Semaphore>| {
            let permit = Arc::clone(permits).try_acquire_owned().ok()?;
            Some(ConnectionPermit { is_rejected, permit: CountedPermit::new(permit) })
        };
        enter(false, &self.served).or_else(|| enter(true, &self.rejected))
    }
}

fn serve_connection(
    stream: TcpStream,
    app: &App,
    pipeline: &Pipeline,
    connections: &GracefulShutdown,
    ConnectionPermit { is_rejected, permit }: ConnectionPermit,
) {
    // Responses are written whole. Nagle's algorithm would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let header_size_limit = app.limits().header_size_limit;
    let receive_timeout = if is_rejected {
        app.limits().receive_timeout.min(REJECTED_TIMEOUT)
    } else {
        app.limits().receive_timeout
    };
    // A client that reads nothing of its response for this time is disconnected.
    let socket = ClientSocket::new(stream);
    let mut stream = TimeoutStream::new(socket.clone());
    stream.set_write_timeout(Some(receive_timeout));
    let (app, pipeline) = (app.clone(), pipeline.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (app, pipeline, socket) = (app.clone(), pipeline.clone(), socket.clone());
        async move {
            let mut request = request.map(Body::new);
            let mut response = if is_rejected {
                error_response::overloaded(&request, app.environment())
            } else {
                request.extensions_mut().insert(socket.clone());
                pipeline.handle(request).await
            };
            if is_rejected || app.is_draining() {
                // Otherwise a request could arrive on a kept-alive connection while it is closed.
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(receive_timeout)
        .max_buf_size(header_size_limit)
        // A client that closes its side after the request still receives the response.
        .half_close(true)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(permit);
    });
}

/// Serves `/metrics` on `listener`, and nothing else. It needs no authentication.
pub async fn serve_metrics(
    listener: TcpListener,
    metrics: PrometheusHandle,
) -> std::io::Result<()> {
    let router = Router::new().route(
        "/metrics",
        axum::routing::get(async move || {
            let mut response = Response::new(Body::from(metrics.render()));
            let text = HeaderValue::from_static("text/plain; version=0.0.4");
            response.headers_mut().insert(CONTENT_TYPE, text);
            response
        }),
    );
    axum::serve(listener, router).await
}
