//! Writes pieces through a running server, by its public API.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail};
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use galley_application::Environment;
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{CustomData, Description};
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, RETRY_AFTER, USER_AGENT,
};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use super::destination::{
    CurrentPiece, Destination, ImportOutcome, KnownPiece, PreparedDocument, Task, WriteFailure,
    WriteResult,
};
use super::fingerprint::{self, WrittenFields};
use super::raw::ContentForm;
use crate::group_path;

/// The number of concurrent updates.
const UPDATE_CONCURRENCY: usize = 4;

/// The number of items in a page of a list.
const PAGE_SIZE: usize = 1_000;

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The size limit of a response body. A page of a list has at most this size by the server's
/// default; all other responses are far smaller.
const RESPONSE_SIZE_LIMIT: usize = 64 << 20;

/// The maximum length of a list: ten times the size that a workspace is designed for.
const LIST_LENGTH_LIMIT: usize = 10_000_000;

/// The longest `Retry-After` that a request honours. A limit of requests per minute resets within
/// this time.
const RETRY_AFTER_LIMIT: Duration = Duration::from_mins(1);

/// The maximum number of retries after a lost or retryable response: about a minute and a half in
/// total.
const RETRY_LIMIT: usize = 12;

/// A workspace behind a server, as the token's owner sees it.
#[derive(Debug)]
pub(super) struct ServerDestination {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: HeaderValue,
    /// The server's address without a trailing slash.
    base: String,
    environment: Environment,
    /// All tags, loaded when the first one is needed.
    tags: Option<HashMap<String, TagId>>,
}

/// The error of one attempt of a request.
#[derive(Debug)]
enum RequestFailure {
    /// A retry may succeed, after the server's `Retry-After` if it sent one.
    Again(anyhow::Error, Option<Duration>),
    Final(WriteFailure),
}

#[derive(Debug, Deserialize)]
struct RemoteProblem {
    detail: String,
    #[serde(default)]
    issues: Vec<RemoteIssue>,
}

#[derive(Debug, Deserialize)]
struct RemoteIssue {
    #[serde(default)]
    path: Vec<Value>,
    message: String,
}

#[derive(Debug, Deserialize)]
struct CreatedResource<Id> {
    id: Id,
}

#[derive(Debug, Deserialize)]
struct CreatedBatch {
    pieces: Vec<CreatedResource<ContentPieceId>>,
}

#[derive(Debug, Deserialize)]
struct RemoteGroup {
    id: ContentGroupId,
    name: String,
}

/// A piece with its sources.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteKnownPiece {
    id: ContentPieceId,
    filename: Option<String>,
    sources: Vec<RemoteSource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteSource {
    variant: Option<VariantKey>,
    source_hash: SourceHash,
    imported_hash: SourceHash,
}

/// A piece as an import compares it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemotePiece {
    title: String,
    slug: String,
    date: Option<String>,
    description: Option<String>,
    cover_url: Option<String>,
    cover_alt: Option<String>,
    cover_width: Option<String>,
    canonical_link: Option<String>,
    custom_data: Option<String>,
    tags: Vec<RemoteTag>,
    content: Box<RawValue>,
}

impl RemotePiece {
    fn hash(&self) -> SourceHash {
        let written = WrittenFields {
            title: &self.title,
            slug: &self.slug,
            date: self.date.clone(),
            description: self.description.as_deref(),
            cover_url: self.cover_url.as_deref(),
            cover_alt: self.cover_alt.as_deref(),
            canonical_link: self.canonical_link.as_deref(),
            custom_data: self.custom_data.as_deref(),
            labels: self.tags.iter().map(|tag| tag.label.as_str()).collect(),
            content_hash: &fingerprint::of_content(self.content.get()),
        };
        written.hash()
    }
}

