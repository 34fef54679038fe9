//! Calls of the functions of assets, and of their references in pieces.

use std::collections::BTreeSet;

use galley_domain::asset::{Asset, AssetFile, AssetFilename, AssetUpload, UploadPart};
use galley_domain::content_piece::{ContentPiece, ContentPieceFields, ContentPieceOverrides};
use galley_domain::publication::ContentView;
use galley_domain::text::{ShortText, WebReference};
use galley_domain::trash::{TrashEntry, TrashedId};
use galley_domain::{
    Actor, AssetFileId, AssetId, AssetKey, ContentGroupId, Timestamp, WorkspaceId,
};
use galley_storage::asset_usage::{self, AssetUse, VisibleAssets};
use galley_storage::assets::{AssetFilter, FileInsertion};
use galley_storage::{
    Error, IdPage, WriteTx, asset_uploads, assets, content_piece_variants, content_pieces,
    published_pieces, trash, variants,
};

use super::{ConformanceFixture, variant};
use crate::store::{NOW, id};

const ALL: VisibleAssets<'_> = VisibleAssets { view: ContentView::Current, within: None };
const PUBLISHED: VisibleAssets<'_> = VisibleAssets { view: ContentView::Published, within: None };

fn file(hash: u8) -> AssetFile {
    AssetFile {
        id: AssetFileId::new(id()),
        sha256: [hash; 32],
        size: 1_000,
        media_type: "image/png".to_owned(),
        dimensions: Some((640, 480)),
        placeholder: Some(vec![1, 2, 3]),
    }
}

fn asset(file: &AssetFile, group: Option<ContentGroupId>) -> Asset {
    Asset {
        id: AssetId::new(id()),
        key: AssetKey::new(id()),
        filename: AssetFilename::parse("photo.png").unwrap(),
        alt: None,
        content_group_id: group,
        version: 1,
        created_at: NOW,
        file: file.clone(),
    }
}

fn address(key: AssetKey) -> String {
    format!("https://files.example/a/{key}/photo.png")
}

