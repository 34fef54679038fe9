//! An identity provider.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use galley_domain::Timestamp;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreTokenResponse, CoreUserInfoClaims,
};
use openidconnect::{
    AccessTokenHash, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret,
    CsrfToken, EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, Nonce,
    OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
    SignatureVerificationError, TokenResponse,
};
use tokio::sync::Mutex;
use url::{Host, Url};

use crate::client::ProviderClient;
use crate::error::{Error, InvalidProviderSetting};

/// The time for which the provider's metadata and keys are cached.
const METADATA_LIFETIME: Duration = Duration::from_hours(1);

/// The interval between requests for the keys because of an unknown one.
const KEYS_INTERVAL: Duration = Duration::from_mins(1);

/// The time for which a failure to fetch the metadata is remembered, so that waiting requests do
/// not repeat it one after another.
const FAILURE_LIFETIME: Duration = Duration::from_secs(5);

/// The difference allowed between the clocks of the provider and this service.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// The time after which a statement of the provider is too old.
const STATEMENT_LIFETIME: Duration = Duration::from_mins(15);

/// The settings of a provider, from its registration of this service.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The issuer identifier: a URL, exactly as the provider states it.
    pub issuer: String,
    /// The client identifier.
    pub client_id: String,
    /// The client secret; `None` for a public client.
    pub client_secret: Option<String>,
    /// The name that people know it by.
    pub name: String,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ProviderSettings")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The values of one request, which only its browser and this service know.
#[derive(Clone)]
pub struct AuthorizationRequest {
    /// The parameter `state`, which the provider returns.
    pub state: String,
    /// The parameter `nonce`, which the provider's statement repeats.
    pub nonce: String,
    /// The PKCE code verifier: 43 to 128 characters of base 64 (URL alphabet).
    pub verifier: String,
}

impl fmt::Debug for AuthorizationRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("AuthorizationRequest(…)")
    }
}

/// The provider's statement about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The address.
    pub email: Option<String>,
    /// True if the provider has verified that the address is the user's.
    pub is_email_verified: bool,
}

/// An identity provider. Clones share the cache of its metadata.
#[derive(Debug, Clone)]
pub struct Provider(Arc<ProviderParts>);

#[derive(Debug)]
struct ProviderParts {
    settings: ProviderSettings,
    issuer: IssuerUrl,
    redirect: RedirectUrl,
    client: ProviderClient,
    metadata: Mutex<MetadataCache>,
}

#[derive(Debug, Default)]
struct MetadataCache {
    /// The metadata, and the time at which it was fetched.
    fetched: Option<(Arc<CoreProviderMetadata>, Instant)>,
    /// The last failure, and its time.
    failed: Option<(String, Instant)>,
}

type ReadyClient = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

impl Provider {
    /// Creates the client of a provider, which sends browsers back to `redirect`.
    pub fn new(
        settings: ProviderSettings,
        redirect: String,
    ) -> Result<Self, InvalidProviderSetting> {
        let invalid = || InvalidProviderSetting::Issuer(settings.issuer.clone());
        let url = Url::parse(&settings.issuer).map_err(|_| invalid())?;
        let is_loopback = match url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let is_http = url.scheme() == "http" && is_loopback;
        if !(url.scheme() == "https" || is_http) || url.query().is_some() {
            return Err(invalid());
        }
        let issuer = IssuerUrl::new(settings.issuer.clone()).map_err(|_| invalid())?;
        let redirect = RedirectUrl::new(redirect.clone())
            .map_err(|_| InvalidProviderSetting::PublicUrl(redirect))?;
        Ok(Self(Arc::new(ProviderParts {
            settings,
            issuer,
            redirect,
            client: ProviderClient::new(),
            metadata: Mutex::default(),
        })))
    }

    /// Returns the name that people know it by.
    pub fn name(&self) -> &str {
        &self.0.settings.name
    }

