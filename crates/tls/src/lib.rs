//! The TLS configuration of Galley's outgoing connections: to PostgreSQL, mail servers, webhooks
//! and other Galley servers.

use std::sync::Arc;

pub use rustls::ClientConfig;
use rustls::RootCertStore;

/// Returns a client configuration for TLS 1.2 and 1.3 with ring as its provider.
///
/// Certificates are verified against the system's root certificates (`SSL_CERT_FILE` names others).
pub fn client() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    // An unreadable root certificate is left out, so no certificate is trusted because of it.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions' ciphers")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
