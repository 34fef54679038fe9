//! Keeping pieces through a running server, by the API that everybody uses.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use galley_domain::content_group::ContentGroupName;
use galley_domain::content_piece::{CustomData, Description};
use galley_domain::tag::TagLabel;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, ContentPieceId, TagId, WorkspaceMemberId};
use galley_server::Environment;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use super::place::{Failure, Kept, KnownPiece, Outcome, Place, Prepared};
use super::raw::Form;

/// How many updates are under way at a time.
const IN_FLIGHT: usize = 4;

/// How many items a page of a list has.
const PAGE: usize = 1_000;

/// How many pieces: each may have a megabyte beside its content.
const PIECES_PAGE: usize = 30;

/// How long an answer may take.
const ANSWER_MAX: Duration = Duration::from_mins(1);

/// What an answer may have: a page of a list has at most this by its server's default, and all else far less.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// How many items a list has at the most: ten times what a workspace is made for.
const LISTED_MAX: usize = 10_000_000;

/// The longest that is waited for a server that says when to come again: over a limit of requests in a minute it is there again.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// How often a request is tried that got no answer, or was told to come again: for about a minute and a half.
const TRIES_MAX: usize = 12;

/// A workspace behind a server, as a token's holder sees it.
#[derive(Debug)]
pub(super) struct OnServer {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: HeaderValue,
    /// Without a slash at its end.
    base: String,
    environment: Environment,
    /// When each known piece was changed last: after an update it says whether there was one.
    changed: Mutex<HashMap<ContentPieceId, String>>,
    /// All tags, from when the first one is needed.
    tags: Option<HashMap<String, TagId>>,
}

/// What came of one try of a request.
#[derive(Debug)]
enum Trouble {
    /// Another try may have an answer, after this time if the server says so.
    Again(anyhow::Error, Option<Duration>),
    Final(Failure),
}

#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
    #[serde(default)]
    issues: Vec<Issue>,
}

#[derive(Debug, Deserialize)]
struct Issue {
    #[serde(default)]
    path: Vec<Value>,
    message: String,
}

#[derive(Debug, Deserialize)]
struct Made<Id> {
    id: Id,
}

#[derive(Debug, Deserialize)]
struct MadeTogether {
    pieces: Vec<Made<ContentPieceId>>,
}

#[derive(Debug, Deserialize)]
struct Group {
    id: ContentGroupId,
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    id: ContentPieceId,
    filename: Option<String>,
    order: String,
    updated_at: String,
}

#[derive(Debug, Deserialize)]
struct Member {
    id: WorkspaceMemberId,
    email: String,
    name: String,
    profile: Option<Profile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    full_name: String,
    username: String,
}

#[derive(Debug, Deserialize)]
struct Tag {
    id: TagId,
    label: String,
}

#[derive(Debug, Deserialize)]
struct Variant {
    id: String,
    key: String,
}

