//! Every function of the store behaves alike on both engines. Both can prepare its statements, and
//! find their rows by an index.

use std::path::Path;

use galley_domain::content_group::{ContentGroup, ContentGroupName, GroupPath};
use galley_domain::content_piece::{ContentPiece, Slug, Title};
use galley_domain::event::ResourceChange;
use galley_domain::import_source::{ImportSource, SourceHash};
use galley_domain::tag::{Color, Tag, TagLabel};
use galley_domain::text::ShortText;
use galley_domain::variant::{
    ContentPieceOverrides, Variant, VariantKey, VariantLabel, VariantRef,
};
use galley_domain::{ContentGroupId, EventId, TagId, VariantId, WorkspaceId, WorkspaceMemberId};
use galley_storage::content_piece_list::{self, ListQuery, Sort, SortKey};
use galley_storage::content_pieces::View;
use galley_storage::events::{self, NewEvent};
use galley_storage::import_sources::{self, PieceSource};
use galley_storage::order_key_spread;
use galley_storage::order_spread_rows;
use galley_storage::ordering::{self, OrderedPiece};
use galley_storage::{
    Affects, ChangeStatement, Database, DatabaseUrl, Error, Options, Role, StatementLog, Tx,
    WriteTx, content_groups, content_piece_variants, content_pieces, tags, variants,
};
use galley_testing::{TestStore, on_both_engines};

use crate::store::{NOW, OpenStore, id, options};
use crate::{people, plans};

