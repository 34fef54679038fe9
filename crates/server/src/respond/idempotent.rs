//! Idempotent creation by operations in a transaction.

use axum::body::Bytes;
use axum::response::Response;
use galley_application::{Caller, CreatedResponse, Error, Respond, idempotency};
use galley_storage::WriteTx;

use crate::extract::idempotency_key::IdempotencyKey;
use crate::problem::Problem;
use crate::respond::created;

/// Runs `operation` in a transaction, once for each idempotency key, and stores its response.
pub(crate) async fn create<F>(
    caller: &Caller,
    name: &'static str,
    key: IdempotencyKey,
    body: &Bytes,
    operation: F,
) -> Result<Response, Problem>
where
    F: AsyncFn(&WriteTx<'_>) -> Result<CreatedResponse, Error> + Send + Sync + 'static,
{
    let request = key.for_body(body);
    let respond = Respond::new(CreatedResponse::clone);
    let response = idempotency::create(caller, name, request, operation, respond).await?;
    Ok(created::respond(response))
}
