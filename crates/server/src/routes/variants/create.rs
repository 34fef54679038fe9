//! `POST /variants`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::variant::VariantBody;
use galley_application::operations::variants;
use galley_domain::text::ShortText;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_storage::WriteTx;

use super::{PATH, schema};
use crate::app::App;
use crate::extract::actor::{Actor, WriteVariants};
use crate::extract::body::JsonBody;
use crate::extract::fields::text;
use crate::extract::idempotency_key::IdempotencyKey;
use crate::extract::prefer::Prefer;
use crate::problem::Problem;
use crate::respond::idempotent;
use crate::respond::response::CreatedResponse;

/// Create a variant
#[utoipa::path(
    post,
    path = "/variants",
    operation_id = "createVariant",
    request_body = schema::NewVariant,
    responses(
        (status = 201, body = VariantBody<'_>),
        (status = 409, description = "key_taken"),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteVariants>,
    prefer: Prefer,
    once: IdempotencyKey,
    JsonBody { mut fields, bytes }: JsonBody,
) -> Result<Response, Problem> {
    let key = fields.required("key", text(VariantKey::parse));
    let label = fields.required("label", text(VariantLabel::parse));
    let description = fields.optional("description", text(ShortText::parse));
    fields.finish()?;
    let (key, label) = key.zip(label).expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let create = async move |tx: &WriteTx<'_>| {
        let created =
            variants::create(tx, &environment, &scope, &key, &label, description.as_ref());
        let variant = created.await?;
        let body = VariantBody::from(&variant);
        Ok(CreatedResponse::new(prefer, variant.id, variant.version, &body)
            .with_location(PATH, variant.id))
    };
    idempotent::create(&app, "variants.create", &actor, once, &bytes, create).await
}