fn group(name: &str) -> ContentGroup {
    let name = ContentGroupName::parse(name).unwrap();
    ContentGroup { id: ContentGroupId::new(id()), name, version: 1 }
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

async fn groups(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    top: ContentGroupId,
) -> Result<(), Error> {
    let top_path = content_groups::path(tx, workspace, top).await?;
    assert_eq!(top_path, GroupPath::new(vec![top]));
    let (a, mut b) = (group("A"), group("B"));
    content_groups::insert(tx, workspace, &a, &top_path, NOW).await?;
    let path_of_a = content_groups::path(tx, workspace, a.id).await?;
    content_groups::insert(tx, workspace, &b, &path_of_a, NOW).await?;
    b.version = 2;
    content_groups::update(tx, workspace, &b).await?;
    assert_eq!(content_groups::find(tx, workspace, b.id).await?, Some(b.clone()));
    assert_eq!(content_groups::height(tx, workspace, top).await?, 2);
    assert_eq!(
        content_groups::existing(tx, workspace, &[b.id, ContentGroupId::new(3)], None).await?,
        [b.id].into()
    );
    let children = content_groups::list_children(tx, workspace, Some(top), None, 10, 0).await?;
    assert_eq!(children, [a.clone()]);
    assert_eq!(content_groups::list_children(tx, workspace, None, None, 10, 0).await?.len(), 1);
    let some = content_groups::list_some(tx, workspace, &[a.id, b.id], None, 10, 1).await?;
    assert_eq!(some, [b.clone()]);
    let under = content_groups::subtree(tx, workspace, &[top, a.id]).await?;
    assert_eq!(under.len(), 3);
    content_groups::move_under(tx, workspace, b.id, None).await?;
    assert_eq!(content_groups::path(tx, workspace, b.id).await?.groups(), [b.id]);
    content_groups::move_under(tx, workspace, a.id, Some(b.id)).await?;
    assert_eq!(content_groups::path(tx, workspace, a.id).await?.groups(), [b.id, a.id]);
    let children = content_groups::children_of(tx, workspace, &[top, b.id]).await?;
    assert_eq!(children.get(&b.id), Some(&vec![a.id]));
    assert!(content_groups::has_contents(tx, workspace, b.id).await?);
    assert!(!content_groups::has_contents(tx, workspace, a.id).await?);
    content_groups::delete(tx, workspace, a.id).await?;
    assert_eq!(content_groups::find(tx, workspace, a.id).await?, None);
    Ok(())
}

async fn pieces(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    member: WorkspaceMemberId,
) -> Result<(), Error> {
    let workspace = open.workspace;
    let (mut red, blue) = (tag("red"), tag("blue"));
    for tag in [&red, &blue] {
        tags::insert(tx, workspace, tag, NOW).await?;
    }
    red.version = 2;
    tags::update(tx, workspace, &red).await?;
    assert_eq!(tags::find_for_update(tx, workspace, red.id).await?, Some(red.clone()));
    assert_eq!(tags::find(tx, workspace, red.id).await?, Some(red.clone()));
    assert_eq!(tags::find_all(tx, workspace, &[red.id, blue.id, TagId::new(1)]).await?.len(), 2);
    assert_eq!(tags::find_by_label(tx, workspace, &blue.label).await?, Some(blue.clone()));
    assert_eq!(tags::list(tx, workspace, None, 10, 0).await?, [red.clone(), blue.clone()]);

    let mut first = open.first.clone();
    first.fields.tags = vec![blue.id, red.id];
    first.fields.members = vec![member];
    content_pieces::insert(tx, workspace, &first, "{\"a\":1}").await?;
    assert_eq!(content_pieces::find(tx, workspace, first.id).await?, Some(first.clone()));
    assert_eq!(content_pieces::find(tx, WorkspaceId::new(1), first.id).await?, None);
    let changed = content_pieces::find_for_update(tx, workspace, first.id).await?;
    assert_eq!(changed, Some(first.clone()));
    assert!(!content_pieces::update_content(tx, workspace, first.id, "{\"a\":1}").await?);
    assert!(content_pieces::update_content(tx, workspace, first.id, "{}").await?);
    let within = [open.group];
    let whole = View { variant: None, content: true };
    let seen = content_pieces::find_visible(tx, workspace, first.id, Some(&within), whole).await?;
    assert_eq!(seen, Some((first.clone(), Some("{}".to_owned()))));
    let seen = content_pieces::find_visible(tx, workspace, first.id, None, View::default()).await?;
    assert_eq!(seen, Some((first.clone(), None)));
    let elsewhere = [ContentGroupId::new(1)];
    let seen =
        content_pieces::find_visible(tx, workspace, first.id, Some(&elsewhere), whole).await?;
    assert_eq!(seen, None);

    ordering::lock(tx, workspace).await?;
    let place =
        OrderedPiece { id: first.id, order: first.order.clone(), placed_at: first.placed_at };
    let end = ordering::at_the_end(tx, workspace, 3).await?;
    assert!(end > first.order);
    let mut second = open.second.clone();
    second.order = end;
    content_pieces::insert(tx, workspace, &second, "{}").await?;
    let last = ordering::last(tx, workspace).await?.expect("there are pieces");
    assert_eq!(last.id, second.id);
    assert_eq!(ordering::next(tx, workspace, &first.order).await?, Some(last.clone()));
    assert!(ordering::is_taken(tx, workspace, &first.order).await?);
    assert!(
        !ordering::is_taken(tx, workspace, &galley_domain::OrderKey::from_stored("zzzzz")).await?
    );
    assert_eq!(ordering::previous(tx, workspace, &second.order).await?, Some(place.clone()));
    let in_group = ordering::next_in_group(tx, workspace, open.group, None).await?;
    assert_eq!(in_group, Some(place.clone()));
    let between = ordering::after(tx, workspace, &place, 3).await?;
    assert!(between > first.order && between < second.order);
    assert!(ordering::before(tx, workspace, &place, 3).await? < first.order);

    let mut renamed = first.clone();
    renamed.fields.title = Title::parse("Other").unwrap();
    renamed.fields.tags = vec![red.id];
    renamed.fields.members = Vec::new();
    renamed.version = 2;
    content_pieces::update(tx, workspace, &first, &renamed).await?;
    assert_eq!(content_pieces::find(tx, workspace, first.id).await?, Some(renamed.clone()));
    let found = content_pieces::list_in_group_for_deletion(tx, workspace, open.group, 10).await?;
    assert_eq!(found, [renamed.clone(), second.clone()]);
    assert!(content_pieces::has_more_than(tx, workspace, open.group, 1).await?);
    assert!(!content_pieces::has_more_than(tx, workspace, open.group, 2).await?);
    lists(tx, open, &red, None).await?;
    in_variant(tx, open, &renamed, member, [&red, &blue]).await?;
    let tagged = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    assert!(tags::delete(tx, workspace, red.id).await?);
    let untagged = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    assert_eq!((untagged.fields.tags.len(), untagged.version), (0, tagged.version + 1));
    content_pieces::delete(tx, workspace, &untagged).await?;
    assert_eq!(content_pieces::find(tx, workspace, first.id).await?, None);
    Ok(())
}

/// Exercises the overrides of `piece` in variants, until the variant or a row that they refer to is
/// deleted.
async fn in_variant(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    piece: &ContentPiece,
    member: WorkspaceMemberId,
    [own_tag, tag]: [&Tag; 2],
) -> Result<(), Error> {
    let workspace = open.workspace;
    let version = async || {
        let found = content_pieces::find(tx, workspace, piece.id).await?;
        Ok::<_, Error>(found.expect("it is there").version)
    };
    let mut german = variant("de");
    let french = variant("fr");
    for variant in [&german, &french] {
        variants::insert(tx, workspace, variant, NOW).await?;
    }
    german.description = Some(ShortText::parse("German").unwrap());
    variants::update(tx, workspace, &german).await?;
    assert_eq!(variants::find(tx, workspace, german.id).await?, Some(german.clone()));
    assert_eq!(variants::find(tx, WorkspaceId::new(1), german.id).await?, None);
    let found = variants::find_for_update(tx, workspace, german.id).await?;
    assert_eq!(found, Some(german.clone()));
    let by_key = VariantRef::Key(VariantKey::parse("fr").unwrap());
    let found = variants::find_named(tx, workspace, &by_key).await?;
    assert_eq!(found, Some(french.clone()));
    let found = variants::find_named_for_override(tx, workspace, &by_key).await?;
    assert_eq!(found, Some(french.clone()));
    let listed = variants::list(tx, workspace, None, 10, 0).await?;
    assert_eq!(listed, [german.clone(), french.clone()]);

    let find = async |variant| content_piece_variants::find(tx, workspace, piece.id, variant).await;
    assert_eq!(find(german.id).await?, None);
    let titled = ContentPieceOverrides {
        title: Some(Title::parse("Titel").unwrap()),
        ..ContentPieceOverrides::default()
    };
    let listed = ContentPieceOverrides {
        slug: Some(Slug::parse("erstes").unwrap()),
        date: Some(NOW),
        tags: Some(vec![tag.id]),
        members: Some(vec![member]),
        ..titled.clone()
    };
    for (variant, overrides) in [(german.id, &titled), (german.id, &listed), (french.id, &titled)] {
        content_piece_variants::update(tx, workspace, piece.id, variant, overrides).await?;
        assert_eq!(find(variant).await?.as_ref(), Some(overrides));
    }
    let view = View { variant: Some(german.id), content: true };
    let seen = content_pieces::find_visible(tx, workspace, piece.id, None, view).await?;
    let german_piece = piece.clone().with_overrides(listed.clone());
    assert_eq!(seen, Some((german_piece.clone(), Some("{}".to_owned()))));
    let set = async |tree| {
        content_piece_variants::update_content(tx, workspace, piece.id, german.id, tree).await
    };
    assert!(!set("{}").await?, "what the piece has shows already");
    assert!(set("{\"b\":2}").await?);
    assert!(!set("{\"b\":2}").await?);
    assert!(set("{}").await?, "its own by now");
    assert!(set("{\"b\":2}").await?);
    let overrides = content_piece_variants::of_piece(tx, workspace, piece.id).await?;
    let mut expected = vec![
        (german.id, listed.clone(), Some("{\"b\":2}".to_owned())),
        (french.id, titled.clone(), None),
    ];
    expected.sort_by_key(|(variant, ..)| *variant);
    assert_eq!(overrides, expected);
    let seen = content_pieces::find_visible(tx, workspace, piece.id, None, view).await?;
    assert_eq!(seen, Some((german_piece.clone(), Some("{\"b\":2}".to_owned()))));
    let all = ListQuery { view, ..everything() };
    for (query, count) in [
        (ListQuery { slug: Some("erstes".to_owned()), ..all.clone() }, 1),
        (ListQuery { slug: Some("first".to_owned()), ..all.clone() }, 0),
        (ListQuery { tag: Some(tag.id), ..all.clone() }, 1),
        (ListQuery { tag: Some(own_tag.id), ..all.clone() }, 0),
    ] {
        let found = content_piece_list::list(tx, workspace, &query).await?;
        assert_eq!(found.len(), count, "{query:?}");
    }
    // In French only the title is overridden, so filters find the piece's own slug and tag.
    lists(tx, open, own_tag, Some(french.id)).await?;

    let source = |hash: &str, variant| PieceSource {
        piece: piece.id,
        variant,
        source: ImportSource {
            source_hash: SourceHash::parse(hash).unwrap(),
            imported_hash: SourceHash::parse("imported").unwrap(),
        },
    };
    let sources = [source("a", None), source("b", Some(french.id))];
    for one in [source("first", None), source("first", Some(french.id))].iter().chain(&sources) {
        import_sources::save(tx, workspace, one).await?;
    }
    let elsewhere = WorkspaceId::new(1);
    assert_eq!(import_sources::list(tx, elsewhere, &[piece.id]).await?, []);
    let mut listed = import_sources::list(tx, workspace, &[piece.id]).await?;
    listed.sort_by_key(|one| one.variant);
    assert_eq!(listed, sources);

    let before = version().await?;
    content_pieces::remove_member(tx, workspace, member).await?;
    assert_eq!(version().await?, before + 1);
    let left = find(german.id).await?.expect("it is there");
    assert_eq!(left.members, Some(Vec::new()), "an empty list of its own");
    assert!(tags::delete(tx, workspace, tag.id).await?);
    assert_eq!(version().await?, before + 2);
    assert_eq!(find(german.id).await?.expect("it is there").tags, Some(Vec::new()));
    let nothing = ContentPieceOverrides::default();
    content_piece_variants::update(tx, workspace, piece.id, german.id, &nothing).await?;
    assert_eq!(find(german.id).await?, None);
    // Deleting a variant raises the piece's version, even if only the content is overridden.
    assert!(variants::delete(tx, workspace, german.id).await?);
    assert!(!variants::delete(tx, workspace, german.id).await?);
    assert_eq!(version().await?, before + 3);
    let deleted = content_piece_variants::delete_content(tx, workspace, piece.id, german.id);
    assert!(!deleted.await?, "it went with its variant");
    assert!(variants::delete(tx, workspace, french.id).await?);
    assert_eq!(version().await?, before + 4);
    assert_eq!(import_sources::list(tx, workspace, &[piece.id]).await?, sources[..1]);
    assert_eq!(find(french.id).await?, None);
    Box::pin(spreads(tx, open)).await
}

/// Returns a query for all pieces.
fn everything() -> ListQuery {
    ListQuery {
        groups: None,
        subtree: false,
        within: None,
        slug: None,
        tag: None,
        sort: Sort { key: SortKey::Order, descending: false },
        after: None,
        limit: 10,
        offset: 0,
        view: View::default(),
    }
}

/// Exercises spreading out order keys. Moved pieces keep their order.
async fn spreads(tx: &WriteTx<'_>, open: &ConformanceFixture) -> Result<(), Error> {
    assert_eq!(order_key_spread::spread_slice(tx, open.workspace, None).await?, None);
    let around = galley_domain::OrderKey::from_stored("V0000");
    let sql = "INSERT INTO order_spreads (workspace_id, around) VALUES (?1, ?2)";
    tx.execute(sql, &[open.workspace.into(), (&around).into()], Affects::Everything).await?;
    let pending = order_key_spread::pending_spreads(tx, None).await?;
    assert_eq!(pending.len(), 1);
    assert_eq!(
        (pending[0].workspace, pending[0].unplanned.as_ref()),
        (open.workspace, Some(&around))
    );
    let mut random = 0_u32;
    let plan = order_key_spread::plan_spread(tx, open.workspace, &around, || {
        random = u32::wrapping_add(random, 1 << 28);
        random
    });
    let plan = plan.await?;
    let mut moved = 0;
    while let Some(slice) = order_key_spread::spread_slice(tx, open.workspace, Some(&plan)).await? {
        moved += slice.len();
    }
    assert_eq!(moved, 2);
    assert_eq!(order_key_spread::pending_spreads(tx, None).await?, []);
    let long = galley_domain::OrderKey::from_stored("V0000".repeat(20));
    order_spread_rows::note_if_long(tx, open.workspace, &long).await?;
    assert_eq!(order_key_spread::pending_spreads(tx, None).await?.len(), 1);
    Ok(())
}

/// Exercises every filter and sort key, and pagination by position.
async fn lists(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    tag: &Tag,
    variant: Option<VariantId>,
) -> Result<(), Error> {
    let keys =
        [SortKey::Order, SortKey::Date, SortKey::CreatedAt, SortKey::UpdatedAt, SortKey::Title];
    for (key, descending) in keys.into_iter().flat_map(|key| [(key, false), (key, true)]) {
        let sort = Sort { key, descending };
        let all = ListQuery { sort, view: View { variant, content: false }, ..everything() };
        let listed = content_piece_list::list(tx, open.workspace, &all).await?;
        let (some, was_much) = content_piece_list::list_until(tx, open.workspace, &all, 1).await?;
        assert_eq!((some.as_slice(), was_much), (&listed[..1], listed.len() > 1));
        assert_eq!(listed.len(), 2, "{sort:?}");
        let (first, _) = &listed[0];
        let found =
            content_piece_list::find_by_order(tx, open.workspace, &first.order, all.view).await?;
        assert_eq!(found.as_ref(), Some(&listed[0]));
        let rest = ListQuery { after: Some(sort.position(first)), ..all.clone() };
        let rest = content_piece_list::list(tx, open.workspace, &rest).await?;
        assert_eq!(rest.iter().map(|(piece, _)| piece.id).collect::<Vec<_>>(), [listed[1].0.id]);
        for (query, count) in [
            (ListQuery { groups: Some(vec![open.group]), ..all.clone() }, 2),
            (
                ListQuery { groups: Some(vec![open.group, ContentGroupId::new(1)]), ..all.clone() },
                2,
            ),
            (ListQuery { groups: Some(vec![open.group]), subtree: true, ..all.clone() }, 2),
            (ListQuery { within: Some(vec![ContentGroupId::new(1)]), ..all.clone() }, 0),
            (ListQuery { slug: Some("first".to_owned()), ..all.clone() }, 1),
            (ListQuery { tag: Some(tag.id), ..all.clone() }, 1),
            (ListQuery { view: View { variant, content: true }, offset: 1, ..all.clone() }, 1),
            (ListQuery { offset: 1_000, ..all.clone() }, 0),
            (ListQuery { groups: Some(vec![open.group]), offset: 1_000, ..all.clone() }, 0),
        ] {
            let listed = content_piece_list::list(tx, open.workspace, &query).await?;
            assert_eq!(listed.len(), count, "{query:?}");
        }
    }
    Ok(())
}

async fn append_and_list_events(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    group: ContentGroupId,
) -> Result<(), Error> {
    let path = GroupPath::new(vec![group]);
    let new = |occurrence| NewEvent {
        id: EventId::new(id()),
        occurrence,
        data: "{}".to_owned(),
        data_before: None,
        custom_data_of: None,
    };
    let two =
        [new(ResourceChange::PieceAdded(path.clone())), new(ResourceChange::PieceRemoved(path))];
    events::append(tx, workspace, &two, NOW).await?;
    events::append(tx, workspace, &[], NOW).await?;
    let listed = events::list(tx, workspace, 0, 10).await?;
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
        pieces(tx, &given, member).await?;
        people::leave(tx, given.workspace, member).await?;
        append_and_list_events(tx, given.workspace, given.group).await
    };
    Box::pin(open.database.write::<_, Error, _>("exercise", exercise)).await.unwrap();
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

#[on_both_engines]
async fn a_partially_read_result_closes_its_connection(store: TestStore) {
    let DatabaseUrl::Postgres(_) = store.url else { return };
    let open = OpenStore::new(store).await;
    let workspace = open.workspace;
    let first = open.piece("first", None);
    let pieces = [first.clone(), open.piece("second", Some(&first.order))];
    let fill = async move |tx: &WriteTx<'_>| {
        for piece in &pieces {
            content_pieces::insert(tx, workspace, piece, "{}").await?;
        }
        Ok::<_, Error>(())
    };
    open.database.write("fill", fill).await.unwrap();
    let read = async move |tx: &Tx<'_>| {
        let connection = tx.get("SELECT pg_backend_pid()::BIGINT", &[], |row| row.int(0)).await?;
        let all = everything();
        let (some, has_more) = content_piece_list::list_until(tx, workspace, &all, 1).await?;
        assert_eq!((some.len(), has_more), (1, true));
        Ok::<_, Error>(connection)
    };
    let connection = open.database.read("list", read).await.unwrap();
    let is_open = async move |tx: &Tx<'_>| {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = ?1";
        tx.exists(sql, &[connection.into()]).await
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while open.database.read::<_, Error, _>("is_open", is_open).await.unwrap() {
        assert!(std::time::Instant::now() < deadline, "the connection is used again");
    }
}

