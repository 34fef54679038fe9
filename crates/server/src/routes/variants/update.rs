//! `PUT /variants`

use axum::response::Response;
use galley_api_types::variant::VariantBody;
use galley_application::VersionPrecondition;
use galley_application::operations::variants;
use galley_application::operations::variants::VariantUpdate;
use galley_domain::VariantId;
use galley_domain::text::ShortText;
use galley_domain::variant::{VariantKey, VariantLabel};

use super::schema;
use crate::extract::actor::{Actor, WriteVariants};
use crate::extract::body::JsonBody;
use crate::extract::fields::{reference, text};
use crate::extract::prefer::Prefer;
use crate::extract::query::RequestedId;
use crate::problem::Problem;
use crate::respond::response;

/// Change a variant
///
/// Absent fields stay unchanged. A new key keeps the variant's overrides.
#[utoipa::path(
    put,
    path = "/variants",
    operation_id = "updateVariant",
    request_body = schema::VariantChange,
    responses(
        (status = 200, body = VariantBody<'_>),
        (status = 409, description = "key_taken"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteVariants>,
    prefer: Prefer,
    expected: VersionPrecondition,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Problem> {
    let id = RequestedId::new(fields.required("id", reference::<VariantId>).flatten());
    let key = fields.replacement("key", text(VariantKey::parse));
    let label = fields.replacement("label", text(VariantLabel::parse));
    let description = fields.clearable("description", text(ShortText::parse));
    fields.finish()?;
    let update = VariantUpdate { id: id.get()?, key, label, description };
    let variant = variants::update(actor.caller(), update, expected).await?;
    Ok(response::updated(prefer, variant.version, &VariantBody::from(&variant)))
}