/// Exercises assets, and leaves none of them.
pub(super) async fn assets(tx: &WriteTx<'_>, open: &ConformanceFixture) -> Result<(), Error> {
    let (workspace, group) = (open.workspace, open.group);
    let (photo, text) = (file(1), AssetFile { dimensions: None, placeholder: None, ..file(2) });
    let equal = file(1);
    let insert = async |file| assets::insert_file(tx, workspace, file).await;
    for file in [&photo, &text, &equal] {
        assets::insert_leftover(tx, workspace, file.id, NOW).await?;
    }
    assert_eq!(insert(&photo).await?, FileInsertion::Inserted);
    assert_eq!(insert(&equal).await?, FileInsertion::HasEqual);
    assert!(assets::claim_leftover(tx, workspace, text.id).await?);
    assert_eq!(insert(&text).await?, FileInsertion::IsRemoved);
    let before = Timestamp::from_ms(NOW.ms() - 1);
    assert_eq!(assets::due_leftovers(tx, before, 9).await?, []);
    let due = assets::due_leftovers(tx, NOW, 9).await?;
    assert_eq!(due, [(workspace, text.id), (workspace, equal.id)]);
    assert!(!assets::claim_leftover(tx, workspace, photo.id).await?, "it has its row");
    for file in [&text, &equal] {
        assets::delete_leftover(tx, workspace, file.id).await?;
    }
    assert_eq!(assets::due_leftovers(tx, NOW, 9).await?, []);
    let found = assets::find_file_for_update(tx, workspace, &[1; 32]).await?;
    assert_eq!(found.as_ref(), Some(&photo));
    assert_eq!(assets::find_file_for_update(tx, WorkspaceId::new(1), &[1; 32]).await?, None);
    assert_eq!(assets::stored_size(tx, workspace).await?, 2_000);
    assert_eq!(assets::stored_size(tx, WorkspaceId::new(1)).await?, 0);
    let ids = [photo.id, text.id, AssetFileId::new(1)];
    assert_eq!(assets::existing_files(tx, workspace, &ids).await?, ids[..2]);
    assert_eq!(assets::existing_files(tx, workspace, &[]).await?, []);
    let own = async |after| {
        let files = assets::list_files(tx, after, 1_000).await?.into_iter();
        Ok::<_, Error>(files.filter(|(owner, _)| *owner == workspace).collect::<Vec<_>>())
    };
    let files = [(workspace, photo.clone()), (workspace, text.clone())];
    assert_eq!(own(None).await?, files);
    assert_eq!(own(Some((workspace, photo.id))).await?, files[1..]);
    assert_eq!(assets::existing_leftovers(tx, workspace, &ids).await?, []);

    let mut one = asset(&photo, Some(group));
    let two = asset(&photo, None);
    let lost = asset(&text, Some(ContentGroupId::new(1)));
    for asset in [&one, &two, &lost] {
        assets::insert(tx, workspace, asset).await?;
    }
    one.alt = Some(ShortText::parse("A photo").unwrap());
    one.version = 2;
    assets::update(tx, workspace, &one).await?;
    let find = async |asset: &Asset, visible| assets::find(tx, workspace, asset.id, visible).await;
    assert_eq!(find(&one, ALL).await?.as_ref(), Some(&one));
    assert_eq!(find(&two, ALL).await?.as_ref(), Some(&two));
    let shown = Asset { content_group_id: None, ..lost.clone() };
    assert_eq!(find(&lost, ALL).await?, Some(shown.clone()), "its group does not exist");
    let locked = assets::find_for_update(tx, workspace, one.id, ALL).await?;
    assert_eq!(locked.as_ref(), Some(&one));
    assert_eq!(assets::find(tx, WorkspaceId::new(1), one.id, ALL).await?, None);
    assert_eq!(assets::find_by_key(tx, two.key).await?, Some((workspace, two.clone())));
    assert_eq!(assets::find_by_key(tx, AssetKey::new(1)).await?, None);
    let by_keys = async |workspace, keys: &[AssetKey]| {
        let found = assets::list_by_keys(tx, workspace, keys).await?;
        Ok::<_, Error>(found.into_iter().map(|asset| asset.id).collect::<BTreeSet<_>>())
    };
    let keys = [one.key, two.key, AssetKey::new(1)];
    assert_eq!(by_keys(workspace, &keys).await?, BTreeSet::from([one.id, two.id]));
    assert_eq!(by_keys(workspace, &[]).await?, BTreeSet::new());
    assert_eq!(by_keys(WorkspaceId::new(1), &keys).await?, BTreeSet::new());
    let all = async |visible| {
        assets::list(tx, workspace, visible, &AssetFilter::default(), &IdPage::default()).await
    };
    assert_eq!(all(ALL).await?, [one.clone(), two.clone(), shown]);
    assert_eq!(all(PUBLISHED).await?, []);
    let (own, other) = ([group], [ContentGroupId::new(2)]);
    let limited = VisibleAssets { within: Some(&own), ..ALL };
    assert_eq!(all(limited).await?, [one.clone()], "of its group");
    assert_eq!(all(VisibleAssets { within: Some(&other), ..ALL }).await?, []);

    let filtered = async |filter: AssetFilter, page: IdPage| {
        let found = assets::list(tx, workspace, ALL, &filter, &page).await?;
        Ok::<_, Error>(found.iter().map(|asset| asset.id).collect::<Vec<_>>())
    };
    let every = AssetFilter::default;
    let newest = AssetFilter { is_descending: true, ..every() };
    let ids = [lost.id, two.id, one.id];
    assert_eq!(filtered(newest.clone(), IdPage::default()).await?, ids);
    let after = IdPage { after: Some(lost.id.to_string()), ..IdPage::first(1) };
    assert_eq!(filtered(newest, after).await?, [two.id]);
    let by_hash = |byte: u8| AssetFilter { sha256: Some([byte; 32]), ..every() };
    assert_eq!(filtered(by_hash(1), IdPage::default()).await?, [one.id, two.id]);
    assert_eq!(filtered(by_hash(3), IdPage::default()).await?, []);
    for (filename, media_type, is_used, count) in [
        (Some("HOTO."), None, None, 3),
        (Some("phot_"), None, None, 0),
        (Some("%"), None, None, 0),
        (None, Some("image/"), None, 3),
        (None, Some("image/png"), None, 3),
        (None, Some("image/pn"), None, 0),
        (None, Some("ima_e/"), None, 0),
        (Some("photo"), Some("image/"), Some(false), 3),
        (None, None, Some(true), 0),
    ] {
        let filter = AssetFilter {
            filename: filename.map(str::to_owned),
            media_type: media_type.map(str::to_owned),
            is_used,
            ..every()
        };
        let found = filtered(filter.clone(), IdPage::default()).await?;
        assert_eq!(found.len(), count, "{filter:?}");
    }

    uses(tx, open, [&one, &two]).await?;
    assert!(!assets::delete(tx, workspace, &one, NOW).await?, "another asset has its file");
    assert!(assets::delete(tx, workspace, &two, NOW).await?);
    assert_eq!(assets::due_leftovers(tx, NOW, 9).await?, [(workspace, photo.id)]);
    let ids = [photo.id, text.id];
    assert_eq!(assets::existing_leftovers(tx, workspace, &ids).await?, [photo.id]);
    assert_eq!(assets::existing_leftovers(tx, WorkspaceId::new(1), &ids).await?, []);
    assert!(assets::delete(tx, workspace, &lost, NOW).await?);
    assert_eq!(all(ALL).await?, []);
    assert_eq!(assets::stored_size(tx, workspace).await?, 0);
    for file in [&photo, &text] {
        assets::delete_leftover(tx, workspace, file.id).await?;
    }
    Ok(())
}

