//! The socket of a client, which is watched while a response is produced.
//!
//! A client may close its side after sending its request, and still expect the response. So the end
//! of its stream does not end the connection. A client that has disconnected looks the same until a
//! write fails. So event streams end when the client closes its side, and other reads end after a
//! timeout.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;

/// The time for which a read continues after its client has closed its side.
const CLOSED_TIMEOUT: Duration = Duration::from_secs(5);

/// The interval at which a connection with unread bytes is checked.
const UNREAD_INTERVAL: Duration = Duration::from_millis(500);

/// A connection to a client. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ClientSocket(Arc<TcpStream>);

impl ClientSocket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Returns the address of the peer: the client, or a proxy before it.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.0.peer_addr().ok().map(|address| address.ip())
    }

    /// Waits until the client has closed its side, or the connection broke.
    pub(crate) async fn closed(&self) {
        loop {
            let ready = self.0.ready(Interest::READABLE).await;
            // The end is reported even behind unread bytes, such as a pipelined request.
            if ready.is_ok_and(Ready::is_read_closed) {
                return;
            }
            match self.0.peek(&mut [0]).await {
                Ok(1..) => tokio::time::sleep(UNREAD_INTERVAL).await,
                _ => return,
            }
        }
    }

    /// Waits until the client has closed its side for so long that it has probably disconnected.
    pub(crate) async fn abandoned(&self) {
        self.closed().await;
        tokio::time::sleep(CLOSED_TIMEOUT).await;
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match self.0.try_write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(rustix::net::shutdown(&*self.0, Shutdown::Write)?))
    }
}