impl OnServer {
    pub(super) fn new(url: &str, token: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.with_context(|| {
            format!("--url {url:?} is no address of a server, such as https://galley.example.org")
        })?;
        if !base.username().is_empty() || base.password().is_some() || base.query().is_some() {
            bail!("--url is the server's address alone: the token is given by --token");
        }
        let mut token = HeaderValue::try_from(format!("Bearer {}", token.trim()))
            .context("--token has characters that no token has")?;
        token.set_sensitive(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(galley_tls::client())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(IN_FLIGHT)
            .build(connector);
        Ok(Self {
            client,
            token,
            base: base.as_str().trim_end_matches('/').to_owned(),
            environment: Environment::default(),
            changed: Mutex::default(),
            tags: None,
        })
    }

    /// One try.
    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, Trouble> {
        let base = &self.base;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(AUTHORIZATION, &self.token)
            .header(USER_AGENT, concat!("galley-import/", env!("CARGO_PKG_VERSION")));
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request = match key {
            Some(key) => request.header("idempotency-key", key),
            // Of what was changed it shows whether it was.
            None => request.header("prefer", "return=representation"),
        };
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let broken = |error: http::Error| Trouble::Final(Failure::Broken(error.into()));
        let request = request.body(Full::new(body)).map_err(broken)?;
        let lost =
            |why: String| Trouble::Again(anyhow::anyhow!("{base} can't be reached: {why}"), None);
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| lost(chain(&error)))?;
            let (head, body) = answer.into_parts();
            match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
                Ok(body) => Ok((head, body.to_bytes())),
                Err(error) if error.is::<LengthLimitError>() => Err(self.no_galley()),
                Err(error) => Err(lost(chain(&*error))),
            }
        };
        let answered = tokio::time::timeout(ANSWER_MAX, exchange).await;
        let (head, bytes) = answered.map_err(|_| lost("it gives no answer".to_owned()))??;
        let status = head.status;
        let after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(|_| self.no_galley());
        }
        let said = serde_json::from_slice::<Problem>(&bytes).map_or_else(
            |_| format!("it answered {status}: is that the address of a Galley server?"),
            |problem| problem.in_words(),
        );
        let broken = || anyhow::anyhow!("{base}: {said}");
        Err(match status {
            StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Trouble::Again(broken(), after),
            StatusCode::BAD_REQUEST
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Trouble::Final(Failure::Refused(said)),
            _ => Trouble::Final(Failure::Broken(broken())),
        })
    }

    fn no_galley(&self) -> Trouble {
        let base = &self.base;
        Trouble::Final(Failure::Broken(anyhow::anyhow!(
            "{base} does not answer as a Galley server does: is that its address?"
        )))
    }

    /// Tries until there is an answer, or no hope of one.
    async fn patiently<T, F: Future<Output = Result<T, Trouble>>>(
        &self,
        one_try: impl FnMut() -> F,
    ) -> Result<T, Failure> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(15))
            .with_max_times(TRIES_MAX)
            .with_jitter();
        one_try
            .retry(waits)
            .when(|trouble| matches!(trouble, Trouble::Again(..)))
            .adjust(|trouble, wait| match trouble {
                Trouble::Again(_, Some(after)) => {
                    wait.filter(|_| *after <= WAIT_MAX).map(|wait| wait.max(*after))
                }
                _ => wait,
            })
            .await
            .map_err(failure)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.patiently(|| self.request(Method::GET, path, None, None)).await
    }

    /// Makes something; once, also where the first answer was lost.
    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        let key = format!("import-{:032x}", self.environment.new_id());
        self.patiently(|| self.request(Method::POST, path, Some(body), Some(&key))).await
    }

    async fn put<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Failure> {
        self.patiently(|| self.request(Method::PUT, path, Some(body), None)).await
    }

    /// All of a list.
    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        page_size: usize,
        cursor: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, Failure> {
        let mut all: Vec<T> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            let after = all.last().map(&cursor).unwrap_or_default();
            let page: Vec<T> = self.get(&format!("{path}perPage={page_size}{after}")).await?;
            let is_last = page.len() < page_size;
            // Or it would never end.
            let is_news = page.last().is_none_or(|last| seen.insert(cursor(last)));
            if !is_last && (!is_news || all.len() > LISTED_MAX) {
                return Err(failure(self.no_galley()));
            }
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    fn changed(&self) -> MutexGuard<'_, HashMap<ContentPieceId, String>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a tag for each of the labels.
    async fn make_tags(&mut self, labels: impl Iterator<Item = &TagLabel>) -> Result<(), Failure> {
        let mut tags = match self.tags.take() {
            Some(tags) => tags,
            None => {
                let all = self
                    .list("/tags/list?", PAGE, |tag: &Tag| format!("&lastId={}", tag.id))
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
                let made: Made<TagId> = self.post("/tags", &json!({"label": label})).await?;
                tags.insert(label.to_owned(), made.id);
            }
        }
        self.tags = Some(tags);
        Ok(())
    }

    /// Makes pieces, in their order: together, or one after the other where one of them is refused.
    async fn create(&self, pieces: &[&Prepared]) -> anyhow::Result<Vec<Kept>> {
        let bodies: Vec<_> = pieces.iter().map(|one| self.new_piece(one)).collect();
        let created =
            |made: Made<ContentPieceId>| Kept { id: Some(made.id), outcome: Outcome::Created };
        match self.post("/content-pieces/batch", &json!({"pieces": &bodies})).await {
            Ok(MadeTogether { pieces: made }) if made.len() == pieces.len() => {
                return Ok(made.into_iter().map(created).collect());
            }
            Ok(_) => return Err(broken(failure(self.no_galley()))),
            Err(Failure::Broken(error)) => return Err(error),
            Err(Failure::Refused(_)) => {}
        }
        let mut kept = Vec::with_capacity(pieces.len());
        for (one, body) in pieces.iter().zip(&bodies) {
            kept.push(match self.post("/content-pieces", body).await {
                Ok(made) => created(made),
                Err(Failure::Refused(problem)) => one.refused(&problem),
                Err(Failure::Broken(error)) => return Err(error),
            });
        }
        Ok(kept)
    }

    fn new_piece(&self, one: &Prepared) -> Value {
        let mut body = self.fields(one);
        body["filename"] = one.document.name.as_str().into();
        body["contentGroupId"] = one.group.to_string().into();
        body["members"] = one.members.iter().map(ToString::to_string).collect();
        body
    }

    async fn update(&self, one: &Prepared, id: ContentPieceId) -> anyhow::Result<Kept> {
        let mut body = self.fields(one);
        body["id"] = id.to_string().into();
        if let Some(variant) = &one.variant {
            body["variant"] = variant.as_str().into();
        }
        match self.put::<Piece>("/content-pieces", &body).await {
            Ok(piece) => {
                let before = self.changed().insert(id, piece.updated_at.clone());
                let unchanged = before.as_ref() == Some(&piece.updated_at);
                let outcome = if unchanged { Outcome::Unchanged } else { Outcome::Updated };
                Ok(Kept { id: Some(id), outcome })
            }
            Err(Failure::Refused(problem)) => Ok(one.refused(&problem)),
            Err(Failure::Broken(error)) => Err(error),
        }
    }

    /// Whatever the source says.
    fn fields(&self, one: &Prepared) -> Value {
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

/// What went wrong, down to its cause.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn failure(trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Again(error, _) => Failure::Broken(error),
        Trouble::Final(failure) => failure,
    }
}

