//! The id of a request and the address of its client, for the audit log.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use galley_domain::address_policy::IpNet;
use galley_domain::audit::RequestOrigin;

use crate::app::App;
use crate::client_socket::ClientSocket;
use crate::describe::{HandlerArgument, HandlerFacts};
use crate::middleware::request_id::RequestId;

/// The header in which proxies list the addresses of clients: the first one, then each proxy but
/// the last.
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The origin of a request.
#[derive(Debug)]
pub(crate) struct Origin(pub(crate) RequestOrigin);

impl FromRequestParts<App> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self(origin(parts, app)))
    }
}

impl HandlerArgument for Origin {
    fn add_facts(_: &mut HandlerFacts) {}
}

/// Returns the origin of a request.
pub(crate) fn origin(parts: &Parts, app: &App) -> RequestOrigin {
    let id = parts.extensions.get().map_or("", RequestId::as_str);
    RequestOrigin { request_id: id.into(), remote_address: client_address(parts, app) }
}

/// Returns the address of a request's client: that of the connection, or behind trusted proxies the
/// one that they state.
pub(crate) fn client_address(parts: &Parts, app: &App) -> Option<IpAddr> {
    let peer = parts.extensions.get().and_then(ClientSocket::address)?.to_canonical();
    Some(forwarded_client(peer, &parts.headers, &app.limits().trusted_proxies))
}

/// Returns the last address that no trusted proxy has. Each proxy appends the address of its own
/// client, so the addresses before that one may be forged.
fn forwarded_client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer;
    let lists: Vec<&[u8]> =
        headers.get_all(X_FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    for text in lists.iter().rev().flat_map(|list| list.rsplit(|byte| *byte == b',')) {
        if !trusted.iter().any(|network| network.contains(&client)) {
            break;
        }
        let Some(address) = std::str::from_utf8(text).ok().and_then(parse) else { break };
        client = address;
    }
    client
}

/// Parses an address, with or without a port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse().map(|with: std::net::SocketAddr| with.ip()).ok());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        client_of_bytes(peer, &forwarded.iter().map(|value| value.as_bytes()).collect::<Vec<_>>())
    }

    fn client_of_bytes(peer: &str, forwarded: &[&[u8]]) -> String {
        let trusted = ["10.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_bytes(value).unwrap());
        }
        forwarded_client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_state_the_address_of_the_client() {
        assert_eq!(client("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        // The client forged the first address.
        assert_eq!(client("10.0.0.1", &["203.0.113.9, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("::1", &["203.0.113.9", "198.51.100.7, 10.1.1.1"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(client("10.0.0.1", &["198.51.100.7, unknown"]), "10.0.0.1");
        assert_eq!(client_of_bytes("10.0.0.1", &[b"\xff, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1", &["[2001:db8::5]:4711"]), "2001:db8::5");
        assert_eq!(client("10.0.0.1", &["::ffff:198.51.100.7"]), "198.51.100.7");
    }
}