#[on_both_engines]
async fn an_abandoned_statement_closes_its_connection_unless_it_ends_soon(store: TestStore) {
    let DatabaseUrl::Postgres(_) = store.url else { return };
    let one = Options { connections: 1, ..options(store.url.clone(), Role::Server) };
    let database = Database::open(one).await.unwrap();
    let of_connection =
        async |tx: &Tx<'_>| tx.get("SELECT pg_backend_pid()::BIGINT", &[], |row| row.int(0)).await;
    let first = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
    let sleep = async |tx: &Tx<'_>| tx.exists("SELECT pg_sleep(600)::TEXT", &[]).await;
    let given_up = database.read::<_, Error, _>("sleep", sleep);
    let waited = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(waited, given_up).await.is_err());
    let next = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
    assert_ne!(next, first, "the statement was waited for");
    let is_open = async move |tx: &Tx<'_>| {
        let sql = "SELECT 1 FROM pg_stat_activity WHERE pid = ?1";
        tx.exists(sql, &[first.into()]).await
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while database.read::<_, Error, _>("is_open", is_open).await.unwrap() {
        assert!(std::time::Instant::now() < deadline, "the statement goes on");
    }
    // Statements that end soon don't close their connection. On a stalled machine, a statement
    // may take too long, so this retries.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let mut before = next;
    loop {
        let brief = async |tx: &Tx<'_>| tx.exists("SELECT pg_sleep(0.3)::TEXT", &[]).await;
        let given_up = database.read::<_, Error, _>("sleep", brief);
        let is_given_up = tokio::time::timeout(waited, given_up).await.is_err();
        let connection = database.read::<_, Error, _>("connection", of_connection).await.unwrap();
        if is_given_up && connection == before {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the connection is closed each time");
        before = connection;
    }
}

