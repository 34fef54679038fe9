//! Calls of the functions of content groups.

use galley_domain::content_group::{GroupPath, PreviewUrl};
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::{ContentGroupId, WorkspaceId};
use galley_storage::{Error, IdPage, WriteTx, content_groups, custom_data_schemas};

use super::group;
use crate::store::NOW;

pub(super) async fn groups(
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
    b.custom_data_schema = Some(CustomDataSchema::parse("{}").unwrap());
    b.preview_url = Some(PreviewUrl::parse("https://example.org/{token}").unwrap());
    content_groups::update(tx, workspace, &b).await?;
    let found = custom_data_schemas::effective(tx, workspace, b.id).await?.expect("it has one");
    assert_eq!((found.group, Some(found.schema)), (b.id, b.custom_data_schema.clone()));
    assert_eq!(custom_data_schemas::effective(tx, workspace, a.id).await?, None);
    let preview_url = content_groups::find_preview_url(tx, workspace, b.id).await?;
    assert_eq!(preview_url, b.preview_url);
    assert_eq!(content_groups::find_preview_url(tx, workspace, a.id).await?, None);
    assert_eq!(content_groups::find(tx, workspace, b.id).await?, Some(b.clone()));
    assert_eq!(content_groups::height(tx, workspace, top).await?, 2);
    assert_eq!(
        content_groups::existing(tx, workspace, &[b.id, ContentGroupId::new(3)], None).await?,
        [b.id].into()
    );
    let children =
        content_groups::list_children(tx, workspace, Some(top), &IdPage::default()).await?;
    assert_eq!(children, [a.clone()]);
    assert_eq!(
        content_groups::list_children(tx, workspace, None, &IdPage::default()).await?.len(),
        1
    );
    let some = content_groups::list_some(
        tx,
        workspace,
        &[a.id, b.id],
        &IdPage { offset: 1, ..IdPage::default() },
    )
    .await?;
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
