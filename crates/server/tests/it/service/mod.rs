//! A running service for a test: two workspaces, tokens of every kind, and a client.

mod response;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use galley_application::operations::members::{self, Invitation};
use galley_application::operations::setup::{
    CreatedWorkspace, NewWorkspace, create_first_workspace,
};
use galley_application::operations::tokens::{self, TokenRequest};
use galley_application::secrets::SecretKey;
use galley_application::{AssetSettings, Clock, Environment, Error, Scope, SystemClock};
use galley_assets::{AssetStore, StoreLocation};
use galley_domain::access_token::{AccessToken, ExtensionName, TokenName};
use galley_domain::content_group::ContentGroupName;
use galley_domain::people::{EmailAddress, FullName};
use galley_domain::publication::ContentView;
use galley_domain::{ContentGroupId, PermissionSet, Timestamp, UserId};
use galley_server::{App, Resolve, Resolving, Server, ServerLimits};
use galley_storage::events::{self, Event};
use galley_storage::{Database, DatabaseUrl, Options, ProcessRole, StatementLog, Tx, WriteTx};
use galley_testing::TestStore;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub(crate) use self::response::TestResponse;

/// The system clock plus an offset that the test sets.
#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(SystemClock.now().ms() + self.0.load(Ordering::Relaxed))
    }
}

/// A resolver without network access: `localhost` resolves to this machine, other names fail.
#[derive(Debug)]
struct TestResolver;

impl Resolve for TestResolver {
    fn resolve(&self, name: String) -> Resolving {
        let found = match name.as_str() {
            "localhost" => Ok(vec![std::net::Ipv4Addr::LOCALHOST.into()]),
            _ => Err(std::io::Error::other("no such name")),
        };
        Box::pin(std::future::ready(found))
    }
}

/// A running service.
pub(crate) struct Service {
    pub(crate) url: String,
    pub(crate) database: Database,
    pub(crate) environment: Environment,
    pub(crate) statements: Arc<StatementLog>,
    /// The workspace that the test uses.
    pub(crate) home: TestWorkspace,
    clock: Arc<TestClock>,
    client: Client,
    limits: ServerLimits,
    /// The store with the database, kept until the end.
    store: TestStore,
    /// The folder with the files of assets.
    pub(crate) files: TempDir,
}

/// A workspace and its owner's token.
#[derive(Debug, Clone)]
pub(crate) struct TestWorkspace {
    pub(crate) made: CreatedWorkspace,
    pub(crate) token: String,
    /// The id of its first content group.
    pub(crate) group: String,
}

/// A member of the home workspace.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) member: String,
    pub(crate) user: UserId,
    pub(crate) token: String,
}

/// The properties of a test token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenKind<'a> {
    /// Permissions, or `all`.
    pub(crate) permissions: &'a str,
    pub(crate) groups: Option<&'a [&'a str]>,
    pub(crate) view: ContentView,
    pub(crate) extension: Option<&'a str>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// A token without limits.
pub(crate) const ALL: TokenKind<'static> = TokenKind {
    permissions: "all",
    groups: None,
    view: ContentView::Current,
    extension: None,
    expires_at: None,
};

/// A token that reads the content of the published view.
pub(crate) const SITE: TokenKind<'static> = TokenKind {
    permissions: "contentPieces:read contentGroups:read tags:read variants:read assets:read",
    view: ContentView::Published,
    ..ALL
};

fn options(store: &TestStore, role: ProcessRole, environment: &Environment) -> Options {
    Options {
        url: store.url.clone(),
        replica_url: None,
        role,
        program_version: "0.1.0",
        now: environment.now(),
        connections: 8,
        write_timeout: Duration::from_secs(10),
        statement_log: None,
    }
}

/// Opens the store of assets in a folder.
fn asset_store(files: &TempDir) -> AssetStore {
    let location = StoreLocation::Folder(files.path().to_owned());
    AssetStore::open(&location).expect("a folder is a store")
}

