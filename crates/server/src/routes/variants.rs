//! `/variants`.

use galley_api_types::variant::{NewVariant, VariantBody, VariantChange};
use galley_application::operations::variants;
use galley_domain::VariantId;
use galley_domain::variant::Variant;

use crate::extract::actor::{ReadVariants, WriteVariants};
use crate::routes::prelude::*;

const PATH: &str = "/variants";

/// Get a variant
#[utoipa::path(
    get, path = "/variants", operation_id = "getVariant", params(("id" = schemas::VariantId, Query)),
    responses((status = 200, body = VariantBody<'_>)),
)]
pub(crate) async fn get(
    actor: Actor<ReadVariants>,
    staleness: StalenessBound,
    IdQuery(id): IdQuery<VariantId>,
) -> Result<Response, Problem> {
    let variant = variants::get(&actor.stale_caller(staleness), id).await?;
    Ok(response::resource(variant.version, &VariantBody::from(&variant)))
}

/// List the variants
///
/// Returns the variants in the order of their creation, oldest first.
#[utoipa::path(
    get, path = "/variants/list", operation_id = "listVariants", params(IdPageParams),
    responses((status = 200, body = [VariantBody<'_>])),
)]
pub(crate) async fn list(
    actor: Actor<ReadVariants>,
    staleness: StalenessBound,
    list: IdListQuery<VariantId>,
) -> Result<Response, Problem> {
    let mut variants = variants::list(&actor.stale_caller(staleness), list.page()).await?;
    Ok(list.respond(&mut variants, |variant| variant.id, VariantBody::from))
}

/// Create a variant
#[utoipa::path(
    post, path = "/variants", operation_id = "createVariant", request_body = NewVariant,
    responses(
        (status = 201, body = VariantBody<'_>),
        (status = 409, description = "key_taken"),
    ),
)]
pub(crate) async fn create(
    actor: Actor<WriteVariants>,
    request: CreateRequest<NewVariant>,
) -> Result<Response, Problem> {
    let (prefer, new, request) = request.parse(actor.caller()).await?;
    let respond = Respond::new(move |variant: &Variant| {
        created::created(prefer, variant.id, variant.version, &VariantBody::from(variant))
            .with_location(PATH, variant.id)
    });
    Ok(created::respond(variants::create(actor.caller(), new, request, respond).await?))
}

/// Change a variant
///
/// Absent fields stay unchanged. A new key keeps the variant's overrides.
#[utoipa::path(
    put, path = "/variants", operation_id = "updateVariant", request_body = VariantChange,
    responses(
        (status = 200, body = VariantBody<'_>),
        (status = 409, description = "key_taken"),
    ),
)]
pub(crate) async fn update(
    actor: Actor<WriteVariants>,
    request: ChangeRequest<VariantChange>,
) -> Result<Response, Problem> {
    let ParsedChange { prefer, expected, id, change } = request.parse(actor.caller()).await?;
    let variant = variants::update(actor.caller(), id, change, expected).await?;
    Ok(response::updated(prefer, variant.version, &VariantBody::from(&variant)))
}

/// Delete a variant
///
/// The overrides of all pieces in this variant are deleted, too.
#[utoipa::path(
    delete, path = "/variants", operation_id = "deleteVariant",
    params(("id" = schemas::VariantId, Query)),
)]
pub(crate) async fn delete(
    actor: Actor<WriteVariants>,
    expected: VersionPrecondition,
    IdQuery(id): IdQuery<VariantId>,
) -> Result<Response, Problem> {
    variants::delete(actor.caller(), id, expected).await?;
    Ok(response::no_content())
}
