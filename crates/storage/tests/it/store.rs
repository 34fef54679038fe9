//! An open store with a workspace for tests.

use std::sync::Arc;
use std::time::Duration;

use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::content_piece::{ContentPiece, ContentPieceFields, Slug, Title};
use galley_domain::id::IdSequence;
use galley_domain::order_key::MovingNeighbour;
use galley_domain::publication::Publication;
use galley_domain::{Actor, ContentGroupId, ContentPieceId, OrderKey, Timestamp, WorkspaceId};
use galley_storage::{
    Database, DatabaseUrl, Error, Options, ProcessRole, StatementLog, WriteTx, content_groups,
    workspaces,
};
use galley_testing::TestStore;

/// The current time in all tests here.
pub(crate) const NOW: Timestamp = Timestamp::from_ms(1_763_631_000_000);

/// An open store, and the ids to fill it with.
pub(crate) struct OpenStore {
    pub(crate) database: Database,
    pub(crate) log: Arc<StatementLog>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) group: ContentGroupId,
    pub(crate) store: TestStore,
}

pub(crate) fn options(url: DatabaseUrl, role: ProcessRole) -> Options {
    Options {
        url,
        replica_url: None,
        role,
        program_version: "0.1.0",
        now: NOW,
        connections: 8,
        write_timeout: Duration::from_secs(10),
        statement_log: None,
    }
}

/// Returns the value of a new id.
pub(crate) fn id() -> u128 {
    static IDS: std::sync::Mutex<Option<IdSequence>> = std::sync::Mutex::new(None);
    IDS.lock().unwrap().get_or_insert_default().next(NOW.ms(), 7)
}

impl OpenStore {
    pub(crate) async fn new(store: TestStore) -> Self {
        Self::with_log(store, StatementLog::default()).await
    }

    pub(crate) async fn with_log(store: TestStore, log: StatementLog) -> Self {
        let log = Arc::new(log);
        let mut options = options(store.url.clone(), ProcessRole::Server);
        options.statement_log = Some(Arc::clone(&log));
        let database = Database::open(options).await.unwrap();
        let workspace = WorkspaceId::new(id());
        let group = ContentGroupId::new(id());
        let fill = async move |tx: &WriteTx<'_>| {
            workspaces::insert(tx, workspace, "Test", NOW).await?;
            let name = ContentGroupName::parse("Posts").unwrap();
            let group = ContentGroup {
                id: group,
                name,
                unique_slugs: false,
                custom_data_schema: None,
                preview_url: None,
                version: 1,
            };
            content_groups::insert(tx, workspace, &group, &GroupPath::default(), NOW).await
        };
        database.write::<_, Error, _>("fill", fill).await.unwrap();
        Self { database, log, workspace, group, store }
    }

    /// Returns a piece that is not stored yet, placed after the order key `after`.
    pub(crate) fn piece(&self, slug: &str, after: Option<&OrderKey>) -> ContentPiece {
        ContentPiece {
            id: ContentPieceId::new(id()),
            content_group_id: self.group,
            order: OrderKey::between(after, None, MovingNeighbour::Before, 5),
            placed_at: NOW,
            variants: Vec::new(),
            revision: None,
            fields: ContentPieceFields {
                date: Some(NOW),
                title: Title::parse("Title").unwrap(),
                description: None,
                slug: Slug::parse(slug).unwrap(),
                cover_url: None,
                cover_alt: None,
                cover_width: None,
                canonical_link: None,
                filename: None,
                custom_data: None,
                tags: Vec::new(),
                members: Vec::new(),
            },
            version: 1,
            created_at: NOW,
            updated_at: NOW,
            created_by: Some(Actor::System),
            updated_by: None,
            publication: Publication::default(),
        }
    }

    /// Returns the number of rows in a table.
    pub(crate) async fn count(&self, table: &'static str) -> i64 {
        let count = async move |tx: &galley_storage::Tx<'_>| {
            tx.get(&format!("SELECT count(*) FROM {table}"), &[], |row| row.get::<i64>(0)).await
        };
        self.database.read_long::<_, Error, _>("count", count).await.unwrap()
    }
}