/// Serves a database on a port of its own, and returns the URL.
async fn serve(database: &Database, environment: &Environment, limits: ServerLimits) -> String {
    let server = Server::bind(([127, 0, 0, 1], 0).into()).await.expect("a port is free");
    let url = format!("http://{}", server.address().expect("it is bound"));
    let is_own = limits.public_url.is_empty();
    let public_url = if is_own { url.clone() } else { limits.public_url.clone() };
    let assets = AssetSettings { base_url: public_url.clone(), ..limits.assets };
    let limits = ServerLimits { public_url, assets, ..limits };
    let app = App::new(database.clone(), environment.clone(), key(), limits, None);
    tokio::spawn(server.run(app, std::future::pending()));
    url
}

impl Service {
    pub(crate) async fn start(store: TestStore) -> Self {
        Self::start_with(store, ServerLimits::default()).await
    }

    pub(crate) async fn start_with(store: TestStore, limits: ServerLimits) -> Self {
        Self::start_with_resolver(store, limits, Arc::new(TestResolver)).await
    }

    /// Starts a service with the given resolver.
    pub(crate) async fn start_with_resolver(
        store: TestStore,
        limits: ServerLimits,
        names: Arc<dyn Resolve>,
    ) -> Self {
        let clock = Arc::new(TestClock::default());
        let environment =
            Environment::with_clock(Arc::<TestClock>::clone(&clock)).with_resolver(names);
        let statements = Arc::new(StatementLog::default());
        let options = Options {
            statement_log: Some(Arc::clone(&statements)),
            ..options(&store, ProcessRole::Server, &environment)
        };
        let database = Database::open(options).await.expect("the store opens");
        let home = make_first_workspace(&database, &environment).await;
        let files = tempfile::tempdir().expect("a folder can be created");
        let assets = AssetSettings { store: asset_store(&files), ..limits.assets };
        let limits = ServerLimits { assets, ..limits };
        let url = serve(&database, &environment, limits.clone()).await;
        let redirects = reqwest::redirect::Policy::none();
        let client =
            Client::builder().no_proxy().redirect(redirects).build().expect("a client can be made");
        Self { url, database, environment, statements, home, clock, client, limits, store, files }
    }

    /// Opens a second connection to the same store, as a command does.
    pub(crate) async fn second_connection(&self) -> Database {
        let options = options(&self.store, ProcessRole::Command, &self.environment);
        Database::open(options).await.expect("the store opens")
    }

    /// Starts a second server on the same database, with the same settings, and returns its URL, or
    /// `None` on SQLite.
    pub(crate) async fn start_second_server(&self) -> Option<String> {
        if self.database.path().is_some() {
            return None;
        }
        let options = options(&self.store, ProcessRole::Server, &self.environment);
        let database = Database::open(options).await.expect("the store opens");
        Some(serve(&database, &self.environment, self.limits.clone()).await)
    }

    /// Serves the database at a second address with other settings, and returns the URL.
    pub(crate) async fn serve_again(&self, limits: ServerLimits) -> String {
        serve(&self.database, &self.environment, limits).await
    }

    /// Opens a separate connection to PostgreSQL.
    pub(crate) async fn postgres(&self) -> Option<tokio_postgres::Client> {
        let DatabaseUrl::Postgres(url) = &self.store.url else { return None };
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it is there");
        tokio::spawn(connection);
        Some(client)
    }

    /// Returns the number of deadlocks in the database. SQLite has one writer and therefore none.
    pub(crate) async fn deadlocks(&self) -> i64 {
        let Some(client) = self.postgres().await else { return 0 };
        let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        client.query_one(sql, &[]).await.expect("it is known").get(0)
    }

