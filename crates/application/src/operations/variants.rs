//! Variants. Each of their changes emits the event `variantChanged`.

use galley_api_types::event_envelope::ChangeKind;
use galley_api_types::variant::{NewVariant, VariantBody, VariantChange};
use galley_domain::VariantId;
use galley_domain::audit::AuditAction;
use galley_domain::event::ResourceChange;
use galley_domain::variant::{Variant, VariantRef};
use galley_storage::{Error as StorageError, IdPage, Tx, UniqueKey, WriteTx, variants};

use crate::audit::{self, AuditChanges};
use crate::caller::Caller;
use crate::environment::Environment;
use crate::error::Error;
use crate::idempotency::{self, CreatedResponse, IdempotentRequest, Respond};
use crate::operations::append_change;
use crate::precondition::VersionPrecondition;
use crate::rejection::{Reason, Rejection};
use crate::scope::Scope;

/// Returns a variant.
pub async fn get(caller: &Caller, id: VariantId) -> Result<Variant, Error> {
    let workspace = caller.workspace();
    let read = async move |tx: &Tx<'_>| {
        variants::find(tx, workspace, id).await?.ok_or_else(Error::not_found)
    };
    caller.read("variants.get", read).await
}

/// Lists the variants of the workspace.
pub async fn list(caller: &Caller, page: IdPage) -> Result<Vec<Variant>, Error> {
    let workspace = caller.workspace();
    let read = async move |tx: &Tx<'_>| Ok(variants::list(tx, workspace, &page).await?);
    caller.read("variants.list", read).await
}

/// Creates a variant.
pub async fn create(
    caller: &Caller,
    new: NewVariant,
    request: IdempotentRequest,
    respond: Respond<Variant>,
) -> Result<CreatedResponse, Error> {
    let (scope, environment) = (caller.scope(), caller.environment().clone());
    let create =
        async move |tx: &WriteTx<'_>| create_in(tx, &environment, &scope, new.clone()).await;
    idempotency::create(caller, "variants.create", request, None, create, respond).await
}

/// Updates a variant. The overrides of pieces are kept if the key changes.
pub async fn update(
    caller: &Caller,
    id: VariantId,
    change: VariantChange,
    expected: VersionPrecondition,
) -> Result<Variant, Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let workspace = own.workspace();
        let found = variants::find_for_update(tx, workspace, id).await?;
        let before = found.ok_or_else(Error::not_found)?;
        expected.check_version(before.version)?;
        let mut variant = before.clone();
        variant.key = change.key.as_ref().unwrap_or(&variant.key).clone();
        variant.label = change.label.as_ref().unwrap_or(&variant.label).clone();
        variant.description = change.description.as_ref().unwrap_or(&variant.description).clone();
        if variant != before {
            variant.version += 1;
            variants::update(tx, workspace, &variant).await.map_err(map_taken_key)?;
            let (event, body) = (ResourceChange::VariantChanged, VariantBody::from(&variant));
            let changes = AuditChanges::updated(VariantBody::from(&before), &body);
            own.record(tx, AuditAction::VariantUpdate, id, changes);
            append_change(tx, own.environment(), workspace, event, body, ChangeKind::Updated)
                .await?;
        }
        Ok(variant)
    };
    caller.write("variants.update", write).await
}

/// Deletes a variant with all overrides of pieces in it.
pub async fn delete(
    caller: &Caller,
    id: VariantId,
    expected: VersionPrecondition,
) -> Result<(), Error> {
    let own = caller.clone();
    let write = async move |tx: &WriteTx<'_>| {
        let workspace = own.workspace();
        let found = variants::find_for_update(tx, workspace, id).await?;
        let variant = found.ok_or_else(Error::not_found)?;
        expected.check_version(variant.version)?;
        variants::delete(tx, workspace, id).await?;
        let (event, body) = (ResourceChange::VariantChanged, VariantBody::from(&variant));
        own.record(tx, AuditAction::VariantDelete, id, AuditChanges::deleted(&body));
        append_change(tx, own.environment(), workspace, event, body, ChangeKind::Removed).await
    };
    caller.write("variants.delete", write).await
}

/// Creates a variant in a transaction.
pub async fn create_in(
    tx: &WriteTx<'_>,
    environment: &Environment,
    scope: &Scope,
    new: NewVariant,
) -> Result<Variant, Error> {
    let NewVariant { key, label, description } = new;
    let id = VariantId::new(environment.new_id());
    let variant = Variant { id, key, label, description, version: 1 };
    let inserted = variants::insert(tx, scope.workspace, &variant, environment.now()).await;
    inserted.map_err(map_taken_key)?;
    let (event, body) = (ResourceChange::VariantChanged, VariantBody::from(&variant));
    let changes = AuditChanges::created(&body);
    audit::record(tx, environment, scope, AuditAction::VariantCreate, id, changes);
    append_change(tx, environment, scope.workspace, event, body, ChangeKind::Added).await?;
    Ok(variant)
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
