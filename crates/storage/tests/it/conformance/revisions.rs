//! Revisions.

use galley_domain::content_piece::{ContentPiece, PieceField, Title};
use galley_domain::revision::{Origin, PartState, Revision, RevisionNote};
use galley_domain::{Actor, Timestamp, VariantId, WorkspaceId};
use galley_storage::content_piece_revisions::{
    self, LatestRevision, RevisionPage, StoredRevision, Undo,
};
use galley_storage::{Error, WriteTx, content_pieces};

use crate::store::{NOW, id};

fn stored(
    (number, variant, depth): (i64, Option<VariantId>, i64),
    fields: &[PieceField],
    undo: Undo,
) -> StoredRevision {
    let revision = Revision {
        number,
        variant,
        created_at: NOW,
        created_by: Some(Actor::System),
        origin: Origin::Api,
        fields: fields.to_vec(),
        note: None,
        is_autosave: variant.is_some(),
    };
    let event_due_at = variant.map(|_| NOW);
    let (is_hidden, is_published) = (false, false);
    StoredRevision { revision, is_hidden, is_published, event_due_at, depth, undo }
}

/// Exercises the revisions of a piece without any, whose content is `{}`. Leaves it unchanged.
pub(super) async fn revisions(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
) -> Result<(), Error> {
    let (of, german) = (piece.id, VariantId::new(id()));
    let locked = content_pieces::find_for_revision(tx, workspace, of, None, true).await?;
    let locked = locked.expect("it is there");
    assert_eq!((&locked.piece, locked.latest), (piece, LatestRevision::None));
    assert_eq!((locked.content.as_deref(), locked.variant_content), (Some("{}"), None));
    let latest = PartState { fields: piece.fields.clone().into(), content: Some("{}".to_owned()) };
    let mut middle = latest.clone();
    middle.fields.title = Some(Title::parse("Middle").unwrap());
    let first = PartState { content: Some("{\"a\":1}".to_owned()), ..middle.clone() };
    let both = [PieceField::Title, PieceField::Content];
    let rows = [
        stored((1, None, 0), &[], Undo::of(&first, &first, &[])?),
        stored((2, None, 1), &both[1..], Undo::of(&first, &middle, &both[1..])?),
        stored((3, None, 2), &both[..1], Undo::of(&middle, &latest, &both[..1])?),
        stored((4, Some(german), 1), &both, Undo::of(&first, &middle, &both)?),
    ];
    content_piece_revisions::insert(tx, workspace, of, &rows).await?;
    let numbered = ContentPiece { revision: Some(4), ..piece.clone() };
    content_pieces::update(tx, workspace, piece, &numbered).await?;
    for (variant, known) in [(None, latest.clone()), (Some(german), middle.clone())] {
        let locked = content_pieces::find_for_revision(tx, workspace, of, variant, false).await?;
        assert_eq!(locked.expect("it is there").latest, LatestRevision::Autosave);
        let states = [(1, &first), (3, if variant.is_none() { &latest } else { &first })];
        for (number, expected) in states {
            let latest = known.clone();
            let state =
                content_piece_revisions::state_at(tx, workspace, of, variant, latest, number);
            assert_eq!(&state.await?, expected, "{variant:?} at {number}");
        }
    }
    let page = RevisionPage { variant: None, before: Some(4), limit: 2, offset: 1 };
    let listed = content_piece_revisions::list(tx, workspace, of, page).await?;
    assert_eq!(listed.iter().map(|(one, _)| one.number).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(listed[0].1, i64::try_from(rows[1].undo.size()).unwrap());
    let page = RevisionPage { variant: Some(german), before: None, limit: 9, offset: 0 };
    let listed = content_piece_revisions::list(tx, workspace, of, page).await?;
    assert_eq!(listed.iter().map(|(one, _)| one).collect::<Vec<_>>(), [&rows[3].revision]);
    let all = content_piece_revisions::list_stored(tx, workspace, of, Some(3), 9).await?;
    assert_eq!(all, [rows[1].clone(), rows[0].clone()]);
    let changed = content_piece_revisions::variants_changed_after(tx, workspace, of, 2).await?;
    assert_eq!(changed, [german]);
    for (variant, depth) in
        [(None, Some(2)), (Some(german), Some(1)), (Some(VariantId::new(1)), None)]
    {
        let found = content_piece_revisions::latest_depth(tx, workspace, of, variant).await?;
        assert_eq!(found, depth);
    }
    let of_part =
        content_piece_revisions::list_of_part(tx, workspace, of, None, Some(3), 9).await?;
    assert_eq!(of_part, [rows[1].clone(), rows[0].clone()]);
    ages(tx, workspace, piece).await?;
    change_rows(tx, workspace, piece, rows).await?;
    content_piece_revisions::delete_of_piece(tx, workspace, of).await?;
    assert_eq!(content_piece_revisions::find(tx, workspace, of, 3).await?, None);
    content_pieces::update(tx, workspace, &numbered, piece).await
}

async fn ages(tx: &WriteTx<'_>, workspace: WorkspaceId, piece: &ContentPiece) -> Result<(), Error> {
    let (of, later) = (piece.id, Timestamp::from_ms(NOW.ms() + 1));
    let older = async |before, after| {
        content_piece_revisions::pieces_with_older(tx, workspace, before, after, 9).await
    };
    assert_eq!(older(NOW, None).await?, []);
    assert_eq!(older(later, None).await?, [of]);
    assert_eq!(older(later, Some(of)).await?, []);
    let ages = content_piece_revisions::ages(tx, workspace, of).await?;
    assert_eq!(ages.iter().map(|age| age.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(ages.iter().all(|age| !age.is_kept && !age.is_hidden && age.created_at == NOW));
    let two = [1, 2].into();
    content_piece_revisions::hide(tx, workspace, of, &two).await?;
    let ages = content_piece_revisions::ages(tx, workspace, of).await?;
    assert_eq!(
        ages.iter().map(|age| age.is_hidden).collect::<Vec<_>>(),
        [true, true, false, false]
    );
    content_piece_revisions::delete(tx, workspace, of, &two).await?;
    assert_eq!(content_piece_revisions::ages(tx, workspace, of).await?, ages[2..]);
    Ok(())
}

async fn change_rows(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    piece: &ContentPiece,
    [_, _, third, mut autosave]: [StoredRevision; 4],
) -> Result<(), Error> {
    let of = piece.id;
    let due = content_piece_revisions::due_events(tx, NOW, 9).await?;
    assert_eq!(due, [(workspace, of, 4)]);
    assert!(content_piece_revisions::clear_due_event(tx, workspace, of, 4).await?);
    assert!(!content_piece_revisions::clear_due_event(tx, workspace, of, 4).await?);
    assert_eq!(content_piece_revisions::due_events(tx, NOW, 9).await?, []);
    autosave.event_due_at = None;
    autosave.revision.fields = vec![PieceField::Slug];
    autosave.revision.is_autosave = false;
    content_piece_revisions::replace(tx, workspace, of, &autosave).await?;
    let found = content_piece_revisions::find(tx, workspace, of, 4).await?;
    assert_eq!(found, Some(autosave));
    let locked = content_pieces::find_for_revision(tx, workspace, of, None, false).await?;
    assert_eq!(locked.expect("it is there").latest, LatestRevision::OfOtherPart);
    let note = RevisionNote::parse("A note").unwrap();
    let noted = content_piece_revisions::update_note(tx, workspace, of, 3, Some(&note)).await?;
    assert!(noted);
    assert!(!content_piece_revisions::update_note(tx, workspace, of, 9, None).await?);
    let found = content_piece_revisions::find(tx, workspace, of, 3).await?.expect("it is there");
    assert_eq!((found.revision.note, found.depth), (Some(note), third.depth));
    Ok(())
}