fn broken(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Refused(problem) => anyhow::anyhow!(problem),
        Failure::Broken(error) => error,
    }
}

impl Problem {
    /// `slug is required`; of several issues each.
    fn in_words(&self) -> String {
        if self.issues.is_empty() {
            return self.detail.clone();
        }
        let issue = |issue: &Issue| {
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

impl Place for OnServer {
    /// Small enough for others' requests to come between.
    const BATCH: usize = 8;
    const FORM: Form = Form::Html;

    /// Without patience: a wrong address is told at once.
    async fn find_group(&self, wanted: &str) -> anyhow::Result<ContentGroupId> {
        let first = format!("/content-groups/list?perPage={PAGE}");
        let first = self.request::<Vec<Group>>(Method::GET, &first, None, None);
        let base = &self.base;
        first.await.map_err(failure).map_err(broken).with_context(|| format!("--url {base}"))?;
        if let Ok(id) = wanted.parse::<ContentGroupId>() {
            let path = format!("/content-groups?id={id}");
            let found = self.get::<Group>(&path).await.map_err(broken);
            return Ok(found.with_context(|| format!("the content group {id}"))?.id);
        }
        let cursor = |group: &Group| format!("&lastId={}", group.id);
        let top = self.list("/content-groups/list?", PAGE, cursor).await.map_err(broken)?;
        if let Some(group) = top.iter().find(|group| group.name == wanted) {
            return Ok(group.id);
        }
        let names: Vec<_> = top.iter().map(|group| group.name.as_str()).collect();
        bail!("there is no content group {wanted:?} at the top; there are {names:?}")
    }

    async fn pieces(
        &mut self,
        group: ContentGroupId,
        subtree: bool,
    ) -> anyhow::Result<Vec<KnownPiece>> {
        let path = format!("/content-pieces/list?contentGroupId={group}&subtree={subtree}&");
        let cursor = |piece: &Piece| {
            let order = percent_encoding::utf8_percent_encode(
                &piece.order,
                percent_encoding::NON_ALPHANUMERIC,
            );
            format!("&lastOrder={order}")
        };
        let pieces = self.list(&path, PIECES_PAGE, cursor).await.map_err(broken)?;
        *self.changed() = pieces.iter().map(|piece| (piece.id, piece.updated_at.clone())).collect();
        let known = |piece: Piece| KnownPiece { id: piece.id, source: piece.filename };
        Ok(pieces.into_iter().map(known).collect())
    }

    async fn people(&self) -> anyhow::Result<Vec<(String, WorkspaceMemberId)>> {
        let path = "/workspace-memberships/list-members?";
        let cursor = |member: &Member| format!("&lastId={}", member.id);
        let mut people = Vec::new();
        for member in self.list(path, PAGE, cursor).await.map_err(broken)? {
            let profile = member.profile.into_iter();
            let of_user = profile.flat_map(|profile| [profile.full_name, profile.username]);
            let names = of_user.chain([member.name, member.email]);
            people.extend(names.map(|name| (name, member.id)));
        }
        Ok(people)
    }

    async fn group(
        &self,
        parent: ContentGroupId,
        name: &ContentGroupName,
    ) -> Result<ContentGroupId, Failure> {
        let path = format!("/content-groups/list?ancestor={parent}&");
        let children =
            self.list(&path, PAGE, |group: &Group| format!("&lastId={}", group.id)).await?;
        if let Some(found) = children.into_iter().find(|child| child.name == name.as_str()) {
            return Ok(found.id);
        }
        let body = json!({"name": name.as_str(), "ancestor": parent.to_string()});
        Ok(self.post::<Made<ContentGroupId>>("/content-groups", &body).await?.id)
    }

    async fn variant(&self, key: &VariantKey, label: &VariantLabel) -> Result<(), Failure> {
        let cursor = |variant: &Variant| format!("&lastId={}", variant.id);
        let there = self.list("/variants/list?", PAGE, cursor).await?;
        if !there.iter().any(|variant| variant.key == key.as_str()) {
            let body = json!({"key": key.as_str(), "label": label.as_str()});
            self.post::<Value>("/variants", &body).await?;
        }
        Ok(())
    }

    async fn keep(&mut self, documents: Vec<Prepared>) -> anyhow::Result<Vec<Kept>> {
        self.make_tags(documents.iter().flat_map(|one| &one.labels)).await.map_err(broken)?;
        let this = &*self;
        let (mut places, mut new, mut updates) = (Vec::new(), Vec::new(), Vec::new());
        for (place, one) in documents.iter().enumerate() {
            match one.known {
                Some(id) => updates.push((place, one, id)),
                None => {
                    places.push(place);
                    new.push(one);
                }
            }
        }
        let updates = updates.into_iter().map(async |(place, one, id)| {
            Ok::<_, anyhow::Error>((place, this.update(one, id).await?))
        });
        let updates = stream::iter(updates).buffer_unordered(IN_FLIGHT);
        let mut done: Vec<(usize, Kept)> = updates.try_collect().await?;
        if !new.is_empty() {
            done.extend(places.into_iter().zip(this.create(&new).await?));
        }
        done.sort_unstable_by_key(|(place, _)| *place);
        Ok(done.into_iter().map(|(_, kept)| kept).collect())
    }

    async fn close(self) {}
}
