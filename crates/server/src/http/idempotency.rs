//! `Idempotency-Key`: a repeated POST gets the stored response, and changes nothing twice.
//!
//! The first successful response is stored in the transaction of its change, so that either both or
//! neither are committed.

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use galley_api_types::problem::{Issue, Step};
use galley_application::{Error, Reason, Rejection};
use galley_domain::{Invalid, Timestamp};
use galley_storage::tokens::Authentication;
use galley_storage::{Error as StorageError, WriteTx, idempotency};
use serde::{Deserialize, Serialize};

use crate::http::app::App;
use crate::http::response::Made;
use crate::openapi::endpoint::{Argument, Facts};
use crate::problem::Problem;

/// The retention of keys.
pub(crate) const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1_000;

const HEADER: &str = "idempotency-key";

/// The key that the client sent with its request.
#[derive(Debug, Clone)]
pub(crate) struct IdempotencyKey {
    key: Option<String>,
    path: String,
}

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let path = parts.uri.path().to_owned();
        let mut values = parts.headers.get_all(HEADER).iter();
        let key = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => {
                let text = value.to_str().ok().filter(|text| (1..=255).contains(&text.len()));
                Some(text.ok_or_else(refused)?.to_owned())
            }
            _ => return Err(refused()),
        };
        Ok(Self { key, path })
    }
}

impl IdempotencyKey {
    /// Returns the key itself, for requests without a token.
    pub(crate) fn into_text(self) -> Option<String> {
        self.key
    }
}

impl Argument for IdempotencyKey {
    fn tell(facts: &mut Facts) {
        facts.idempotent = true;
    }
}

fn refused() -> Problem {
    let invalid =
        Invalid::new("invalid_string", "must stand once and have 1 to 255 ASCII characters");
    let issue = Issue::new(vec![Step::Field("Idempotency-Key".to_owned())], &invalid);
    Rejection::of_issues(vec![issue]).into()
}

/// A stored response.
#[derive(Serialize, Deserialize)]
struct Kept {
    made: Made,
    /// The groups that the token saw at that time. It may see fewer now.
    groups: Option<Vec<String>>,
}

/// Returns the sorted groups to which a token is limited.
fn groups(actor: &Authentication) -> Option<Vec<String>> {
    let mut groups: Vec<_> =
        actor.content_groups.as_ref()?.iter().map(ToString::to_string).collect();
    groups.sort();
    Some(groups)
}

/// The key of a request, and a hash that identifies its repetitions.
#[derive(Debug, Clone)]
struct Request {
    key: String,
    hash: [u8; 32],
}

/// Runs `operation` once for each key, in a transaction that also stores its response.
pub(crate) async fn make<F>(
    app: &App,
    name: &'static str,
    actor: &Authentication,
    key: IdempotencyKey,
    body: &Bytes,
    operation: F,
) -> Result<Response, Problem>
where
    F: AsyncFn(&WriteTx<'_>) -> Result<Made, Error> + Send + Sync + 'static,
{
    let IdempotencyKey { key, path } = key;
    let request =
        key.map(|key| Request { key, hash: app.key().fingerprint(&[path.as_bytes(), body]) });
    let (actor, environment) = (actor.clone(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        let Some(request) = &request else { return Ok((operation(tx).await?, false)) };
        if let Some(answered) = claim(tx, &actor, request, environment.now()).await? {
            return Ok((answered, true));
        }
        let made = operation(tx).await?;
        if !made.is_secret() {
            let (workspace, token) = (actor.workspace, actor.token);
            let kept = Kept { made: made.clone(), groups: groups(&actor) };
            let text = serde_json::to_string(&kept).expect("texts are JSON");
            idempotency::answer(tx, workspace, token, &request.key, &text).await?;
        }
        Ok::<_, Error>((made, false))
    };
    let (made, replayed) = app.database().write(name, write).await?;
    Ok(made.into_response(replayed))
}

/// Claims the key for this transaction, or returns the stored response of the request that has it.
async fn claim(
    tx: &WriteTx<'_>,
    actor: &Authentication,
    request: &Request,
    now: Timestamp,
) -> Result<Option<Made>, Error> {
    let (workspace, token, key) = (actor.workspace, actor.token, request.key.as_str());
    let since = Timestamp::from_ms(now.ms() - REMEMBERED_MS);
    if idempotency::claim(tx, workspace, token, key, &request.hash, now, since).await? {
        return Ok(None);
    }
    let kept = idempotency::find(tx, workspace, token, key).await?;
    let kept = kept.ok_or(StorageError::Conflict)?;
    if kept.request_hash != request.hash {
        let detail = "the key came with another path or body before: use a new key";
        return Err(Rejection::new(Reason::IdempotencyKeyReused, detail).into());
    }
    let answered = |detail: &str| Err(Rejection::new(Reason::AlreadyAnswered, detail).into());
    let Some(text) = kept.answer else {
        return answered("the request was answered, and what was answered is shown once only");
    };
    let kept: Kept = serde_json::from_str(&text).map_err(StorageError::corrupt)?;
    if kept.groups != groups(actor) {
        return answered("the request was answered when the token saw other groups than now");
    }
    Ok(Some(kept.made))
}