/// Exercises resumable uploads, and leaves none of them.
pub(super) async fn uploads(tx: &WriteTx<'_>, open: &ConformanceFixture) -> Result<(), Error> {
    let workspace = open.workspace;
    let upload = AssetUpload {
        id: AssetId::new(id()),
        filename: AssetFilename::parse("film.mp4").unwrap(),
        alt: Some(ShortText::parse("A film").unwrap()),
        content_group_id: Some(open.group),
        metadata: "filename ZmlsbS5tcDQ=".to_owned(),
        size: 1_000,
        received: 0,
        part_count: 0,
        expires_at: Timestamp::from_ms(NOW.ms() + 1),
    };
    let other = AssetUpload { id: AssetId::new(id()), alt: None, size: 500, ..upload.clone() };
    assert_eq!(asset_uploads::count(tx, workspace, 9).await?, (0, 0));
    for upload in [&upload, &other] {
        asset_uploads::insert(tx, workspace, upload).await?;
    }
    assert_eq!(asset_uploads::count(tx, workspace, 9).await?, (2, 1_500));
    assert_eq!(asset_uploads::count(tx, WorkspaceId::new(1), 9).await?, (0, 0));
    let find = async |now| asset_uploads::find(tx, workspace, upload.id, now).await;
    assert_eq!(find(NOW).await?.as_ref(), Some(&upload));
    assert_eq!(find(upload.expires_at).await?, None);
    assert_eq!(asset_uploads::find(tx, WorkspaceId::new(1), upload.id, NOW).await?, None);

    let part = |first_byte| UploadPart { file: AssetFileId::new(id()), first_byte, size: 400 };
    let append = async |part| asset_uploads::append_part(tx, workspace, upload.id, part).await;
    let parts = [part(0), part(400)];
    for part in parts {
        assets::insert_leftover(tx, workspace, part.file, upload.expires_at).await?;
        assert!(append(part).await?);
        assert!(!append(part).await?, "the upload has continued");
    }
    let list = async |workspace| asset_uploads::list_parts(tx, workspace, upload.id).await;
    assert_eq!(list(workspace).await?, parts);
    assert_eq!(list(WorkspaceId::new(1)).await?, []);
    let continued = AssetUpload { received: 800, part_count: 2, ..upload.clone() };
    assert_eq!(find(NOW).await?, Some(continued));

    assert_eq!(asset_uploads::expired(tx, NOW, 9).await?, []);
    let mut expired = asset_uploads::expired(tx, upload.expires_at, 9).await?;
    expired.sort_by_key(|(_, _, received)| *received);
    assert_eq!(expired, [(workspace, other.id, 0), (workspace, upload.id, 800)]);
    let delete = async |id, received| asset_uploads::delete(tx, workspace, id, received, NOW).await;
    assert!(!delete(upload.id, 400).await?, "the upload has continued");
    assert_eq!(assets::due_leftovers(tx, NOW, 9).await?, []);
    assert!(delete(upload.id, 800).await?);
    assert!(!delete(upload.id, 800).await?);
    assert!(delete(other.id, 0).await?);
    let due = assets::due_leftovers(tx, NOW, 9).await?;
    assert_eq!(due, parts.map(|part| (workspace, part.file)));
    for part in parts {
        assets::delete_leftover(tx, workspace, part.file).await?;
    }
    assert_eq!(asset_uploads::count(tx, workspace, 9).await?, (0, 0));
    Ok(())
}

