//! `POST /variants`

use axum::extract::State;
use axum::response::Response;
use galley_domain::text::ShortText;
use galley_domain::variant::{VariantKey, VariantLabel};
use galley_storage::WriteTx;

use super::PATH;
use crate::http::actor::{Actor, WriteVariants};
use crate::http::app::App;
use crate::http::body::JsonBody;
use crate::http::error::Error;
use crate::http::fields::text;
use crate::http::prefer::Prefer;
use crate::http::response;
use crate::operations::variants;
use crate::representation::variant::VariantBody;

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteVariants>,
    prefer: Prefer,
    JsonBody { mut fields, .. }: JsonBody,
) -> Result<Response, Error> {
    let key = fields.required("key", text(VariantKey::parse));
    let label = fields.required("label", text(VariantLabel::parse));
    let description = fields.optional("description", text(ShortText::parse));
    fields.finish()?;
    let (key, label) = key.zip(label).expect("there, as nothing was refused");
    let (scope, environment) = (actor.scope(), app.environment().clone());
    let write = async move |tx: &WriteTx<'_>| {
        variants::create(tx, &environment, &scope, &key, &label, description.as_ref()).await
    };
    let variant = app.database().write("variants.create", write).await?;
    let body = VariantBody::from(&variant);
    Ok(response::created(prefer, PATH, variant.id, variant.version, &body))
}