#[on_both_engines]
async fn deleting_a_piece_deletes_its_variant_overrides(store: TestStore) {
    let open = OpenStore::new(store).await;
    let (workspace, group) = (open.workspace, open.group);
    let piece = open.piece("first", None);
    let fill = async move |tx: &WriteTx<'_>| {
        let (german, red) = (variant("de"), tag("red"));
        let member = people::exercise(tx, workspace, group).await?;
        variants::insert(tx, workspace, &german, NOW).await?;
        tags::insert(tx, workspace, &red, NOW).await?;
        content_pieces::insert(tx, workspace, &piece, "{}").await?;
        let overrides = ContentPieceOverrides {
            tags: Some(vec![red.id]),
            members: Some(vec![member]),
            ..ContentPieceOverrides::default()
        };
        let (id, variant) = (piece.id, german.id);
        content_piece_variants::update(tx, workspace, id, variant, &overrides).await?;
        content_piece_variants::update_content(tx, workspace, id, variant, "[]").await?;
        Ok(piece.clone())
    };
    let piece = open.database.write::<_, Error, _>("fill", fill).await.unwrap();
    let tables = [
        "content_piece_variants",
        "content_piece_variant_contents",
        "content_piece_variant_tags",
        "content_piece_variant_members",
    ];
    for table in tables {
        assert_eq!(open.count(table).await, 1, "{table}");
    }
    let delete = async move |tx: &WriteTx<'_>| content_pieces::delete(tx, workspace, &piece).await;
    open.database.write::<_, Error, _>("delete", delete).await.unwrap();
    for table in tables {
        assert_eq!(open.count(table).await, 0, "{table}");
    }
}

#[test]
fn every_function_is_exercised_here() {
    let here = include_str!("conformance.rs");
    let helpers =
        [include_str!("store.rs"), include_str!("people.rs"), include_str!("deliveries.rs")];
    let mut count = 0;
    for folder in ["tables", "delivery_queue"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
        for entry in std::fs::read_dir(source).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_stem().unwrap().to_string_lossy().into_owned();
            // The queue exports the functions of its modules.
            let module = if folder == "tables" { &file } else { folder };
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let function = line.split(['(', '<']).next().unwrap();
                let call = format!("{module}::{function}(");
                assert!(
                    here.contains(&call) || helpers.iter().any(|text| text.contains(&call)),
                    "{call}…) is not exercised"
                );
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}