    /// Advances the clock.
    pub(crate) fn advance_clock(&self, time: Duration) {
        let ms = i64::try_from(time.as_millis()).unwrap();
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// Reads directly from the database.
    pub(crate) async fn read<T, F>(&self, read: F) -> T
    where
        T: Send + 'static,
        F: AsyncFn(&Tx<'_>) -> Result<T, galley_storage::Error> + Send + Sync + 'static,
    {
        self.database.read::<_, galley_storage::Error, _>("test", read).await.unwrap()
    }

    /// Sends a request with the home workspace's first token.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> TestResponse {
        self.send_as(&self.home.token, method, path, body).await
    }

    /// Sends a request with `token`.
    pub(crate) async fn send_as(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> TestResponse {
        let mut request = self.request(method, path).bearer_auth(token);
        if let Some(body) = body {
            request = request.json(body);
        }
        TestResponse::of(request).await
    }

    /// Returns a request builder.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.request_to(&self.url, method, path)
    }

    /// Returns a request builder for another server.
    pub(crate) fn request_to(
        &self,
        server: &str,
        method: Method,
        path: &str,
    ) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{server}{path}"))
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> TestResponse {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> TestResponse {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        self.send(Method::DELETE, path, None).await
    }

    /// Sends a POST that must succeed, and returns the new id.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> String {
        self.create_as(&self.home.token, path, body).await
    }

    /// Creates a resource with `token`, and returns its id.
    pub(crate) async fn create_as(&self, token: &str, path: &str, body: &Value) -> String {
        let answer = self.send_as(token, Method::POST, path, Some(body)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    /// Returns a minimal body of a piece in the home workspace's first group.
    pub(crate) fn piece(&self, slug: &str) -> Value {
        piece_in(&self.home.group, slug)
    }

    /// Creates a token of the home workspace's owner.
    pub(crate) async fn token(&self, permissions: &str, groups: Option<&[&str]>) -> String {
        self.token_of(self.home.made.user, TokenKind { permissions, groups, ..ALL }).await
    }

    /// Creates a token of a member of the home workspace.
    pub(crate) async fn token_of(&self, user: UserId, kind: TokenKind<'_>) -> String {
        let token = self.environment.new_access_token();
        let ids = |groups: &[&str]| {
            groups.iter().map(|id| id.parse::<ContentGroupId>().unwrap()).collect::<Vec<_>>()
        };
        let permissions = match kind.permissions {
            "all" => PermissionSet::ALL,
            some => some.parse().unwrap(),
        };
        let request = TokenRequest {
            token: token.clone(),
            user,
            name: TokenName::parse("test").unwrap(),
            description: None,
            permissions,
            content_groups: kind.groups.map(ids),
            view: kind.view,
            extension: kind.extension.map(|name| ExtensionName::parse(name).unwrap()),
            expires_at: kind.expires_at,
        };
        let (environment, workspace) = (self.environment.clone(), self.home.made.workspace);
        let write = async move |tx: &WriteTx<'_>| {
            tokens::create(tx, &environment, &Scope::whole(workspace), &request).await.map(drop)
        };
        self.database.write("tokens.create", write).await.unwrap();
        token.reveal().to_owned()
    }

    /// Returns the id of a token.
    pub(crate) async fn token_id(&self, token: &str) -> String {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let read = async move |tx: &Tx<'_>| {
            Ok::<_, Error>(galley_storage::authentication::find_by_token_hash(tx, &hash).await?)
        };
        let found = self.database.read("tokens.find", read).await.unwrap();
        found.expect("the token works").credential.to_string()
    }

    /// Adds a member to the home workspace, with the given role and an unlimited token.
    pub(crate) async fn person(&self, name: &str, role: &str) -> Person {
        let invitation = Invitation {
            email: EmailAddress::parse(format!("{name}@example.org")).unwrap(),
            name: FullName::parse(name).unwrap(),
            role: role.parse().unwrap(),
        };
        let (environment, workspace) = (self.environment.clone(), self.home.made.workspace);
        let write = async move |tx: &WriteTx<'_>| {
            members::add_without_invite(tx, &environment, workspace, &invitation).await
        };
        let member = self.database.write("members.add", write).await.unwrap();
        let user = member.user.expect("they were added").id;
        let token = self.token_of(user, ALL).await;
        Person { member: member.id.to_string(), user, token }
    }

    /// Returns the ids of the roles Admin, Editor and Viewer.
    pub(crate) fn roles(&self) -> [String; 3] {
        self.home.made.roles.map(|role| role.to_string())
    }

    /// Creates another workspace on the same database.
    pub(crate) async fn other_workspace(&self) -> TestWorkspace {
        make_another_workspace(&self.database, &self.environment).await
    }