    /// Returns the issuer identifier.
    pub fn issuer(&self) -> &str {
        self.0.issuer.as_str()
    }

    /// Checks that the provider responds with its metadata and keys.
    pub async fn check(&self) -> Result<(), Error> {
        self.metadata(METADATA_LIFETIME).await?;
        Ok(())
    }

    /// Returns the URL of the provider's page at which the user signs in.
    pub async fn authorization_url(&self, request: &AuthorizationRequest) -> Result<Url, Error> {
        let client = self.ready(&*self.metadata(METADATA_LIFETIME).await?);
        let (state, nonce) = (request.state.clone(), request.nonce.clone());
        let verifier = PkceCodeVerifier::new(request.verifier.clone());
        let (url, ..) = client
            .authorize_url(
                CoreAuthenticationFlow::AuthorizationCode,
                || CsrfToken::new(state),
                || Nonce::new(nonce),
            )
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(url)
    }

    /// Exchanges the code of a callback for the provider's statement about the user, and verifies
    /// it at the time `now`: its signature, issuer, audience, expiry and nonce.
    pub async fn identify(
        &self,
        code: String,
        request: &AuthorizationRequest,
        now: Timestamp,
    ) -> Result<Identity, Error> {
        let metadata = self.metadata(METADATA_LIFETIME).await?;
        let client = self.ready(&metadata);
        let exchange = client
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| Error::Unavailable(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(request.verifier.clone()));
        let tokens = exchange.request_async(&self.0.client).await?;
        match self.verify(&client, &tokens, request, now).await {
            Err(VerificationFailure::Signature(error)) => {
                // The provider may have changed its keys since they were cached.
                let fresh = self.metadata(KEYS_INTERVAL).await?;
                if Arc::ptr_eq(&fresh, &metadata) {
                    return Err(error);
                }
                let client = self.ready(&fresh);
                Ok(self.verify(&client, &tokens, request, now).await?)
            }
            verified => Ok(verified?),
        }
    }

    /// Verifies the ID token. Reads the address from there, or from the userinfo endpoint if the
    /// token has none.
    async fn verify(
        &self,
        client: &ReadyClient,
        tokens: &CoreTokenResponse,
        request: &AuthorizationRequest,
        now: Timestamp,
    ) -> Result<Identity, VerificationFailure> {
        let rejected = |text: &str| Error::Rejected(text.to_owned());
        let id_token = tokens.id_token().ok_or_else(|| rejected("there is no ID token"))?;
        let latest = time(now.earlier(CLOCK_SKEW));
        let (first, last) = (now.earlier(STATEMENT_LIFETIME), now.later(CLOCK_SKEW));
        let (first, last) = (time(first), time(last));
        let is_recent = move |issued: DateTime<Utc>| {
            let is_recent = first <= issued && issued <= last;
            is_recent.then_some(()).ok_or_else(|| format!("the ID token was issued at {issued}"))
        };
        let verifier = client
            .id_token_verifier()
            .set_time_fn(move || latest)
            .set_issue_time_verifier_fn(is_recent);
        let nonce = Nonce::new(request.nonce.clone());
        let claims = id_token.claims(&verifier, &nonce)?;
        if let Some(expected) = claims.access_token_hash() {
            let algorithm = id_token.signing_alg()?;
            let key = id_token.signing_key(&verifier)?;
            let hash = AccessTokenHash::from_token(tokens.access_token(), algorithm, key);
            if hash.map_err(Error::from)? != *expected {
                return Err(rejected("the access token is not that of the ID token").into());
            }
        }
        if let Some(email) = claims.email() {
            return Ok(Identity {
                email: Some(email.as_str().to_owned()),
                is_email_verified: claims.email_verified() == Some(true),
            });
        }
        let (token, subject) = (tokens.access_token().clone(), claims.subject().clone());
        let Ok(user_info) = client.user_info(token, Some(subject)) else {
            return Ok(Identity { email: None, is_email_verified: false });
        };
        let claims: CoreUserInfoClaims =
            user_info.request_async(&self.0.client).await.map_err(Error::from)?;
        Ok(Identity {
            email: claims.email().map(|email| email.as_str().to_owned()),
            is_email_verified: claims.email_verified() == Some(true),
        })
    }

