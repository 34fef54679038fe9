//! Creation, update and deletion of tags. They emit no events.

use galley_domain::TagId;
use galley_domain::tag::{Color, Tag, TagLabel};
use galley_storage::{WriteTx, tags};

use crate::environment::Environment;
use crate::error::Error;
use crate::precondition::VersionPrecondition;
use crate::scope::Scope;

/// Creates a tag.
pub async fn create(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    label: &TagLabel,
    color: Color,
) -> Result<Tag, Error> {
    let id = TagId::new(environment.new_id());
    let tag = Tag { id, label: label.clone(), color, version: 1 };
    tags::insert(tx, scope.workspace, &tag, environment.now()).await?;
    Ok(tag)
}

/// Updates a tag.
pub async fn update(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: TagId,
    label: Option<&TagLabel>,
    color: Option<Color>,
    expected: &VersionPrecondition,
) -> Result<Tag, Error> {
    let before =
        tags::find_for_update(tx, scope.workspace, id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(before.version)?;
    let mut tag = before.clone();
    tag.label = label.unwrap_or(&tag.label).clone();
    tag.color = color.unwrap_or(tag.color);
    if tag != before {
        tag.version += 1;
        tags::update(tx, scope.workspace, &tag).await?;
    }
    Ok(tag)
}

/// Deletes a tag, and removes it from every piece.
pub async fn delete(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: TagId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let tag = tags::find_for_update(tx, scope.workspace, id).await?.ok_or_else(Error::not_found)?;
    expected.check_version(tag.version)?;
    tags::delete(tx, scope.workspace, id).await?;
    Ok(())
}
