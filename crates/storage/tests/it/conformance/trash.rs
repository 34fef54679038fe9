//! The trash.

use galley_domain::content_piece::ContentPiece;
use galley_domain::revision::PartState;
use galley_domain::trash::{TrashEntry, TrashedId};
use galley_domain::{Actor, ContentGroupId, ContentPieceId, Timestamp, WorkspaceId};
use galley_storage::trash::{self, TrashedPart};
use galley_storage::{Error, WriteTx, import_sources};

use super::group;
use crate::store::{NOW, id};

fn entry(id: TrashedId, group: Option<ContentGroupId>, ms: i64) -> TrashEntry {
    TrashEntry {
        id,
        content_group_id: group,
        title: "Title".to_owned(),
        deleted_at: Timestamp::from_ms(NOW.ms() + ms),
        deleted_by: Actor::System,
        pieces: 1,
    }
}

/// Exercises the trash with a copy of a piece, which is left unchanged.
pub(super) async fn trash(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let group_id = piece.content_group_id;
    let (of_piece, below) = (TrashedId::Piece(piece.id), group("Below"));
    let of_group = TrashedId::Group(ContentGroupId::new(id()));
    let first = entry(of_piece, Some(group_id), 0);
    let mut second = entry(of_group, None, 1);
    for entry in [&first, &second] {
        trash::insert(tx, workspace, entry).await?;
    }
    trash::copy_piece(tx, workspace, of_piece, piece).await?;
    let groups = [(below.clone(), None), (group("Lowest"), Some(below.id))];
    trash::insert_groups(tx, workspace, of_group, &groups).await?;
    trash::add_pieces(tx, workspace, of_group, 6).await?;
    second.pieces = 7;
    let list = async |within: Option<&[ContentGroupId]>, since, after, offset| {
        trash::list(tx, workspace, within, since, after, 9, offset).await
    };
    assert_eq!(list(None, NOW, None, 0).await?, [second.clone(), first.clone()]);
    assert_eq!(list(None, NOW, None, 1).await?, std::slice::from_ref(&first));
    assert_eq!(list(None, second.deleted_at, None, 0).await?, std::slice::from_ref(&second));
    assert_eq!(list(None, NOW, Some(second.position()), 0).await?, std::slice::from_ref(&first));
    let (own, other) = ([group_id], [ContentGroupId::new(1)]);
    assert_eq!(list(Some(&own), NOW, None, 0).await?, std::slice::from_ref(&first));
    assert_eq!(list(Some(&other), NOW, Some(second.position()), 0).await?, []);
    let find = async |id, within: Option<&[ContentGroupId]>, since| {
        trash::find(tx, workspace, id, within, since).await
    };
    assert_eq!(find(of_piece, None, NOW).await?.as_ref(), Some(&first));
    assert_eq!(find(of_piece, Some(&own), NOW).await?, Some(first));
    assert_eq!(find(of_piece, Some(&other), NOW).await?, None);
    assert_eq!(find(of_piece, None, second.deleted_at).await?, None);
    assert!(trash::lock(tx, workspace, of_group).await?);
    let found = trash::groups(tx, workspace, of_group).await?;
    assert_eq!(
        found.iter().map(|(group, parent)| (group.id, *parent)).collect::<Vec<_>>(),
        groups.iter().map(|(group, parent)| (group.id, *parent)).collect::<Vec<_>>()
    );
    assert_eq!(trash::pieces(tx, workspace, of_piece).await?, [piece.id]);
    let found = trash::find_piece(tx, workspace, of_piece, piece.id).await?.expect("it is there");
    assert_eq!((&found.order, found.content_group_id), (&piece.order, group_id));
    let fields = piece.fields.clone().into();
    let state = PartState { fields, content: Some("{}".to_owned()) };
    let sources = import_sources::list(tx, workspace, &[piece.id]).await?;
    let source = sources.into_iter().find(|one| one.variant.is_none()).map(|one| one.source);
    assert_eq!(found.parts[0], TrashedPart { variant: None, state, source });
    assert_eq!(found.parts.len(), 1 + piece.variants.len());
    let whole = found.into_whole()?;
    assert_eq!((&whole.0.fields, &*whole.1), (&piece.fields, "{}"));
    let before = Timestamp::from_ms(NOW.ms() + 1);
    assert_eq!(trash::deleted_before(tx, workspace, before, 9).await?, [of_piece]);
    assert!(trash::contains_piece(tx, workspace, piece.id).await?);
    assert!(!trash::contains_piece(tx, workspace, ContentPieceId::new(1)).await?);
    assert!(trash::contains_group(tx, workspace, below.id).await?);
    assert!(!trash::contains_group(tx, workspace, group_id).await?);
    trash::delete(tx, workspace, of_piece).await?;
    assert!(!trash::lock(tx, workspace, of_piece).await?);
    assert!(!trash::contains_piece(tx, workspace, piece.id).await?);
    trash::insert_piece(tx, workspace, of_group, whole.clone()).await?;
    assert_eq!(trash::find_piece(tx, workspace, of_piece, piece.id).await?, None);
    let again = trash::find_piece(tx, workspace, of_group, piece.id).await?.expect("it is there");
    assert_eq!(again.into_whole()?, whole);
    trash::delete(tx, workspace, of_group).await?;
    trash::insert(tx, workspace, &second).await?;
    trash::copy_piece(tx, workspace, of_group, piece).await?;
    trash::delete(tx, workspace, of_group).await?;
    assert_eq!(list(None, NOW, None, 0).await?, []);
    assert_eq!(trash::groups(tx, workspace, of_group).await?, []);
    assert!(!trash::contains_piece(tx, workspace, piece.id).await?);
    Ok(())
}
