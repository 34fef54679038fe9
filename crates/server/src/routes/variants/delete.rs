//! `DELETE /variants?id=`

use axum::extract::State;
use axum::response::Response;
use galley_api_types::schemas;
use galley_application::VersionPrecondition;
use galley_application::operations::variants;
use galley_domain::VariantId;
use galley_storage::WriteTx;

use crate::app::App;
use crate::extract::actor::{Actor, WriteVariants};
use crate::extract::query::Query;
use crate::problem::Problem;
use crate::respond::response;

/// Delete a variant
///
/// The overrides of all pieces in this variant are deleted, too.
#[utoipa::path(
    delete,
    path = "/variants",
    operation_id = "deleteVariant",
    params(("id" = schemas::VariantId, Query)),
)]
pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<WriteVariants>,
    expected: VersionPrecondition,
    mut query: Query,
) -> Result<Response, Problem> {
    let id = query.id::<VariantId>();
    query.finish()?;
    let (id, scope) = (id.get()?, actor.scope());
    let write = async move |tx: &WriteTx<'_>| variants::delete(tx, &scope, id, &expected).await;
    app.database().write("variants.delete", write).await?;
    Ok(response::no_content())
}
