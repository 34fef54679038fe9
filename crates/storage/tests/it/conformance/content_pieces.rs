//! Calls of the functions of content pieces, tags and order keys.

use galley_domain::content_group::{ContentGroup, GroupPath};
use galley_domain::content_piece::{ContentPiece, Title};
use galley_domain::publication::{ContentView, PublicationState};
use galley_domain::tag::Tag;
use galley_domain::{
    ContentGroupId, OrderKey, TagId, Timestamp, VariantId, WorkspaceId, WorkspaceMemberId,
};
use galley_storage::content_piece_filters::{PieceFilters, PublicationFilter};
use galley_storage::content_piece_list::{self, PieceListQuery, Sort, SortKey};
use galley_storage::content_piece_view::{self, PieceInView, View};
use galley_storage::ordering::{self, OrderedPiece};
use galley_storage::tags::UsedTags;
use galley_storage::unique_slugs::{self, ExaminedPieces};
use galley_storage::{
    Affects, Error, IdPage, WriteTx, content_groups, content_pieces, order_key_spread, tags,
};

use super::search::search;
use super::variants::in_variant;
use super::{ConformanceFixture, everything, tag};
use super::{published, revisions, trash};
use crate::store::NOW;

async fn make_tags(tx: &WriteTx<'_>, workspace: WorkspaceId) -> Result<[Tag; 2], Error> {
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
    assert_eq!(
        tags::list(tx, workspace, None, &IdPage::default()).await?,
        [red.clone(), blue.clone()]
    );
    Ok([red, blue])
}

/// Exercises pieces with their content, until they are deleted.
pub(super) async fn pieces(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    member: WorkspaceMemberId,
) -> Result<(), Error> {
    let workspace = open.workspace;
    let [red, blue] = make_tags(tx, workspace).await?;
    let mut first = open.first.clone();
    first.fields.tags = vec![blue.id, red.id];
    first.fields.members = vec![member];
    content_pieces::insert(tx, workspace, &first, "{\"a\":1}").await?;
    assert_eq!(content_pieces::find(tx, workspace, first.id).await?, Some(first.clone()));
    assert_eq!(content_pieces::find(tx, WorkspaceId::new(1), first.id).await?, None);
    let changed = content_pieces::find_for_update(tx, workspace, first.id).await?;
    assert_eq!(changed, Some((first.clone(), GroupPath::new(vec![open.group]))));
    content_pieces::update_content(tx, workspace, first.id, None, "{}").await?;
    let content = content_pieces::find_content(tx, workspace, first.id, None).await?;
    assert_eq!(content.as_deref(), Some("{}"));
    let within = [open.group];
    let whole = View { variant: None, content: true, ..View::default() };
    let seen =
        content_piece_view::find_visible(tx, workspace, first.id, Some(&within), whole).await?;
    assert_eq!(seen, Some((first.clone(), Some("{}".to_owned()))));
    let seen =
        content_piece_view::find_visible(tx, workspace, first.id, None, View::default()).await?;
    assert_eq!(seen, Some((first.clone(), None)));
    let short = View { skips_custom_data: true, ..View::default() };
    let seen = content_piece_view::find_visible(tx, workspace, first.id, None, short).await?;
    assert_eq!(seen, Some((first.clone(), None)), "it has no custom data");
    let elsewhere = [ContentGroupId::new(1)];
    let seen =
        content_piece_view::find_visible(tx, workspace, first.id, Some(&elsewhere), whole).await?;
    assert_eq!(seen, None);
    let second = insert_last(tx, open, &first, member).await?;
    unique_slugs_of(tx, open, [&first, &second]).await?;
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
    lists(tx, open, &red, View::default()).await?;
    Box::pin(search(tx, open)).await?;
    let (group, other) = ([open.group], [ContentGroupId::new(1)]);
    let within = |within| UsedTags { view: ContentView::Current, within: Some(within) };
    let used = tags::find_used(tx, workspace, red.id, within(&group)).await?;
    assert_eq!(used.as_ref(), Some(&red));
    assert_eq!(tags::find_used(tx, workspace, red.id, within(&other)).await?, None);
    assert_eq!(tags::find_used(tx, workspace, blue.id, within(&group)).await?, None);
    let used = tags::list(tx, workspace, Some(within(&group)), &IdPage::default()).await?;
    assert_eq!(used, std::slice::from_ref(&red));
    Box::pin(published::publish(tx, open, &red, [&renamed, &second])).await?;
    Box::pin(revisions::revisions(tx, workspace, &renamed)).await?;
    in_variant(tx, open, &renamed, member, [&red, &blue]).await?;
    let tagged = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    assert!(tags::delete(tx, workspace, red.id).await?);
    let untagged = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    assert_eq!((untagged.fields.tags.len(), untagged.version), (0, tagged.version + 1));
    Box::pin(trash::trash(tx, workspace, &untagged)).await?;
    published::unpublish(tx, workspace, untagged.id).await?;
    let untagged = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    content_pieces::delete(tx, workspace, &untagged).await?;
    assert_eq!(content_pieces::find(tx, workspace, first.id).await?, None);
    Ok(())
}

