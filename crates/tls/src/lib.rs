//! How Galley's connections to others are encrypted: to PostgreSQL, mail servers, webhooks, other Galleys.

use std::sync::Arc;

pub use rustls::ClientConfig;
use rustls::RootCertStore;

/// TLS 1.2 and 1.3 with ring. Certificates are checked against the system's roots (`SSL_CERT_FILE` names others).
pub fn client() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    // A root that can't be read is one that nothing will be trusted by.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions' ciphers")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