    /// Returns the home workspace's events after this sequence number.
    pub(crate) async fn events_after(&self, sequence: i64) -> Vec<Event> {
        let workspace = self.home.made.workspace;
        let read = async move |tx: &Tx<'_>| {
            let (found, _) = events::list_with_paths(
                tx,
                workspace,
                ContentView::Published,
                sequence,
                100_000,
                usize::MAX,
            )
            .await?;
            Ok::<_, Error>(found.into_iter().map(|found| found.event).collect())
        };
        self.database.read("events.list", read).await.unwrap()
    }

    /// Forgets the statements so far, once the search indexes have all changes. Later statements
    /// are those of requests, and scans.
    pub(crate) async fn forget_statements(&self) {
        let started = std::time::Instant::now();
        let behind =
            async |tx: &Tx<'_>| galley_storage::search_indexes::behind(tx, 1, None, 1).await;
        while !self.read(behind).await.is_empty() {
            assert!(started.elapsed() < Duration::from_mins(1), "an index stays behind");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.statements.take();
    }

    /// Returns the sequence number of the home workspace's last event.
    pub(crate) async fn last_sequence(&self) -> i64 {
        self.events_after(0).await.last().map_or(0, |event| event.sequence)
    }

    /// Returns all data of the home workspace that a rejected request might have changed.
    pub(crate) async fn workspace_state(&self) -> Value {
        let mut all = Vec::new();
        for path in [
            "/content-pieces/list?perPage=100&content=true",
            "/content-pieces/trash?perPage=1000",
            "/content-groups/list?perPage=100&subtree=true",
            "/tags/list?perPage=1000",
            "/variants/list?perPage=1000",
            "/roles/list?perPage=1000",
            "/workspace-memberships/list-members?perPage=1000",
            "/webhooks/list?perPage=1000",
            "/assets/list?perPage=1000",
            "/workspace",
            "/profile",
            "/audit?perPage=1000",
        ] {
            all.push(self.get(path).await.body);
        }
        // Reads update the tokens' time of last use, too, so it is left out.
        let mut tokens = self.get("/tokens/list?perPage=1000").await.body;
        for token in tokens.as_array_mut().expect("a list") {
            token["lastUsedAt"] = Value::Null;
        }
        all.push(tokens);
        json!({ "lists": all, "events": self.last_sequence().await })
    }
}

/// Returns the encryption key of the tests' services.
pub(crate) fn key() -> SecretKey {
    SecretKey::new([7; 32])
}

/// Returns a minimal body of a piece.
pub(crate) fn piece_in(group: &str, slug: &str) -> Value {
    json!({
        "title": format!("Title of {slug}"),
        "slug": slug,
        "tags": [],
        "members": [],
        "contentGroupId": group,
    })
}

async fn make_first_workspace(database: &Database, environment: &Environment) -> TestWorkspace {
    let new = new_workspace(environment, "home");
    let (environment, owned) = (environment.clone(), new.clone());
    let write =
        async move |tx: &WriteTx<'_>| create_first_workspace(tx, &environment, &owned).await;
    let made = database.write("setup", write).await.unwrap().expect("the store was empty");
    workspace(made, &new.token)
}

async fn make_another_workspace(database: &Database, environment: &Environment) -> TestWorkspace {
    let new = new_workspace(environment, "other");
    let (environment, owned) = (environment.clone(), new.clone());
    let write = async move |tx: &WriteTx<'_>| {
        galley_application::operations::setup::create_workspace(tx, &environment, &owned).await
    };
    let made = database.write("setup", write).await.unwrap();
    workspace(made, &new.token)
}

fn new_workspace(environment: &Environment, name: &str) -> NewWorkspace {
    NewWorkspace {
        name: name.to_owned(),
        email: EmailAddress::parse(format!("{name}@example.org")).unwrap(),
        group: ContentGroupName::parse("Posts").unwrap(),
        token: environment.new_access_token(),
    }
}

fn workspace(made: CreatedWorkspace, token: &AccessToken) -> TestWorkspace {
    TestWorkspace { made, token: token.reveal().to_owned(), group: made.content_group.to_string() }
}