/// Inserts the second piece after the first one, and exercises order keys.
async fn insert_last(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    first: &ContentPiece,
    member: WorkspaceMemberId,
) -> Result<ContentPiece, Error> {
    let workspace = open.workspace;
    ordering::lock(tx, workspace).await?;
    let place =
        OrderedPiece { id: first.id, order: first.order.clone(), placed_at: first.placed_at };
    let end = ordering::at_the_end(tx, workspace, 3).await?;
    assert!(end > first.order);
    let mut second = open.second.clone();
    second.order = end;
    second.fields.members = vec![member];
    content_pieces::insert(tx, workspace, &second, "{}").await?;
    let last = ordering::last(tx, workspace).await?.expect("there are pieces");
    assert_eq!(last.id, second.id);
    assert_eq!(ordering::next(tx, workspace, &first.order).await?, Some(last.clone()));
    let found = ordering::find(tx, workspace, &first.order).await?;
    assert_eq!(found.map(|place| place.id), Some(first.id));
    assert!(ordering::find(tx, workspace, &OrderKey::from_stored("zzzzz")).await?.is_none());
    assert_eq!(ordering::previous(tx, workspace, &second.order).await?, Some(place.clone()));
    let in_group = ordering::next_in_group(tx, workspace, open.group, None).await?;
    assert_eq!(in_group, Some(place.clone()));
    let between = ordering::after(tx, workspace, &place, 3).await?;
    assert!(between > first.order && between < second.order);
    assert!(ordering::before(tx, workspace, &place, 3).await? < first.order);
    Ok(second)
}

/// Exercises spreading out order keys. Moved pieces keep their order.
pub(super) async fn spreads(tx: &WriteTx<'_>, open: &ConformanceFixture) -> Result<(), Error> {
    assert!(order_key_spread::spread_slice(tx, open.workspace, None).await?.is_none());
    let around = OrderKey::from_stored("V0000");
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
    let (mut moved, mut published) = (0, 0);
    while let Some(slice) = order_key_spread::spread_slice(tx, open.workspace, Some(&plan)).await? {
        moved += slice.current.len();
        published += slice.published.len();
    }
    assert_eq!((moved, published), (2, 2));
    assert_eq!(order_key_spread::pending_spreads(tx, None).await?, []);
    let long = OrderKey::from_stored("V0000".repeat(20));
    ordering::note_if_long(tx, open.workspace, &long).await?;
    assert_eq!(order_key_spread::pending_spreads(tx, None).await?.len(), 1);
    Ok(())
}

/// Returns every filter, and the number of the two listed pieces that it matches. The first piece
/// has the tag, the second one the member; none has overrides in the variant of the id 1.
fn filters(
    open: &ConformanceFixture,
    tag: &Tag,
    listed: &[PieceInView],
    view: View,
) -> Vec<(PieceFilters, usize)> {
    let ids = |range: &[PieceInView]| range.iter().map(|(piece, _)| piece.id).collect();
    let member = listed.iter().find_map(|(piece, _)| piece.fields.members.first()).copied();
    let (group, other_group) = (open.group, ContentGroupId::new(1));
    let (tag, other_tag) = (tag.id, TagId::new(1));
    let [earliest, latest] = [i64::MIN, i64::MAX].map(|ms| Some(Timestamp::from_ms(ms)));
    let state = |state| Some(PublicationFilter::State(state));
    let (drafts, published) = match view.of {
        ContentView::Current => (2, 0),
        ContentView::Published => (0, 2),
    };
    let all = PieceFilters::default;
    vec![
        (PieceFilters { groups: Some(vec![group]), ..all() }, 2),
        (PieceFilters { groups: Some(vec![group, other_group]), ..all() }, 2),
        (PieceFilters { groups: Some(vec![group]), subtree: true, ..all() }, 2),
        (PieceFilters { within: Some(vec![other_group]), ..all() }, 0),
        (PieceFilters { slug: Some("first".to_owned()), ..all() }, 1),
        (PieceFilters { tags: vec![tag], ..all() }, 1),
        (PieceFilters { tags: vec![tag, other_tag], ..all() }, 1),
        (PieceFilters { tags: vec![tag, other_tag], all_tags: true, ..all() }, 0),
        (PieceFilters { member, ..all() }, 1),
        (PieceFilters { member: Some(WorkspaceMemberId::new(1)), ..all() }, 0),
        (PieceFilters { member, tags: vec![tag], ..all() }, 0),
        (PieceFilters { member, tags: vec![other_tag, tag], ..all() }, 0),
        (PieceFilters { overridden_variant: Some(VariantId::new(1)), ..all() }, 0),
        (PieceFilters { missing_variant: Some(VariantId::new(1)), ..all() }, 2),
        (PieceFilters { publication: state(PublicationState::Draft), ..all() }, drafts),
        (PieceFilters { publication: state(PublicationState::Published), ..all() }, published),
        (PieceFilters { publication: state(PublicationState::Changed), ..all() }, 0),
        (PieceFilters { publication: Some(PublicationFilter::Scheduled), ..all() }, 0),
        (PieceFilters { ids: Some(ids(&listed[..1])), ..all() }, 1),
        (PieceFilters { ids: Some(ids(listed)), ..all() }, 2),
        (PieceFilters { updated_since: Some(Timestamp::from_ms(0)), ..all() }, 2),
        (PieceFilters { updated_since: latest, ..all() }, 0),
        (PieceFilters { date_from: latest, ..all() }, 0),
        (PieceFilters { date_to: earliest, ..all() }, 0),
    ]
}

