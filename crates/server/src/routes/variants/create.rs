//! `POST /variants`

use axum::response::Response;
use galley_api_types::variant::VariantBody;
use galley_application::Respond;
use galley_application::operations::variants::{self, NewVariant};
use galley_domain::text::ShortText;
use galley_domain::variant::{Variant, VariantKey, VariantLabel};

use super::{PATH, schema};
use crate::extract::actor::{Actor, WriteVariants};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::created;

/// Create a variant
#[utoipa::path(
    post,
    path = "/variants",
    operation_id = "createVariant",
    request_body = schema::NewVariantSchema,
    responses(
        (status = 201, body = VariantBody<'_>),
        (status = 409, description = "key_taken"),
    ),
)]
pub(crate) async fn handle(
    actor: Actor<WriteVariants>,
    prefer: Prefer,
    once: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let key = fields.required("key", text(VariantKey::parse));
    let label = fields.required("label", text(VariantLabel::parse));
    let description = fields.optional("description", text(ShortText::parse));
    let (key, label) = fields.finish_with((key, label))?;
    let new = NewVariant { key, label, description };
    let respond = Respond::new(move |variant: &Variant| {
        created::created(prefer, variant.id, variant.version, &VariantBody::from(variant))
            .with_location(PATH, variant.id)
    });
    let request = once.for_body(&bytes);
    let response = variants::create(actor.caller(), new, request, respond).await?;
    Ok(created::respond(response))
}
