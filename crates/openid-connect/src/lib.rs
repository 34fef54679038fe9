//! Sign-in with an identity provider, as OpenID Connect Core 1.0 specifies: the authorization code
//! flow, with PKCE (RFC 7636).
//!
//! This crate knows the provider only. The caller keeps the secrets of a request, and finds the
//! user of an identity.

mod client;
mod error;
mod provider;

pub use error::{Error, InvalidProviderSetting};
pub use provider::{AuthorizationRequest, Identity, Provider, ProviderSettings};
