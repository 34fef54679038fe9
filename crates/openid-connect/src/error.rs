//! Errors of settings and of requests.

use std::error::Error as StdError;

use openidconnect::{
    ClaimsVerificationError, DiscoveryError, ErrorResponse, RequestTokenError, SigningError,
    UserInfoError,
};

/// A setting of the provider that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProviderSetting {
    /// The issuer is no URL, or one without https.
    #[error(
        "openid-connect-issuer: {0:?} is not the URL of an identity provider, such as \
         https://id.example.org (http is allowed at loopback addresses only)"
    )]
    Issuer(String),
    /// The URL to which the provider sends browsers back is no URL.
    #[error("public-url: {0:?} is not a URL")]
    PublicUrl(String),
}

/// The error of a request to the provider.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The provider does not respond, or its response can't be read.
    #[error("the identity provider failed: {0}")]
    Unavailable(String),
    /// The provider rejects the code, or its statement about the user is invalid.
    #[error("the identity is not accepted: {0}")]
    Rejected(String),
}

/// Returns the texts of an error and its causes.
fn texts(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl<E: StdError + 'static> From<DiscoveryError<E>> for Error {
    fn from(error: DiscoveryError<E>) -> Self {
        Self::Unavailable(texts(&error))
    }
}

impl<E, R> From<RequestTokenError<E, R>> for Error
where
    E: StdError + 'static,
    R: ErrorResponse + 'static,
{
    fn from(error: RequestTokenError<E, R>) -> Self {
        match error {
            RequestTokenError::ServerResponse(response) => Self::Rejected(response.to_string()),
            other => Self::Unavailable(texts(&other)),
        }
    }
}

impl<E: StdError + 'static> From<UserInfoError<E>> for Error {
    fn from(error: UserInfoError<E>) -> Self {
        match error {
            UserInfoError::ClaimsVerification(error) => error.into(),
            other => Self::Unavailable(texts(&other)),
        }
    }
}

impl From<ClaimsVerificationError> for Error {
    fn from(error: ClaimsVerificationError) -> Self {
        Self::Rejected(texts(&error))
    }
}

impl From<SigningError> for Error {
    fn from(error: SigningError) -> Self {
        Self::Rejected(texts(&error))
    }
}
