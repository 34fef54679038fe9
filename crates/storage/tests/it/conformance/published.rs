//! The published view.

use galley_domain::content_piece::{ContentPiece, ContentPieceOverrides, CustomData, Title};
use galley_domain::publication::{ContentView, Publication, PublishedRevision};
use galley_domain::tag::Tag;
use galley_domain::{Actor, ContentPieceId, Timestamp, VariantId, WorkspaceId, WorkspaceMemberId};
use galley_storage::content_piece_view::{self, View};
use galley_storage::tags::{self, UsedTags};
use galley_storage::{
    Error, IdPage, WriteTx, content_piece_revisions, content_pieces, published_pieces,
};

use super::ConformanceFixture;
use super::content_pieces::lists;
use crate::store::NOW;

/// The form of pieces in the published view.
const PUBLISHED: View =
    View { of: ContentView::Published, variant: None, content: false, skips_custom_data: false };

/// Publishes both pieces, and reads the published view.
pub(super) async fn publish(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    tag: &Tag,
    pieces: [&ContentPiece; 2],
) -> Result<(), Error> {
    let (workspace, group, first) = (open.workspace, open.group, pieces[0]);
    let used = UsedTags { view: ContentView::Published, within: None };
    assert_eq!(tags::find_used(tx, workspace, tag.id, used).await?, None);
    for subtree in [false, true] {
        let found = published_pieces::unpublished_in(tx, workspace, group, subtree, 9).await?;
        assert_eq!(found.len(), 2);
    }
    let publication = Publication {
        published: Some(PublishedRevision { number: 1, at: NOW, by: Actor::System }),
        publish_at: Some(NOW),
        publish_revision: Some(1),
        unpublish_at: Some(NOW),
    };
    for piece in pieces {
        assert_eq!(published_pieces::find(tx, workspace, piece.id).await?, None);
        published_pieces::update_publication(tx, workspace, piece.id, &publication).await?;
        let mut copy = ContentPiece { publication, ..piece.clone() };
        copy.fields.custom_data = Some(CustomData::parse("{}").unwrap());
        published_pieces::insert(tx, workspace, &copy, "{\"p\":1}", &[]).await?;
        let found = published_pieces::find_for_update(tx, workspace, piece.id).await?;
        assert_eq!(found, Some(copy));
    }
    let ids = pieces.map(|piece| piece.id);
    let found = published_pieces::find_all_without_custom_data(tx, workspace, &ids).await?;
    assert_eq!(found.len(), 2);
    assert_eq!(published_pieces::unpublished_in(tx, workspace, group, true, 9).await?, []);
    let of_pieces = pieces.map(|piece| (workspace, piece.id));
    assert_eq!(published_pieces::due(tx, NOW, 9).await?, of_pieces);
    assert_eq!(published_pieces::due(tx, NOW, 1).await?, of_pieces[..1]);
    assert_eq!(published_pieces::due(tx, Timestamp::from_ms(1), 9).await?, []);
    let current = content_pieces::find(tx, workspace, first.id).await?.expect("it is there");
    assert_eq!(current.publication, publication);
    content_piece_revisions::mark_published(tx, workspace, first.id, 1).await?;
    let whole = View { content: true, ..PUBLISHED };
    let seen = content_piece_view::find_visible(tx, workspace, first.id, None, whole).await?;
    assert_eq!(seen.expect("it is there").1.as_deref(), Some("{\"p\":1}"));
    assert_eq!(tags::find_used(tx, workspace, tag.id, used).await?.as_ref(), Some(tag));
    let listed = tags::list(tx, workspace, Some(used), &IdPage::default()).await?;
    assert_eq!(listed, std::slice::from_ref(tag));
    lists(tx, open, tag, PUBLISHED).await?;
    for piece in pieces {
        let none = Publication::default();
        published_pieces::update_publication(tx, workspace, piece.id, &none).await?;
    }
    Ok(())
}

/// Publishes a piece again with overrides in a variant, and moves it.
pub(super) async fn publish_in_variant(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    tag: &Tag,
    id: ContentPieceId,
    variant: VariantId,
    member: WorkspaceMemberId,
) -> Result<(), Error> {
    let workspace = open.workspace;
    let fields = ContentPieceOverrides {
        title: Some(Title::parse("Titel").unwrap()),
        tags: Some(vec![tag.id]),
        ..ContentPieceOverrides::default()
    };
    let with_member = ContentPieceOverrides { members: Some(vec![member]), ..fields.clone() };
    let before = published_pieces::find(tx, workspace, id).await?.expect("it is there");
    let mut copy = before;
    for (fields, has_member) in [(fields, false), (with_member, true)] {
        published_pieces::delete(tx, workspace, &copy).await?;
        copy.variants = vec![variant];
        let overrides = [(variant, fields, Some("{}".to_owned()))];
        published_pieces::insert(tx, workspace, &copy, "{}", &overrides).await?;
        if !has_member {
            lists(tx, open, tag, View { variant: Some(variant), ..PUBLISHED }).await?;
        }
    }
    let moved = ContentPiece { version: copy.version + 1, ..copy.clone() };
    published_pieces::update_place(tx, workspace, &copy, &moved).await?;
    assert_eq!(published_pieces::find(tx, workspace, id).await?, Some(moved));
    Ok(())
}

/// Removes a piece from the published view.
pub(super) async fn unpublish(
    tx: &WriteTx<'_>,
    workspace: WorkspaceId,
    id: ContentPieceId,
) -> Result<(), Error> {
    let found = published_pieces::find(tx, workspace, id).await?.expect("it is there");
    assert_eq!((found.fields.tags.len(), found.variants.len()), (0, 0), "they were deleted");
    published_pieces::delete(tx, workspace, &found).await
}