/// Exercises every filter and sort key, and pagination by position.
pub(super) async fn lists(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    tag: &Tag,
    view: View,
) -> Result<(), Error> {
    let keys =
        [SortKey::Order, SortKey::Date, SortKey::CreatedAt, SortKey::UpdatedAt, SortKey::Title];
    for (key, descending) in keys.into_iter().flat_map(|key| [(key, false), (key, true)]) {
        let sort = Sort { key, descending };
        let all = PieceListQuery { sort, view, ..everything() };
        let listed = content_piece_list::list(tx, open.workspace, &all).await?;
        let (some, was_much) = content_piece_list::list_until(tx, open.workspace, &all, 1).await?;
        assert_eq!((some.as_slice(), was_much), (&listed[..1], listed.len() > 1));
        assert_eq!(listed.len(), 2, "{sort:?}");
        let (first, _) = &listed[0];
        let found =
            content_piece_list::find_by_order(tx, open.workspace, &first.order, all.view).await?;
        assert_eq!(found.as_ref(), Some(&listed[0]));
        let rest = PieceListQuery { after: Some(sort.position(first)), ..all.clone() };
        let rest = content_piece_list::list(tx, open.workspace, &rest).await?;
        assert_eq!(rest.iter().map(|(piece, _)| piece.id).collect::<Vec<_>>(), [listed[1].0.id]);
        for (filters, count) in filters(open, tag, &listed, view) {
            let query = PieceListQuery { filters, ..all.clone() };
            let found = content_piece_list::list(tx, open.workspace, &query).await?;
            assert_eq!(found.len(), count, "{query:?}");
            for limit in [1, 10] {
                let (workspace, filters) = (open.workspace, &query.filters);
                let counted = content_piece_list::count(tx, workspace, filters, view, limit);
                let expected = i64::try_from(count).unwrap().min(limit);
                assert_eq!(counted.await?, expected, "{query:?}");
            }
        }
        let groups = Some(vec![open.group]);
        let of_group = PieceFilters { groups, ..PieceFilters::default() };
        for (query, count) in [
            (PieceListQuery { view: View { content: true, ..view }, offset: 1, ..all.clone() }, 1),
            (PieceListQuery { offset: 1_000, ..all.clone() }, 0),
            (PieceListQuery { filters: of_group, offset: 1_000, ..all.clone() }, 0),
        ] {
            let listed = content_piece_list::list(tx, open.workspace, &query).await?;
            assert_eq!(listed.len(), count, "{query:?}");
        }
    }
    Ok(())
}

/// Exercises the comparison of slugs.
async fn unique_slugs_of(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    pieces: [&ContentPiece; 2],
) -> Result<(), Error> {
    let (workspace, group, [first, second]) = (open.workspace, open.group, pieces);
    assert_eq!(unique_slugs::root(tx, workspace, group).await?, None);
    let found = content_groups::find(tx, workspace, group).await?.expect("it is there");
    let unique = ContentGroup { unique_slugs: true, ..found.clone() };
    content_groups::update(tx, workspace, &unique).await?;
    assert_eq!(unique_slugs::root(tx, workspace, group).await?, Some(group));
    assert!(unique_slugs::is_any(tx, workspace, &[ContentGroupId::new(1), group]).await?);
    assert!(!unique_slugs::is_any(tx, workspace, &[ContentGroupId::new(1)]).await?);
    ordering::lock_imports(tx, workspace).await?;
    ordering::lock_exclusively(tx, workspace).await?;
    unique_slugs::lock(tx, workspace).await?;
    let mut same = second.clone();
    same.fields.slug = first.fields.slug.clone();
    content_pieces::update(tx, workspace, second, &same).await?;
    for (examined, count) in [
        (ExaminedPieces::One(first.id), 1),
        (ExaminedPieces::Under(group), 2),
        (ExaminedPieces::Under(ContentGroupId::new(1)), 0),
    ] {
        let conflicts = unique_slugs::conflicts(tx, workspace, group, examined, 10).await?;
        assert_eq!(conflicts.len(), count, "{conflicts:?}");
    }
    content_pieces::update(tx, workspace, &same, second).await?;
    let one = ExaminedPieces::One(first.id);
    assert_eq!(unique_slugs::conflicts(tx, workspace, group, one, 10).await?, []);
    content_groups::update(tx, workspace, &found).await
}
