//! Every function of the store behaves alike on both engines. Both can prepare its statements, and
//! find their rows by an index.

mod assets;
mod audit;
mod connections;
mod content_groups;
mod content_pieces;
mod published;
mod revisions;
mod search;
mod trash;
mod variants;

use std::path::{Path, PathBuf};

use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::event::ResourceChange;
use galley_domain::publication::ContentView;
use galley_domain::tag::{Color, Tag, TagLabel};
use galley_domain::variant::{Variant, VariantKey, VariantLabel};
use galley_domain::{ContentGroupId, EventId, TagId, VariantId, WorkspaceId};
use galley_storage::content_piece_list::PieceListQuery;
use galley_storage::event_append::{self, NewEvent};
use galley_storage::events;
use galley_storage::{ChangeStatement, Error, StatementLog, Tx, WriteTx};
use galley_testing::{TestStore, on_both_engines};

use self::audit::audit_log;
use self::content_groups::groups;
use self::content_pieces::pieces;
use crate::store::{NOW, OpenStore, id};
use crate::{people, plans};

fn group(name: &str) -> ContentGroup {
    let name = ContentGroupName::parse(name).unwrap();
    ContentGroup {
        id: ContentGroupId::new(id()),
        name,
        unique_slugs: false,
        custom_data_schema: None,
        preview_url: None,
        version: 1,
    }
}

fn tag(label: &str) -> Tag {
    let label = TagLabel::parse(label).unwrap();
    Tag { id: TagId::new(id()), label, color: Color::Blue, version: 1 }
}

fn variant(key: &str) -> Variant {
    let label = VariantLabel::parse(key).unwrap();
    let key = VariantKey::parse(key).unwrap();
    Variant { id: VariantId::new(id()), key, label, description: None, version: 1 }
}

/// Returns a query for all pieces.
fn everything() -> PieceListQuery {
    PieceListQuery { limit: 10, ..PieceListQuery::default() }
}

async fn append_events(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<(), Error> {
    let path = GroupPath::new(vec![group]);
    let new = |occurrence| NewEvent {
        id: EventId::new(id()),
        occurrence,
        view: ContentView::Current,
        data: "{}".to_owned(),
        data_before: None,
        custom_data_of: None,
    };
    let two =
        [new(ResourceChange::PieceAdded(path.clone())), new(ResourceChange::PieceRemoved(path))];
    event_append::append(tx, workspace, two, NOW).await?;
    event_append::append(tx, workspace, [], NOW).await
}

async fn list_events(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<(), Error> {
    let (listed, _) =
        events::list_with_paths(tx, workspace, ContentView::Current, 0, 10, usize::MAX).await?;
    let listed: Vec<_> = listed.into_iter().map(|found| found.event).collect();
    assert_eq!(listed.iter().map(|event| event.sequence).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(listed[1].event_type, "contentPieceRemoved");
    Ok(())
}

/// The fixture of the closures.
#[derive(Clone)]
struct ConformanceFixture {
    workspace: WorkspaceId,
    group: ContentGroupId,
    first: galley_domain::content_piece::ContentPiece,
    second: galley_domain::content_piece::ContentPiece,
}

/// Calls every function.
async fn exercise(open: &OpenStore) {
    let given = ConformanceFixture {
        workspace: open.workspace,
        group: open.group,
        first: open.piece("first", None),
        second: open.piece("second", None),
    };
    let exercise = async move |tx: &WriteTx<'_>| {
        let member = people::exercise(tx, given.workspace, given.group).await?;
        groups(tx, given.workspace, given.group).await?;
        Box::pin(audit_log(tx, given.workspace)).await?;
        Box::pin(assets::assets(tx, &given)).await?;
        Box::pin(assets::uploads(tx, &given)).await?;
        Box::pin(pieces(tx, &given, member)).await?;
        people::leave(tx, given.workspace, member).await?;
        append_events(tx, given.workspace, given.group).await
    };
    Box::pin(open.database.write::<_, Error, _>("exercise", exercise)).await.unwrap();
    let workspace = open.workspace;
    let list = async move |tx: &Tx<'_>| list_events(tx, workspace).await;
    open.database.read::<_, Error, _>("list", list).await.unwrap();
}

/// Returns the statements that change rows when every function is called, in their order.
pub(crate) async fn changes() -> Vec<ChangeStatement> {
    let open = OpenStore::with_log(TestStore::sqlite(), StatementLog::with_changes()).await;
    exercise(&open).await;
    open.log.take_changes()
}

#[on_both_engines]
async fn every_function_works_and_finds_its_rows_by_an_index(store: TestStore) {
    let open = OpenStore::new(store).await;
    exercise(&open).await;
    open.database.ping().await.unwrap();
    let statements = open.log.take();
    assert!(statements.len() > 60, "{}", statements.len());
    plans::check(&open.store.url, statements.keys()).await;
}

#[test]
fn every_function_is_exercised_here() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = package.join("tests/it");
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let files = ["store.rs", "people.rs", "sign_in.rs"];
    let mut calls: String = files.map(|file| read(here.join(file))).concat();
    for folder in ["conformance", "deliveries"] {
        let files = std::fs::read_dir(here.join(folder)).unwrap();
        files.for_each(|file| calls += &read(file.unwrap().path()));
    }
    let mut count = 0;
    for folder in ["tables", "delivery_queue"] {
        let source = package.join("src").join(folder);
        for entry in std::fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_stem().unwrap().to_string_lossy().into_owned();
            // The queue exports the functions of its modules.
            let module = if folder == "tables" { &file } else { folder };
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let function = line.split(['(', '<']).next().unwrap();
                let call = format!("{module}::{function}(");
                assert!(calls.contains(&call), "{call}…) is not exercised");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}
