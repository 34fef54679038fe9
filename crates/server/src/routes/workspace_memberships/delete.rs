//! `DELETE /workspace-memberships?id=`

use axum::extract::State;
use axum::response::Response;
use galley_domain::WorkspaceMemberId;
use galley_domain::permission::{Permission, Resource};
use galley_storage::WriteTx;

use crate::http::actor::{Actor, AnyToken};
use crate::http::app::App;
use crate::http::error::Error;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::response;
use crate::operations::{Expected, members};

pub(crate) async fn handle(
    State(app): State<App>,
    actor: Actor<AnyToken>,
    expected: Expected,
    mut query: Query,
) -> Result<Response, Error> {
    let id = query.id::<WorkspaceMemberId>();
    // Every member may remove itself; to remove another one takes a permission.
    let leaves = id.is(actor.member) && actor.is_unlimited();
    let needed = Permission::write(Resource::WorkspaceMemberships);
    if !leaves && !actor.permissions.allows(needed) {
        return Err(Problem::insufficient_permissions(needed).into());
    }
    query.finish()?;
    let (id, environment) = (id.get()?, app.environment().clone());
    let caller = actor.into_authentication();
    let write = async move |tx: &WriteTx<'_>| {
        members::remove(tx, &environment, &caller, id, &expected).await
    };
    app.database().write("members.remove", write).await?;
    Ok(response::no_content())
}
