//! `GET /variants?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_api_types::variant::VariantBody;
use galley_application::Error;
use galley_domain::VariantId;
use galley_storage::{Tx, variants};

use crate::app::App;
use crate::extract::actor::{Actor, ReadVariants};
use crate::extract::prefer::StalenessBound;
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Get a variant
#[utoipa::path(
    get,
    path = "/variants",
    operation_id = "getVariant",
    params(("id" = schemas::VariantId, Query)),
    responses(
        (status = 200, body = VariantBody<'_>),
    ),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<ReadVariants>,
    staleness: StalenessBound,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<VariantId>();
    query.finish()?;
    let (id, workspace) = (id.get()?, actor.workspace);
    let read = async move |tx: &Tx<'_>| {
        variants::find(tx, workspace, id).await?.ok_or_else(Error::not_found)
    };
    let variant = staleness.read(app.database(), "variants.get", read).await?;
    Ok(response::resource(variant.version, &VariantBody::from(&variant)))
}
