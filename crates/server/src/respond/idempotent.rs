//! Idempotent creation: a repeated request gets the stored response and changes nothing.
//!
//! The first success is stored in the transaction of its own change, so both are committed or
//! neither.

use axum::body::Bytes;
use axum::response::Response;
use galley_application::{Error, Reason, Rejection};
use galley_domain::Timestamp;
use galley_storage::idempotency::RETENTION_MS;
use galley_storage::tokens::Authentication;
use galley_storage::{Error as StorageError, WriteTx, idempotency};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::problem::Problem;
use crate::respond::response::CreatedResponse;

/// A response as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredResponse {
    #[serde(rename = "made")]
    response: CreatedResponse,
    /// The groups to which the token was limited. With other groups it may see less now.
    groups: Option<Vec<String>>,
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

/// Runs `operation` in a transaction, once for each idempotency key, and stores its response.
pub(crate) async fn create<F>(
    app: &App,
    name: &'static str,
    actor: &Authentication,
    key: IdempotencyKey,
    body: &Bytes,
    operation: F,
) -> Result<Response, Problem>
where
    F: AsyncFn(&WriteTx<'_>) -> Result<CreatedResponse, Error> + Send + Sync + 'static,
{
    let IdempotencyKey { key, path } = key;
    let request =
        key.map(|key| KeyedRequest { key, hash: app.key().fingerprint(&[path.as_bytes(), body]) });
    let (actor, environment) = (actor.clone(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        let Some(request) = &request else { return Ok((operation(tx).await?, false)) };
        if let Some(stored) = claim(tx, &actor, request, environment.now()).await? {
            return Ok((stored, true));
        }
        let response = operation(tx).await?;
        if !response.is_secret() {
            let (workspace, token) = (actor.workspace, actor.token);
            let stored = StoredResponse { response: response.clone(), groups: groups(&actor) };
            let text = serde_json::to_string(&stored).expect("texts are JSON");
            idempotency::answer(tx, workspace, token, &request.key, &text).await?;
        }
        Ok::<_, Error>((response, false))
    };
    let (response, replayed) = app.database().write(name, write).await?;
    Ok(response.into_response(replayed))
}

/// Claims the key for this transaction, or returns the stored response to the same request.
async fn claim(
    tx: &WriteTx<'_>,
    actor: &Authentication,
    request: &KeyedRequest,
    now: Timestamp,
) -> Result<Option<CreatedResponse>, Error> {
    let (workspace, token, key) = (actor.workspace, actor.token, request.key.as_str());
    let since = Timestamp::from_ms(now.ms() - RETENTION_MS);
    if idempotency::claim(tx, workspace, token, key, &request.hash, now, since).await? {
        return Ok(None);
    }
    let stored = idempotency::find(tx, workspace, token, key).await?;
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
    Ok(Some(stored.response))
}
