//! The connection to a mail server, which is untrusted until its certificate is verified.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The limit on bytes that a server may send between two writes of the client: certificates, or the
/// longest response.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;

/// A connection that fails when the server sends without end: plain, or within TLS.
#[derive(Debug)]
struct BoundedStream<S> {
    stream: S,
    /// The bytes received since the client last wrote.
    received: usize,
}

impl<S> BoundedStream<S> {
    fn new(stream: S) -> Self {
        Self { stream, received: 0 }
    }
}

/// Connects to the server, with TLS from the start if `encrypted`.
pub(crate) async fn connect(
    host: &str,
    port: u16,
    encrypted: bool,
) -> io::Result<Box<dyn AsyncTokioStream>> {
    let stream = BoundedStream::new(TcpStream::connect((host, port)).await?);
    if !encrypted {
        return Ok(Box::new(stream));
    }
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(galley_tls::client()));
    Ok(Box::new(BoundedStream::new(connector.connect(name, stream).await?)))
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.received += buffer.filled().len() - before;
        if self.received > RESPONSE_BYTES_MAX {
            return Poll::Ready(Err(io::Error::other("the server's response is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.received = 0;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncTokioStream for BoundedStream<TcpStream> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncTokioStream for BoundedStream<TlsStream<BoundedStream<TcpStream>>> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.get_ref().0.peer_addr()
    }
}
