//! `galley healthcheck`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use galley_commands::{address, say};
use http::Request;
use http::header::HOST;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The timeout of the whole request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Requests `/readyz` of the server with this listen address. Fails unless it is ready.
pub(crate) async fn run(listen: SocketAddr) -> Result<ExitCode> {
    let address = address::reachable(listen);
    let checked = tokio::time::timeout(TIMEOUT, request(address)).await;
    let (is_ready, body) = checked
        .map_err(|_| anyhow::anyhow!("no response within {} seconds", TIMEOUT.as_secs()))
        .flatten()
        .with_context(|| format!("http://{address}/readyz"))?;
    say!("{}", body.trim_end());
    Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns true if the server is ready, and the body of its response.
async fn request(address: SocketAddr) -> Result<(bool, String)> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get("/readyz").header(HOST, address.to_string());
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let is_ready = response.status().is_success();
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((is_ready, String::from_utf8_lossy(&body).into_owned()))
}