    /// Returns the provider's metadata and keys, at most as old as `max_age`.
    async fn metadata(&self, max_age: Duration) -> Result<Arc<CoreProviderMetadata>, Error> {
        // Concurrent sign-ins wait for one request.
        let mut cache = self.0.metadata.lock().await;
        if let Some((metadata, at)) = &cache.fetched
            && at.elapsed() < max_age
        {
            return Ok(Arc::clone(metadata));
        }
        if let Some((text, at)) = &cache.failed
            && at.elapsed() < FAILURE_LIFETIME
        {
            return Err(Error::Unavailable(text.clone()));
        }
        let discovery = CoreProviderMetadata::discover_async(self.0.issuer.clone(), &self.0.client);
        let fetched = match discovery.await {
            Ok(fetched) => fetched,
            Err(error) => {
                let error = Error::from(error);
                let (Error::Unavailable(text) | Error::Rejected(text)) = &error;
                cache.failed = Some((text.clone(), Instant::now()));
                return Err(error);
            }
        };
        let algorithms = fetched.id_token_signing_alg_values_supported();
        // The client secret is no signing key: it may be short, and the provider is not the only
        // one that knows it.
        let algorithms = algorithms.iter().filter(|one| is_asymmetric(one)).cloned().collect();
        let metadata = Arc::new(fetched.set_id_token_signing_alg_values_supported(algorithms));
        cache.fetched = Some((Arc::clone(&metadata), Instant::now()));
        Ok(metadata)
    }

    fn ready(&self, metadata: &CoreProviderMetadata) -> ReadyClient {
        let settings = &self.0.settings;
        let methods = metadata.token_endpoint_auth_methods_supported();
        let has = |method| methods.is_some_and(|methods| methods.contains(&method));
        let takes_basic = has(CoreClientAuthMethod::ClientSecretBasic);
        let client = CoreClient::from_provider_metadata(
            metadata.clone(),
            ClientId::new(settings.client_id.clone()),
            settings.client_secret.clone().map(ClientSecret::new),
        )
        .set_redirect_uri(self.0.redirect.clone());
        // Basic authentication is the default of the standard.
        if !takes_basic && has(CoreClientAuthMethod::ClientSecretPost) {
            client.set_auth_type(AuthType::RequestBody)
        } else {
            client
        }
    }
}

/// The reason why a statement of the provider can't be verified.
enum VerificationFailure {
    /// Its signature is not by one of the cached keys.
    Signature(Error),
    Other(Error),
}

impl From<ClaimsVerificationError> for VerificationFailure {
    fn from(error: ClaimsVerificationError) -> Self {
        match error {
            ClaimsVerificationError::SignatureVerification(error) => error.into(),
            other => Self::Other(other.into()),
        }
    }
}

impl From<SignatureVerificationError> for VerificationFailure {
    fn from(error: SignatureVerificationError) -> Self {
        Self::Signature(ClaimsVerificationError::SignatureVerification(error).into())
    }
}

impl From<Error> for VerificationFailure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<VerificationFailure> for Error {
    fn from(failure: VerificationFailure) -> Self {
        match failure {
            VerificationFailure::Signature(error) | VerificationFailure::Other(error) => error,
        }
    }
}

fn is_asymmetric(algorithm: &CoreJwsSigningAlgorithm) -> bool {
    !matches!(
        algorithm,
        CoreJwsSigningAlgorithm::HmacSha256
            | CoreJwsSigningAlgorithm::HmacSha384
            | CoreJwsSigningAlgorithm::HmacSha512
            | CoreJwsSigningAlgorithm::None
    )
}

fn time(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.ms()).unwrap_or_default()
}
