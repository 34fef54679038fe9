//! Idempotent creation: a repeated request gets the stored response and changes nothing.
//!
//! The first success is stored in the transaction of its own change, so both are committed or
//! neither.

use galley_domain::Timestamp;
use galley_storage::authentication::Authentication;
use galley_storage::idempotency::RETENTION_MS;
use galley_storage::{Error as StorageError, WriteKey, WriteTx, idempotency};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::error::Error;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// The idempotency key of a request, with the data that identifies the request.
#[derive(Debug, Clone)]
pub struct IdempotentRequest {
    /// The client's key.
    pub key: Option<String>,
    /// The path of the request.
    pub path: String,
    /// The body of the request.
    pub body: bytes::Bytes,
}

/// The response to a create, in a form that can be stored and replayed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CreatedResponse {
    /// The status.
    #[serde(default)]
    pub status: CreatedStatus,
    /// The body as JSON.
    pub body: String,
    /// The entity tag of the body, if it is the whole resource.
    pub etag: Option<String>,
    /// The location of the resource.
    pub location: Option<String>,
    /// The number of conversion warnings, if the request had content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversion_warnings: Option<usize>,
    /// True if it shows a secret, so that it must not be replayed.
    #[serde(skip)]
    pub is_secret: bool,
    /// True if it was stored by an earlier request.
    #[serde(skip)]
    pub is_replayed: bool,
}

impl CreatedResponse {
    /// Creates a response with the status "created".
    pub fn new(body: String, etag: Option<String>) -> Self {
        let status = CreatedStatus::Created;
        Self {
            status,
            body,
            etag,
            location: None,
            conversion_warnings: None,
            is_secret: false,
            is_replayed: false,
        }
    }

    /// Creates a response with the status "accepted".
    pub fn accepted(body: String) -> Self {
        Self { status: CreatedStatus::Accepted, ..Self::new(body, None) }
    }

    /// Creates a response without a body, with the status "completed".
    pub fn completed() -> Self {
        Self { status: CreatedStatus::Completed, ..Self::new(String::new(), None) }
    }

    /// Adds the location of the resource.
    pub fn with_location(self, path: &str, id: impl ToString) -> Self {
        Self { location: Some(format!("{path}?id={}", id.to_string())), ..self }
    }

    /// Marks the response as secret: it is never replayed.
    pub fn not_replayable(self) -> Self {
        Self { is_secret: true, ..self }
    }
}

/// The status: created, accepted for processing in the background, or completed without a resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum CreatedStatus {
    #[default]
    Created,
    Accepted,
    Completed,
}

/// Builds the response from the created resource.
pub struct Respond<T>(Box<dyn Fn(&T) -> CreatedResponse + Send + Sync>);

impl<T> Respond<T> {
    /// Creates a builder from a closure.
    pub fn new(build: impl Fn(&T) -> CreatedResponse + Send + Sync + 'static) -> Self {
        Self(Box::new(build))
    }

    fn build(&self, created: &T) -> CreatedResponse {
        (self.0)(created)
    }
}

/// A response as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredResponse {
    #[serde(rename = "made")]
    response: CreatedResponse,
    /// The groups to which the token was limited. With other groups it may see less now.
    groups: Option<Vec<String>>,
    /// True if e-mail addresses were hidden. A token that could see them may not see them now.
    #[serde(default)]
    hides_emails: bool,
}

/// Returns the groups to which a token is limited, sorted.
fn groups(actor: &Authentication) -> Option<Vec<String>> {
    let mut groups: Vec<_> =
        actor.content_groups.as_ref()?.iter().map(ToString::to_string).collect();
    groups.sort();
    Some(groups)
}

/// A key with the hash of its request.
#[derive(Debug, Clone)]
struct KeyedRequest {
    key: String,
    hash: [u8; 32],
}

/// Runs `operation` in a transaction, once for each idempotency key, and stores its response. With
/// `keys`, other writes may share the transaction ([`Caller::write_grouped`]).
pub(crate) async fn create<T, F>(
    caller: &Caller,
    name: &'static str,
    request: IdempotentRequest,
    keys: Option<Vec<WriteKey>>,
    operation: F,
    respond: Respond<T>,
) -> Result<CreatedResponse, Error>
where
    T: Send + Sync + 'static,
    F: AsyncFn(&WriteTx<'_>) -> Result<T, Error> + Send + Sync + 'static,
{
    let IdempotentRequest { key, path, body } = request;
    let fingerprint = || caller.service().key().fingerprint(&[path.as_bytes(), &body]);
    let request = key.map(|key| KeyedRequest { key, hash: fingerprint() });
    let credential = caller.token().credential;
    let key =
        request.as_ref().map(|request| WriteKey::of(("idempotency", credential, &request.key)));
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let Some(request) = &request else { return Ok(respond.build(&operation(tx).await?)) };
        let token = own.token();
        let (workspace, credential) = (token.workspace, token.credential);
        // In a shared transaction, the claim comes after the operation. So a rejection has changed
        // nothing, and affects no other write. A write with a known key runs alone.
        let claims_first = !tx.is_shared();
        if claims_first {
            if let Some(stored) = claim(tx, &own, request).await? {
                return Ok(CreatedResponse { is_replayed: true, ..stored });
            }
        } else if idempotency::find(tx, workspace, credential, &request.key).await?.is_some() {
            return Err(StorageError::Conflict.into());
        }
        let response = respond.build(&operation(tx).await?);
        if !claims_first && claim(tx, &own, request).await?.is_some() {
            return Err(StorageError::Conflict.into());
        }
        if !response.is_secret {
            let stored = StoredResponse {
                response: response.clone(),
                groups: groups(token),
                hides_emails: Scope::of_token(token).hides_emails,
            };
            let text = serde_json::to_string(&stored).expect("texts are JSON");
            idempotency::store_response(tx, workspace, credential, &request.key, &text).await?;
        }
        Ok(response)
    };
    let keys = keys.map(|keys| keys.into_iter().chain(key).collect());
    caller.write_grouped(name, keys, write).await
}

/// Claims the key for this transaction, or returns the stored response to the same request.
async fn claim(
    tx: &WriteTx<'_>,
    caller: &Caller,
    request: &KeyedRequest,
) -> Result<Option<CreatedResponse>, Error> {
    let now = caller.environment().now();
    let actor = caller.token();
    let (workspace, credential, key) = (actor.workspace, actor.credential, request.key.as_str());
    let since = Timestamp::from_ms(now.ms() - RETENTION_MS);
    if idempotency::claim(tx, workspace, credential, key, &request.hash, now, since).await? {
        return Ok(None);
    }
    let stored = idempotency::find(tx, workspace, credential, key).await?;
    let stored = stored.ok_or(StorageError::Conflict)?;
    if stored.request_hash != request.hash {
        let detail = "the key was used with another path or body before: use a new key";
        return Err(Rejection::new(Reason::IdempotencyKeyReused, detail).into());
    }
    let answered = |detail: &str| Err(Rejection::new(Reason::AlreadyAnswered, detail).into());
    let Some(text) = stored.answer else {
        return answered("the request has succeeded before, and its response is shown only once");
    };
    let stored: StoredResponse = serde_json::from_str(&text).map_err(StorageError::corrupt)?;
    if stored.groups != groups(actor) {
        return answered(
            "the request has succeeded before, when the token had access to other groups",
        );
    }
    if Scope::of_token(actor).hides_emails && !stored.hides_emails {
        return answered(
            "the request has succeeded before, when the token had access to e-mail addresses",
        );
    }
    Ok(Some(stored.response))
}