#[derive(Debug, Deserialize)]
struct RemoteMember {
    id: WorkspaceMemberId,
    email: String,
    name: String,
    profile: Option<RemoteProfile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RemoteProfile {
    full_name: String,
    username: String,
}

#[derive(Debug, Deserialize)]
struct RemoteTag {
    id: TagId,
    label: String,
}

#[derive(Debug, Deserialize)]
struct RemoteVariant {
    id: String,
    key: VariantKey,
}

impl ServerDestination {
    pub(super) fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.with_context(|| {
            format!("--url {url:?} is not the URL of a server, such as https://galley.example.org")
        })?;
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            bail!("--url must be the server's URL only: set the token with --token");
        }
        let mut token = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .context("--token contains characters that tokens never have")?;
        token.set_sensitive(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(UPDATE_CONCURRENCY)
            .build(connector);
        Ok(Self {
            client,
            token,
            base: base.as_str().trim_end_matches('/').to_owned(),
            environment: Environment::default(),
            tags: None,
        })
    }

    /// Sends a request once.
    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, RequestFailure> {
        self.request_if(method, path, body, key, None).await.map(|(answer, _)| answer)
    }

    /// Sends a request once, with an `If-Match` precondition. Returns the response's entity tag as
    /// well.
    async fn request_if<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
        version: Option<&str>,
    ) -> Result<(T, String), RequestFailure> {
        let base = &self.base;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(AUTHORIZATION, &self.token)
            .header(USER_AGENT, concat!("galley-import/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(version) = version {
            request = request.header(IF_MATCH, version);
        }
        request = match key {
            Some(key) => request.header("idempotency-key", key),
            // The representation in the response shows if the change was applied.
            None => request.header("prefer", "return=representation"),
        };
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let broken = |error: http::Error| RequestFailure::Final(WriteFailure::Broken(error.into()));
        let request = request.body(Full::new(body)).map_err(broken)?;
        let lost = |why: String| {
            RequestFailure::Again(anyhow::anyhow!("{base} can't be reached: {why}"), None)
        };
        let exchange = async {
            let response =
                self.client.request(request).await.map_err(|error| lost(root_cause(&error)))?;
            let (head, body) = response.into_parts();
            match Limited::new(body, RESPONSE_SIZE_LIMIT).collect().await {
                Ok(body) => Ok((head, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => Err(self.not_a_galley_server()),
                Err(error) => Err(lost(root_cause(&*error))),
            }
        };
        let answered = tokio::time::timeout(RESPONSE_TIMEOUT, exchange).await;
        let (head, bytes) = answered.map_err(|_| lost("the response timed out".to_owned()))??;
        let status = head.status;
        let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        if status.is_success() {
            let version = head.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
            // Changes are answered without a body.
            let text = if bytes.is_empty() { b"null" } else { &bytes[..] };
            let answer = serde_json::from_slice(text).map_err(|_| self.not_a_galley_server())?;
            return Ok((answer, version.unwrap_or_default().to_owned()));
        }
        let said = serde_json::from_slice::<RemoteProblem>(&bytes).map_or_else(
            |_| {
                format!("it responded with {status}: check that the URL is that of a Galley server")
            },
            |problem| problem.to_message(),
        );
        let broken = || anyhow::anyhow!("{base}: {said}");
        Err(match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => RequestFailure::Again(broken(), after),
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => {
                RequestFailure::Final(WriteFailure::Refused(said))
            }
            StatusCode::PRECONDITION_FAILED => RequestFailure::Final(WriteFailure::Stale),
            _ => RequestFailure::Final(WriteFailure::Broken(broken())),
        })
    }

    fn not_a_galley_server(&self) -> RequestFailure {
        let base = &self.base;
        RequestFailure::Final(WriteFailure::Broken(anyhow::anyhow!(
            "{base} does not respond like a Galley server: check the URL"
        )))
    }

    /// Retries a request with exponential back-off until it succeeds, fails for good, or has used
    /// all its attempts.
    async fn with_retries<T, F: Future<Output = Result<T, RequestFailure>>>(
        &self,
        one_try: impl FnMut() -> F,
    ) -> Result<T, WriteFailure> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(15))
            .with_max_times(RETRY_LIMIT)
            .with_jitter();
        one_try
            .retry(waits)
            .when(|trouble| matches!(trouble, RequestFailure::Again(..)))
            .adjust(|trouble, wait| match trouble {
                RequestFailure::Again(_, Some(after)) => {
                    wait.filter(|_| *after <= RETRY_AFTER_LIMIT).map(|wait| wait.max(*after))
                }
                _ => wait,
            })
            .await
            .map_err(failure)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, WriteFailure> {
        self.with_retries(|| self.request(Method::GET, path, None, None)).await
    }

    /// Creates a resource. The idempotency key prevents a duplicate if the first response is lost.
    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, WriteFailure> {
        let key = format!("import-{:032x}", self.environment.new_id());
        self.with_retries(|| self.request(Method::POST, path, Some(body), Some(&key))).await
    }

    async fn put<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, WriteFailure> {
        self.with_retries(|| self.request(Method::PUT, path, Some(body), None)).await
    }

    /// Reads all pages of a list.
    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        page_size: usize,
        cursor: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, WriteFailure> {
        let mut all: Vec<T> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let after = all.last().map(&cursor).unwrap_or_default();
            let page: Vec<T> = self.get(&format!("{path}perPage={page_size}{after}")).await?;
            let is_last = page.len() < page_size;
            // A cursor that repeats would make the loop endless.
            let is_news = page.last().is_none_or(|last| seen.insert(cursor(last)));
            if !is_last && (!is_news || all.len() > LIST_LENGTH_LIMIT) {
                return Err(failure(self.not_a_galley_server()));
            }
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Creates the missing tags of the labels.
    async fn create_missing_tags(
        &mut self,
        labels: impl Iterator<Item = &TagLabel>,
    ) -> Result<(), WriteFailure> {
        let mut tags = match self.tags.take() {
            Some(tags) => tags,
            None => {
                let all = self
                    .list("/tags/list?", PAGE_SIZE, |tag: &RemoteTag| format!("&lastId={}", tag.id))
                    .await?;
                let mut tags = HashMap::new();
                for tag in all {
                    tags.entry(tag.label).or_insert(tag.id);
                }
                tags
            }
        };
        for label in labels {
            let label = label.as_str();
            if !tags.contains_key(label) {
                let made: CreatedResource<TagId> =
                    self.post("/tags", &json!({"label": label})).await?;
                tags.insert(label.to_owned(), made.id);
            }
        }
        self.tags = Some(tags);
        Ok(())
    }

    /// Creates pieces in their order: in one request, or one by one if the server rejects the
    /// batch.
    async fn create(
        &self,
        pieces: &[(&PreparedDocument, Value)],
    ) -> anyhow::Result<Vec<WriteResult>> {
        let bodies: Vec<_> = pieces.iter().map(|(_, body)| body).collect();
        let created = |made: CreatedResource<ContentPieceId>| WriteResult {
            id: Some(made.id),
            outcome: ImportOutcome::Created,
        };
        match self.post("/content-pieces/batch", &json!({"pieces": bodies})).await {
            Ok(CreatedBatch { pieces: made }) if made.len() == pieces.len() => {
                return Ok(made.into_iter().map(created).collect());
            }
            Ok(_) => return Err(fatal_error(failure(self.not_a_galley_server()))),
            Err(WriteFailure::Broken(error)) => return Err(error),
            Err(WriteFailure::Refused(_) | WriteFailure::Stale) => {}
        }
        let mut kept = Vec::with_capacity(pieces.len());
        for (one, body) in pieces {
            kept.push(match self.post("/content-pieces", body).await {
                Ok(made) => created(made),
                Err(failure) => write_result_of(one, failure)?,
            });
        }
        Ok(kept)
    }

    fn new_piece(
        &self,
        one: &PreparedDocument,
        group: ContentGroupId,
        members: &[WorkspaceMemberId],
    ) -> Value {
        let mut body = self.fields(one);
        body["filename"] = one.document.name.as_str().into();
        body["contentGroupId"] = group.to_string().into();
        body["members"] = members.iter().map(ToString::to_string).collect();
        body
    }

    async fn update(
        &self,
        one: &PreparedDocument,
        id: ContentPieceId,
        version: Option<&str>,
        group: Option<ContentGroupId>,
    ) -> anyhow::Result<WriteResult> {
        let mut body = self.fields(one);
        body["id"] = id.to_string().into();
        if let Some(variant) = &one.variant {
            body["variant"] = variant.as_str().into();
        }
        if let Some(group) = group {
            body["contentGroupId"] = group.to_string().into();
        }
        let put = || self.request_if(Method::PUT, "/content-pieces", Some(&body), None, version);
        match self.with_retries(put).await {
            Ok::<(IgnoredAny, _), _>(_) => {
                Ok(WriteResult { id: Some(id), outcome: ImportOutcome::Updated })
            }
            Err(failure) => write_result_of(one, failure),
        }
    }

    /// Notes the sources of the written documents.
    async fn note(
        &self,
        documents: &[PreparedDocument],
        kept: &[WriteResult],
    ) -> anyhow::Result<()> {
        let source = |(one, kept): (&PreparedDocument, &WriteResult)| {
            let id = kept.id.filter(|_| kept.outcome != ImportOutcome::Conflict)?;
            Some(json!({
                "contentPieceId": id.to_string(),
                "variant": one.variant.as_ref().map(VariantKey::as_str),
                "sourceHash": one.source.source_hash.as_str(),
                "importedHash": one.source.imported_hash.as_str(),
            }))
        };
        let sources: Vec<Value> = documents.iter().zip(kept).filter_map(source).collect();
        if sources.is_empty() {
            return Ok(());
        }
        let body = json!({"sources": sources});
        match self.put::<IgnoredAny>("/content-pieces/sources", &body).await {
            // A piece was deleted meanwhile. The next import notes the sources that this request
            // didn't.
            Ok(_) | Err(WriteFailure::Refused(_) | WriteFailure::Stale) => Ok(()),
            Err(WriteFailure::Broken(error)) => Err(error),
        }
    }

    /// Reads the current state of a piece, or of a piece in a variant.
    async fn current_piece(
        &self,
        id: ContentPieceId,
        variant: Option<&VariantKey>,
    ) -> anyhow::Result<Option<CurrentPiece>> {
        let Some((piece, version)) = self.read_piece(id, None).await? else { return Ok(None) };
        let hash = piece.hash();
        let Some(variant) = variant else {
            let cover_width = piece.cover_width;
            return Ok(Some(CurrentPiece { hash, cover_width, version, equals_piece: true }));
        };
        let Some((piece, version)) = self.read_piece(id, Some(variant)).await? else {
            return Ok(None);
        };
        let in_variant = piece.hash();
        let is_as_piece = in_variant == hash;
        let cover_width = piece.cover_width;
        Ok(Some(CurrentPiece { hash: in_variant, cover_width, version, equals_piece: is_as_piece }))
    }

    async fn read_piece(
        &self,
        id: ContentPieceId,
        variant: Option<&VariantKey>,
    ) -> anyhow::Result<Option<(RemotePiece, String)>> {
        let variant = variant.map(|key| format!("&variant={}", key.as_str())).unwrap_or_default();
        let path = format!("/content-pieces?id={id}&content=true&contentFormat=json{variant}");
        let get = || self.request_if(Method::GET, &path, None, None, None);
        match self.with_retries(get).await {
            Ok(found) => Ok(Some(found)),
            Err(WriteFailure::Broken(error)) => Err(error),
            Err(WriteFailure::Refused(_) | WriteFailure::Stale) => Ok(None),
        }
    }

    /// Returns the request fields that come from the source.
    fn fields(&self, one: &PreparedDocument) -> Value {
        let document = &one.document;
        let tags = self.tags.iter().flat_map(|tags| {
            one.labels.iter().filter_map(|label| tags.get(label.as_str())).map(ToString::to_string)
        });
        let mut body = json!({
            "title": document.title.as_str(),
            "slug": document.slug.as_str(),
            "date": document.date.map(|date| date.to_string()),
            "description": document.description.as_ref().map(Description::as_str),
            "coverUrl": document.cover_url.as_ref().map(WebReference::as_str),
            "coverAlt": document.cover_alt.as_ref().map(ShortText::as_str),
            "canonicalLink": document.canonical_link.as_ref().map(WebReference::as_str),
            "customData": document.custom_data.as_ref().map(CustomData::as_str),
            "tags": tags.collect::<Vec<_>>(),
            "content": document.content,
        });
        if let Some(width) = &document.cover_width {
            body["coverWidth"] = width.as_str().into();
        }
        body
    }
}

/// Returns the message of an error's root cause.
fn root_cause(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn failure(trouble: RequestFailure) -> WriteFailure {
    match trouble {
        RequestFailure::Again(error, _) => WriteFailure::Broken(error),
        RequestFailure::Final(failure) => failure,
    }
}

/// Returns the result of a document that was not written. Fails if no further document could be
/// written either.
fn write_result_of(one: &PreparedDocument, failure: WriteFailure) -> anyhow::Result<WriteResult> {
    match failure {
        WriteFailure::Refused(problem) => Ok(one.rejected(&problem)),
        WriteFailure::Stale => Ok(WriteResult { id: None, outcome: ImportOutcome::Conflict }),
        WriteFailure::Broken(error) => Err(error),
    }
}

fn fatal_error(failure: WriteFailure) -> anyhow::Error {
    match failure {
        WriteFailure::Refused(problem) => anyhow::anyhow!(problem),
        WriteFailure::Stale => anyhow::anyhow!("it was changed during the import"),
        WriteFailure::Broken(error) => error,
    }
}

impl RemoteProblem {
    /// Formats a problem, such as `slug is required`. Several issues are joined by semicolons.
    fn to_message(&self) -> String {
        if self.issues.is_empty() {
            return self.detail.clone();
        }
        let issue = |issue: &RemoteIssue| {
            let path = issue.path.iter().map(|part| match part {
                Value::String(name) => name.clone(),
                other => other.to_string(),
            });
            let path = path.collect::<Vec<_>>().join(".");
            if issue.message.starts_with(&path) {
                issue.message.clone()
            } else {
                format!("{path} {}", issue.message)
            }
        };
        self.issues.iter().map(issue).collect::<Vec<_>>().join("; ")
    }
}

impl ServerDestination {
    async fn list_children(
        &self,
        parent: Option<ContentGroupId>,
    ) -> Result<Vec<RemoteGroup>, WriteFailure> {
        let ancestor = parent.map(|parent| format!("ancestor={parent}&")).unwrap_or_default();
        let path = format!("/content-groups/list?{ancestor}");
        self.list(&path, PAGE_SIZE, |group: &RemoteGroup| format!("&lastId={}", group.id)).await
    }

    async fn children(
        &self,
        parent: Option<ContentGroupId>,
    ) -> anyhow::Result<group_path::Children> {
        let groups = self.list_children(parent).await.map_err(fatal_error)?;
        Ok(groups.into_iter().map(|group| (group.id, group.name)).collect())
    }
}

impl Destination for ServerDestination {
    /// Small enough that other clients' requests run between batches.
    const BATCH: usize = 8;
    const FORM: ContentForm = ContentForm::Html;

    /// Sends the first request without retries: a wrong address is reported at once.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        let first = format!("/content-groups/list?perPage={PAGE_SIZE}");
        let first = self.request::<Vec<RemoteGroup>>(Method::GET, &first, None, None);
        let base = &self.base;
        first
            .await
            .map_err(failure)
            .map_err(fatal_error)
            .with_context(|| format!("--url {base}"))?;
        if let Ok(id) = wanted.parse::<ContentGroupId>() {
            let path = format!("/content-groups?id={id}");
            let found = self.get::<RemoteGroup>(&path).await.map_err(fatal_error);
            return Ok(found.with_context(|| format!("the content group {id}"))?.id);
        }
        group_path::existing(async |parent| self.children(parent).await, wanted).await
    }

    async fn find_path(&self, path: &str) -> anyhow::Result<Option<ContentGroupId>> {
        group_path::find(async |parent| self.children(parent).await, path).await
    }

    async fn pieces(
        &mut self,
        group: Option<ContentGroupId>,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>> {
        let group = group.map(|group| format!("contentGroupId={group}&")).unwrap_or_default();
        let path = format!("/content-pieces/sources?{group}subtree={subtree}&");
        let cursor = |piece: &RemoteKnownPiece| format!("&lastId={}", piece.id);
        let pieces = self.list(&path, PAGE_SIZE, cursor).await.map_err(fatal_error)?;
        let known = |RemoteKnownPiece { id, filename, sources }: RemoteKnownPiece| {
            let sources = sources.into_iter().map(|source| {
                let RemoteSource { variant, source_hash, imported_hash } = source;
                (variant, ImportSource { source_hash, imported_hash })
            });
            KnownPiece { id, source: filename, sources: sources.collect() }
        };
        Ok(pieces.into_iter().map(known).collect())
    }

    async fn people(&self) -> anyhow::Result<Vec<(String, WorkspaceMemberId)>> {
        let path = "/workspace-memberships/list-members?";
        let cursor = |member: &RemoteMember| format!("&lastId={}", member.id);
        let mut people = Vec::new();
        for member in self.list(path, PAGE_SIZE, cursor).await.map_err(fatal_error)? {
            let profile = member.profile.into_iter();
            let of_user = profile.flat_map(|profile| [profile.full_name, profile.username]);
            let names = of_user.chain([member.name, member.email]);
            people.extend(names.map(|name| (name, member.id)));
        }
        Ok(people)
    }

    async fn variants(&self) -> anyhow::Result<Vec<VariantKey>> {
        let cursor = |variant: &RemoteVariant| format!("&lastId={}", variant.id);
        let there = self.list("/variants/list?", PAGE_SIZE, cursor).await.map_err(fatal_error)?;
        Ok(there.into_iter().map(|variant| variant.key).collect())
    }

    async fn current(
        &self,
        wanted: &[(ContentPieceId, Option<VariantKey>)],
    ) -> anyhow::Result<Vec<Option<CurrentPiece>>> {
        let reads = wanted.iter().map(|(id, variant)| self.current_piece(*id, variant.as_ref()));
        stream::iter(reads).buffered(UPDATE_CONCURRENCY).try_collect().await
    }

    async fn group(
        &self,
        parent: Option<ContentGroupId>,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, WriteFailure> {
        let children = self.list_children(parent).await?;
        if let Some(found) = children.into_iter().find(|child| child.name == name.as_str()) {
            return Ok(found.id);
        }
        let parent = parent.map(|parent| parent.to_string());
        let body = json!({"name": name.as_str(), "ancestor": parent});
        Ok(self.post::<CreatedResource<ContentGroupId>>("/content-groups", &body).await?.id)
    }

    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), WriteFailure> {
        let body = json!({"key": key.as_str(), "label": label.as_str()});
        self.post::<Value>("/variants", &body).await.map(drop)
    }

    async fn keep(&mut self, documents: Vec<PreparedDocument>) -> anyhow::Result<Vec<WriteResult>> {
        let changes = documents.iter().filter(|one| !matches!(one.task, Task::Note { .. }));
        self.create_missing_tags(changes.flat_map(|one| &one.labels)).await.map_err(fatal_error)?;
        let this = &*self;
        let (mut places, mut new, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        let mut done: Vec<(usize, WriteResult)> = Vec::with_capacity(documents.len());
        for (place, one) in documents.iter().enumerate() {
            match &one.task {
                Task::Create { group, members } => {
                    places.push(place);
                    new.push((one, this.new_piece(one, *group, members)));
                }
                Task::Update { id, version, group } => {
                    updates.push((place, one, id, version, group));
                }
                Task::Note { id } => {
                    done.push((
                        place,
                        WriteResult { id: Some(*id), outcome: ImportOutcome::Unchanged },
                    ));
                }
            }
        }
        let updates = updates.into_iter().map(async |(place, one, id, version, group)| {
            let kept = this.update(one, *id, version.as_deref(), *group).await?;
            Ok::<_, anyhow::Error>((place, kept))
        });
        let updates = stream::iter(updates).buffer_unordered(UPDATE_CONCURRENCY);
        done.extend(updates.try_collect::<Vec<_>>().await?);
        if !new.is_empty() {
            done.extend(places.into_iter().zip(this.create(&new).await?));
        }
        done.sort_unstable_by_key(|(place, _)| *place);
        let kept: Vec<_> = done.into_iter().map(|(_, kept)| kept).collect();
        this.note(&documents, &kept).await?;
        Ok(kept)
    }

    async fn close(self) {}
}
