//! Resolves a URL's host, checks its addresses against the policy, and connects to one of them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use galley_domain::address_policy::{AddressDecision, AddressPolicy};
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::attempt::AttemptError;
use crate::resolve::Resolve;

/// The limit on bytes of a response's status line and headers.
const RESPONSE_HEAD_MAX: usize = 64 * 1024;

/// The timeout for one of several addresses, before the next one is tried.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);

/// The limit on addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The host, port and scheme of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReceiverEndpoint {
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

/// The addresses of a target, all of them allowed by the policy.
#[derive(Debug, Clone)]
pub(crate) struct CheckedAddresses {
    pub(crate) addresses: Vec<SocketAddr>,
    /// True if one of them is allowed by exception only.
    pub(crate) is_exception: bool,
}

/// A connection, closed on drop.
#[derive(Debug)]
pub(crate) struct ReceiverConnection {
    pub(crate) sender: SendRequest<Full<Bytes>>,
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for ReceiverConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ReceiverEndpoint {
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = url.host()?.to_owned();
        Some(Self { host, port: url.port_or_known_default()?, is_tls })
    }

    /// Resolves the addresses, and rejects all of them if the policy rejects one. Otherwise the
    /// owner of the name could choose the address that is connected to.
    pub(crate) async fn check(
        &self,
        resolver: &dyn Resolve,
        policy: &AddressPolicy,
    ) -> Result<CheckedAddresses, AttemptError> {
        let found: Vec<IpAddr> = match &self.host {
            Host::Ipv4(address) => vec![(*address).into()],
            Host::Ipv6(address) => vec![(*address).into()],
            Host::Domain(name) => {
                resolver.resolve(name.clone()).await.map_err(|_| AttemptError::NameNotResolved)?
            }
        };
        if found.is_empty() {
            return Err(AttemptError::NameNotResolved);
        }
        let mut is_exception = false;
        for &address in &found {
            match policy.check(address) {
                Ok(verdict) => is_exception |= verdict == AddressDecision::Exception,
                Err(refused) => {
                    // The error omits the address of a name, which may be one of the operator's own
                    // network.
                    return Err(AttemptError::AddressRejected(match &self.host {
                        Host::Domain(name) => {
                            format!("{name} resolves to a blocked address")
                        }
                        _ => refused.to_string(),
                    }));
                }
            }
        }
        let addresses = found.into_iter().take(ADDRESSES_MAX);
        let addresses = addresses.map(|address| SocketAddr::new(address, self.port)).collect();
        Ok(CheckedAddresses { addresses, is_exception })
    }

    /// Connects to the first address that accepts the connection.
    pub(crate) async fn connect(
        &self,
        checked: &CheckedAddresses,
        tls: &Arc<ClientConfig>,
    ) -> Result<ReceiverConnection, AttemptError> {
        let mut last = AttemptError::ConnectFailed;
        for (at, &address) in checked.addresses.iter().enumerate() {
            let is_last = at + 1 == checked.addresses.len();
            let connecting = TcpStream::connect(address);
            // The last address gets all of the remaining time.
            let connected = if is_last {
                connecting.await.map_err(|_| AttemptError::ConnectFailed)
            } else {
                match timeout(ADDRESS_TIMEOUT, connecting).await {
                    Ok(connected) => connected.map_err(|_| AttemptError::ConnectFailed),
                    Err(_) => Err(AttemptError::ConnectTimedOut),
                }
            };
            match connected {
                Ok(stream) => return self.establish(stream, address, tls).await,
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn establish(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        tls: &Arc<ClientConfig>,
    ) -> Result<ReceiverConnection, AttemptError> {
        // Each request is written at once. With Nagle's algorithm its last segment would wait for
        // an acknowledgement.
        let _ = stream.set_nodelay(true);
        if !self.is_tls {
            return http_handshake(stream, address).await;
        }
        let name = match &self.host {
            Host::Domain(name) => {
                ServerName::try_from(name.clone()).map_err(|_| AttemptError::InvalidUrl)?
            }
            Host::Ipv4(address) => ServerName::IpAddress(IpAddr::from(*address).into()),
            Host::Ipv6(address) => ServerName::IpAddress(IpAddr::from(*address).into()),
        };
        let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
        let stream =
            connecting.await.map_err(|error| AttemptError::TlsFailed(tls_error_text(&error)))?;
        http_handshake(stream, address).await
    }
}

/// Returns the cause of a TLS error as one of a few fixed texts, as the receiver could choose parts
/// of the error's own text.
fn tls_error_text(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. } => {
                "the certificate has expired"
            }
            rustls::CertificateError::UnknownIssuer => {
                "no trusted authority signed the certificate"
            }
            rustls::CertificateError::NotValidForName
            | rustls::CertificateError::NotValidForNameContext { .. } => {
                "the certificate is for another name"
            }
            _ => "the certificate is not valid",
        },
        Some(_) => "the handshake failed",
        None => "the connection was closed",
    }
    .to_owned()
}

async fn http_handshake<S>(
    stream: S,
    address: SocketAddr,
) -> Result<ReceiverConnection, AttemptError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(RESPONSE_HEAD_MAX);
    let (sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|_| AttemptError::ConnectionLost)?;
    let task = tokio::spawn(async move {
        // An error is reported to the task that sends on this connection.
        let _ = connection.await;
    });
    Ok(ReceiverConnection { sender, address, task })
}

/// Returns the TLS configuration, which negotiates HTTP/1.1.
pub(crate) fn tls() -> Arc<ClientConfig> {
    let mut config = galley_tls::client();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
