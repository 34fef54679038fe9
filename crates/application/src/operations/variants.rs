//! Creation, update and deletion of variants. They emit no events.

use galley_domain::VariantId;
use galley_domain::text::ShortText;
use galley_domain::variant::{Variant, VariantKey, VariantLabel, VariantRef};
use galley_storage::{Error as StorageError, Tx, UniqueKey, WriteTx, variants};

use crate::environment::Environment;
use crate::error::Error;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// An update of a variant; `None` leaves a field unchanged.
#[derive(Debug, Clone)]
pub struct VariantUpdate {
    /// The variant.
    pub id: VariantId,
    /// The key that programs use.
    pub key: Option<VariantKey>,
    /// The label.
    pub label: Option<VariantLabel>,
    /// The description; `Some(None)` clears it.
    pub description: Option<Option<ShortText>>,
}

/// Creates a variant.
pub async fn create(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    key: &VariantKey,
    label: &VariantLabel,
    description: Option<&ShortText>,
) -> Result<Variant, Error> {
    let variant = Variant {
        id: VariantId::new(environment.new_id()),
        key: key.clone(),
        label: label.clone(),
        description: description.cloned(),
        version: 1,
    };
    let inserted = variants::insert(tx, scope.workspace, &variant, environment.now()).await;
    inserted.map_err(map_taken_key)?;
    Ok(variant)
}

/// Updates a variant. The overrides of pieces are kept if the key changes.
pub async fn update(
    tx: &WriteTx<'_>,
    scope: &Scope,
    update: &VariantUpdate,
    expected: &VersionPrecondition,
) -> Result<Variant, Error> {
    let found = variants::find_for_update(tx, scope.workspace, update.id).await?;
    let before = found.ok_or_else(Error::not_found)?;
    expected.check_version(before.version)?;
    let mut variant = before.clone();
    variant.key = update.key.as_ref().unwrap_or(&variant.key).clone();
    variant.label = update.label.as_ref().unwrap_or(&variant.label).clone();
    variant.description = update.description.as_ref().unwrap_or(&variant.description).clone();
    if variant != before {
        variant.version += 1;
        let updated = variants::update(tx, scope.workspace, &variant).await;
        updated.map_err(map_taken_key)?;
    }
    Ok(variant)
}

/// Deletes a variant with all overrides of pieces in it.
pub async fn delete(
    tx: &WriteTx<'_>,
    scope: &Scope,
    id: VariantId,
    expected: &VersionPrecondition,
) -> Result<(), Error> {
    let found = variants::find_for_update(tx, scope.workspace, id).await?;
    expected.check_version(found.ok_or_else(Error::not_found)?.version)?;
    variants::delete(tx, scope.workspace, id).await?;
    Ok(())
}

/// Returns the variant that a request for pieces names, if any.
pub async fn find_named(
    tx: &Tx<'_>,
    scope: &Scope,
    name: Option<&VariantRef>,
) -> Result<Option<Variant>, Error> {
    let Some(name) = name else { return Ok(None) };
    let found = variants::find_named(tx, scope.workspace, name).await?;
    found.map(Some).ok_or_else(Error::not_found)
}

fn map_taken_key(error: StorageError) -> Error {
    match error {
        StorageError::Taken(UniqueKey::VariantKey) => {
            let detail = "another variant of this workspace has this key: choose another one";
            Rejection::new(Reason::KeyTaken, detail).into()
        }
        other => other.into(),
    }
}