/// Exercises the references of a piece to two assets: by its cover, its content, in a variant, in
/// the published view and in the trash.
async fn uses(
    tx: &WriteTx<'_>,
    open: &ConformanceFixture,
    [one, two]: [&Asset; 2],
) -> Result<(), Error> {
    let workspace = open.workspace;
    let cover = |asset: &Asset| Some(WebReference::parse(address(asset.key)).unwrap());
    let plain = &open.first;
    let fields = ContentPieceFields { cover_url: cover(one), ..plain.fields.clone() };
    let piece = ContentPiece { fields, ..plain.clone() };
    let tree = format!("{{\"src\":{:?}}}", address(two.key));
    content_pieces::insert(tx, workspace, &piece, &tree).await?;
    let german = variant("de");
    variants::insert(tx, workspace, &german, NOW).await?;
    let places = async |asset: &Asset, within: Option<&[ContentGroupId]>| {
        let found = asset_usage::list(tx, workspace, asset.key, within, 10).await?;
        let places = found.iter().map(|one| (one.variant, one.place));
        Ok::<_, Error>(places.collect::<Vec<_>>())
    };
    let is_used = async |asset: &Asset| asset_usage::exist(tx, workspace, asset.key).await;
    let current = AssetUse::View(ContentView::Current);
    assert_eq!(places(one, None).await?, [(None, current)]);
    assert_eq!(places(two, Some(&[open.group])).await?, [(None, current)]);
    assert_eq!(places(two, Some(&[ContentGroupId::new(1)])).await?, []);
    let visible = VisibleAssets { within: Some(&[open.group]), ..ALL };
    assert!(assets::find(tx, workspace, two.id, visible).await?.is_some(), "of a visible piece");

    let overrides =
        ContentPieceOverrides { cover_url: cover(two), ..ContentPieceOverrides::default() };
    let in_german = (german.id, overrides.clone(), Some(tree.clone()));
    content_piece_variants::insert(tx, workspace, ContentView::Current, piece.id, &in_german)
        .await?;
    published_pieces::insert(tx, workspace, &piece, &tree, &[in_german]).await?;
    let published = AssetUse::View(ContentView::Published);
    let [own, of_german] = [None, Some(german.id)];
    let all = [(own, current), (own, published), (of_german, current), (of_german, published)];
    assert_eq!(places(two, None).await?, all);
    assert!(assets::find(tx, workspace, one.id, PUBLISHED).await?.is_some());

    let (id, none) = (piece.id, ContentPieceOverrides::default());
    content_piece_variants::update(tx, workspace, id, german.id, &overrides, &none).await?;
    assert_eq!(places(two, None).await?, all, "its content in the variant");
    let before = Some(tree.as_str());
    content_piece_variants::delete_content(tx, workspace, id, german.id, before).await?;
    assert_eq!(places(two, None).await?, [all[0], all[1], all[3]]);
    variants::delete(tx, workspace, german.id).await?;
    assert_eq!(places(two, None).await?, all[..2]);
    published_pieces::delete(tx, workspace, &piece).await?;
    content_pieces::update_content(tx, workspace, id, before, "{}").await?;
    assert!(!is_used(two).await? && is_used(one).await?);
    content_pieces::update(tx, workspace, &piece, plain).await?;
    assert!(!is_used(one).await?);

    content_pieces::update(tx, workspace, plain, &piece).await?;
    let entry = TrashEntry {
        id: TrashedId::Piece(id),
        content_group_id: Some(open.group),
        title: "Title".to_owned(),
        deleted_at: NOW,
        deleted_by: Actor::System,
        pieces: 1,
    };
    trash::insert(tx, workspace, &entry).await?;
    trash::copy_piece(tx, workspace, entry.id, &piece).await?;
    content_pieces::delete(tx, workspace, &piece).await?;
    assert_eq!(places(one, Some(&[open.group])).await?, [(None, AssetUse::Trash)]);
    assert!(is_used(one).await?);
    for (is_used, listed) in [(true, one), (false, two)] {
        let filter = AssetFilter { is_used: Some(is_used), ..AssetFilter::default() };
        let found = assets::list(tx, workspace, ALL, &filter, &IdPage::default()).await?;
        assert!(found.contains(listed) && (found.len() == 1) == is_used, "{found:?}");
    }
    trash::delete(tx, workspace, entry.id).await?;
    assert!(!is_used(one).await?);
    Ok(())
}
